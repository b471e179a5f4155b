//! Inputs of attention, and which keys a row sees.

use std::ops::Range;

use crate::backend::{AttentionShape, KV_BLOCK as BLOCK};

/// Inputs of `attention_backward` apart from keys and values.
pub(in crate::backend::cpu) struct AttentionGradient<'a> {
    /// Rotated queries, keys and values, `[rows, qkv_width]`.
    pub(in crate::backend::cpu) qkv: &'a [f32],
    /// Output of the forward pass, `[rows, q_width]`.
    pub(in crate::backend::cpu) out: &'a [f32],
    /// Log-sum-exp of the scores, `[rows, heads]`.
    pub(in crate::backend::cpu) lse: &'a [f32],
    /// Gradient with respect to the output, `[rows, q_width]`.
    pub(in crate::backend::cpu) d_out: &'a [f32],
}

/// Query rows of a tile.
pub(super) const QUERY_ROWS: usize = 48;

/// Query heads that share a key head.
pub(super) fn group(shape: &AttentionShape) -> usize {
    shape.heads / shape.kv_heads
}

/// Keys that a row at `position` sees.
pub(super) fn visible(position: usize, window: Option<usize>) -> Range<usize> {
    let first = window.map_or(0, |w| (position + 1).saturating_sub(w));
    first..position + 1
}

/// The visible part of a block, as slots.
pub(super) fn slots(visible: &Range<usize>, block: usize) -> Range<usize> {
    let base = block * BLOCK;
    let start = visible.start.clamp(base, base + BLOCK) - base;
    let end = visible.end.clamp(base, base + BLOCK) - base;
    start..end.max(start)
}
