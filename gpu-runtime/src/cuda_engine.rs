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
    /// Makes an engine of one rank on a GPU, like [`Engine::on`].
    ///
    /// # Errors
    /// The error of the first model that cannot be loaded, [`LoadError::DeviceMemory`] if the device has too little
    /// memory, and [`LoadError::Device`] if it refuses a call.
    pub fn on_gpu(device: Cuda, models: Vec<(String, ModelSource)>, options: EngineOptions) -> Result<Self, LoadError> {
        loaded(|| Self::on(device, models, options))
    }
}

impl ParallelEngine<Cuda> {
    /// Makes an engine with a rank on each of some GPUs, like [`ParallelEngine::on`].
    ///
    /// # Errors
    /// Errors of [`CudaEngine::on_gpu`], and [`LoadError::Rank`] if ranks cannot be connected by NCCL.
    pub fn on_gpus(
        devices: Vec<Cuda>,
        models: Vec<Vec<(String, ModelSource)>>,
        options: &EngineOptions,
    ) -> Result<Self, LoadError> {
        loaded(|| Self::on(devices, models, options))
    }
}

impl ProcessRank {
    /// Makes the engine of rank 0 on a GPU, like [`ParallelEngine::over`].
    ///
    /// # Errors
    /// Errors of [`ParallelEngine::on_gpus`].
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
