//! Engines on a GPU.

use crate::backend::cuda::Cuda;
use crate::config::{LoadError, ModelSource};
use crate::engine::{Engine, EngineOptions};
use crate::fault::{Fault, guarded};

/// An engine on one NVIDIA GPU.
pub type CudaEngine = Engine<Cuda>;

impl CudaEngine {
    /// An engine of one rank on a GPU, as [`Engine::on`].
    ///
    /// # Errors
    /// The first model that cannot be loaded, [`LoadError::DeviceMemory`] where the device has too little memory, and
    /// [`LoadError::Device`] where it refuses a call.
    pub fn on_gpu(device: Cuda, models: Vec<(String, ModelSource)>, options: EngineOptions) -> Result<Self, LoadError> {
        let refused = |fault| match fault {
            Fault::Panic => LoadError::Device,
            Fault::OutOfMemory => LoadError::DeviceMemory,
        };
        guarded("loading of models", || Self::on(device, models, options)).map_err(refused).flatten()
    }
}
