//! Operands of tiles, made from rows of floats or from keys and values of the pool.

use std::arch::x86_64::*;

use super::BLOCK;
use super::vector::{HeadRows, LANES, interleave, store, transpose, transpose_floats, widen};
use crate::cpu::tile_layout::TileRow;

/// Rows of a head as the right side of products along its width: `[padded / 2][16 C]` words, a word for two columns and a
/// row. Rows that are not there are zero.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(super) fn columns<const C: usize>(rows: HeadRows<'_>, padded: usize, words: &mut [u32]) {
    for d in (0..padded).step_by(2 * LANES) {
        for c in 0..C {
            let rows = rows.part(c * LANES, LANES);
            let mut vectors = [_mm512_setzero_si512(); LANES];
            for (row, vector) in vectors.iter_mut().enumerate() {
                *vector = rows.rounded(row, d);
            }
            for (i, pair) in transpose(vectors).into_iter().enumerate() {
                store(&mut words[((d / 2 + i) * C + c) * LANES..], pair);
            }
        }
    }
}

/// 32 rows of a head as the right side of products along the rows: `[16][padded]` words, a word for two rows and a column.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(super) fn pairs(rows: HeadRows<'_>, padded: usize, words: &mut [u32]) {
    for (pair, words) in words[..LANES * padded].chunks_exact_mut(padded).enumerate() {
        for d in (0..padded).step_by(2 * LANES) {
            let [low, high] = interleave(rows.rounded(2 * pair, d), rows.rounded(2 * pair + 1, d));
            store(&mut words[d..], low);
            store(&mut words[d + LANES..], high);
        }
    }
}

/// 32 rows of a head, rounded, as the left side of products along its width: `[32][padded]` bf16.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
pub(super) fn dense(rows: HeadRows<'_>, padded: usize, words: &mut [u32]) {
    for (row, words) in words[..LANES * padded].chunks_exact_mut(padded / 2).enumerate() {
        for d in (0..padded).step_by(2 * LANES) {
            store(&mut words[d / 2..], rows.rounded(row, d));
        }
    }
}

/// Transposes a block's keys, `[32][padded]`, to `[padded][32]` bf16.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn transpose_block(rows: &[TileRow], padded: usize, words: &mut [u32]) {
    let lines = padded / BLOCK;
    // Even, then odd columns of 32 rows, from two vectors of words of 16 rows each.
    let index = |first: i16| {
        let word = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        // Index 2 i of the first vector for i below 16, of the second one from there on.
        let low = _mm512_cvtepi32_epi16(word);
        let high = _mm256_add_epi16(low, _mm256_set1_epi16(32));
        _mm512_add_epi16(_mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high), _mm512_set1_epi16(first))
    };
    let (even, odd) = (index(0), index(1));
    for d in (0..padded).step_by(2 * LANES) {
        let part =
            |first: usize| transpose(std::array::from_fn(|row| words_of(&rows[(first + row) * lines + d / BLOCK])));
        let (low, high) = (part(0), part(LANES));
        for (i, (low, high)) in low.into_iter().zip(high).enumerate() {
            let at = (d + 2 * i) * LANES;
            store(&mut words[at..], _mm512_permutex2var_epi16(low, even, high));
            store(&mut words[at + LANES..], _mm512_permutex2var_epi16(low, odd, high));
        }
    }
}

/// Dot products of rows of `x` with those of `y`, rounded to bf16, for 16 rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
pub(super) fn dots(x: HeadRows<'_>, y: HeadRows<'_>, padded: usize) -> __m512 {
    let mut sums = [_mm512_setzero_ps(); LANES];
    for (row, sum) in sums.iter_mut().enumerate() {
        for d in (0..padded).step_by(2 * LANES) {
            let (x, y) = (x.load(row, d), y.rounded(row, d));
            let [low, _] = widen(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(y)));
            let [high, _] = widen(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64::<1>(y)));
            *sum = _mm512_fmadd_ps(x[1], high, _mm512_fmadd_ps(x[0], low, *sum));
        }
    }
    let mut columns = transpose_floats(sums);
    for width in [8, 4, 2, 1] {
        for i in 0..width {
            columns[i] = _mm512_add_ps(columns[i], columns[i + width]);
        }
    }
    columns[0]
}

/// Writes the key and the value of a token, of one head, into slot `slot` of its block: `keys[32][width]` and
/// `values[width][32]`.
///
/// # Safety
/// The processor has AVX-512 with BF16.
#[target_feature(enable = "avx512f,avx512bf16")]
pub(in crate::cpu) unsafe fn write_token(
    slot: usize,
    [key, value]: [&[f32]; 2],
    keys: &mut [TileRow],
    values: &mut [TileRow],
) {
    let lines = keys.len() / BLOCK;
    let [key, value] = [key, value].map(|row| HeadRows::new(row, 0, row.len(), 1, row.len()));
    for (i, (line, values)) in keys[slot * lines..][..lines].iter_mut().zip(values.chunks_exact_mut(BLOCK)).enumerate()
    {
        *line = row(key.rounded(0, i * BLOCK));
        for (to, value) in values.iter_mut().zip(row(value.rounded(0, i * BLOCK)).0) {
            to.0[slot] = value;
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn words_of(row: &TileRow) -> __m512i {
    // SAFETY: a row has 64 bytes.
    unsafe { _mm512_loadu_si512(row.0.as_ptr().cast()) }
}

fn row(values: __m512i) -> TileRow {
    // SAFETY: both types are 64 bytes, of which any value is valid.
    unsafe { std::mem::transmute::<__m512i, TileRow>(values) }
}
