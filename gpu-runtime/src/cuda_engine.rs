//! Engines that run on GPUs.

use crate::backend::cuda::Cuda;
use crate::config::{LoadError, ModelSource};
use crate::engine::{Engine, EngineOptions, FolderCopies, FollowError, ParallelEngine, ProcessRank};
use crate::fault::{Fault, guarded};

/// An engine on one NVIDIA GPU.
pub type CudaEngine = Engine<Cuda>;

/// Calls `load`, in which the device may refuse memory.
fn loaded<T>(load: impl FnOnce() -> Result<T, LoadError>) -> Result<T, LoadError> {
    guarded("loading of models", load).map_err(refused).flatten()
}

fn refused(fault: Fault) -> LoadError {
    match fault {
        Fault::Panic | Fault::Interrupted => LoadError::Device,
        Fault::OutOfMemory => LoadError::DeviceMemory,
    }
}

impl CudaEngine {
    /// An engine of one rank on a GPU, as [`Engine::on`].
    ///
    /// # Errors
    /// The first model that cannot be loaded, [`LoadError::DeviceMemory`] where the device has too little memory, and
    /// [`LoadError::Device`] where it refuses a call.
    pub fn on_gpu(device: Cuda, models: Vec<(String, ModelSource)>, options: EngineOptions) -> Result<Self, LoadError> {
        loaded(|| Self::on(device, models, options))
    }
}

impl ParallelEngine<Cuda> {
    /// An engine with a rank on each of some GPUs, as [`ParallelEngine::on`].
    ///
    /// # Errors
    /// As for [`CudaEngine::on_gpu`], and [`LoadError::Rank`] where ranks cannot be connected by NCCL.
    pub fn on_gpus(
        devices: Vec<Cuda>,
        models: Vec<Vec<(String, ModelSource)>>,
        options: &EngineOptions,
    ) -> Result<Self, LoadError> {
        loaded(|| Self::on(devices, models, options))
    }
}

impl ProcessRank {
    /// The engine of rank 0 on a GPU, as [`ParallelEngine::over`].
    ///
    /// # Errors
    /// As for [`ParallelEngine::on_gpus`].
    pub fn lead_on_gpu(
        self,
        device: Cuda,
        models: Vec<(String, ModelSource)>,
        options: &EngineOptions,
    ) -> Result<ParallelEngine<Cuda>, LoadError> {
        loaded(|| ParallelEngine::over(self, device, models, options))
    }

    /// Follows rank 0 like [`ProcessRank::follow`], on a GPU.
    ///
    /// # Errors
    /// Errors of [`ProcessRank::follow`], and of [`ParallelEngine::on_gpus`].
    pub fn follow_on_gpu(
        self,
        device: Cuda,
        models: Vec<(String, ModelSource)>,
        options: &EngineOptions,
        copies: &dyn FolderCopies,
        ready: impl FnOnce(),
    ) -> Result<(), FollowError> {
        guarded("a rank", || self.follow_on(device, models, options, copies, ready))
            .unwrap_or_else(|fault| Err(refused(fault).into()))
    }
}
