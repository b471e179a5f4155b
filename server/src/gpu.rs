//! Engines on GPUs, in builds with the feature `cuda`.

use std::path::Path;
use std::time::Duration;

use trainyard_gpu_runtime::backend::Dtype;
pub(crate) use trainyard_gpu_runtime::backend::cuda::{Cuda as Gpu, CudaError as GpuError};
use trainyard_gpu_runtime::collective::DeviceMemory;
use trainyard_gpu_runtime::config::{LoadError, ModelSource};
use trainyard_gpu_runtime::{CudaEngine, EngineOptions, FolderCopies, FollowError, ParallelEngine, ProcessRank};

use crate::linked::{Linked, one, several};

type Models = Vec<(String, ModelSource)>;

/// Opens a GPU by its number, with the cuBLASLt of a path; also returns its name, and cuBLASLt's version and file.
pub(crate) fn open(number: u16, dtype: Dtype, cublaslt: Option<&Path>) -> Result<(Gpu, [String; 2]), GpuError> {
    let gpu = Gpu::open_with(i32::from(number), dtype, cublaslt)?;
    let described = [gpu.gpu().name().unwrap_or_default(), gpu.matmul_library().to_string()];
    Ok((gpu, described))
}

/// Sets the time that a rank waits for others.
pub(crate) fn with_rank_limit(gpu: Gpu, rank_limit: Option<Duration>) -> Gpu {
    rank_limit.into_iter().fold(gpu, Gpu::with_rank_limit)
}

/// The number of a GPU and its memory.
pub(crate) fn memory(gpu: &Gpu) -> (u16, Result<DeviceMemory, GpuError>) {
    (u16::try_from(gpu.gpu().ordinal()).unwrap_or_default(), gpu.gpu().memory())
}

pub(crate) fn engine(gpu: Gpu, models: Models, options: EngineOptions) -> Result<Linked, LoadError> {
    CudaEngine::on_gpu(gpu, models, options).map(one)
}

pub(crate) fn ranks(gpus: Vec<Gpu>, models: Vec<Models>, options: &EngineOptions) -> Result<Linked, LoadError> {
    ParallelEngine::on_gpus(gpus, models, options).map(several)
}

pub(crate) fn lead(rank: ProcessRank, gpu: Gpu, models: Models, options: &EngineOptions) -> Result<Linked, LoadError> {
    rank.lead_on_gpu(gpu, models, options).map(several)
}

pub(crate) fn follow(
    rank: ProcessRank,
    gpu: Gpu,
    models: Models,
    options: &EngineOptions,
    copies: &dyn FolderCopies,
    ready: impl FnOnce(),
) -> Result<(), FollowError> {
    rank.follow_on_gpu(gpu, models, options, copies, ready)
}
