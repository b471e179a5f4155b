//! Paged keys and values: blocks of [`KV_BLOCK`] tokens, all layers and heads. Of each head keys are stored transposed,
//! `[head_dim][KV_BLOCK]`, then values, `[KV_BLOCK][head_dim]`, as attention reads them.

use super::Cpu;
use super::parallel::{SharedPtr, for_each};
use crate::backend::{AttentionShape, BlockId, KV_BLOCK, Span};

/// The blocks of a model's sequences. A released block frees its memory; its id is reused.
pub struct KvPool {
    shape: AttentionShape,
    blocks: Vec<Option<Box<[f32]>>>,
    free: Vec<u32>,
}

impl KvPool {
    pub fn new(shape: &AttentionShape) -> Self {
        Self { shape: *shape, blocks: Vec::new(), free: Vec::new() }
    }

    /// Allocates a block of zeros.
    pub fn alloc(&mut self) -> BlockId {
        let block = Some(vec![0.0; self.shape.kv_block_len()].into_boxed_slice());
        match self.free.pop() {
            Some(id) => {
                self.blocks[id as usize] = block;
                BlockId(id)
            }
            None => {
                self.blocks.push(block);
                BlockId(self.blocks.len() as u32 - 1)
            }
        }
    }

    /// Frees a block.
    pub fn release(&mut self, BlockId(id): BlockId) {
        if self.blocks[id as usize].take().is_some() {
            self.free.push(id);
        }
    }

    /// Copies a block over another one.
    pub fn copy(&mut self, from: BlockId, to: BlockId) {
        let copy = self.blocks[from.0 as usize].clone();
        self.blocks[to.0 as usize] = copy;
    }

    /// Elements of one head's keys and values in a block.
    fn head_len(&self) -> usize {
        2 * self.shape.head_dim * KV_BLOCK
    }

    /// First element of a layer's and head's keys in a block.
    fn at(&self, layer: usize, head: usize) -> usize {
        (layer * self.shape.kv_heads + head) * self.head_len()
    }

    /// Of one head in a block: the transposed keys, `[head_dim][KV_BLOCK]`, and the values, `[KV_BLOCK][head_dim]`.
    pub(super) fn tile(&self, layer: usize, head: usize, BlockId(id): BlockId) -> (&[f32], &[f32]) {
        let block = self.blocks[id as usize].as_deref().unwrap_or_default();
        block[self.at(layer, head)..][..self.head_len()].split_at(self.shape.head_dim * KV_BLOCK)
    }

    /// The first element of a block that a pass writes.
    fn address(&mut self, BlockId(id): BlockId) -> SharedPtr<f32> {
        SharedPtr(self.blocks[id as usize].as_deref_mut().unwrap_or_default().as_mut_ptr())
    }
}

/// A sequence whose rows are written.
struct SpanWriter<'a> {
    span: &'a Span,
    /// Index of the first block that is written.
    first: usize,
    /// The blocks from there on.
    blocks: Vec<SharedPtr<f32>>,
}

/// See [`kv_write`](crate::backend::Backend::kv_write).
pub(super) fn write(cpu: &Cpu, pool: &mut KvPool, shape: &AttentionShape, layer: usize, spans: &[Span], qkv: &[f32]) {
    assert!(pool.shape == *shape, "keys and values of another model");
    let mut written = Vec::new();
    let mut writers: Vec<SpanWriter<'_>> = spans
        .iter()
        .map(|span| {
            let (start, end) = (span.start.max(span.held), span.start + span.rows.len());
            let blocks = if start < end { start / KV_BLOCK..end.div_ceil(KV_BLOCK) } else { 0..0 };
            let ids = &span.blocks[blocks.clone()];
            assert!(ids.iter().all(|id| pool.blocks[id.0 as usize].is_some()), "a block that was released");
            written.extend_from_slice(ids);
            SpanWriter { span, first: blocks.start, blocks: ids.iter().map(|id| pool.address(*id)).collect() }
        })
        .collect();
    written.sort_unstable();
    assert!(written.is_sorted_by(|a, b| a < b), "two sequences write one block");
    let pool = &*pool;
    let (width, q, kv) = (shape.qkv_width(), shape.q_width(), shape.kv_width());
    for_each(cpu, &mut writers, |_, SpanWriter { span, first, blocks }| {
        for (i, row) in span.rows.clone().enumerate() {
            let position = span.start + i;
            if position < span.held {
                continue;
            }
            let row = &qkv[row * width..(row + 1) * width];
            let block = blocks[position / KV_BLOCK - *first];
            // SAFETY: the block exists and has this length; blocks of distinct writers differ, as checked above.
            let block = unsafe { std::slice::from_raw_parts_mut(block.ptr(), shape.kv_block_len()) };
            write_token(pool, layer, position % KV_BLOCK, block, &row[q..q + kv], &row[q + kv..]);
        }
    });
}

/// Writes a token's keys and values of one layer into a block.
fn write_token(pool: &KvPool, layer: usize, slot: usize, block: &mut [f32], keys: &[f32], values: &[f32]) {
    let hd = pool.shape.head_dim;
    for head in 0..pool.shape.kv_heads {
        let (kt, v) = block[pool.at(layer, head)..][..pool.head_len()].split_at_mut(hd * KV_BLOCK);
        for (d, key) in keys[head * hd..(head + 1) * hd].iter().enumerate() {
            kt[d * KV_BLOCK + slot] = *key;
        }
        v[slot * hd..(slot + 1) * hd].copy_from_slice(&values[head * hd..(head + 1) * hd]);
    }
}
