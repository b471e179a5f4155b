//! Causal grouped-query attention over paged keys and values, in tiles of [`BLOCK`] keys with a running softmax (Dao et al.
//! 2022, arXiv:2205.14135); the score matrix is never stored. Tiles start at the sequence's first token, so a row's
//! arithmetic is the same in prefill, decoding and training.

mod backward;
mod forward;

use std::ops::Range;

pub(super) use backward::{AttentionGradient, attention_backward};
pub(super) use forward::attention;

use crate::backend::{AttentionShape, KV_BLOCK as BLOCK, Span};

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
