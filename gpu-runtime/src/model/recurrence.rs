//! A linear recurrence in a block: from the block's input to the residual stream behind it, forward and backward.
//!
//! Where ranks share the model, each has some heads with their decays, steps and channels of the convolution.

use super::backward_pass::{Backward, full};
use super::block_pass::BlockPass;
use super::mixer_weights::RecurrenceWeights;
use super::params::RecurrenceParams;
use crate::backend::{Backend, Held, RecurrentCall, RecurrentOps, Rows};

/// Activations of a block's recurrence.
pub(super) struct RecurrenceActivations<B: Backend> {
    /// Residual stream before the block, `[rows, hidden]`.
    x: B::Rows,
    /// Output of the input projections, `[rows, input_width]`.
    inputs: B::Rows,
    /// Output of the recurrence, before norm and gate.
    mixed: B::Rows,
    /// Output of the output projection before its norm, where there is one.
    out: Option<B::Rows>,
    /// `scale · (x Aᵀ)` of the adapters on the projections to inputs and output.
    low_rank: [B::LowRank; 2],
}

impl<'p, B: Backend> BlockPass<'p, B> {
    fn recurrent_call(&self, layer: usize, w: &'p RecurrenceWeights<B>) -> RecurrentCall<'p, B> {
        let vectors = &w.vectors;
        RecurrentCall {
            shape: &w.shape,
            layer: self.model.mixer_index(layer),
            spans: self.spans,
            conv: &vectors.conv,
            conv_bias: vectors.conv_bias.as_ref(),
            a_log: &vectors.a_log,
            dt_bias: &vectors.dt_bias,
            skip: vectors.skip.as_ref(),
            norm: w.norm.with(self.model.config.rms_norm_eps),
        }
    }

    /// The residual stream `x` after the recurrence; with `save` also its activations.
    pub(super) fn recurrence(
        &self,
        layer: usize,
        w: &'p RecurrenceWeights<B>,
        x: B::Rows,
        save: bool,
    ) -> (B::Rows, Option<RecurrenceActivations<B>>) {
        let (backend, norms) = (self.backend, &self.block.norms);
        let normed = self.normed(norms.pre_attention.as_ref(), &x);
        let (inputs, z_inputs) = self.linear(layer, &w.inputs, &normed, None);
        drop(normed);
        let call = self.recurrent_call(layer, w);
        let mixed = B::Family::recur(backend, &call, self.kv.lock().states(), &inputs);
        let gated = backend.lhs(&B::Family::gate_output(backend, &call, &inputs, &mixed));
        let (sum, out, z_out) = self.add_residual(layer, &w.out, norms.post_attention.as_ref(), &gated, &x);
        let low_rank = [z_inputs, z_out];
        (sum, save.then(|| RecurrenceActivations { x, inputs, mixed, out, low_rank }))
    }
}

impl<'a, B: Backend> Backward<'a, '_, '_, B> {
    /// Adds the gradient with respect to the residual stream before the recurrence to `dx`, that behind it.
    pub(super) fn recurrence(
        &mut self,
        layer: usize,
        w: &'a RecurrenceWeights<B>,
        p: &RecurrenceParams,
        saved: RecurrenceActivations<B>,
        dx: &mut B::Rows,
    ) {
        let (backend, model, norms) = (self.batch.backend, self.batch.model, &self.batch.block.norms);
        let own = &model.table.blocks[layer];
        let RecurrenceActivations { x, inputs, mixed, out, low_rank: [z_inputs, z_out] } = saved;
        let call = self.batch.recurrent_call(layer, w);
        let d_out = self.d_output(norms.post_attention.as_ref().zip(own.post_attention), out.as_ref(), dx);
        let dy = backend.output_gradient(Held::Borrowed(d_out.as_ref().unwrap_or(dx)), self.sequences);
        let mut d_gated = backend.alloc(mixed.rows(), mixed.width());
        let (lora, dz) = self.input(layer, &w.out, &dy, &mut d_gated);
        let gated = B::Family::gate_output(backend, &call, &inputs, &mixed);
        let input = backend.weight_input(Held::Owned(gated), self.sequences);
        self.weights(&w.out, &lora, [&z_out, &dz], &input, &dy);
        drop((input, dy));
        drop(d_out);
        let dw = full(&mut self.sinks).map(|params| (params, p.vectors));
        let d_inputs = B::Family::recur_backward(backend, &call, &inputs, &mixed, &d_gated, dw);
        drop((inputs, mixed, d_gated));
        let dy = backend.output_gradient(Held::Owned(d_inputs), self.sequences);
        let mut d_normed = backend.alloc(dx.rows(), dx.width());
        let (lora, dz) = self.input(layer, &w.inputs, &dy, &mut d_normed);
        d_normed.all_reduce(&model.tensor_ranks);
        self.weights_of_normed(&w.inputs, &lora, [&z_inputs, &dz], norms.pre_attention.as_ref(), &x, &dy);
        drop(dy);
        self.norm_or_add(norms.pre_attention.as_ref().zip(own.pre_attention), &x, &d_normed, dx);
    }
}
