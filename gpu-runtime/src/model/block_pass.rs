//! A batch in its passes through a block.

use std::cell::RefCell;
use std::sync::Arc;

use super::adapter::RowGroup;
use super::block_weights::BlockWeights;
use super::linear::Linear;
use super::mrope::PassRotation;
use super::norm_weight::NormWeight;
use super::pass_kv::PassKv;
use super::weights::Model;
use crate::backend::{Backend, Chosen, Span};

/// The batch as a block sees it.
pub(super) struct BlockPass<'a, B: Backend> {
    pub(super) backend: &'a B,
    pub(super) model: &'a Model<B>,
    pub(super) block: &'a BlockWeights<B>,
    pub(super) groups: &'a [RowGroup<B>],
    pub(super) positions: &'a [u32],
    /// Rotary tables in place of the model's, where positions have coordinates.
    pub(super) rotation: Option<&'a PassRotation<B>>,
    pub(super) spans: &'a [Span],
    pub(super) kv: PassKv<'a, B>,
    /// Positions that the last indexer has chosen; `None` where rows see all positions.
    pub(super) chosen: &'a RefCell<Option<Arc<Chosen>>>,
}

impl<B: Backend> BlockPass<'_, B> {
    /// `residual`, or zero, plus the output of a linear layer with the adapters on it; and `scale · (x Aᵀ)` of these.
    pub(super) fn linear(
        &self,
        layer: usize,
        linear: &Linear<B>,
        x: &B::Lhs,
        residual: Option<&B::Rows>,
    ) -> (B::Rows, B::LowRank) {
        let mut out = self.backend.alloc(self.positions.len(), linear.outputs());
        let lora = linear.segments(self.groups, layer, None, &[]);
        let low_rank = self.backend.linear(&linear.with(&lora), x, residual, &mut out);
        (out, low_rank)
    }

    /// Normalised rows as the left side of GEMMs; without a norm the rows themselves.
    pub(super) fn normed(&self, norm: Option<&NormWeight<B>>, x: &B::Rows) -> B::Lhs {
        match norm {
            Some(norm) => self.backend.norm_lhs(norm.with(self.model.config.rms_norm_eps), x),
            None => self.backend.lhs(x),
        }
    }
}
