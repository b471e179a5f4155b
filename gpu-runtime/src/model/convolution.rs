//! A short convolution in a block: from the block's input to the residual stream behind it, forward and backward.
//!
//! Where ranks share the model, each has some channels.

use super::backward_pass::{Backward, full};
use super::block_pass::BlockPass;
use super::mixer_weights::ConvolutionWeights;
use super::params::ConvolutionParams;
use crate::backend::{Backend, ConvolutionCall, ConvolutionOps, Held, Rows};

/// Activations of a block's short convolution.
pub(super) struct ConvolutionActivations<B: Backend> {
    /// Residual stream before the block, `[rows, hidden]`.
    x: B::Rows,
    /// Output of the input projection, `[rows, input_width]`.
    inputs: B::Rows,
    /// Output of the convolution, gated.
    mixed: B::Rows,
    /// Output of the output projection before its norm, where there is one.
    out: Option<B::Rows>,
    /// `scale · (x Aᵀ)` of the adapters on the projections to inputs and output.
    low_rank: [B::LowRank; 2],
}

impl<'p, B: Backend> BlockPass<'p, B> {
    fn convolution_call(&self, layer: usize, w: &'p ConvolutionWeights<B>) -> ConvolutionCall<'p, B> {
        let layer = self.model.mixer_index(layer);
        ConvolutionCall { shape: &w.shape, layer, spans: self.spans, weight: &w.weight }
    }

    /// The residual stream `x` after the convolution; with `save` also its activations.
    pub(super) fn convolution(
        &self,
        layer: usize,
        w: &'p ConvolutionWeights<B>,
        x: B::Rows,
        save: bool,
    ) -> (B::Rows, Option<ConvolutionActivations<B>>) {
        let (backend, norms) = (self.backend, &self.block.norms);
        let normed = self.normed(norms.pre_attention.as_ref(), &x);
        let (inputs, z_inputs) = self.linear(layer, &w.inputs, &normed, None);
        drop(normed);
        let call = self.convolution_call(layer, w);
        let mixed = B::Family::convolve(backend, &call, self.kv.lock().states(), &inputs);
        let packed = backend.lhs(&mixed);
        let (sum, out, z_out) = self.add_residual(layer, &w.out, norms.post_attention.as_ref(), &packed, &x);
        let low_rank = [z_inputs, z_out];
        (sum, save.then(|| ConvolutionActivations { x, inputs, mixed, out, low_rank }))
    }
}

impl<'a, B: Backend> Backward<'a, '_, '_, B> {
    /// Adds the gradient with respect to the residual stream before the convolution to `dx`, that behind it.
    pub(super) fn convolution(
        &mut self,
        layer: usize,
        w: &'a ConvolutionWeights<B>,
        p: &ConvolutionParams,
        saved: ConvolutionActivations<B>,
        dx: &mut B::Rows,
    ) {
        let (backend, model, norms) = (self.batch.backend, self.batch.model, &self.batch.block.norms);
        let own = &model.table.blocks[layer];
        let ConvolutionActivations { x, inputs, mixed, out, low_rank: [z_inputs, z_out] } = saved;
        let call = self.batch.convolution_call(layer, w);
        let d_out = self.d_output(norms.post_attention.as_ref().zip(own.post_attention), out.as_ref(), dx);
        let dy = backend.output_gradient(Held::Borrowed(d_out.as_ref().unwrap_or(dx)), self.sequences);
        let mut d_mixed = backend.alloc(mixed.rows(), mixed.width());
        let (lora, dz) = self.input(layer, &w.out, &dy, &mut d_mixed);
        let input = backend.weight_input(Held::Owned(mixed), self.sequences);
        self.weights(&w.out, &lora, [&z_out, &dz], &input, &dy);
        drop((input, dy));
        drop(d_out);
        let dw = full(&mut self.sinks).map(|params| (params, p.weight));
        let d_inputs = B::Family::convolve_backward(backend, &call, &inputs, &d_mixed, dw);
        drop((inputs, d_mixed));
        let dy = backend.output_gradient(Held::Owned(d_inputs), self.sequences);
        let mut d_normed = backend.alloc(dx.rows(), dx.width());
        let (lora, dz) = self.input(layer, &w.inputs, &dy, &mut d_normed);
        d_normed.all_reduce(&model.tensor_ranks);
        self.weights_of_normed(&w.inputs, &lora, [&z_inputs, &dz], norms.pre_attention.as_ref(), &x, &dy);
        drop(dy);
        self.norm_or_add(norms.pre_attention.as_ref().zip(own.pre_attention), &x, &d_normed, dx);
    }
}
