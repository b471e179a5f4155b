//! Causal grouped-query attention over paged keys and values, in tiles of [`BLOCK`] keys with a running softmax (Dao et al.
//! 2022, arXiv:2205.14135); the score matrix is never stored. Tiles start at the sequence's first token, so a row's
//! arithmetic is the same in prefill, decoding and training.

mod backward;
mod forward;
#[cfg(target_arch = "x86_64")]
pub(super) mod tiles;

use std::ops::Range;

use super::Cpu;
use super::kv::{KvPool, Storage};
use crate::backend::{AttentionCall, AttentionShape, KV_BLOCK as BLOCK, Span};

/// Inputs of [`attention_backward`] apart from keys and values.
pub(super) struct AttentionGradient<'a> {
    /// Rotated queries, keys and values, `[rows, qkv_width]`.
    pub(super) qkv: &'a [f32],
    /// Output of the forward pass, `[rows, q_width]`.
    pub(super) out: &'a [f32],
    /// Log-sum-exp of the scores, `[rows, heads]`.
    pub(super) lse: &'a [f32],
    /// Gradient with respect to the output, `[rows, q_width]`.
    pub(super) d_out: &'a [f32],
}

/// Writes `out[rows, heads * head_dim]` and the log-sum-exp of the scores, `lse[rows, heads]`, from rotated queries in `qkv`
/// and the sequences' keys and values.
pub(super) fn attention(
    cpu: &Cpu,
    call: AttentionCall<'_>,
    kv: &KvPool,
    qkv: &[f32],
    out: &mut [f32],
    lse: &mut [f32],
) {
    assert!(disjoint(call.spans), "spans overlap");
    match kv.storage() {
        Storage::Floats(kv) => forward::attention(cpu, call, kv, qkv, out, lse),
        #[cfg(target_arch = "x86_64")]
        Storage::Tiles(kv) => tiles::attention(cpu, call, kv, qkv, out, lse),
    }
}

/// Writes the gradient with respect to rotated queries, keys and values, `d_qkv[rows, qkv_width]`. Every span starts at
/// position 0. Sums run over queries in order, sequence by sequence.
pub(super) fn attention_backward(
    cpu: &Cpu,
    call: AttentionCall<'_>,
    kv: &KvPool,
    g: &AttentionGradient<'_>,
    d_qkv: &mut [f32],
) {
    assert!(disjoint(call.spans), "spans overlap");
    match kv.storage() {
        Storage::Floats(kv) => backward::attention_backward(cpu, call, kv, g, d_qkv),
        #[cfg(target_arch = "x86_64")]
        Storage::Tiles(kv) => tiles::attention_backward(cpu, call, kv, g, d_qkv),
    }
}

/// Query rows of a tile.
const QUERY_ROWS: usize = 48;

/// Query heads that share a key head.
fn group(shape: &AttentionShape) -> usize {
    shape.heads / shape.kv_heads
}

/// Whether spans have their rows in order and to themselves.
fn disjoint(spans: &[Span]) -> bool {
    spans.is_sorted_by(|a, b| a.rows.end <= b.rows.start)
}

/// Keys that a row at `position` sees.
fn visible(position: usize, window: Option<usize>) -> Range<usize> {
    let first = window.map_or(0, |w| (position + 1).saturating_sub(w));
    first..position + 1
}

/// The visible part of a block, as slots.
fn slots(visible: &Range<usize>, block: usize) -> Range<usize> {
    let base = block * BLOCK;
    let start = visible.start.clamp(base, base + BLOCK) - base;
    let end = visible.end.clamp(base, base + BLOCK) - base;
    start..end.max(start)
}
