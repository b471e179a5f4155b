//! The GPU that the engine computes on, where it was asked for and can be used.

use trainyard_gpu_runtime::backend::cuda::{Cuda, CudaError};

use crate::config::{Config, Device};
use crate::engine::dtype;

/// Why there is no engine on a GPU.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// It is not there, or cannot be used.
    #[error("--device: {device}: {source}")]
    Cuda {
        /// The device.
        device: Device,
        /// Why.
        source: CudaError,
    },
    /// Several ranks.
    #[error("--device: {device}: --parallel {layout} has several ranks, which compute on processors alone")]
    Ranks {
        /// The device.
        device: Device,
        /// The layout.
        layout: String,
    },
}

/// The GPU that the configuration asks for; `None` is the processor. With `auto`, one line of the log says why it is that.
///
/// # Errors
/// With `cuda`, where it cannot be used.
pub(crate) fn open(config: &Config) -> Result<Option<Cuda>, DeviceError> {
    match config.device {
        Device::Cpu => Ok(None),
        Device::Cuda(_) => try_open(config).map(Some),
        Device::Auto => {
            Ok(try_open(config).inspect_err(|reason| tracing::info!(%reason, "computing on the processor")).ok())
        }
    }
}

fn try_open(config: &Config) -> Result<Cuda, DeviceError> {
    let number = if let Device::Cuda(number) = config.device { number } else { 0 };
    let device = Device::Cuda(number);
    if config.parallel.world() > 1 || config.rank.is_some() {
        return Err(DeviceError::Ranks { device, layout: config.parallel.to_string() });
    }
    let cuda = Cuda::open(i32::from(number), dtype(config)).map_err(|source| DeviceError::Cuda { device, source })?;
    let name = cuda.gpu().name().unwrap_or_default();
    tracing::info!(%device, name, "computing on a GPU");
    Ok(cuda)
}
