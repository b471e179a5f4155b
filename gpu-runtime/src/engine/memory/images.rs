//! Memory of vision towers: weights, a pass over the largest image, and cached embeddings.

use crate::backend::Backend;
use crate::config::ModelConfig;
use crate::engine::EngineOptions;

/// Bytes of the towers of an engine's models; zeros if no model takes images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ImageMemory {
    /// Bytes of all towers.
    pub(super) weights: usize,
    /// Bytes of the largest pass.
    pub(super) pass: usize,
    /// Bytes of cached embeddings.
    pub(super) cache: usize,
}

impl ImageMemory {
    /// The memory of the towers of these models, each set of weights once.
    pub(super) fn new<B: Backend>(backend: &B, models: &[ModelConfig], options: &EngineOptions) -> Self {
        if models.iter().all(|config| config.vision.is_none()) {
            return Self::default();
        }
        let element = backend.dtype().bytes();
        Self {
            weights: models.iter().map(|config| config.tower_bytes(element)).sum(),
            pass: models.iter().map(ModelConfig::tower_pass_bytes).max().unwrap_or(0),
            cache: options.image_cache_bytes,
        }
    }
}
