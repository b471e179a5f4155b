//! Causal grouped-query attention over paged keys and values, in tiles of `KV_BLOCK` keys with a running softmax (Dao et al.
//! 2022, arXiv:2205.14135); the score matrix is never stored. Tiles start at the sequence's first token, so a row's
//! arithmetic is the same in prefill, decoding and training.

mod backward;
mod forward;
mod image;
mod image_floats;
mod inputs;
#[cfg(target_arch = "x86_64")]
pub(super) mod tiles;

use std::ops::Range;

use super::Cpu;
#[cfg(target_arch = "x86_64")]
use super::kv::tile_unit;
use super::kv::{KvPool, Storage};
use crate::{AttentionCall, AttentionShape, IndexKeys, Span};
use image::ImageAttention;
pub(super) use inputs::AttentionGradient;
use inputs::Reach;

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
        Storage::Floats(kv) => forward::attention(cpu, call, Reach::Past, kv, qkv, out, lse),
        #[cfg(target_arch = "x86_64")]
        Storage::Tiles(kv) => tiles::attention(cpu, call, Reach::Past, kv, qkv, out, lse),
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

/// Writes the attention of every row of `qkv`, `[rows, 3 · heads · e]`, to all rows of its image, `out[rows, heads · e]`. Images
/// are consecutive rows.
pub(super) fn attention_within(cpu: &Cpu, heads: usize, images: &[Range<usize>], qkv: &[f32], out: &mut [f32]) {
    let rows: usize = images.iter().map(ExactSizeIterator::len).sum();
    let head_dim = out.len().checked_div(rows * heads).unwrap_or(0);
    let scale = 1.0 / (head_dim as f32).sqrt();
    let shape = AttentionShape { layers: 1, heads, kv_heads: heads, head_dim, scale, index: IndexKeys::NONE };
    assert!(qkv.len() == rows * shape.qkv_width() && out.len() == rows * shape.q_width(), "rows outside of images");
    let of = ImageAttention::new(shape, images, qkv);
    let mut lse = cpu.buffer(rows * heads);
    #[cfg(target_arch = "x86_64")]
    if let Some(unit) = tile_unit(cpu) {
        return tiles::attention_within(cpu, unit, &of, out, &mut lse);
    }
    image_floats::attention_within(cpu, &of, out, &mut lse);
}

/// Whether spans have their rows in order and to themselves.
fn disjoint(spans: &[Span]) -> bool {
    spans.is_sorted_by(|a, b| a.rows.end <= b.rows.start)
}
