//! Products of tiles with AVX-512 BF16: dot products of pairs of bf16 (`vdpbf16ps`), with the sums of a few rows in registers.
//!
//! A sum is one chain over pairs of positions in order of `k`, each adding the product of the odd position and then of the even
//! one (Intel, "Architecture Instruction Set Extensions", `VDPBF16PS`); denormal inputs and results count as zero.

use std::arch::x86_64::*;

use crate::cpu::tile_layout::{PREFETCH, Segment, TILE, TILE_BYTES, TILE_K, TileLhs, TileRhs};

/// Rows whose sums are in registers together, of two column tiles: enough to hide the latency of their chains.
const ROWS: usize = 8;
/// Bytes of a row of a left side's tile.
const ROW_BYTES: usize = 2 * TILE_K;
/// Bytes by which the right side is prefetched where it comes from memory.
const AHEAD: usize = 8 << 10;

/// Sums of `M` rows of `C` column tiles.
type Sums<const M: usize, const C: usize> = [[__m512; C]; M];

/// Loads sums, or begins at zero.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn begin<const M: usize, const C: usize>(c: *const f32, stride: usize, add: bool) -> Sums<M, C> {
    let mut sums = [[_mm512_setzero_ps(); C]; M];
    if add {
        for (i, row) in sums.iter_mut().enumerate() {
            for (j, sum) in row.iter_mut().enumerate() {
                // SAFETY: `M` rows of `C` tiles are in bounds, as the caller ensures.
                *sum = unsafe { _mm512_loadu_ps(c.add(i * stride + TILE * j)) };
            }
        }
    }
    sums
}

/// Stores the sums to the output.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn end<const M: usize, const C: usize>(sums: &Sums<M, C>, c: *mut f32, stride: usize) {
    for (i, row) in sums.iter().enumerate() {
        for (j, sum) in row.iter().enumerate() {
            // SAFETY: `M` rows of `C` tiles are in bounds, as the caller ensures.
            unsafe { _mm512_storeu_ps(c.add(i * stride + TILE * j), *sum) };
        }
    }
}

/// Adds one step along `k`. Rows of `a` are `a_row` bytes apart, those of `b` `b_row`.
///
/// # Safety
/// `M` rows of 64 bytes and 16 rows of `C` tiles are in bounds.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
#[expect(clippy::needless_range_loop, reason = "iterators keep the sums in memory unless the crate is optimised twice")]
unsafe fn add_step<const M: usize, const C: usize, const STREAM: bool>(
    sums: &mut Sums<M, C>,
    a: *const u8,
    a_row: usize,
    b: *const u8,
    b_row: usize,
) {
    for pair in 0..TILE_K / 2 {
        // SAFETY: as the caller ensures; a prefetch reads nothing that the program sees, at any address.
        unsafe {
            let b = b.add(pair * b_row);
            if STREAM {
                for line in 0..C {
                    _mm_prefetch::<_MM_HINT_T0>(b.wrapping_add(AHEAD + 64 * line).cast());
                }
            }
            for i in 0..M {
                let x = bf16(_mm512_set1_epi32(a.add(i * a_row + 4 * pair).cast::<i32>().read_unaligned()));
                for j in 0..C {
                    let words = _mm512_loadu_si512(b.add(64 * j).cast());
                    sums[i][j] = _mm512_dpbf16_ps(sums[i][j], x, bf16(words));
                }
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn bf16(words: __m512i) -> __m512bh {
    // SAFETY: both types are 64 bytes, of which any value is valid.
    unsafe { std::mem::transmute::<__m512i, __m512bh>(words) }
}

/// `M` rows of `c (+)= a · b`.
///
/// # Safety
/// As [`multiply`], for these rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn rows<const M: usize, const C: usize>(
    steps: usize,
    a: TileLhs,
    b: TileRhs,
    c: *mut f32,
    stride: usize,
    add: bool,
) {
    // SAFETY: as the caller ensures.
    unsafe {
        let mut sums = begin::<M, C>(c, stride, add);
        // Distances that the compiler knows, for sides that are packed.
        if a.row_stride == ROW_BYTES && b.row_stride == ROW_BYTES * C {
            for step in 0..steps {
                let (a, b) = (a.at.add(step * a.step), b.at.add(step * b.step));
                add_step::<M, C, false>(&mut sums, a, ROW_BYTES, b, ROW_BYTES * C);
            }
        } else {
            for step in 0..steps {
                let (at, to) = (a.at.add(step * a.step), b.at.add(step * b.step));
                add_step::<M, C, false>(&mut sums, at, a.row_stride, to, b.row_stride);
            }
        }
        end(&sums, c, stride);
    }
}

/// See [`TileUnit::multiply`](super::TileUnit::multiply).
///
/// # Safety
/// The processor has AVX-512 BF16; all is in bounds, and nobody else accesses `c`.
#[target_feature(enable = "avx512f,avx512bf16")]
pub(super) unsafe fn multiply<const R: usize, const C: usize>(
    steps: usize,
    a: TileLhs,
    b: TileRhs,
    c: *mut f32,
    stride: usize,
    add: bool,
) {
    const { assert!(R >= 1 && R <= 2 && C >= 1 && C <= 2) };
    for tile in 0..R {
        let at = a.at.wrapping_add(tile * a.second);
        let c = c.wrapping_add(tile * TILE * stride);
        // SAFETY: as the caller ensures.
        unsafe {
            if C == 1 {
                rows::<TILE, 1>(steps, TileLhs { at, ..a }, b, c, stride, add);
            } else {
                for first in [0, ROWS] {
                    let a = TileLhs { at: at.wrapping_add(first * a.row_stride), ..a };
                    rows::<ROWS, 2>(steps, a, b, c.wrapping_add(first * stride), stride, add);
                }
            }
        }
    }
}

/// See [`TileUnit::multiply_blocks`](super::TileUnit::multiply_blocks).
///
/// # Safety
/// As [`multiply`].
#[target_feature(enable = "avx512f,avx512bf16")]
pub(super) unsafe fn multiply_blocks<const C: usize>(
    blocks: &[*const u8],
    offset: usize,
    b: *const u32,
    c: *mut f32,
    add: bool,
) {
    const { assert!(C == 1 || C == 2) };
    // SAFETY: as the caller ensures.
    unsafe {
        for first in (0..2 * TILE).step_by(if C == 1 { TILE } else { ROWS }) {
            let (c, offset) = (c.add(first * TILE * C), offset + first * ROW_BYTES);
            if C == 1 {
                block_rows::<TILE, 1>(blocks, offset, b, c, add);
            } else {
                block_rows::<ROWS, 2>(blocks, offset, b, c, add);
            }
        }
    }
}

/// `M` rows of [`multiply_blocks`].
///
/// # Safety
/// As [`multiply`], for these rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn block_rows<const M: usize, const C: usize>(
    blocks: &[*const u8],
    offset: usize,
    b: *const u32,
    c: *mut f32,
    add: bool,
) {
    // SAFETY: as the caller ensures.
    unsafe {
        let mut sums = begin::<M, C>(c, TILE * C, add);
        for (i, block) in blocks.iter().enumerate() {
            let b = b.add(i * TILE_K / 2 * TILE * C).cast();
            add_step::<M, C, false>(&mut sums, block.add(offset), ROW_BYTES, b, ROW_BYTES * C);
        }
        end(&sums, c, TILE * C);
    }
}

/// See [`TileUnit::multiply_segments`](super::TileUnit::multiply_segments); of two row tiles, the first `count` rows.
///
/// # Safety
/// As [`multiply`].
#[target_feature(enable = "avx512f,avx512bf16")]
pub(super) unsafe fn multiply_segments<const STREAM: bool>(
    count: usize,
    segments: &[Segment],
    c: *mut f32,
    stride: usize,
    add: bool,
) {
    macro_rules! by_height {
        ($height:expr, $first:expr, $c:expr; $($m:literal)*) => {
            match $height {
                $($m => segment_rows::<$m, STREAM>($first, segments, $c, stride, add),)*
                _ => {}
            }
        };
    }
    for first in (0..count).step_by(ROWS) {
        let c = c.wrapping_add(first * stride);
        // SAFETY: as the caller ensures.
        unsafe { by_height!((count - first).min(ROWS), first, c; 1 2 3 4 5 6 7 8) };
    }
}

/// `M` rows of [`multiply_segments`] from row `first` on; the first ones of all prefetch.
///
/// # Safety
/// As [`multiply`], for these rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn segment_rows<const M: usize, const STREAM: bool>(
    first: usize,
    segments: &[Segment],
    c: *mut f32,
    stride: usize,
    add: bool,
) {
    // SAFETY: as the caller ensures; a prefetch reads nothing that the program sees, at any address.
    unsafe {
        let mut sums = begin::<M, 2>(c, stride, add);
        for segment in segments {
            let tile = if first < TILE { segment.a } else { segment.second };
            let a = tile.add(first % TILE * ROW_BYTES);
            for step in 0..segment.steps {
                if first == 0 && !STREAM {
                    for line in (0..PREFETCH).step_by(64) {
                        _mm_prefetch::<_MM_HINT_T1>(segment.ahead.wrapping_add(step * PREFETCH + line).cast());
                    }
                }
                let (a, b) = (a.add(step * TILE_BYTES), segment.b.add(step * 2 * TILE_BYTES));
                if STREAM && first == 0 {
                    add_step::<M, 2, true>(&mut sums, a, ROW_BYTES, b, 2 * ROW_BYTES);
                } else {
                    add_step::<M, 2, false>(&mut sums, a, ROW_BYTES, b, 2 * ROW_BYTES);
                }
            }
        }
        end(&sums, c, stride);
    }
}
