//! A batch in its passes through a block.

use super::adapter::RowGroup;
use super::linear::Linear;
use super::weights::{BlockWeights, Model};
use crate::backend::{AttentionCall, Backend, LatentHeads, LatentRotation, Rotation, Span};

/// The batch as a block sees it.
pub(super) struct BlockPass<'a, B: Backend> {
    pub(super) backend: &'a B,
    pub(super) model: &'a Model<B>,
    pub(super) block: &'a BlockWeights<B>,
    pub(super) groups: &'a [RowGroup<B>],
    pub(super) positions: &'a [u32],
    pub(super) spans: &'a [Span],
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

    /// The arguments of a block's attention.
    pub(super) fn attention(&self, layer: usize) -> AttentionCall<'_> {
        let window = self.model.config.blocks[layer].window;
        AttentionCall { shape: &self.model.shape, layer, window, spans: self.spans }
    }

    /// The arguments of a block's head norms and rotation.
    pub(super) fn rotation(&self, layer: usize) -> Rotation<'_, B> {
        let eps = self.model.config.rms_norm_eps;
        let norms = self.block.head_norms.as_ref().map(|norms| norms.each_ref().map(|norm| norm.with(eps)));
        Rotation { shape: &self.model.shape, norms, rope: self.model.rope(layer), positions: self.positions }
    }

    /// The arguments of the rotation of a block whose attention is latent.
    pub(super) fn latent_rotation(&self, layer: usize, heads: LatentHeads) -> LatentRotation<'_, B> {
        LatentRotation { heads, rope: self.model.rope(layer), positions: self.positions }
    }
}
