//! Weights of RMSNorms, effective and stored.

use crate::backend::{Backend, Norm, Source};

pub(super) struct NormWeight<B: Backend> {
    /// Multiplies normalised elements: the stored weight plus the family's offset.
    effective: B::Vector,
    /// The weight as files store it, if that differs.
    stored: Option<B::Vector>,
}

impl<B: Backend> NormWeight<B> {
    pub(super) fn new(backend: &B, source: Source<'_, B>, offset: f32) -> Self {
        let stored = (offset != 0.0).then(|| backend.vector(&[source], 0.0));
        Self { effective: backend.vector(&[source], offset), stored }
    }

    /// The norm as ops take it, with the model's epsilon.
    pub(super) fn with(&self, eps: f32) -> Norm<'_, B> {
        Norm { weight: &self.effective, eps }
    }

    pub(super) fn to_host(&self, backend: &B, fence: &B::Fence) -> Vec<f32> {
        backend.vector_to_host(self.stored.as_ref().unwrap_or(&self.effective), fence)
    }
}
