//! The backward pass over a packed batch. Gradients of weights add up rows in order, group by group.

use std::cell::RefCell;

use super::adapter::RowGroup;
use super::backward_pass::Backward;
use super::block_pass::BlockPass;
use super::early_end::EarlyEnd;
use super::experts::backward as experts_backward;
use super::forward::{Activations, BlockActivations, BlockMlp, MixerActivations, MlpActivations, SavedBlock};
use super::gradient::GradientSum;
use super::image_rows::clear_rows;
use super::mixer_weights::MixerWeights;
use super::mlp_weights::{Mlp, MlpWeights};
use super::params::MixerParams;
use super::zero::gathered::Unit;
use super::zero::weight_source::WeightSource;
use crate::backend::{Backend, GradientSinks, Held, Rows};

/// Destination of a pass's gradients.
pub(super) enum GradientSink<'a, 'b, B: Backend> {
    /// One set per group that has an adapter; `None` for groups that do not train.
    Adapters(&'a mut [Option<&'b mut B::Params>]),
    /// All parameters of the model; and where replicas divide these, what the end of the pass has added already.
    Full(&'a mut GradientSum<B>, Option<GradientSum<B>>),
}

/// Adds the gradient to `sink`, given that with respect to the residual stream after the last block, `dx`. Where the pass
/// ends early, it returns before its next block, and the gradient is incomplete.
pub(super) fn backward<B: Backend>(
    backend: &B,
    weights: &mut WeightSource<'_, B>,
    tokens: &[u32],
    groups: &[RowGroup<B>],
    activations: Activations<B>,
    mut dx: B::Rows,
    mut sink: GradientSink<'_, '_, B>,
    early_end: &EarlyEnd,
) {
    let Activations { blocks, spans, mut chosen, positions, rotation, image_rows } = activations;
    let model = weights.model();
    let sequences: Vec<_> = spans.iter().map(|span| span.rows.clone()).collect();
    let trains: Vec<bool> = match &sink {
        GradientSink::Adapters(sinks) => sinks.iter().map(Option::is_some).collect(),
        GradientSink::Full(..) => Vec::new(),
    };
    for (layer, saved) in blocks.into_iter().enumerate().rev() {
        if weights.ends_early(early_end) {
            return;
        }
        let block = weights.block(backend, layer);
        let rotation = rotation.as_ref();
        // A block that is recomputed attends to what it has attended to.
        let chosen = RefCell::new(chosen.pop().flatten());
        let batch = BlockPass {
            backend,
            model: &model,
            block: &block,
            groups,
            positions: &positions,
            rotation,
            spans: &spans,
            chosen: &chosen,
        };
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
    clear_rows(backend, &image_rows, &mut dx);
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
        let Some(BlockActivations { mixer, mlp }) = saved else { return };
        let block = self.batch.block;
        match (mlp, &block.mlp) {
            (None, None) => {}
            (Some(BlockMlp::Dense(saved)), Some(MlpWeights::Dense(mlp))) => self.mlp(layer, mlp, saved, dx),
            (Some(BlockMlp::Experts(saved)), Some(MlpWeights::Experts(experts))) => {
                experts_backward(&mut self, layer, experts, *saved, dx);
            }
            _ => unreachable!("activations do not match the kind of the block"),
        }
        match (mixer, &block.mixer, &self.batch.model.table.blocks[layer].mixer) {
            (None, None, None) => {}
            (
                Some(MixerActivations::Attention(saved)),
                Some(MixerWeights::Attention(w)),
                Some(MixerParams::Attention(p)),
            ) => {
                self.attention(layer, w, p, saved, dx);
            }
            (
                Some(MixerActivations::Recurrent(saved)),
                Some(MixerWeights::Recurrent(w)),
                Some(MixerParams::Recurrent(p)),
            ) => {
                self.recurrence(layer, w, p, saved, dx);
            }
            (
                Some(MixerActivations::Convolution(saved)),
                Some(MixerWeights::Convolution(w)),
                Some(MixerParams::Convolution(p)),
            ) => {
                self.convolution(layer, w, p, saved, dx);
            }
            _ => unreachable!("activations do not match the kind of the block"),
        }
    }

    fn mlp(&mut self, layer: usize, mlp: &'a Mlp<B>, saved: MlpActivations<B>, dx: &mut B::Rows) {
        let (backend, model, block) = (self.batch.backend, self.batch.model, self.batch.block);
        let (p, c) = (&model.table.blocks[layer], &model.config);
        let MlpActivations { x, gate_up, out, low_rank: [z_gate_up, z_down] } = saved;
        let norms = &block.norms;
        let d_out = self.d_output(norms.post_mlp.as_ref().zip(p.post_mlp), out.as_ref(), dx);
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
        self.weights_of_normed(&mlp.gate_up, &lora, [&z_gate_up, &dz], norms.pre_mlp.as_ref(), &x, &d_gate_up);
        self.norm_or_add(norms.pre_mlp.as_ref().zip(p.pre_mlp), &x, &d_normed, dx);
    }
}
