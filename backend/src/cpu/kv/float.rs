//! Keys and values in f32. Of each head keys are stored transposed, `[head_dim][KV_BLOCK]`, then values,
//! `[KV_BLOCK][head_dim]`, as attention reads them.

use super::layout::{HeadToken, Layout};
use super::paged::Paged;
use crate::{AttentionShape, BlockId, KV_BLOCK};

/// Keys and values in blocks of floats.
pub(in crate::cpu) struct FloatPool {
    shape: AttentionShape,
    pub(super) pages: Paged<f32>,
}

impl FloatPool {
    pub(super) fn new(shape: &AttentionShape) -> Self {
        Self { shape: *shape, pages: Paged::new(shape.layers * shape.kv_heads * head_len(shape)) }
    }

    /// Bytes of a block.
    pub(super) fn block_bytes(shape: &AttentionShape) -> usize {
        shape.layers * shape.kv_heads * head_len(shape) * size_of::<f32>()
    }

    /// One head's part of a block: the transposed keys, `[head_dim][KV_BLOCK]`, and the values, `[KV_BLOCK][head_dim]`.
    pub(in crate::cpu) fn tile(&self, layer: usize, head: usize, id: BlockId) -> (&[f32], &[f32]) {
        let at = (layer * self.shape.kv_heads + head) * head_len(&self.shape);
        self.pages.get(id)[at..][..head_len(&self.shape)].split_at(self.shape.head_dim * KV_BLOCK)
    }
}

/// Elements of one head's keys and values in a block.
fn head_len(shape: &AttentionShape) -> usize {
    2 * shape.head_dim * KV_BLOCK
}

impl Layout for FloatPool {
    type Element = f32;

    fn pages(&mut self) -> &mut Paged<f32> {
        &mut self.pages
    }

    fn head_len(shape: &AttentionShape) -> usize {
        head_len(shape)
    }

    fn put(token: HeadToken<'_>, head: &mut [f32]) {
        let HeadToken { slot, key, value } = token;
        let (kt, v) = head.split_at_mut(key.len() * KV_BLOCK);
        for (d, key) in key.iter().enumerate() {
            kt[d * KV_BLOCK + slot] = *key;
        }
        v[slot * value.len()..][..value.len()].copy_from_slice(value);
    }
}
