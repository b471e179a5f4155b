//! The backward pass over a packed batch. Gradients of weights add up rows in order, group by group.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use super::adapter::RowGroup;
use super::backward_pass::Backward;
use super::block_pass::BlockPass;
use super::block_weights::BlockWeights;
use super::early_end::EarlyEnd;
use super::experts::backward as experts_backward;
use super::forward::{Activations, BlockActivations, BlockMlp, MixerActivations, MlpActivations};
use super::gradient::GradientSum;
use super::image_rows::{PassImages, clear_rows};
use super::mixer_weights::MixerWeights;
use super::mlp_weights::{Mlp, MlpWeights};
use super::mrope::PassRotation;
use super::params::MixerParams;
use super::parts::pieces;
use super::weights::Model;
use super::zero::gathered::Unit;
use super::zero::weight_source::WeightSource;
use crate::backend::{Backend, Chosen, GradientSinks, Held, Rows, Span};

/// Destination of a pass's gradients.
pub(super) enum GradientSink<'a, 'b, B: Backend> {
    /// One set per group that has an adapter; `None` for groups that do not train.
    Adapters(&'a mut [Option<&'b mut B::Params>]),
    /// All parameters of the model; and where replicas divide these, what the end of the pass has added already.
    Full(&'a mut GradientSum<B>, Option<GradientSum<B>>),
}

/// The batch whose gradients are wanted.
pub(super) struct BackwardInput<'a, B: Backend> {
    /// Token of every row.
    pub(super) tokens: &'a [u32],
    /// Groups of rows by adapter.
    pub(super) groups: &'a [RowGroup<B>],
    pub(super) images: Option<&'a PassImages<B>>,
    pub(super) early_end: &'a EarlyEnd,
}

/// Adds the gradient to `sink`, given that with respect to the residual stream after the last block, `dx`. Where the pass
/// ends early, it returns before its next block, and the gradient is incomplete.
pub(super) fn backward<B: Backend>(
    backend: &B,
    weights: &mut WeightSource<'_, B>,
    input: BackwardInput<'_, B>,
    activations: Activations<B>,
    mut dx: B::Rows,
    mut sink: GradientSink<'_, '_, B>,
) {
    let BackwardInput { tokens, groups, images, early_end } = input;
    let Activations { mut blocks, mut inputs, spans, chosen, positions, rotation, image_rows } = activations;
    let model = weights.model();
    let sequences = pieces(spans.iter().map(|span| &span.rows));
    let trains: Vec<bool> = match &sink {
        GradientSink::Adapters(sinks) => sinks.iter().map(Option::is_some).collect(),
        GradientSink::Full(..) => Vec::new(),
    };
    let chosen: Vec<_> = chosen.into_iter().map(RefCell::new).collect();
    let batch = ComputedBatch {
        backend,
        model: &model,
        groups,
        images,
        positions: &positions,
        rotation: rotation.as_ref(),
        spans: &spans,
        chosen: &chosen,
    };
    for layer in (0..model.config.num_layers()).rev() {
        if weights.ends_early(early_end) {
            return;
        }
        let mut saved = blocks.pop().map(SavedBlock::All);
        if saved.is_none() {
            let input = inputs.take(layer, |input, repeated| batch.repeat(weights, input, repeated, early_end));
            saved = input.map(SavedBlock::Input);
        }
        let Some(saved) = saved else { return };
        let block = weights.block(backend, layer);
        let pass = batch.pass(layer, &block);
        let run =
            |sinks, dx| Backward { batch: pass, sequences: &sequences, sinks, trains: &trains }.run(layer, saved, dx);
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
        chosen[layer].take();
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

/// What a backward pass has of a block.
enum SavedBlock<B: Backend> {
    All(BlockActivations<B>),
    /// The block's input: the rest is recomputed.
    Input(B::Rows),
}

/// A batch that a forward pass has computed.
struct ComputedBatch<'a, B: Backend> {
    backend: &'a B,
    model: &'a Model<B>,
    groups: &'a [RowGroup<B>],
    images: Option<&'a PassImages<B>>,
    positions: &'a [u32],
    rotation: Option<&'a PassRotation<B>>,
    spans: &'a [Span],
    /// Positions that rows have attended to in each block; a block that is computed again attends to the same.
    chosen: &'a [RefCell<Option<Arc<Chosen>>>],
}

impl<'a, B: Backend> ComputedBatch<'a, B> {
    fn pass<'p>(&'p self, layer: usize, block: &'p BlockWeights<B>) -> BlockPass<'p, B> {
        let Self { backend, model, groups, positions, rotation, spans, .. } = *self;
        let (kv, chosen) = (model.kv(false), &self.chosen[layer]);
        BlockPass { backend, model, block, groups, positions, rotation, spans, kv, chosen }
    }

    /// Computes the input of the block behind `blocks` again from that of the first of them; `None` if the pass ends early.
    fn repeat(
        &self,
        weights: &mut WeightSource<'_, B>,
        input: &B::Rows,
        blocks: Range<usize>,
        early_end: &EarlyEnd,
    ) -> Option<B::Rows> {
        let mut x = self.backend.copy(input);
        for layer in blocks {
            if weights.ends_early(early_end) {
                return None;
            }
            let block = weights.block(self.backend, layer);
            x = self.pass(layer, &block).repeat_block(layer, x);
            if let Some(images) = self.images {
                images.add_features(self.backend, layer, &mut x);
            }
        }
        Some(x)
    }
}

impl<'a, B: Backend> Backward<'a, '_, '_, B> {
    fn run(mut self, layer: usize, saved: SavedBlock<B>, dx: &mut B::Rows) {
        let BlockActivations { mixer, mlp } = match saved {
            SavedBlock::All(saved) => saved,
            SavedBlock::Input(x) => self.batch.recompute_block(layer, x),
        };
        let block = self.batch.block;
        match (mlp, &block.mlp) {
            (None, None) => {}
            (Some(BlockMlp::Dense(saved)), Some(MlpWeights::Dense(mlp))) => self.mlp(layer, mlp, saved, dx),
            (Some(BlockMlp::Input(x)), Some(MlpWeights::Dense(mlp))) => self.mlp_in_parts(layer, mlp, &x, dx),
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

    pub(super) fn mlp(&mut self, layer: usize, mlp: &'a Mlp<B>, saved: MlpActivations<B>, dx: &mut B::Rows) {
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
