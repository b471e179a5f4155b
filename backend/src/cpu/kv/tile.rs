//! Keys and values in bf16, as tiles. Of each head keys are stored as rows, `[KV_BLOCK][width]`, where `width` is
//! `head_dim` rounded up to 32 with zeros, then values transposed, `[width][KV_BLOCK]`: both are left sides of products.

use super::layout::{HeadToken, Layout};
use super::paged::Paged;
use crate::cpu::attention::tiles::{padded, write_token};
use crate::cpu::tile_layout::{TILE_K, TileRow};
use crate::cpu::tile_unit::TileUnit;
use crate::{AttentionShape, BlockId, KV_BLOCK};

// A row of transposed values has the tokens of a block.
const _: () = assert!(KV_BLOCK == TILE_K);

/// Keys and values in blocks of tiles.
pub(in crate::cpu) struct TilePool {
    unit: TileUnit,
    shape: AttentionShape,
    pub(super) pages: Paged<TileRow>,
}

impl TilePool {
    pub(super) fn new(unit: TileUnit, shape: &AttentionShape) -> Self {
        Self { unit, shape: *shape, pages: Paged::new(shape.layers * shape.kv_heads * head_len(shape)) }
    }

    /// The unit that multiplies the tiles.
    pub(in crate::cpu) fn unit(&self) -> TileUnit {
        self.unit
    }

    /// Bytes of a block.
    pub(super) fn block_bytes(shape: &AttentionShape) -> usize {
        shape.layers * shape.kv_heads * head_len(shape) * size_of::<TileRow>()
    }

    /// One head's part of a block: the keys, `[KV_BLOCK][width]`, and the transposed values, `[width][KV_BLOCK]`.
    pub(in crate::cpu) fn tile(&self, layer: usize, head: usize, id: BlockId) -> (&[TileRow], &[TileRow]) {
        let len = head_len(&self.shape);
        self.pages.get(id)[(layer * self.shape.kv_heads + head) * len..][..len].split_at(len / 2)
    }
}

/// Rows of tiles of one head's keys and values in a block.
fn head_len(shape: &AttentionShape) -> usize {
    2 * padded(shape.head_dim)
}

impl Layout for TilePool {
    type Element = TileRow;

    fn pages(&mut self) -> &mut Paged<TileRow> {
        &mut self.pages
    }

    fn head_len(shape: &AttentionShape) -> usize {
        head_len(shape)
    }

    fn put(HeadToken { slot, key, value }: HeadToken<'_>, head: &mut [TileRow]) {
        let (keys, values) = head.split_at_mut(padded(key.len()));
        // SAFETY: a pool of tiles exists only where the processor has AVX-512 with BF16.
        unsafe { write_token(slot, [key, value], keys, values) };
    }
}
