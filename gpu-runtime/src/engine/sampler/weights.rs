//! Weights that samples use.

use std::sync::Arc;

use crate::backend::Backend;
use crate::engine::base::Base;
use crate::model::{Adapter, Weights};

/// The weights that a sample uses. They are immutable: training replaces the weights of a run.
pub(in crate::engine) struct SamplerWeights<B: Backend> {
    pub(in crate::engine) base: Arc<Base<B>>,
    pub(in crate::engine) weights: Arc<Weights<B>>,
    pub(in crate::engine) adapter: Option<Arc<Adapter<B>>>,
}

impl<B: Backend> Clone for SamplerWeights<B> {
    fn clone(&self) -> Self {
        Self { base: Arc::clone(&self.base), weights: Arc::clone(&self.weights), adapter: self.adapter.clone() }
    }
}

impl<B: Backend> SamplerWeights<B> {
    pub(in crate::engine) fn of_base(base: Arc<Base<B>>) -> Self {
        Self { weights: Arc::clone(&base.weights), base, adapter: None }
    }

    /// Bytes that are not shared with the base model.
    pub(in crate::engine) fn own_bytes(&self, backend: &B) -> usize {
        let weights = if Arc::ptr_eq(&self.weights, &self.base.weights) { 0 } else { self.weights.bytes(backend) };
        weights + self.adapter.as_ref().map_or(0, |adapter| adapter.bytes(backend))
    }
}
