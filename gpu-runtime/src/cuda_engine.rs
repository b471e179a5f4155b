//! Engines on a GPU.

use crate::backend::cuda::Cuda;
use crate::config::{LoadError, ModelSource};
use crate::engine::{Engine, EngineOptions};
use crate::fault::guarded;

/// An engine on one NVIDIA GPU.
pub type CudaEngine = Engine<Cuda>;

impl CudaEngine {
    /// An engine of one rank on a GPU, as [`Engine::on`].
    ///
    /// # Errors
    /// The first model that cannot be loaded, and [`LoadError::Device`] where the device refuses one: for want of memory as a rule.
    pub fn on_gpu(device: Cuda, models: Vec<(String, ModelSource)>, options: EngineOptions) -> Result<Self, LoadError> {
        guarded("loading of models", || Self::on(device, models, options)).unwrap_or(Err(LoadError::Device))
    }
}
