//! Attention on bf16 tiles, with keys and values in bf16. All GEMMs are computed transposed, `[keys][queries]` and
//! `[head_dim][queries]`: a query's scores, maximum and sums are a lane of vectors, whatever the other lanes hold, and
//! probabilities are in the order in which the next GEMM reads them.
//!
//! Blocks of keys that no query of a tile sees are left out. Where a query does not see a key that another one of its tile
//! does, its probability is an exact zero, which leaves the bits of all its sums: so they do not depend on the tile.

mod backward;
mod forward;
mod gradient;
mod image;
mod pack;
mod results;
mod softmax;
mod vector;

use std::ops::Range;

pub(super) use backward::attention_backward;
pub(super) use forward::attention;
pub(super) use image::attention_within;
pub(in crate::cpu) use pack::write_token;

use super::super::buffer::Buffer;
use super::super::tile_layout::TILE_BYTES;
use crate::KV_BLOCK as BLOCK;

/// Positions of a query tile in training and prefill, and blocks of the sums over queries.
const QUERIES: usize = 32;
/// Bytes of a row of 32 bf16.
const ROW: usize = 64;

/// A head's width in tiles: a multiple of 32, padded with zeros.
pub(in crate::cpu) fn padded(head_dim: usize) -> usize {
    head_dim.next_multiple_of(32)
}

/// A buffer as a slice that begins at a tile's alignment, of `len` elements of 4 bytes.
fn aligned<T>(buffer: &mut Buffer<T>, len: usize) -> &mut [T] {
    let start = buffer.as_ptr().align_offset(ROW);
    &mut buffer[start..start + len]
}

/// Elements that a buffer for [`aligned`] has.
fn with_margin(len: usize) -> usize {
    const { assert!(TILE_BYTES.is_multiple_of(ROW)) };
    len + ROW / 4
}

/// The keys that each of 16 queries sees.
#[derive(Clone, Copy)]
struct Sight {
    first: std::arch::x86_64::__m512i,
    last: std::arch::x86_64::__m512i,
    /// What an indexer has chosen of these keys.
    chosen: Option<ChosenKeys>,
}

/// Blocks whose choices are in registers at once.
const CHOSEN_BLOCKS: usize = 4;

/// Keys of some blocks that an indexer has chosen for 16 queries: a bit each.
#[derive(Clone, Copy)]
struct ChosenKeys {
    /// Index of the first block.
    first: usize,
    words: [std::arch::x86_64::__m512i; CHOSEN_BLOCKS],
}

impl ChosenKeys {
    /// The keys of some blocks by the words of each query.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(blocks: Range<usize>, word: impl Fn(usize, usize) -> u32) -> Self {
        let first = blocks.start;
        let mut words = [[0u32; 16]; CHOSEN_BLOCKS];
        for (words, block) in words.iter_mut().zip(blocks) {
            words.iter_mut().enumerate().for_each(|(query, to)| *to = word(query, block));
        }
        // SAFETY: each array has 64 bytes.
        let load = |words: [u32; 16]| unsafe { std::arch::x86_64::_mm512_loadu_si512(words.as_ptr().cast()) };
        Self { first, words: words.map(load) }
    }

    /// Mask of the queries for which `key` is chosen.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn of(&self, key: usize) -> std::arch::x86_64::__mmask16 {
        use std::arch::x86_64::{_mm512_set1_epi32, _mm512_test_epi32_mask};
        _mm512_test_epi32_mask(self.words[key / BLOCK - self.first], _mm512_set1_epi32(1 << (key % BLOCK)))
    }
}

impl Sight {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(keys: impl Fn(usize) -> Range<usize>) -> Self {
        let (mut first, mut last) = ([0i32; 16], [0i32; 16]);
        for (i, (first, last)) in first.iter_mut().zip(&mut last).enumerate() {
            let keys = keys(i);
            (*first, *last) = (keys.start as i32, keys.end as i32 - 1);
        }
        // SAFETY: both arrays have 64 bytes.
        unsafe {
            use std::arch::x86_64::_mm512_loadu_si512 as load;
            Self { first: load(first.as_ptr().cast()), last: load(last.as_ptr().cast()), chosen: None }
        }
    }

    /// Mask of the queries that see `key`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn of(&self, key: usize) -> std::arch::x86_64::__mmask16 {
        use std::arch::x86_64::{_mm512_cmpge_epi32_mask, _mm512_mask_cmple_epi32_mask, _mm512_set1_epi32};
        let keys = _mm512_set1_epi32(key as i32);
        let seen = _mm512_mask_cmple_epi32_mask(_mm512_cmpge_epi32_mask(keys, self.first), keys, self.last);
        self.chosen.as_ref().map_or(seen, |chosen| seen & chosen.of(key))
    }
}
