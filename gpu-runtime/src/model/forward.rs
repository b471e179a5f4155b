//! The forward pass over a packed batch: rows of many sequences, with an adapter per group of rows.

use std::ops::Range;

use super::adapter::RowGroup;
use super::kv::KvSequence;
use super::linear::Linear;
use super::weights::{BlockWeights, NormWeight, Weights};
use crate::backend::{AttentionCall, Backend, Rotation, Rows, Span};

/// A batch: every sequence contributes consecutive rows, groups cover the rows in order.
pub(crate) struct PassInput<'a, B: Backend> {
    /// Token of every row, below the vocabulary's size.
    pub tokens: &'a [u32],
    /// Rows of each sequence and the position of its first row.
    pub rows: &'a [(Range<usize>, usize)],
    /// Keys and values of each sequence, up to its first row.
    pub kv: &'a mut [KvSequence],
    /// Rows by adapter.
    pub groups: &'a [RowGroup<B>],
}

/// Activations that a block's backward pass needs.
pub(super) struct BlockActivations<B: Backend> {
    /// Residual stream before the block, `[rows, hidden]`.
    pub(super) x: B::Rows,
    /// q, k, v before head norms, where there are any.
    pub(super) raw_qkv: Option<B::Rows>,
    /// q, k, v, rotated.
    pub(super) qkv: B::Rows,
    /// Attention's output `[rows, q_width]` and log-sum-exp of the scores.
    pub(super) attention: [B::Rows; 2],
    /// Output of the o projection before its norm, where there is one.
    pub(super) attention_out: Option<B::Rows>,
    /// Residual stream before the MLP.
    pub(super) mid: B::Rows,
    /// gate and up.
    pub(super) gate_up: B::Rows,
    /// Output of the down projection before its norm, where there is one.
    pub(super) mlp_out: Option<B::Rows>,
    /// `scale · (x Aᵀ)` of the adapters on qkv, o, gate_up, down.
    pub(super) low_rank: [B::LowRank; 4],
}

/// What was saved of a block for its backward pass.
pub(super) enum SavedBlock<B: Backend> {
    /// All activations.
    All(Box<BlockActivations<B>>),
    /// Its input: the rest is recomputed (activation checkpointing).
    Input(B::Rows),
}

/// What the forward pass saves for the backward pass.
pub(crate) struct Activations<B: Backend> {
    /// Block by block.
    pub(super) blocks: Vec<SavedBlock<B>>,
    /// The sequences with their KV blocks.
    pub(super) spans: Vec<Span>,
    /// Position of every row.
    pub(super) positions: Vec<u32>,
}

/// What a forward pass returns.
pub(crate) struct Pass<B: Backend> {
    /// Residual stream after the last block, `[rows, hidden]`.
    pub x: B::Rows,
    /// Where `save` was given.
    pub activations: Option<Activations<B>>,
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
    w: &Weights<B>,
    input: PassInput<'_, B>,
    save: Option<usize>,
) -> Pass<B> {
    let mut x = w.embed(backend, input.tokens);
    let spans = w.model.kv().extend(backend, input.rows, input.kv);
    let positions = positions(input.tokens.len(), &spans);
    let batch = BlockPass { backend, w, groups: input.groups, positions: &positions, spans: &spans };
    let mut saved = Vec::new();
    for layer in 0..w.blocks.len() {
        let all = save.is_some_and(|save| layer + save >= w.blocks.len());
        if save.is_some() && !all {
            saved.push(SavedBlock::Input(backend.copy(&x)));
        }
        let activations = batch.block(layer, &mut x, true, all);
        saved.extend(activations.map(|activations| SavedBlock::All(Box::new(activations))));
    }
    for ((rows, start), kv) in input.rows.iter().zip(input.kv.iter_mut()) {
        kv.set_len(start + rows.len());
    }
    let activations = save.map(|_| Activations { blocks: saved, spans, positions });
    Pass { x, activations }
}

/// The batch as every block sees it.
pub(super) struct BlockPass<'a, B: Backend> {
    pub(super) backend: &'a B,
    pub(super) w: &'a Weights<B>,
    pub(super) groups: &'a [RowGroup<B>],
    pub(super) positions: &'a [u32],
    pub(super) spans: &'a [Span],
}

impl<B: Backend> BlockPass<'_, B> {
    /// The arguments of a block's attention.
    pub(super) fn attention(&self, layer: usize) -> AttentionCall<'_> {
        let window = self.w.model.config.blocks[layer].window;
        AttentionCall { shape: &self.w.model.shape, layer, window, spans: self.spans }
    }

    /// The arguments of a block's head norms and rotation.
    pub(super) fn rotation(&self, layer: usize) -> Rotation<'_, B> {
        let eps = self.w.model.config.rms_norm_eps;
        let norms = self.w.blocks[layer].head_norms.as_ref().map(|norms| norms.each_ref().map(|norm| norm.with(eps)));
        Rotation { shape: &self.w.model.shape, norms, rope: self.w.model.rope(layer), positions: self.positions }
    }

    /// Computes a block on the residual stream `x`, in place. Keys and values are written unless an earlier pass over the same
    /// batch did. With `save`, returns the activations.
    fn block(&self, layer: usize, x: &mut B::Rows, writes_kv: bool, save: bool) -> Option<BlockActivations<B>> {
        let (backend, block, c) = (self.backend, &self.w.blocks[layer], &self.w.model.config);
        let before = save.then(|| backend.copy(x));
        let normed = backend.norm_lhs(block.pre_attention.with(c.rms_norm_eps), x);
        let (mut qkv, z_qkv) = self.linear(layer, &block.qkv, &normed, self.w.model.shape.qkv_width());
        drop(normed);
        let raw_qkv = backend.rotate(&self.rotation(layer), &mut qkv, save);
        let mut kv = self.w.model.kv();
        if writes_kv {
            kv.write(backend, layer, self.spans, &qkv);
        }
        let attention = backend.attention(self.attention(layer), kv.pool(), &qkv);
        drop(kv);
        let heads = backend.lhs(&attention[0]);
        let (attention_out, z_o) = self.add_residual(layer, &block.o, block.post_attention.as_ref(), &heads, x);
        drop(heads);
        let mid = save.then(|| backend.copy(x));
        let (gate_up, mlp_out, z_mlp) = self.mlp(layer, block, x);
        let [z_gate_up, z_down] = z_mlp;
        let low_rank = [z_qkv, z_o, z_gate_up, z_down];
        let (x, mid) = (before?, mid?);
        Some(BlockActivations { x, raw_qkv, qkv, attention, attention_out, mid, gate_up, mlp_out, low_rank })
    }

    fn mlp(
        &self,
        layer: usize,
        block: &BlockWeights<B>,
        x: &mut B::Rows,
    ) -> (B::Rows, Option<B::Rows>, [B::LowRank; 2]) {
        let (backend, c) = (self.backend, &self.w.model.config);
        let normed = backend.norm_lhs(block.pre_mlp.with(c.rms_norm_eps), x);
        let (gate_up, z_gate_up) = self.linear(layer, &block.gate_up, &normed, 2 * c.intermediate_size);
        drop(normed);
        let act = backend.activate(c.blocks[layer].activation, &gate_up);
        let (out, z_down) = self.add_residual(layer, &block.down, block.post_mlp.as_ref(), &act, x);
        (gate_up, out, [z_gate_up, z_down])
    }

    /// A linear layer of `outputs` columns, with the adapters on it.
    fn linear(&self, layer: usize, linear: &Linear<B>, x: &B::Lhs, outputs: usize) -> (B::Rows, B::LowRank) {
        let mut out = self.backend.alloc(self.positions.len(), outputs);
        let low_rank = self.linear_into(layer, linear, x, &mut out, false);
        (out, low_rank)
    }

    fn linear_into(
        &self,
        layer: usize,
        linear: &Linear<B>,
        x: &B::Lhs,
        out: &mut B::Rows,
        accumulate: bool,
    ) -> B::LowRank {
        let lora = linear.segments(self.groups, layer, &[]);
        self.backend.linear(&linear.with(&lora), x, out, accumulate)
    }

    /// Adds a linear layer's output to the residual stream `x`; where there is a norm, normalised, and the output before the
    /// norm is returned.
    fn add_residual(
        &self,
        layer: usize,
        linear: &Linear<B>,
        norm: Option<&NormWeight<B>>,
        input: &B::Lhs,
        x: &mut B::Rows,
    ) -> (Option<B::Rows>, B::LowRank) {
        let Some(norm) = norm else {
            return (None, self.linear_into(layer, linear, input, x, true));
        };
        let (out, low_rank) = self.linear(layer, linear, input, x.width());
        self.backend.add_norm(norm.with(self.w.model.config.rms_norm_eps), &out, x);
        (Some(out), low_rank)
    }

    /// Computes what a block's forward pass did not save, from its input.
    pub(super) fn recompute_block(&self, layer: usize, mut x: B::Rows) -> Option<BlockActivations<B>> {
        self.block(layer, &mut x, false, true)
    }
}
