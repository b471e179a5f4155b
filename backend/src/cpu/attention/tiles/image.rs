//! Keys and values of images, packed for one pass in the blocks of [`TilePool`](crate::cpu::kv::TilePool).

use super::super::image::{ImageAttention, KeyRows};
use super::super::inputs::Reach;
use super::forward::{KeyTiles, attention};
use super::pack::{dense, transpose_block};
use super::padded;
use super::vector::{HeadRows, LANES};
use crate::BlockId;
use crate::cpu::Cpu;
use crate::cpu::buffer::Buffer;
use crate::cpu::parallel::par_chunks;
use crate::cpu::tile_layout::TileRow;
use crate::cpu::tile_unit::TileUnit;

/// Keys and values of all heads, block by block.
struct ImageTiles {
    unit: TileUnit,
    heads: usize,
    /// Words of a head's keys and values in a block.
    head_len: usize,
    words: Buffer<u32>,
}

impl ImageTiles {
    fn pack(cpu: &Cpu, unit: TileUnit, of: &ImageAttention<'_>) -> Self {
        let (heads, wide) = (of.shape.heads, padded(of.shape.head_dim));
        let head_len = 2 * wide * LANES;
        let mut words = cpu.word_buffer(of.blocks.len() * heads * head_len);
        par_chunks(&cpu.pool, &mut words, heads * head_len, |block, words| {
            let rows = &of.blocks[block];
            let mut rounded = cpu.word_buffer(wide * LANES);
            for (head, words) in words.chunks_exact_mut(head_len).enumerate() {
                let (keys, values) = words.split_at_mut(head_len / 2);
                // SAFETY: the processor has the unit, and with it AVX-512 with BF16.
                unsafe {
                    dense(head_rows(of, rows, 1, head), wide, keys);
                    dense(head_rows(of, rows, 2, head), wide, &mut rounded);
                    transpose_block(tile_rows(&rounded), wide, values);
                }
            }
        });
        Self { unit, heads, head_len, words }
    }
}

/// Rows of a head's queries (`part` 0), keys (1) or values (2).
fn head_rows<'a>(of: &ImageAttention<'a>, rows: &KeyRows, part: usize, head: usize) -> HeadRows<'a> {
    let (width, hd) = (of.shape.qkv_width(), of.shape.head_dim);
    let at = rows.first * width + part * of.shape.q_width() + head * hd;
    HeadRows::new(of.qkv, at, width, rows.count, hd)
}

/// Words of a buffer, which begin at a cache line, as rows of tiles.
fn tile_rows(words: &[u32]) -> &[TileRow] {
    // SAFETY: any 64 bytes are a row.
    let (before, rows, _) = unsafe { words.align_to::<TileRow>() };
    assert!(before.is_empty(), "words of tiles begin at a cache line");
    rows
}

impl KeyTiles for ImageTiles {
    fn unit(&self) -> TileUnit {
        self.unit
    }

    fn tile(&self, _: usize, head: usize, BlockId(id): BlockId) -> (&[TileRow], &[TileRow]) {
        let rows = tile_rows(&self.words[(id as usize * self.heads + head) * self.head_len..][..self.head_len]);
        rows.split_at(rows.len() / 2)
    }
}

/// Computes [`attention_within`](super::super::attention_within) in tiles.
pub(in super::super) fn attention_within(
    cpu: &Cpu,
    unit: TileUnit,
    of: &ImageAttention<'_>,
    out: &mut [f32],
    lse: &mut [f32],
) {
    attention(cpu, of.call(), Reach::Whole, &ImageTiles::pack(cpu, unit, of), of.qkv, out, lse);
}
