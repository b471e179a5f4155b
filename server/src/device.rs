//! The GPUs that the engine computes on, if they are configured and usable.

use trainyard_gpu_runtime::backend::Dtype;

use crate::config::{ComputeType, Config, Device, Gpus};
use crate::gpu::{self, Gpu, GpuError};

/// The type of base weights and of the inputs of their GEMMs.
pub(crate) fn dtype(config: &Config) -> Dtype {
    match config.dtype {
        ComputeType::Bf16 => Dtype::Bf16,
        ComputeType::F32 => Dtype::F32,
    }
}

/// Error when starting an engine on a GPU.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The device does not exist, or can't be used.
    #[error("--device: cuda:{number}: {source}")]
    Cuda {
        /// The number of the device.
        number: u16,
        /// The error of the CUDA library, or of a build without it.
        source: GpuError,
    },
    /// Each rank needs a GPU of its own.
    #[error(
        "--device: {gpus}: {ranks} of the ranks of --parallel {layout} are in this process, each of which needs a GPU"
    )]
    Ranks {
        /// GPUs that the configuration names.
        gpus: Gpus,
        /// The number of ranks of this process.
        ranks: usize,
        /// The layout of the ranks.
        layout: String,
    },
    /// Samples can't be verified on a GPU, because they do not have the bits of a training pass.
    #[error("--verify-samples compares bits, which only the processor guarantees: leave it out, or pass --device cpu")]
    VerifiedSamples,
}

/// Opens a GPU for each rank of this process, as configured; an empty list means the processor. With `auto`, the log
/// gives the reason for the processor.
///
/// # Errors
/// With `cuda`, when a GPU can't be used.
pub(crate) fn open(config: &Config) -> Result<Vec<Gpu>, DeviceError> {
    match &config.device {
        Device::Cpu => Ok(Vec::new()),
        Device::Cuda(gpus) => open_each(config, gpus),
        Device::Auto => Ok(open_each(config, &Gpus::From(0)).unwrap_or_else(|reason| {
            tracing::info!(%reason, "computing on the processor");
            Vec::new()
        })),
    }
}

/// Counts the ranks of this process.
pub(crate) fn local_ranks(config: &Config) -> usize {
    if config.rank.is_some() { 1 } else { config.parallel.world() }
}

fn open_each(config: &Config, gpus: &Gpus) -> Result<Vec<Gpu>, DeviceError> {
    let ranks = local_ranks(config);
    let refused = || DeviceError::Ranks { gpus: gpus.clone(), ranks, layout: config.parallel.to_string() };
    let open = |number: u16| {
        let opened = gpu::open(number, dtype(config), config.cublaslt.as_deref());
        let (found, [name, matmul]) = opened.map_err(|source| DeviceError::Cuda { number, source })?;
        let device = format!("cuda:{number}");
        tracing::info!(device, name, matmul, "computing on a GPU");
        Ok(gpu::with_rank_limit(found, config.rank_timeout))
    };
    gpus.of(ranks).ok_or_else(refused)?.into_iter().map(open).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::config::{NamedPath, ServeFlags};

    #[test]
    fn as_many_gpus_are_named_as_there_are_ranks() {
        let refusal = |device: &str, layout: &str| {
            let mut flags = ServeFlags::default();
            flags.shared.models = vec![NamedPath { name: "m".to_owned(), path: "/m".into() }];
            let config = Config::resolve(flags).unwrap();
            let (device, parallel) = (device.parse().unwrap(), layout.parse().unwrap());
            open(&Config { device, parallel, ..config }).err().unwrap().to_string()
        };
        assert_eq!(
            refusal("cuda:0,1", "tp=2,dp=2"),
            "--device: cuda:0,1: 4 of the ranks of --parallel tp=2,dp=2 are in this process, each of which needs a GPU"
        );
        // No machine has as many.
        assert!(refusal("cuda:9998", "tp=2").starts_with("--device: cuda:9998: "));
    }
}
