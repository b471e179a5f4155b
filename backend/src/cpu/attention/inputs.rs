//! Inputs of attention, and which keys a row sees.

use std::ops::Range;

use crate::{AttentionCall, AttentionShape, KV_BLOCK as BLOCK, Span};

/// Inputs of `attention_backward` apart from keys and values.
pub(in crate::cpu) struct AttentionGradient<'a> {
    /// Rotated queries, keys and values, `[rows, qkv_width]`.
    pub(in crate::cpu) qkv: &'a [f32],
    /// Output of the forward pass, `[rows, q_width]`.
    pub(in crate::cpu) out: &'a [f32],
    /// Log-sum-exp of the scores, `[rows, heads]`.
    pub(in crate::cpu) lse: &'a [f32],
    /// Gradient with respect to the output, `[rows, q_width]`.
    pub(in crate::cpu) d_out: &'a [f32],
}

/// Query rows of a tile.
pub(super) const QUERY_ROWS: usize = 48;

/// Query heads that share a key head.
pub(super) fn group(shape: &AttentionShape) -> usize {
    shape.heads / shape.kv_heads
}

/// The keys of its sequence that a row attends to.
#[derive(Clone, Copy)]
pub(in crate::cpu) enum Reach {
    /// Those up to its own position, within the window.
    Past,
    /// All keys of the sequence.
    Whole,
}

impl Reach {
    /// Positions that the row of a sequence at `position` sees.
    pub(super) fn keys(self, span: &Span, position: usize, window: Option<usize>) -> Range<usize> {
        match self {
            Self::Past => visible(position, window),
            Self::Whole => 0..span.start + span.rows.len(),
        }
    }
}

/// Keys that a row at `position` sees.
pub(super) fn visible(position: usize, window: Option<usize>) -> Range<usize> {
    let first = window.map_or(0, |w| (position + 1).saturating_sub(w));
    first..position + 1
}

/// The visible part of a block: bit `i` is that of its position `i`.
pub(super) fn slots(visible: &Range<usize>, block: usize) -> u32 {
    let base = block * BLOCK;
    let below = |position: usize| (1u64 << (position.clamp(base, base + BLOCK) - base)) - 1;
    (below(visible.end) & !below(visible.start)) as u32
}

/// The positions of a block that a row of the batch attends to, of those up to its own in [`slots`].
pub(super) fn chosen(call: &AttentionCall<'_>, row: usize, block: usize) -> u32 {
    call.chosen.map_or(u32::MAX, |chosen| chosen.of(row, block))
}
