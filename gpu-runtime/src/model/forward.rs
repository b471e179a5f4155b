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
use super::linear::Linear;
use super::mixer_weights::MixerWeights;
use super::mlp_weights::{Mlp, MlpWeights};
use super::mrope::PassRotation;
use super::norm_weight::NormWeight;
use super::parts::PART_ROWS;
use super::recompute::{KeptInputs, Saved};
use super::recurrence::RecurrenceActivations;
use super::zero::weight_source::WeightSource;
use crate::backend::kv::KvSequence;
use crate::backend::{Backend, Chosen, Dispatch, Rows, ScaleOps, Span, Tensors};

/// A batch: every sequence contributes consecutive rows, groups cover the rows in order.
pub(crate) struct PassInput<'a, B: Backend> {
    /// Token of every row, below the vocabulary's size.
    pub tokens: &'a [u32],
    /// Rows of each sequence and the position of its first row.
    pub rows: &'a [(Range<usize>, usize)],
    /// Keys and values of each sequence, up to its first row.
    pub kv: &'a mut [KvSequence],
    /// Whether later passes continue the sequences. Otherwise the blocks of the model write their keys and values in one place.
    pub is_continued: bool,
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
    /// The residual stream before an MLP without experts, whose activations are recomputed in parts.
    Input(B::Rows),
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

/// Activations that the forward pass saves for the backward pass.
pub(crate) struct Activations<B: Backend> {
    /// Activations of the last blocks.
    pub(super) blocks: Vec<BlockActivations<B>>,
    /// Inputs of the others, whose activations are recomputed (activation checkpointing).
    pub(super) inputs: KeptInputs<B::Rows>,
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

/// Runs the batch through all blocks and appends the rows to the sequences' keys and values, where those are continued. With
/// `save`, keeps that for the backward pass. The result of a pass that ends early is incomplete.
pub(crate) fn forward<B: Backend>(
    backend: &B,
    weights: &mut WeightSource<'_, B>,
    input: PassInput<'_, B>,
    save: Option<Saved>,
) -> Pass<B> {
    let model = weights.model();
    let mut x = weights.embedding(backend).embed(backend, input.tokens);
    let kv = model.kv(input.is_continued);
    let spans = kv.lock().extend(backend, input.rows, input.kv);
    let positions = positions(input.tokens.len(), &spans);
    let rotation = input.images.and_then(|images| {
        images.insert(backend, &mut x);
        PassRotation::new(backend, &model, &images.coordinates)
    });
    let (chosen, mut all_chosen) = (RefCell::default(), Vec::new());
    let (mut blocks, mut dispatches, layers) = (Vec::new(), Vec::new(), model.config.num_layers());
    let mut inputs = KeptInputs::new(save.unwrap_or_default(), layers);
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
            kv,
            chosen: &chosen,
        };
        let saves = save.is_some_and(|save| layer >= save.recomputed(layers));
        if save.is_some() && inputs.keeps(layer) {
            inputs.keep(layer, backend.copy(&x));
        }
        let (activations, dispatch);
        (x, activations, dispatch) = batch.block(layer, x, true, saves);
        all_chosen.push(chosen.borrow().clone());
        if let Some(images) = input.images {
            images.add_features(backend, layer, &mut x);
        }
        dispatches.extend(dispatch);
        blocks.extend(activations);
    }
    for ((rows, start), kv) in input.rows.iter().zip(input.kv.iter_mut()) {
        kv.set_len(start + rows.len());
    }
    let image_rows = input.images.map(PassImages::rows).unwrap_or_default();
    let activations =
        save.map(|_| Activations { blocks, inputs, spans, chosen: all_chosen, positions, rotation, image_rows });
    Pass { x, activations, dispatches }
}

/// The residual stream after a block, its activations where they are saved, and which rows went to which experts.
type BlockOutput<B> = (<B as Tensors>::Rows, Option<BlockActivations<B>>, Option<Dispatch>);

impl<B: Backend> BlockPass<'_, B> {
    /// Computes a block on the residual stream `x` and returns the stream after it. `is_first`: no earlier pass was over the
    /// same batch. With `save`, also returns the activations.
    fn block(&self, layer: usize, x: B::Rows, is_first: bool, save: bool) -> BlockOutput<B> {
        let (mid, mixer) = self.mixer(layer, x, is_first, save);
        let (x, mlp, dispatch) = match &self.block.mlp {
            Some(MlpWeights::Dense(mlp)) if !save && mid.rows() > PART_ROWS => {
                return (self.mlp_in_parts(layer, mlp, &mid), None, None);
            }
            _ => self.mlp_or_experts(layer, mid),
        };
        (x, save.then_some(BlockActivations { mixer, mlp }), dispatch)
    }

    /// The residual stream `x` after the block's mixer.
    fn mixer(&self, layer: usize, x: B::Rows, is_first: bool, save: bool) -> (B::Rows, Option<MixerActivations<B>>) {
        match &self.block.mixer {
            None => (x, None),
            Some(MixerWeights::Attention(w)) => {
                let (mid, saved) = self.attention(layer, w, x, is_first, save);
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
        }
    }

    /// The residual stream `x` after the block's MLP or experts.
    fn mlp_or_experts(&self, layer: usize, x: B::Rows) -> (B::Rows, Option<BlockMlp<B>>, Option<Dispatch>) {
        match &self.block.mlp {
            None => (x, None, None),
            Some(MlpWeights::Dense(mlp)) => {
                let (x, mlp) = self.mlp(layer, mlp, x);
                (x, Some(BlockMlp::Dense(mlp)), None)
            }
            Some(MlpWeights::Experts(experts)) => {
                let norms = &self.block.norms;
                let (x, mlp) = routed(self, layer, experts, norms.pre_mlp.as_ref(), norms.post_mlp.as_ref(), x);
                let dispatch = mlp.dispatch.clone();
                (x, Some(BlockMlp::Experts(Box::new(mlp))), Some(dispatch))
            }
        }
    }

    /// The residual stream `x` after an MLP without experts, and the activations.
    pub(super) fn mlp(&self, layer: usize, mlp: &Mlp<B>, x: B::Rows) -> (B::Rows, MlpActivations<B>) {
        let (backend, c, norms) = (self.backend, &self.model.config, &self.block.norms);
        let normed = self.normed(norms.pre_mlp.as_ref(), &x);
        let mut gate_up = backend.alloc(x.rows(), mlp.gate_up.outputs());
        let lora = mlp.gate_up.segments(self.groups, layer, None, &[]);
        let (call, activation) = (mlp.gate_up.with(&lora), c.blocks[layer].activation);
        let (z_gate_up, act) = backend.linear_activated(&call, &normed, activation, &mut gate_up);
        drop(normed);
        let (sum, out, z_down) = self.add_residual(layer, &mlp.down, norms.post_mlp.as_ref(), &act, &x);
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
    pub(super) fn recompute_block(&self, layer: usize, x: B::Rows) -> BlockActivations<B> {
        let (mid, mixer) = self.mixer(layer, x, false, true);
        let mlp = match &self.block.mlp {
            Some(MlpWeights::Dense(_)) if mid.rows() > PART_ROWS => Some(BlockMlp::Input(mid)),
            _ => self.mlp_or_experts(layer, mid).1,
        };
        BlockActivations { mixer, mlp }
    }

    /// Computes a block's output again.
    pub(super) fn repeat_block(&self, layer: usize, x: B::Rows) -> B::Rows {
        self.block(layer, x, false, false).0
    }
}
