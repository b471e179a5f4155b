//! The backward pass over a packed batch. Gradients of weights add up rows in order, group by group.

use super::adapter::RowGroup;
use super::backward_pass::{Backward, full};
use super::block_pass::BlockPass;
use super::experts::backward as experts_backward;
use super::forward::{
    Activations, AttentionActivations, BlockActivations, BlockMlp, MlpActivations, QkvActivations, SavedBlock,
};
use super::gradient::GradientSum;
use super::latent::Latent;
use super::latent_weights::QkvWeights;
use super::mlp_weights::{GatedMlp, MlpWeights};
use super::params::QkvParams;
use super::zero::gathered::Unit;
use super::zero::weight_source::WeightSource;
use crate::backend::{Backend, FamilyOps, GradientSinks, Held, LatentOps, Rows};

/// Destination of a pass's gradients.
pub(super) enum GradientSink<'a, 'b, B: Backend> {
    /// One set per group that has an adapter; `None` for groups that do not train.
    Adapters(&'a mut [Option<&'b mut B::Params>]),
    /// All parameters of the model; and where replicas divide these, what the end of the pass has added already.
    Full(&'a mut GradientSum<B>, Option<GradientSum<B>>),
}

/// Adds the gradient to `sink`, given that with respect to the residual stream after the last block, `dx`.
pub(super) fn backward<B: Backend>(
    backend: &B,
    weights: &mut WeightSource<'_, B>,
    (tokens, groups): (&[u32], &[RowGroup<B>]),
    activations: Activations<B>,
    mut dx: B::Rows,
    mut sink: GradientSink<'_, '_, B>,
) {
    let Activations { blocks, spans, positions } = activations;
    let model = weights.model();
    let sequences: Vec<_> = spans.iter().map(|span| span.rows.clone()).collect();
    let trains: Vec<bool> = match &sink {
        GradientSink::Adapters(sinks) => sinks.iter().map(Option::is_some).collect(),
        GradientSink::Full(..) => Vec::new(),
    };
    for (layer, saved) in blocks.into_iter().enumerate().rev() {
        let block = weights.block(backend, layer);
        let batch = BlockPass { backend, model: &model, block: &block, groups, positions: &positions, spans: &spans };
        let run = |sinks, dx| Backward { batch, sequences: &sequences, sinks, trains: &trains }.run(layer, saved, dx);
        match &mut sink {
            GradientSink::Adapters(sinks) => run(GradientSinks::Adapters(sinks), &mut dx),
            GradientSink::Full(sum, _) => match weights.gathered() {
                None => run(GradientSinks::Full(&mut sum.values), &mut dx),
                Some(pass) => {
                    let mut own = pass.zeros(backend, Unit::Block(layer));
                    run(GradientSinks::Full(&mut own), &mut dx);
                    drop(block);
                    pass.reduce(Unit::Block(layer), own, sum);
                }
            },
        }
    }
    let GradientSink::Full(sum, ends) = sink else { return };
    match weights.gathered() {
        None => sum.add_lookups(backend, &model, tokens, &dx),
        Some(pass) => {
            let mut ends = ends.unwrap_or_else(|| GradientSum::new(pass.zeros(backend, Unit::Embedding)));
            ends.add_lookups(backend, &model, tokens, &dx);
            pass.reduce(Unit::Embedding, ends.with_lookups(backend, &model.table), sum);
        }
    }
}

impl<'a, B: Backend> Backward<'a, '_, '_, B> {
    fn run(mut self, layer: usize, saved: SavedBlock<B>, dx: &mut B::Rows) {
        let saved = match saved {
            SavedBlock::All(saved) => Some(*saved),
            SavedBlock::Input(x) => self.batch.recompute_block(layer, x),
        };
        let Some(BlockActivations { attention, mlp }) = saved else { return };
        match (mlp, &self.batch.block.mlp) {
            (BlockMlp::Dense(saved), MlpWeights::Dense(mlp)) => self.mlp(layer, mlp, saved, dx),
            (BlockMlp::Experts(saved), MlpWeights::Experts(experts)) => {
                experts_backward(&mut self, layer, experts, saved, dx);
            }
            (BlockMlp::Dense(_), _) | (BlockMlp::Experts(_), _) => unreachable!("a block's own activations"),
        }
        self.attention(layer, attention, dx);
    }

    fn mlp(&mut self, layer: usize, mlp: &'a GatedMlp<B>, saved: MlpActivations<B>, dx: &mut B::Rows) {
        let (backend, model, block) = (self.batch.backend, self.batch.model, self.batch.block);
        let (p, c) = (&model.table.blocks[layer], &model.config);
        let MlpActivations { x, gate_up, out, low_rank: [z_gate_up, z_down] } = saved;
        let d_out = self.d_output(block.post_mlp.as_ref().zip(p.post_mlp), out.as_ref(), dx);
        let dy = backend.output_gradient(Held::Borrowed(d_out.as_ref().unwrap_or(dx)), self.sequences);
        let mut d_act = backend.alloc(x.rows(), c.intermediate_size);
        let (lora, dz) = self.input(layer, &mlp.down, &dy, &mut d_act);
        let biased = matches!(self.sinks, GradientSinks::Full(_)) && mlp.gate_up.is_biased();
        let activation = c.blocks[layer].activation;
        let (d_gate_up, act) = backend.activate_backward(activation, gate_up, d_act, self.sequences, biased);
        self.weights(&mlp.down, &lora, [&z_down, &dz], &act, &dy);
        drop((act, dy));
        drop(d_out);
        let mut d_normed = backend.alloc(dx.rows(), dx.width());
        let (lora, dz) = self.input(layer, &mlp.gate_up, &d_gate_up, &mut d_normed);
        d_normed.all_reduce(&model.tensor_ranks);
        let normed = backend.norm_input(block.pre_mlp.with(c.rms_norm_eps), &x, self.sequences);
        self.weights(&mlp.gate_up, &lora, [&z_gate_up, &dz], &normed, &d_gate_up);
        self.norm(&block.pre_mlp, p.pre_mlp, &x, &d_normed, dx);
    }

    fn attention(&mut self, layer: usize, saved: AttentionActivations<B>, dx: &mut B::Rows) {
        let (backend, model, block) = (self.batch.backend, self.batch.model, self.batch.block);
        let (p, c) = (&model.table.blocks[layer], &model.config);
        let AttentionActivations { x, projected, qkv, heads: [heads, lse], out, low_rank: z_o } = saved;
        let d_out = self.d_output(block.post_attention.as_ref().zip(p.post_attention), out.as_ref(), dx);
        let dy = backend.output_gradient(Held::Borrowed(d_out.as_ref().unwrap_or(dx)), self.sequences);
        // Where attention is latent, o reads its output without padding.
        let latent = c.latent_heads();
        let values = latent.map(|latent| B::Family::head_values(backend, latent, &heads));
        let o_input = values.as_ref().unwrap_or(&heads);
        let mut d_heads = backend.alloc(o_input.rows(), o_input.width());
        let (lora, dz) = self.input(layer, &block.o, &dy, &mut d_heads);
        let input = backend.weight_input(Held::Borrowed(o_input), self.sequences);
        self.weights(&block.o, &lora, [&z_o, &dz], &input, &dy);
        drop((input, dy));
        drop((d_out, values));
        if let Some(latent) = latent {
            d_heads = B::Family::pad_values(backend, latent, &d_heads);
        }
        let kv = model.kv();
        let call = self.batch.attention(layer);
        if let (Some(sinks), Some(index), Some(grads)) = (&block.sinks, p.sinks, full(&mut self.sinks)) {
            B::Family::sinks_backward(backend, sinks, [&heads, &lse], &d_heads, (grads, index));
        }
        let d_rotated = backend.attention_backward(call, kv.pool(), &qkv, [&heads, &lse], &d_heads);
        drop((kv, d_heads));
        let pre = block.pre_attention.with(c.rms_norm_eps);
        let d_normed = match (projected, &block.qkv, &p.qkv) {
            (QkvActivations::Heads { raw, low_rank: z }, QkvWeights::Heads(qkv), _) => {
                let dw = full(&mut self.sinks).zip(p.head_norms);
                let rotation = self.batch.rotation(layer);
                let d_qkv = backend.rotate_backward(&rotation, raw.as_ref(), d_rotated, dw, self.sequences);
                let mut d_normed = backend.alloc(dx.rows(), dx.width());
                let (lora, dz) = self.input(layer, qkv, &d_qkv, &mut d_normed);
                d_normed.all_reduce(&model.tensor_ranks);
                let normed = backend.norm_input(pre, &x, self.sequences);
                self.weights(qkv, &lora, [&z, &dz], &normed, &d_qkv);
                d_normed
            }
            (QkvActivations::Latent(saved), QkvWeights::Latent(own), QkvParams::Latent(params)) => {
                drop((qkv, heads, lse));
                let Some(latent) = Latent::of(c) else { unreachable!("a model's own attention") };
                latent.backward(self, layer, (&**own, params), saved, (pre, &x), d_rotated)
            }
            _ => unreachable!("a block's own activations"),
        };
        self.norm(&block.pre_attention, p.pre_attention, &x, &d_normed, dx);
    }
}
