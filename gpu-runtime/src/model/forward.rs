//! The forward pass over a packed batch: rows of many sequences, with an adapter per group of rows.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use super::adapter::RowGroup;
use super::attention::AttentionActivations;
use super::block_pass::BlockPass;
use super::convolution::ConvolutionActivations;
use super::early_end::EarlyEnd;
use super::experts::{ExpertActivations, routed};
use super::image_rows::PassImages;
use super::kv::KvSequence;
use super::linear::Linear;
use super::mixer_weights::MixerWeights;
use super::mlp_weights::{Mlp, MlpWeights};
use super::mrope::PassRotation;
use super::norm_weight::NormWeight;
use super::recurrence::RecurrenceActivations;
use super::zero::weight_source::WeightSource;
use crate::backend::{Backend, Chosen, Dispatch, Rows, ScaleOps, Span, Tensors};

/// A batch: every sequence contributes consecutive rows, groups cover the rows in order.
pub(crate) struct PassInput<'a, B: Backend> {
    /// Token of every row, below the vocabulary's size.
    pub tokens: &'a [u32],
    /// Rows of each sequence and the position of its first row.
    pub rows: &'a [(Range<usize>, usize)],
    /// Keys and values of each sequence, up to its first row.
    pub kv: &'a mut [KvSequence],
    /// Groups of rows by adapter.
    pub groups: &'a [RowGroup<B>],
    /// Images and positions, where sequences have images or continue behind some.
    pub images: Option<&'a PassImages<B>>,
    /// Ends the pass before its next block if nobody waits for its result any longer.
    pub early_end: Option<&'a EarlyEnd>,
}

/// Activations that a block's backward pass needs.
pub(super) struct BlockActivations<B: Backend> {
    pub(super) mixer: Option<MixerActivations<B>>,
    pub(super) mlp: Option<BlockMlp<B>>,
}

/// Activations of a block's MLP.
pub(super) enum BlockMlp<B: Backend> {
    Dense(MlpActivations<B>),
    Experts(Box<ExpertActivations<B>>),
}

/// Activations of a block's mixer.
pub(super) enum MixerActivations<B: Backend> {
    Attention(AttentionActivations<B>),
    Recurrent(RecurrenceActivations<B>),
    Convolution(ConvolutionActivations<B>),
}

/// Activations of an MLP without experts.
pub(super) struct MlpActivations<B: Backend> {
    /// Residual stream before the MLP.
    pub(super) x: B::Rows,
    /// Gate and up columns.
    pub(super) gate_up: B::Rows,
    /// Output of the down projection before its norm, where there is one.
    pub(super) out: Option<B::Rows>,
    /// `scale · (x Aᵀ)` of the adapters on gate_up and down.
    pub(super) low_rank: [B::LowRank; 2],
}

/// The part of a block's activations that was saved for its backward pass.
pub(super) enum SavedBlock<B: Backend> {
    /// All activations of the block.
    All(Box<BlockActivations<B>>),
    /// The block's input: the rest is recomputed (activation checkpointing).
    Input(B::Rows),
}

/// Activations that the forward pass saves for the backward pass.
pub(crate) struct Activations<B: Backend> {
    /// Saved activations, block by block.
    pub(super) blocks: Vec<SavedBlock<B>>,
    /// The sequences with their KV blocks.
    pub(super) spans: Vec<Span>,
    /// Positions that the rows attend to in each block, unless they see all.
    pub(super) chosen: Vec<Option<Arc<Chosen>>>,
    /// Position of every row.
    pub(super) positions: Vec<u32>,
    /// Rotary tables of a pass with images, in models whose positions have coordinates.
    pub(super) rotation: Option<PassRotation<B>>,
    /// Rows whose tokens belong to images.
    pub(super) image_rows: Vec<usize>,
}

/// Result of a forward pass.
pub(crate) struct Pass<B: Backend> {
    /// Residual stream after the last block, `[rows, hidden]`.
    pub x: B::Rows,
    /// Saved activations, if `save` was given.
    pub activations: Option<Activations<B>>,
    /// Assignment of rows to experts, for each block with experts.
    pub dispatches: Vec<Dispatch>,
}

fn positions(rows: usize, spans: &[Span]) -> Vec<u32> {
    let mut positions = vec![0; rows];
    for span in spans {
        for (i, row) in span.rows.clone().enumerate() {
            positions[row] = (span.start + i) as u32;
        }
    }
    positions
}

/// Runs the batch through all blocks and appends the rows to the sequences' keys and values. With `save`, the last `save`
/// blocks save the activations for the backward pass, and the others their input. The result of a pass that ends early is
/// incomplete.
pub(crate) fn forward<B: Backend>(
    backend: &B,
    weights: &mut WeightSource<'_, B>,
    input: PassInput<'_, B>,
    save: Option<usize>,
) -> Pass<B> {
    let model = weights.model();
    let mut x = weights.embedding(backend).embed(backend, input.tokens);
    let spans = model.kv().extend(backend, input.rows, input.kv);
    let positions = positions(input.tokens.len(), &spans);
    let rotation = input.images.and_then(|images| {
        images.insert(backend, &mut x);
        PassRotation::new(backend, &model, &images.coordinates)
    });
    let (chosen, mut all_chosen) = (RefCell::default(), Vec::new());
    let (mut saved, mut dispatches, layers) = (Vec::new(), Vec::new(), model.config.num_layers());
    for layer in 0..layers {
        // What it has computed until then is never read.
        if input.early_end.is_some_and(|early_end| weights.ends_early(early_end)) {
            break;
        }
        let block = weights.block(backend, layer);
        let batch = BlockPass {
            backend,
            model: &model,
            block: &block,
            groups: input.groups,
            positions: &positions,
            rotation: rotation.as_ref(),
            spans: &spans,
            chosen: &chosen,
        };
        let all = save.is_some_and(|save| layer + save >= layers);
        if save.is_some() && !all {
            saved.push(SavedBlock::Input(backend.copy(&x)));
        }
        let (activations, dispatch);
        (x, activations, dispatch) = batch.block(layer, x, true, all);
        all_chosen.push(chosen.borrow().clone());
        if let Some(images) = input.images {
            images.add_features(backend, layer, &mut x);
        }
        dispatches.extend(dispatch);
        saved.extend(activations.map(|activations| SavedBlock::All(Box::new(activations))));
    }
    for ((rows, start), kv) in input.rows.iter().zip(input.kv.iter_mut()) {
        kv.set_len(start + rows.len());
    }
    let image_rows = input.images.map(PassImages::rows).unwrap_or_default();
    let activations =
        save.map(|_| Activations { blocks: saved, spans, chosen: all_chosen, positions, rotation, image_rows });
    Pass { x, activations, dispatches }
}

/// The residual stream after a block, its activations where they are saved, and which rows went to which experts.
type BlockOutput<B> = (<B as Tensors>::Rows, Option<BlockActivations<B>>, Option<Dispatch>);

impl<B: Backend> BlockPass<'_, B> {
    /// Computes a block on the residual stream `x` and returns the stream after it. Keys and values are written unless an
    /// earlier pass over the same batch did. With `save`, also returns the activations.
    fn block(&self, layer: usize, x: B::Rows, writes_kv: bool, save: bool) -> BlockOutput<B> {
        let (block, norms) = (self.block, &self.block.norms);
        let (mid, mixer) = match &block.mixer {
            None => (x, None),
            Some(MixerWeights::Attention(w)) => {
                let (mid, saved) = self.attention(layer, w, x, writes_kv, save);
                (mid, saved.map(MixerActivations::Attention))
            }
            Some(MixerWeights::Recurrent(w)) => {
                let (mid, saved) = self.recurrence(layer, w, x, save);
                (mid, saved.map(MixerActivations::Recurrent))
            }
            Some(MixerWeights::Convolution(w)) => {
                let (mid, saved) = self.convolution(layer, w, x, save);
                (mid, saved.map(MixerActivations::Convolution))
            }
        };
        let (pre, post) = (norms.pre_mlp.as_ref(), norms.post_mlp.as_ref());
        let (x, mlp, dispatch) = match &block.mlp {
            None => (mid, None, None),
            Some(MlpWeights::Dense(mlp)) => {
                let (x, mlp) = self.mlp(layer, mlp, pre, post, mid);
                (x, Some(BlockMlp::Dense(mlp)), None)
            }
            Some(MlpWeights::Experts(experts)) => {
                let (x, mlp) = routed(self, layer, experts, pre, post, mid);
                let dispatch = mlp.dispatch.clone();
                (x, Some(BlockMlp::Experts(Box::new(mlp))), Some(dispatch))
            }
        };
        (x, save.then_some(BlockActivations { mixer, mlp }), dispatch)
    }

    fn mlp(
        &self,
        layer: usize,
        mlp: &Mlp<B>,
        pre: Option<&NormWeight<B>>,
        post: Option<&NormWeight<B>>,
        x: B::Rows,
    ) -> (B::Rows, MlpActivations<B>) {
        let (backend, c) = (self.backend, &self.model.config);
        let normed = self.normed(pre, &x);
        let mut gate_up = backend.alloc(x.rows(), mlp.gate_up.outputs());
        let lora = mlp.gate_up.segments(self.groups, layer, None, &[]);
        let (call, activation) = (mlp.gate_up.with(&lora), c.blocks[layer].activation);
        let (z_gate_up, act) = backend.linear_activated(&call, &normed, activation, &mut gate_up);
        drop(normed);
        let (sum, out, z_down) = self.add_residual(layer, &mlp.down, post, &act, &x);
        (sum, MlpActivations { x, gate_up, out, low_rank: [z_gate_up, z_down] })
    }

    /// [`Self::linear`] with the residual stream added, for a layer whose inputs ranks share. Rank 0 begins with the
    /// residual stream and the bias, so that sums are in the order in which one rank adds them.
    pub(super) fn sum_onto(
        &self,
        layer: usize,
        linear: &Linear<B>,
        input: &B::Lhs,
        residual: Option<&B::Rows>,
        outputs: usize,
    ) -> (B::Rows, B::LowRank) {
        let ranks = &self.model.tensor_ranks;
        let lora = linear.segments(self.groups, layer, None, &[]);
        let (call, residual) = match ranks.rank() {
            0 => (linear.with(&lora), residual),
            _ => (linear.without_bias(&lora), None),
        };
        let mut out = self.backend.alloc(self.positions.len(), outputs);
        let low_rank = self.backend.linear(&call, input, residual, &mut out);
        out.all_reduce(ranks);
        (out, low_rank)
    }

    /// The residual stream `x` with a linear layer's output added, scaled where the family does that; where there is a norm,
    /// normalised, and the output before the norm is returned.
    pub(super) fn add_residual(
        &self,
        layer: usize,
        linear: &Linear<B>,
        norm: Option<&NormWeight<B>>,
        input: &B::Lhs,
        x: &B::Rows,
    ) -> (B::Rows, Option<B::Rows>, B::LowRank) {
        let Some(norm) = norm else {
            let scale = self.model.config.residual_scale;
            if scale == 1.0 {
                let (sum, low_rank) = self.sum_onto(layer, linear, input, Some(x), x.width());
                return (sum, None, low_rank);
            }
            let (out, low_rank) = self.sum_onto(layer, linear, input, None, x.width());
            let mut sum = self.backend.copy(x);
            B::Family::add_scaled_rows(self.backend, scale, &out, &mut sum);
            return (sum, None, low_rank);
        };
        let (out, low_rank) = self.sum_onto(layer, linear, input, None, x.width());
        let mut sum = self.backend.copy(x);
        self.backend.add_norm(norm.with(self.model.config.rms_norm_eps), &out, &mut sum);
        (sum, Some(out), low_rank)
    }

    /// Computes what a block's forward pass did not save, from its input.
    pub(super) fn recompute_block(&self, layer: usize, x: B::Rows) -> Option<BlockActivations<B>> {
        self.block(layer, x, false, true).1
    }
}
