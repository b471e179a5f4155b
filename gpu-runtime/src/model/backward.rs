//! The backward pass over a packed batch. Gradients of weights add up rows in order, group by group.

use super::adapter::RowGroup;
use super::forward::{Activations, BlockActivations, BlockPass, SavedBlock};
use super::gradient::GradientSum;
use super::linear::Linear;
use super::params::BlockParams;
use super::weights::{NormWeight, Weights};
use crate::backend::{Backend, GradientSinks, LoraSegment, Rows};

/// Where a pass's gradients go.
pub(super) enum GradientSink<'a, 'b, B: Backend> {
    /// One set per group that has an adapter; `None` for groups that do not train.
    Adapters(&'a mut [Option<&'b mut B::Params>]),
    /// All parameters of the model.
    Full(&'a mut GradientSum<B>),
}

/// The backward pass of the blocks of a batch.
struct Backward<'a, 'b, 'c, B: Backend> {
    batch: BlockPass<'a, B>,
    sinks: GradientSinks<'b, 'c, B>,
    /// By group: whether its gradients are wanted.
    trains: Vec<bool>,
}

/// Adds the gradient to `sink`, given that with respect to the residual stream after the last block, `dx`.
pub(super) fn backward<B: Backend>(
    backend: &B,
    w: &Weights<B>,
    (tokens, groups): (&[u32], &[RowGroup<B>]),
    activations: Activations<B>,
    mut dx: B::Rows,
    sink: GradientSink<'_, '_, B>,
) {
    let Activations { blocks, spans, positions } = activations;
    let batch = BlockPass { backend, w, groups, positions: &positions, spans: &spans };
    match sink {
        GradientSink::Adapters(sinks) => {
            let trains = sinks.iter().map(Option::is_some).collect();
            Backward { batch, sinks: GradientSinks::Adapters(sinks), trains }.run(blocks, &mut dx);
        }
        GradientSink::Full(sum) => {
            let sinks = GradientSinks::Full(&mut sum.values);
            Backward { batch, sinks, trains: Vec::new() }.run(blocks, &mut dx);
            sum.add_lookups(backend, &w.model.table, tokens, &dx, w.model.config.embedding_scale);
        }
    }
}

impl<'a, B: Backend> Backward<'a, '_, '_, B> {
    fn run(&mut self, blocks: Vec<SavedBlock<B>>, dx: &mut B::Rows) {
        for (layer, saved) in blocks.into_iter().enumerate().rev() {
            let saved = match saved {
                SavedBlock::All(saved) => Some(*saved),
                SavedBlock::Input(x) => self.batch.recompute_block(layer, x),
            };
            if let Some(mut saved) = saved {
                self.mlp(layer, &mut saved, dx);
                self.attention(layer, &saved, dx);
            }
        }
    }

    /// Overwrites `saved.gate_up`.
    fn mlp(&mut self, layer: usize, saved: &mut BlockActivations<B>, dx: &mut B::Rows) {
        let (backend, w) = (self.batch.backend, self.batch.w);
        let (block, p, c) = (&w.blocks[layer], &w.model.table.blocks[layer], &w.model.config);
        let d_out = self.d_output(block.post_mlp.as_ref().zip(p.post_mlp), saved.mlp_out.as_ref(), dx);
        let dy = d_out.as_ref().unwrap_or(dx);
        // First the gradient with respect to the activation, then, in its place, the activation.
        let mut act = backend.alloc(dy.rows(), c.intermediate_size);
        let (lora, dz) = self.input(layer, &block.down, dy, &mut act);
        backend.activate_backward(c.blocks[layer].activation, &mut saved.gate_up, &mut act);
        self.weights(p, &block.down, &lora, [&saved.low_rank[3], &dz], &act, dy);
        drop((act, d_out));
        let normed = backend.norm(block.pre_mlp.with(c.rms_norm_eps), &saved.mid);
        let mut d_normed = backend.alloc(dx.rows(), dx.width());
        let (lora, dz) = self.input(layer, &block.gate_up, &saved.gate_up, &mut d_normed);
        self.weights(p, &block.gate_up, &lora, [&saved.low_rank[2], &dz], &normed, &saved.gate_up);
        self.norm(&block.pre_mlp, p.pre_mlp, &saved.mid, &d_normed, dx);
    }

    fn attention(&mut self, layer: usize, saved: &BlockActivations<B>, dx: &mut B::Rows) {
        let (backend, w) = (self.batch.backend, self.batch.w);
        let (block, p, c) = (&w.blocks[layer], &w.model.table.blocks[layer], &w.model.config);
        let [out, lse] = &saved.attention;
        let post = block.post_attention.as_ref().zip(p.post_attention);
        let d_out = self.d_output(post, saved.attention_out.as_ref(), dx);
        let dy = d_out.as_ref().unwrap_or(dx);
        let mut d_attention = backend.alloc(out.rows(), out.width());
        let (lora, dz) = self.input(layer, &block.o, dy, &mut d_attention);
        self.weights(p, &block.o, &lora, [&saved.low_rank[1], &dz], out, dy);
        drop(d_out);
        let kv = w.model.kv();
        let call = self.batch.attention(layer);
        let mut d_qkv = backend.attention_backward(call, kv.pool(), &saved.qkv, [out, lse], &d_attention);
        drop((kv, d_attention));
        let dw = full(&mut self.sinks).zip(p.head_norms);
        backend.rotate_backward(&self.batch.rotation(layer), saved.raw_qkv.as_ref(), &mut d_qkv, dw);
        let normed = backend.norm(block.pre_attention.with(c.rms_norm_eps), &saved.x);
        let mut d_normed = backend.alloc(dx.rows(), dx.width());
        let (lora, dz) = self.input(layer, &block.qkv, &d_qkv, &mut d_normed);
        self.weights(p, &block.qkv, &lora, [&saved.low_rank[0], &dz], &normed, &d_qkv);
        self.norm(&block.pre_attention, p.pre_attention, &saved.x, &d_normed, dx);
    }

    /// Gradient with respect to the input of a linear layer, `dx` (overwritten); the adapters on it and their low-rank
    /// gradients are for [`Backward::weights`].
    fn input(
        &self,
        layer: usize,
        linear: &'a Linear<B>,
        dy: &B::Rows,
        dx: &mut B::Rows,
    ) -> (Vec<LoraSegment<'a, B>>, B::LowRank) {
        let lora = match self.sinks {
            GradientSinks::Adapters(_) => linear.segments(self.batch.groups, layer, &self.trains),
            GradientSinks::Full(_) => Vec::new(),
        };
        let d_low_rank = self.batch.backend.linear_backward(&linear.with(&lora), dy, dx);
        (lora, d_low_rank)
    }

    /// Gradients of a linear layer's weights, or of the adapters on it, given its input `x`.
    fn weights(
        &mut self,
        p: &BlockParams,
        linear: &Linear<B>,
        lora: &[LoraSegment<'_, B>],
        low_rank: [&B::LowRank; 2],
        x: &B::Rows,
        dy: &B::Rows,
    ) {
        match &mut self.sinks {
            GradientSinks::Full(grads) => self.batch.backend.weight_gradients(&linear.parts(p), x, dy, grads),
            GradientSinks::Adapters(sinks) => self.batch.backend.lora_gradients(lora, x, dy, low_rank, sinks),
        }
    }

    /// Gradient with respect to what a part of the block computed, where a norm stands between it and the residual stream.
    fn d_output(
        &mut self,
        norm: Option<(&NormWeight<B>, usize)>,
        out: Option<&B::Rows>,
        dx: &B::Rows,
    ) -> Option<B::Rows> {
        let ((norm, param), out) = norm.zip(out)?;
        let mut d_out = self.batch.backend.zeros(out.rows(), out.width());
        self.norm(norm, param, out, dx, &mut d_out);
        Some(d_out)
    }

    /// Adds the gradient with respect to the input of a norm to `dx`, and that of its weight to the sink.
    fn norm(&mut self, norm: &NormWeight<B>, param: usize, x: &B::Rows, dy: &B::Rows, dx: &mut B::Rows) {
        let dw = full(&mut self.sinks).map(|params| (params, param));
        let eps = self.batch.w.model.config.rms_norm_eps;
        self.batch.backend.norm_backward(norm.with(eps), x, dy, dx, dw);
    }
}

/// The gradients of all parameters, where they are wanted.
fn full<'s, B: Backend>(sinks: &'s mut GradientSinks<'_, '_, B>) -> Option<&'s mut B::Params> {
    match sinks {
        GradientSinks::Full(params) => Some(params),
        GradientSinks::Adapters(_) => None,
    }
}
