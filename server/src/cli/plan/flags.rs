//! The command line of `trainyard plan`.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use trainyard_gpu_runtime::Dtype;
use trainyard_gpu_runtime::backend::HostKernels;
use trainyard_gpu_runtime::backend::cpu::Peaks;
use trainyard_gpu_runtime::block_formats;
use trainyard_gpu_runtime::blocks::BlockFormat;
use trainyard_gpu_runtime::config::{LoadError, ModelConfig};
use trainyard_gpu_runtime::load::{describe, load, location};
use trainyard_gpu_runtime::plan::{Device, Host, LinkKind, Network, PlannedLayout, Workload, named_shape, shape_names};
use trainyard_protocol::LoraSpec;

use crate::config::{ComputeType, WeightForm, size};
use crate::machine;

/// The processor of this machine, among the devices.
const CPU: &str = "cpu";

/// Flags of `trainyard plan`.
#[derive(Args, Clone, Debug)]
pub(in crate::cli) struct PlanFlags {
    /// Model: a Hugging Face folder, a config.json, a GGUF file, an id in the hub's cache, or the shape
    /// qwen3-8b, llama-3.1-8b, llama-3.1-70b or qwen3-235b-a22b.
    #[arg(long, value_name = "CONFIG")]
    pub(super) model: String,
    /// Layout of the ranks that share the model: ranks of each axis, and zero=3 where replicas share parameters, such
    /// as tp=4,dp=2,zero=3.
    #[arg(long, value_name = "LAYOUT", default_value = "tp=1")]
    pub(super) parallel: PlannedLayout,
    /// Device of each rank: a100, h100, h200 or b200, or cpu for a part of this machine.
    #[arg(long, value_name = "NAME", default_value = "h100")]
    device: String,
    /// Link between machines: nvlink, 400g, or bytes per second of each device in one direction.
    #[arg(long, value_name = "LINK", default_value = "400g")]
    link: LinkKind,
    /// Devices of a machine; they reach each other over their own link.
    #[arg(long, value_name = "N", default_value_t = 8)]
    gpus_per_node: usize,
    /// Type of GEMM inputs.
    #[arg(long, value_enum, default_value = "bf16")]
    dtype: ComputeType,
    /// Form in which the processor holds the base weights of an adapter: bf16, file, q8 or q4, as serve has them; with
    /// --device cpu.
    #[arg(long, value_enum, value_name = "FORM", conflicts_with = "full")]
    pub(super) weights: Option<WeightForm>,
    /// Tokens of a microbatch on each replica.
    #[arg(long, value_name = "N", default_value_t = 4096)]
    microbatch_tokens: usize,
    /// Microbatches of a training step on each replica.
    #[arg(long, value_name = "N", default_value_t = 1)]
    microbatches: usize,
    /// Tokens of a sequence.
    #[arg(long, value_name = "N", default_value_t = 4096)]
    context: usize,
    /// Sequences that each replica samples at a time.
    #[arg(long, value_name = "N", default_value_t = 16)]
    sequences: usize,
    /// Rank of the adapter that is trained, on attention and MLP.
    #[arg(long, value_name = "N", default_value_t = 32)]
    rank: u32,
    /// Train the adapter on the unembedding too.
    #[arg(long)]
    train_unembed: bool,
    /// Train all parameters instead of an adapter.
    #[arg(long, conflicts_with_all = ["rank", "train_unembed"])]
    full: bool,
    /// FLOP/s of GEMMs, with --device cpu; measured by default.
    #[arg(long, value_name = "FLOPS")]
    flops: Option<f64>,
    /// Bytes of memory read per second, with --device cpu; measured by default.
    #[arg(long, value_name = "BYTES_PER_S")]
    bandwidth: Option<f64>,
    /// Memory that the engine may use, with --device cpu; four fifths of the machine's by default.
    #[arg(long, visible_alias = "memory", value_name = "SIZE", value_parser = size::mebibytes::<u64>)]
    memory_mib: Option<u64>,
    /// Threads that are measured, with --device cpu; one per processor by default.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Kernels, with --device cpu: amx-bf16, avx512-bf16, avx2 or portable; the best ones that the processor has by
    /// default.
    #[arg(long, value_name = "CLASS")]
    kernels: Option<HostKernels>,
    /// Print a JSON document for programs.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum FlagError {
    #[error("--model {0}: {1}")]
    Model(String, LoadError),
    #[error("--model {0}: not found; expected a file, a folder or one of the shapes {1}")]
    NoModel(String, String),
    #[error("--device {0}: unknown; devices are {1} and cpu")]
    Device(String, String),
    #[error("{0} requires --device cpu")]
    ForCpu(&'static str),
    #[error("{0} must be a positive number")]
    Positive(&'static str),
    #[error("--weights {0}: requires a --parallel without tp and ep")]
    Ranks(&'static str),
    #[error("--weights file: --model {0} is not a file with weights: {1}")]
    NoBlocks(String, LoadError),
    #[error("--memory-mib: missing, and the system does not report its memory")]
    Memory,
}

impl PlanFlags {
    /// Reads the configuration of the model.
    pub(super) fn config(&self) -> Result<ModelConfig, FlagError> {
        let name = &self.model;
        if let Some(shape) = named_shape(name) {
            return shape.map_err(|error| FlagError::Model(name.clone(), error));
        }
        let found = location(Path::new(name)).and_then(|path| describe(&path));
        found.map_err(|error| match error {
            LoadError::Io { ref source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                FlagError::NoModel(name.clone(), shape_names().collect::<Vec<_>>().join(", "))
            }
            error => FlagError::Model(name.clone(), error),
        })
    }

    /// Returns the device of each rank.
    pub(super) fn device(&self) -> Result<Device, FlagError> {
        if self.device == CPU {
            return self.host().map(Device::host);
        }
        let of_cpu = [
            ("--flops", self.flops.is_some()),
            ("--bandwidth", self.bandwidth.is_some()),
            ("--memory-mib", self.memory_mib.is_some()),
            ("--threads", self.threads.is_some()),
            ("--kernels", self.kernels.is_some()),
            ("--weights", self.weights.is_some_and(|form| form != WeightForm::Bf16)),
        ];
        if let Some((flag, _)) = of_cpu.iter().find(|(_, given)| *given) {
            return Err(FlagError::ForCpu(flag));
        }
        let names = || Device::names().collect::<Vec<_>>().join(", ");
        Device::named(&self.device).ok_or_else(|| FlagError::Device(self.device.clone(), names()))
    }

    fn host(&self) -> Result<Host, FlagError> {
        let positive = |flag, value: Option<f64>| match value {
            Some(value) if !(value.is_finite() && value > 0.0) => Err(FlagError::Positive(flag)),
            value => Ok(value),
        };
        let (flops, bandwidth) = (positive("--flops", self.flops)?, positive("--bandwidth", self.bandwidth)?);
        let (flops, bandwidth) = match (flops, bandwidth) {
            (Some(flops), Some(bandwidth)) => (flops, bandwidth),
            (flops, bandwidth) => {
                let kernels = self.kernels.unwrap_or_else(HostKernels::detect);
                let peaks = Peaks::measure(kernels, self.dtype(), self.threads.unwrap_or(0));
                (flops.unwrap_or(peaks.gemm_gflops * 1e9), bandwidth.unwrap_or(peaks.read_gb_per_second * 1e9))
            }
        };
        let memory_bytes = match self.memory_mib {
            Some(0) => return Err(FlagError::Positive("--memory-mib")),
            Some(mib) => mib.saturating_mul(1 << 20),
            None => machine::memory_bytes().ok_or(FlagError::Memory)? / 5 * 4,
        };
        Ok(Host { memory_bytes, flops, bandwidth })
    }

    pub(super) fn network(&self) -> Network {
        Network { per_node: self.gpus_per_node, between: self.link }
    }

    /// Returns the formats of the parameters that stay in blocks, by name.
    pub(super) fn blocks(&self, config: &ModelConfig) -> Result<BTreeMap<String, BlockFormat>, FlagError> {
        let Some(form) = self.weights.filter(|form| *form != WeightForm::Bf16) else { return Ok(BTreeMap::new()) };
        if self.parallel.tp * self.parallel.ep > 1 {
            return Err(FlagError::Ranks(form.name()));
        }
        // Shapes and configurations have no tensors in blocks.
        let found = location(Path::new(&self.model)).and_then(|path| load(&path));
        let source = match (found, form) {
            (Err(error), WeightForm::File) => return Err(FlagError::NoBlocks(self.model.clone(), error)),
            (found, _) => found.ok(),
        };
        Ok(block_formats(config, source.as_ref().map(|source| &*source.tensors), form.storage()))
    }

    pub(super) fn work(&self, blocks: BTreeMap<String, BlockFormat>) -> Workload {
        let Self { rank, train_unembed, .. } = *self;
        let lora = LoraSpec { train_unembed, ..LoraSpec::on_all(rank, 0) };
        Workload {
            dtype: self.dtype(),
            blocks,
            kernels: self.kernels,
            lora: (!self.full).then_some(lora),
            microbatch_tokens: self.microbatch_tokens,
            microbatches: self.microbatches,
            context: self.context,
            sequences: self.sequences,
        }
    }

    fn dtype(&self) -> Dtype {
        match self.dtype {
            ComputeType::Bf16 => Dtype::Bf16,
            ComputeType::F32 => Dtype::F32,
        }
    }
}
