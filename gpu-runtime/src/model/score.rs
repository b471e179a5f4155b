//! The end of a pass: final norm and unembedding.

use super::adapter::RowGroup;
use super::linear::unembedding_segments;
use super::vocabulary::head_logprobs;
use super::weights::Weights;
use crate::backend::{Backend, FamilyOps, LinearCall, LoraSegment, Norm, Targets};

impl<B: Backend> Weights<B> {
    /// The final norm, with the model's epsilon.
    pub(super) fn final_norm(&self) -> Norm<'_, B> {
        self.norm.with(self.model.config.rms_norm_eps)
    }

    /// What the unembedding reads: normalised hidden states, scaled where the family scales logits.
    pub(super) fn head_input(&self, backend: &B, x: &B::Rows) -> B::Rows {
        self.with_logit_scale(backend, backend.norm(self.final_norm(), x))
    }

    /// [`Weights::head_input`] as the left side of a GEMM.
    pub(super) fn head_lhs(&self, backend: &B, x: &B::Rows) -> B::Lhs {
        match self.model.config.logit_scale {
            1.0 => backend.norm_lhs(self.final_norm(), x),
            _ => backend.lhs(&self.head_input(backend, x)),
        }
    }

    /// Rows multiplied by the factor on logits.
    pub(super) fn with_logit_scale(&self, backend: &B, rows: B::Rows) -> B::Rows {
        match self.model.config.logit_scale {
            1.0 => rows,
            scale => B::Family::scaled_rows(backend, scale, &rows),
        }
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
    let hidden = w.head_input(backend, x);
    let lora = unembedding_segments(groups, &[]);
    head_logprobs(backend, &w.model, &w.head(&lora), &hidden, targets, false).0
}
