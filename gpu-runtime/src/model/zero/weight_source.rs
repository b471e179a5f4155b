//! Source of a pass's weights: memory, or replicas that hold parts of them.

use std::sync::Arc;

use super::gathered::GatheredPass;
use crate::backend::{Backend, Held};
use crate::model::block_weights::BlockWeights;
use crate::model::early_end::EarlyEnd;
use crate::model::scalar_head::RunHead;
use crate::model::weights::{Model, Weights};

/// The weights of a pass, which asks for them in the order in which it needs them.
pub(crate) enum WeightSource<'w, B: Backend> {
    /// Weights that are all in memory.
    Resident(&'w Weights<B>),
    /// Weights that are gathered one unit at a time.
    Gathered(&'w mut GatheredPass<B>),
}

impl<'w, B: Backend> From<&'w Weights<B>> for WeightSource<'w, B> {
    fn from(weights: &'w Weights<B>) -> Self {
        Self::Resident(weights)
    }
}

impl<'w, B: Backend> From<&'w mut GatheredPass<B>> for WeightSource<'w, B> {
    fn from(pass: &'w mut GatheredPass<B>) -> Self {
        Self::Gathered(pass)
    }
}

impl<'w, B: Backend> WeightSource<'w, B> {
    pub(crate) fn model(&self) -> Arc<Model<B>> {
        match self {
            Self::Resident(weights) => Arc::clone(&weights.model),
            Self::Gathered(pass) => Arc::clone(pass.model()),
        }
    }

    /// The pass that gathers units and reduces their gradients, if weights are gathered.
    pub(crate) fn gathered(&mut self) -> Option<&mut GatheredPass<B>> {
        match self {
            Self::Resident(_) => None,
            Self::Gathered(pass) => Some(pass),
        }
    }

    /// Decides whether the pass ends here, before its next block or after a half. Replicas that gather units decide as one
    /// of their steps.
    pub(crate) fn ends_early(&mut self, early_end: &EarlyEnd) -> bool {
        match self {
            Self::Resident(_) => early_end.decide(),
            Self::Gathered(pass) => pass.ends_early(early_end),
        }
    }

    /// Weights with the token embedding.
    pub(crate) fn embedding(&mut self, backend: &B) -> Held<'w, Weights<B>> {
        match self {
            Self::Resident(weights) => Held::Borrowed(weights),
            Self::Gathered(pass) => Held::Owned(pass.embedding(backend)),
        }
    }

    /// A block: in the forward pass each once, in order; in the backward pass again, from the last one on.
    pub(crate) fn block(&mut self, backend: &B, layer: usize) -> Held<'w, BlockWeights<B>> {
        match self {
            Self::Resident(weights) => Held::Borrowed(&weights.blocks[layer]),
            Self::Gathered(pass) => Held::Owned(pass.block(backend, layer)),
        }
    }

    /// Weights with the final norm and the unembedding, until the end of their backward pass. If the weights are
    /// gathered and the run has a scalar head, the head takes the place of the unembedding.
    pub(crate) fn head(&mut self, backend: &B) -> (Held<'w, Weights<B>>, Option<RunHead<B>>) {
        match self {
            Self::Resident(weights) => (Held::Borrowed(weights), None),
            Self::Gathered(pass) => {
                let (weights, scalar_head) = pass.head(backend);
                (Held::Owned(weights), scalar_head)
            }
        }
    }
}
