//! Keys of indexers in f32: of each layer `[width][KV_BLOCK]`, as scores read them.

use super::paged::Paged;
use crate::{BlockId, IndexKeys, KV_BLOCK};

/// Keys of indexers in blocks, whose ids are those of the keys and values.
pub(in crate::cpu) struct IndexPool {
    keys: IndexKeys,
    pub(super) pages: Paged<f32>,
}

impl IndexPool {
    pub(super) fn new(keys: IndexKeys) -> Self {
        Self { keys, pages: Paged::new(keys.layers * keys.width * KV_BLOCK) }
    }

    /// Elements of a key.
    pub(in crate::cpu) fn width(&self) -> usize {
        self.keys.width
    }

    /// A layer's part of a block: transposed keys, `[width][KV_BLOCK]`.
    pub(in crate::cpu) fn tile(&self, layer: usize, id: BlockId) -> &[f32] {
        let len = self.keys.width * KV_BLOCK;
        &self.pages.get(id)[layer * len..][..len]
    }

    /// Writes the key of a block's token.
    pub(in crate::cpu) fn put(&mut self, layer: usize, id: BlockId, slot: usize, key: &[f32]) {
        assert!(key.len() == self.keys.width, "key widths differ");
        let len = key.len() * KV_BLOCK;
        let tile = &mut self.pages.get_mut(id)[layer * len..][..len];
        tile.chunks_exact_mut(KV_BLOCK).zip(key).for_each(|(column, value)| column[slot] = *value);
    }
}
