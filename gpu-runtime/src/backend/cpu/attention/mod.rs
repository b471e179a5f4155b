//! Causal grouped-query attention over paged keys and values, in tiles of `KV_BLOCK` keys with a running softmax (Dao et al.
//! 2022, arXiv:2205.14135); the score matrix is never stored. Tiles start at the sequence's first token, so a row's
//! arithmetic is the same in prefill, decoding and training.

mod backward;
mod forward;
mod inputs;
#[cfg(target_arch = "x86_64")]
pub(super) mod tiles;

use super::Cpu;
use super::kv::{KvPool, Storage};
use crate::backend::{AttentionCall, Span};
pub(super) use inputs::AttentionGradient;

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

/// Whether spans have their rows in order and to themselves.
fn disjoint(spans: &[Span]) -> bool {
    spans.is_sorted_by(|a, b| a.rows.end <= b.rows.start)
}
