//! Images whose rows attend to all rows of their image. Keys and values are packed for one pass, in blocks that begin at an
//! image's first row.

use std::ops::Range;

use crate::{AttentionCall, AttentionShape, BlockId, KV_BLOCK as BLOCK, Span};

/// Rows of a block of keys.
pub(super) struct KeyRows {
    pub(super) first: usize,
    pub(super) count: usize,
}

/// Images whose rows attend.
pub(super) struct ImageAttention<'a> {
    pub(super) shape: AttentionShape,
    spans: Vec<Span>,
    /// Rows of each block, the blocks of an image one after the other.
    pub(super) blocks: Vec<KeyRows>,
    /// Queries, keys and values, `[rows, 3 · heads · head_dim]`.
    pub(super) qkv: &'a [f32],
}

impl<'a> ImageAttention<'a> {
    pub(super) fn new(shape: AttentionShape, images: &[Range<usize>], qkv: &'a [f32]) -> Self {
        let (mut spans, mut blocks) = (Vec::with_capacity(images.len()), Vec::new());
        for rows in images {
            let first = blocks.len() as u32;
            let of_block = |at: usize| KeyRows { first: at, count: BLOCK.min(rows.end - at) };
            blocks.extend(rows.clone().step_by(BLOCK).map(of_block));
            let ids = (first..blocks.len() as u32).map(BlockId).collect();
            spans.push(Span { rows: rows.clone(), start: 0, blocks: ids, held: 0, state: None });
        }
        Self { shape, spans, blocks, qkv }
    }

    pub(super) fn call(&self) -> AttentionCall<'_> {
        AttentionCall { shape: &self.shape, layer: 0, window: None, chosen: None, spans: &self.spans }
    }
}
