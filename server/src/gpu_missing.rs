//! GPUs in a build without the feature `cuda`: none can be opened, so nothing else is ever called.

use std::path::Path;
use std::time::Duration;

use trainyard_gpu_runtime::backend::Dtype;
use trainyard_gpu_runtime::collective::DeviceMemory;
use trainyard_gpu_runtime::config::{LoadError, ModelSource};
use trainyard_gpu_runtime::{EngineOptions, FolderCopies, FollowError, ProcessRank};

use crate::features::{self, NotInBuild};
use crate::linked::Linked;

type Models = Vec<(String, ModelSource)>;

pub(crate) type GpuError = NotInBuild;

/// A GPU, of which this build makes none.
#[allow(dead_code, reason = "never constructed in this build")]
pub(crate) struct Gpu(());

pub(crate) fn open(_: u16, _: Dtype, _: Option<&Path>) -> Result<(Gpu, [String; 2]), GpuError> {
    Err(features::CUDA)
}

pub(crate) fn with_rank_limit(gpu: Gpu, _: Option<Duration>) -> Gpu {
    gpu
}

pub(crate) fn memory(_: &Gpu) -> (u16, Result<DeviceMemory, GpuError>) {
    (0, Err(features::CUDA))
}

pub(crate) fn engine(_: Gpu, _: Models, _: EngineOptions) -> Result<Linked, LoadError> {
    Err(LoadError::Device)
}

pub(crate) fn ranks(_: Vec<Gpu>, _: Vec<Models>, _: &EngineOptions) -> Result<Linked, LoadError> {
    Err(LoadError::Device)
}

pub(crate) fn lead(_: ProcessRank, _: Gpu, _: Models, _: &EngineOptions) -> Result<Linked, LoadError> {
    Err(LoadError::Device)
}

pub(crate) fn follow(
    _: ProcessRank,
    _: Gpu,
    _: Models,
    _: &EngineOptions,
    _: &dyn FolderCopies,
    _: impl FnOnce(),
) -> Result<(), FollowError> {
    Err(LoadError::Device.into())
}
