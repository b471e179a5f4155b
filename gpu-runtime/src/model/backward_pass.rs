//! State that the backward passes of attention, MLP and experts share.

use std::ops::Range;

use super::block_pass::BlockPass;
use super::linear::Linear;
use super::norm_weight::NormWeight;
use crate::backend::{Backend, FamilyOps, GradientSinks, Held, LatentOps, LoraSegment, Rows};

/// The backward pass of a block of a batch.
pub(super) struct Backward<'a, 'b, 'c, B: Backend> {
    pub(super) batch: BlockPass<'a, B>,
    /// Rows of the batch whose gradients are added up at once, in order.
    pub(super) sequences: &'a [Range<usize>],
    pub(super) sinks: GradientSinks<'b, 'c, B>,
    /// Whether the gradients of each group are needed.
    pub(super) trains: &'a [bool],
}

impl<'a, B: Backend> Backward<'a, '_, '_, B> {
    /// Gradient with respect to the input of a linear layer, `dx` (overwritten); the adapters on it and their low-rank
    /// gradients are for [`Backward::weights`].
    pub(super) fn input(
        &self,
        layer: usize,
        linear: &'a Linear<B>,
        dy: &B::OutputGradient<'_>,
        dx: &mut B::Rows,
    ) -> (Vec<LoraSegment<'a, B>>, B::LowRank) {
        let lora = match self.sinks {
            GradientSinks::Adapters(_) => linear.segments(self.batch.groups, layer, None, self.trains),
            GradientSinks::Full(_) => Vec::new(),
        };
        let d_low_rank = self.batch.backend.linear_backward(&linear.with(&lora), dy, dx);
        (lora, d_low_rank)
    }

    /// Gradients of a linear layer's weights, or of the adapters on it, given its input `x`.
    pub(super) fn weights(
        &mut self,
        linear: &Linear<B>,
        lora: &[LoraSegment<'_, B>],
        low_rank: [&B::LowRank; 2],
        x: &B::WeightInput<'_>,
        dy: &B::OutputGradient<'_>,
    ) {
        let (backend, sequences) = (self.batch.backend, self.sequences);
        match &mut self.sinks {
            GradientSinks::Full(grads) => backend.weight_gradients(&linear.parts(), sequences, x, dy, grads),
            GradientSinks::Adapters(sinks) => backend.lora_gradients(lora, sequences, x, dy, low_rank, sinks),
        }
    }

    /// Gradient with respect to what a part of the block computed, where a norm or a factor stands between it and the residual
    /// stream.
    pub(super) fn d_output(
        &mut self,
        norm: Option<(&NormWeight<B>, usize)>,
        out: Option<&B::Rows>,
        dx: &B::Rows,
    ) -> Option<B::Rows> {
        let Some(((norm, param), out)) = norm.zip(out) else {
            let scale = self.batch.model.config.residual_scale;
            return (scale != 1.0).then(|| B::Family::scaled_rows(self.batch.backend, scale, dx));
        };
        let mut d_out = self.batch.backend.zeros(out.rows(), out.width());
        self.norm(norm, param, out, dx, &mut d_out);
        Some(d_out)
    }

    /// Adds the gradient with respect to the input of a norm to `dx`, and that of its weight to the sink.
    pub(super) fn norm(&mut self, norm: &NormWeight<B>, param: usize, x: &B::Rows, dy: &B::Rows, dx: &mut B::Rows) {
        let dw = full(&mut self.sinks).map(|params| (params, param));
        let eps = self.batch.model.config.rms_norm_eps;
        self.batch.backend.norm_backward(norm.with(eps), x, dy, dx, dw);
    }
}

impl<B: Backend> Backward<'_, '_, '_, B> {
    /// [`Backward::weights`] for a layer that reads `x` behind a norm, where there is one.
    pub(super) fn weights_of_normed(
        &mut self,
        linear: &Linear<B>,
        lora: &[LoraSegment<'_, B>],
        low_rank: [&B::LowRank; 2],
        norm: Option<&NormWeight<B>>,
        x: &B::Rows,
        dy: &B::OutputGradient<'_>,
    ) {
        let backend = self.batch.backend;
        match norm {
            Some(norm) => {
                let norm = norm.with(self.batch.model.config.rms_norm_eps);
                self.weights(linear, lora, low_rank, &backend.norm_input(norm, x, self.sequences), dy);
            }
            None => self.weights(linear, lora, low_rank, &backend.weight_input(Held::Borrowed(x), self.sequences), dy),
        }
    }

    /// [`Backward::norm`]; adds `dy` to `dx` in blocks without the norm.
    pub(super) fn norm_or_add(
        &mut self,
        norm: Option<(&NormWeight<B>, usize)>,
        x: &B::Rows,
        dy: &B::Rows,
        dx: &mut B::Rows,
    ) {
        match norm {
            Some((norm, param)) => self.norm(norm, param, x, dy, dx),
            None => B::Family::add_rows(self.batch.backend, dy, dx),
        }
    }
}

/// The gradients of all parameters, where they are wanted.
pub(super) fn full<'s, B: Backend>(sinks: &'s mut GradientSinks<'_, '_, B>) -> Option<&'s mut B::Params> {
    match sinks {
        GradientSinks::Full(params) => Some(params),
        GradientSinks::Adapters(_) => None,
    }
}
