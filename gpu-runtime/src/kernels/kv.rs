//! Paged keys and values: blocks of [`BLOCK`] tokens that sequences share until one writes.

use std::ops::Range;
use std::sync::Arc;

use super::Cpu;
use super::attention::AttentionShape;
use super::elementwise::for_each;

/// Tokens of a block, and keys of a tile of attention.
pub const BLOCK: usize = 32;

/// Keys and values of [`BLOCK`] consecutive tokens, all layers.
#[derive(Clone)]
pub struct KvBlock(Vec<f32>);

/// Keys and values of a sequence; clones share their blocks until one writes.
#[derive(Clone, Default)]
pub struct KvSequence {
    blocks: Vec<Arc<KvBlock>>,
    len: usize,
    /// Tokens of attached blocks: computed already, so that writing them again is skipped.
    attached: usize,
}

impl KvSequence {
    /// Tokens held.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no token is held.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Makes room for `tokens` tokens in all; call before a pass that extends the sequence.
    pub fn reserve(&mut self, shape: &AttentionShape, tokens: usize) {
        while self.blocks.len() * BLOCK < tokens {
            self.blocks.push(Arc::new(KvBlock(vec![0.0; shape.block_len()])));
        }
    }

    /// Declares that tokens up to `len` have been written in every layer.
    pub fn set_len(&mut self, len: usize) {
        self.len = len;
    }

    /// Its blocks; the last one may be partly filled.
    pub fn blocks(&self) -> &[Arc<KvBlock>] {
        &self.blocks
    }

    /// Appends a full block that another sequence computed from the same tokens, to a sequence that holds full
    /// blocks only, and declares `len` tokens held. Where the sequence goes on before the block's end, it computes
    /// those rows again and leaves the block as it is.
    pub fn attach(&mut self, block: Arc<KvBlock>, len: usize) {
        self.blocks.push(block);
        self.attached = self.blocks.len() * BLOCK;
        self.len = len;
    }

    /// Puts an equal block, computed by another sequence from the same tokens, in the place of block `at`.
    pub fn replace(&mut self, at: usize, block: Arc<KvBlock>) {
        self.blocks[at] = block;
    }

    fn write(&mut self, shape: &AttentionShape, layer: usize, position: usize, keys: &[f32], values: &[f32]) {
        if position < self.attached {
            return;
        }
        let (hd, slot) = (shape.head_dim, position % BLOCK);
        let block = &mut Arc::make_mut(&mut self.blocks[position / BLOCK]).0;
        for head in 0..shape.kv_heads {
            let block = &mut block[shape.at(layer, head)..][..shape.head_len()];
            let (kt, v) = block.split_at_mut(hd * BLOCK);
            for (d, key) in keys[head * hd..(head + 1) * hd].iter().enumerate() {
                kt[d * BLOCK + slot] = *key;
            }
            v[slot * hd..(slot + 1) * hd].copy_from_slice(&values[head * hd..(head + 1) * hd]);
        }
    }

    /// Keys transposed and values of a block of one head.
    pub(super) fn tile(&self, shape: &AttentionShape, layer: usize, head: usize, block: usize) -> (&[f32], &[f32]) {
        let tile = &self.blocks[block].0[shape.at(layer, head)..][..shape.head_len()];
        tile.split_at(shape.head_dim * BLOCK)
    }
}

/// Writes the keys and values of the rows of `qkv` into their sequences.
pub fn write_kv(
    cpu: &Cpu,
    shape: &AttentionShape,
    layer: usize,
    qkv: &[f32],
    spans: &mut [(Range<usize>, usize, &mut KvSequence)],
) {
    let width = shape.qkv_width();
    let (q, kv) = (shape.q_width(), shape.kv_width());
    for_each(cpu, spans, |_, (rows, start, sequence)| {
        for (i, row) in rows.clone().enumerate() {
            let row = &qkv[row * width..(row + 1) * width];
            sequence.write(shape, layer, *start + i, &row[q..q + kv], &row[q + kv..]);
        }
    });
}
