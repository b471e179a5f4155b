//! The forward pass over a packed batch: rows of many sequences, with an adapter per group of rows.

use std::ops::Range;

use super::adapter::RowGroup;
use super::block_pass::BlockPass;
use super::experts::{ExpertActivations, routed};
use super::kv::KvSequence;
use super::latent::{Latent, LatentActivations};
use super::latent_weights::QkvWeights;
use super::linear::Linear;
use super::mlp_weights::{GatedMlp, MlpWeights};
use super::norm_weight::NormWeight;
use super::zero::weight_source::WeightSource;
use crate::backend::{Backend, Dispatch, FamilyOps, LatentOps, Rows, Span};

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
}

/// Activations that a block's backward pass needs.
pub(super) struct BlockActivations<B: Backend> {
    pub(super) attention: AttentionActivations<B>,
    pub(super) mlp: BlockMlp<B>,
}

/// Activations of a block's MLP.
pub(super) enum BlockMlp<B: Backend> {
    Dense(MlpActivations<B>),
    Experts(ExpertActivations<B>),
}

/// Activations of a block's attention.
pub(super) struct AttentionActivations<B: Backend> {
    /// Residual stream before the block, `[rows, hidden]`.
    pub(super) x: B::Rows,
    /// Activations saved by the QKV projection.
    pub(super) projected: QkvActivations<B>,
    /// q, k, v, rotated.
    pub(super) qkv: B::Rows,
    /// Attention's output `[rows, q_width]` and log-sum-exp of the scores.
    pub(super) heads: [B::Rows; 2],
    /// Output of the o projection before its norm, where there is one.
    pub(super) out: Option<B::Rows>,
    /// `scale · (x Aᵀ)` of the adapters on o.
    pub(super) low_rank: B::LowRank,
}

/// Activations of the QKV projections.
pub(super) enum QkvActivations<B: Backend> {
    Heads {
        /// q, k, v before head norms, where there are any.
        raw: Option<B::Rows>,
        /// `scale · (x Aᵀ)` of the adapters.
        low_rank: B::LowRank,
    },
    Latent(LatentActivations<B>),
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
    /// Position of every row.
    pub(super) positions: Vec<u32>,
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
/// blocks save the activations for the backward pass, and the others their input.
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
    let (mut saved, mut dispatches, layers) = (Vec::new(), Vec::new(), model.config.num_layers());
    for layer in 0..layers {
        let block = weights.block(backend, layer);
        let batch = BlockPass {
            backend,
            model: &model,
            block: &block,
            groups: input.groups,
            positions: &positions,
            spans: &spans,
        };
        let all = save.is_some_and(|save| layer + save >= layers);
        if save.is_some() && !all {
            saved.push(SavedBlock::Input(backend.copy(&x)));
        }
        let (activations, dispatch);
        (x, activations, dispatch) = batch.block(layer, x, true, all);
        dispatches.extend(dispatch);
        saved.extend(activations.map(|activations| SavedBlock::All(Box::new(activations))));
    }
    for ((rows, start), kv) in input.rows.iter().zip(input.kv.iter_mut()) {
        kv.set_len(start + rows.len());
    }
    let activations = save.map(|_| Activations { blocks: saved, spans, positions });
    Pass { x, activations, dispatches }
}

/// The residual stream after a block, its activations where they are saved, and which rows went to which experts.
type BlockOutput<B> = (<B as Backend>::Rows, Option<BlockActivations<B>>, Option<Dispatch>);

impl<B: Backend> BlockPass<'_, B> {
    /// Computes a block on the residual stream `x` and returns the stream after it. Keys and values are written unless an
    /// earlier pass over the same batch did. With `save`, also returns the activations.
    fn block(&self, layer: usize, x: B::Rows, writes_kv: bool, save: bool) -> BlockOutput<B> {
        let (backend, block, c) = (self.backend, self.block, &self.model.config);
        let normed = backend.norm_lhs(block.pre_attention.with(c.rms_norm_eps), &x);
        let (qkv, projected) = self.qkv(layer, &block.qkv, &normed, save);
        drop(normed);
        let mut kv = self.model.kv();
        if writes_kv {
            kv.write(backend, layer, self.spans, &qkv);
        }
        let mut heads = backend.attention(self.attention(layer), kv.pool(), &qkv);
        drop(kv);
        if let Some(sinks) = &block.sinks {
            B::Family::add_sinks(backend, sinks, &mut heads);
        }
        let packed = match c.latent_heads() {
            None => backend.lhs(&heads[0]),
            Some(latent) => backend.lhs(&B::Family::head_values(backend, latent, &heads[0])),
        };
        let (mid, out, z_o) = self.add_residual(layer, &block.o, block.post_attention.as_ref(), &packed, &x);
        drop(packed);
        let attention = save.then(|| AttentionActivations { x, projected, qkv, heads, out, low_rank: z_o });
        let post_mlp = block.post_mlp.as_ref();
        let (x, mlp, dispatch) = match &block.mlp {
            MlpWeights::Dense(mlp) => {
                let (x, mlp) = self.mlp(layer, mlp, (&block.pre_mlp, post_mlp), mid);
                (x, BlockMlp::Dense(mlp), None)
            }
            MlpWeights::Experts(experts) => {
                let (x, mlp) = routed(self, layer, experts, (&block.pre_mlp, post_mlp), mid);
                let dispatch = mlp.dispatch.clone();
                (x, BlockMlp::Experts(mlp), Some(dispatch))
            }
        };
        (x, attention.map(|attention| BlockActivations { attention, mlp }), dispatch)
    }

    /// Rotated queries, keys and values of a block's normalised input.
    fn qkv(&self, layer: usize, w: &QkvWeights<B>, normed: &B::Lhs, save: bool) -> (B::Rows, QkvActivations<B>) {
        match (w, Latent::of(&self.model.config)) {
            (QkvWeights::Latent(w), Some(latent)) => {
                let (qkv, saved) = latent.forward(self, layer, w, normed);
                (qkv, QkvActivations::Latent(saved))
            }
            (QkvWeights::Heads(linear), _) => {
                let (mut qkv, low_rank) = self.linear(layer, linear, normed, None);
                let raw = self.backend.rotate(&self.rotation(layer), &mut qkv, save);
                (qkv, QkvActivations::Heads { raw, low_rank })
            }
            (QkvWeights::Latent(_), None) => unreachable!("weights of the model's own attention"),
        }
    }

    fn mlp(
        &self,
        layer: usize,
        mlp: &GatedMlp<B>,
        (pre, post): (&NormWeight<B>, Option<&NormWeight<B>>),
        x: B::Rows,
    ) -> (B::Rows, MlpActivations<B>) {
        let (backend, c) = (self.backend, &self.model.config);
        let normed = backend.norm_lhs(pre.with(c.rms_norm_eps), &x);
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

    /// The residual stream `x` with a linear layer's output added; where there is a norm, normalised, and the output before the
    /// norm is returned.
    fn add_residual(
        &self,
        layer: usize,
        linear: &Linear<B>,
        norm: Option<&NormWeight<B>>,
        input: &B::Lhs,
        x: &B::Rows,
    ) -> (B::Rows, Option<B::Rows>, B::LowRank) {
        let Some(norm) = norm else {
            let (sum, low_rank) = self.sum_onto(layer, linear, input, Some(x), x.width());
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
