//! The end of a pass: final norm and unembedding.

use super::adapter::RowGroup;
use super::linear::unembedding_segments;
use super::vocabulary::head_logprobs;
use super::weights::Weights;
use crate::backend::{Backend, LinearCall, LoraSegment, Norm, Targets};

impl<B: Backend> Weights<B> {
    /// The final norm, with the model's epsilon.
    pub(super) fn final_norm(&self) -> Norm<'_, B> {
        self.norm.with(self.model.config.rms_norm_eps)
    }

    /// The unembedding, with the adapters on it.
    pub(super) fn head<'a>(&'a self, lora: &'a [LoraSegment<'a, B>]) -> LinearCall<'a, B> {
        LinearCall { weight: &self.head, bias: None, lora }
    }
}

/// Log-probabilities of targets at temperature 1, from the residual stream `x[rows, hidden]`; groups cover the rows in
/// order.
pub(crate) fn target_logprobs<B: Backend>(
    backend: &B,
    w: &Weights<B>,
    x: &B::Rows,
    groups: &[RowGroup<B>],
    targets: &Targets,
) -> Vec<f32> {
    let hidden = backend.norm(w.final_norm(), x);
    let lora = unembedding_segments(groups, &[]);
    head_logprobs(backend, &w.model, &w.head(&lora), (&hidden, targets), false).0
}
