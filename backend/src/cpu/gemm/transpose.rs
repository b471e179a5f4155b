//! Transposes strips of packed weights while they are read, so that backward passes need no second copy of them.

use super::super::Isa;
use super::super::packed::{BlockPanels, NR, PackedData, PackedMatrix};
use super::tiles::STRIP;
use crate::blocks::BLOCK;

/// Positions of `k` that are transposed together; a transposed strip begins at a multiple of it.
pub(super) const GROUP: usize = 8;

/// Writes `[positions, STRIP]` of the transpose of `w`, from output `column` (a multiple of [`STRIP`]) and position
/// `from` (a multiple of [`GROUP`]) on, widened: element (s, j) is `w[from + s, column + j]`. Columns that `w` lacks are
/// zero.
pub(super) fn transpose_strip(isa: Isa, w: &PackedMatrix, column: usize, from: usize, out: &mut [f32]) {
    if let Some(panels) = w.blocks() {
        return transpose_blocks(isa, panels, column, from, out);
    }
    let (k, whole) = (w.k(), column + STRIP <= w.k());
    for (i, out) in out.chunks_mut(GROUP * STRIP).enumerate() {
        let row = from + i * GROUP;
        let (panel, lane) = (row / NR, row % NR);
        #[cfg(target_arch = "x86_64")]
        if isa != Isa::Portable && whole && out.len() == GROUP * STRIP {
            match &w.data {
                // SAFETY: the processor has AVX2, as `isa` says; the panel has `k` positions of 32 lanes (half as many of
                // words), of which `GROUP` from `lane` on and `STRIP` from `column` on exist.
                PackedData::Bf16(words) => unsafe {
                    let at = &words[(panel * w.depth + column / 2) * NR + lane..];
                    // The next panel is far away: without the prefetch every load waits for memory.
                    let next = at.as_ptr().wrapping_add(w.depth * NR - lane + lane / GROUP * 2 * NR);
                    prefetch(next);
                    transpose_words_avx2(at.as_ptr(), out.as_mut_ptr());
                },
                // SAFETY: as above.
                PackedData::F32(values) => unsafe {
                    let at = &values[(panel * w.depth + column) * NR + lane..];
                    transpose_floats_avx2(at.as_ptr(), out.as_mut_ptr());
                },
                PackedData::Blocks(_) => {}
            }
            continue;
        }
        let _ = (isa, whole, panel, lane);
        for (s, out) in out.chunks_mut(STRIP).enumerate() {
            for (j, out) in out.iter_mut().enumerate() {
                *out = if column + j < k { w.get(row + s, column + j) } else { 0.0 };
            }
        }
    }
}

/// [`transpose_strip`] of blocks, of which rows have whole strips.
fn transpose_blocks(isa: Isa, panels: &BlockPanels, column: usize, from: usize, out: &mut [f32]) {
    let mut step = [0.0; BLOCK * NR];
    let (at, first) = (column / BLOCK, column % BLOCK);
    let mut row = from;
    let mut rest = out;
    while !rest.is_empty() {
        let lanes = row % NR..NR.min(row % NR + rest.len() / STRIP);
        panels.values(isa, row / NR, at..at + 1, &mut step);
        let own;
        (own, rest) = rest.split_at_mut(lanes.len() * STRIP);
        for (lane, out) in lanes.clone().zip(own.chunks_exact_mut(STRIP)) {
            let elements = step[first * NR + lane..].iter().step_by(NR);
            out.iter_mut().zip(elements).for_each(|(out, element)| *out = *element);
        }
        row += lanes.len();
    }
}

/// Prefetches two rows of [`NR`] words.
#[cfg(target_arch = "x86_64")]
fn prefetch(at: *const u32) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    for line in 0..4 {
        // SAFETY: a prefetch reads nothing that the program sees, at any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(16 * line).cast()) };
    }
}

/// Eight lanes of eight rows of words, at distance [`NR`], as eight rows of sixteen floats.
///
/// # Safety
/// The processor has AVX2; `words` has the rows, `out` has 8 · 16 elements.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn transpose_words_avx2(words: *const u32, out: *mut f32) {
    use std::arch::x86_64::*;
    // SAFETY: bounds by the caller; all accesses are unaligned loads and stores.
    unsafe {
        let high = _mm256_set1_epi32(0xffff_0000_u32 as i32);
        for half in 0..2 {
            // Rows (i, i + 2), so that the words of one lane are in the order 0 1 4 5 | 2 3 6 7: widened in pairs they are
            // in order.
            let two = |i: usize| {
                let row = |i: usize| _mm_loadu_si128(words.add(i * NR + 4 * half).cast());
                _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(row(i)), row(i + 2))
            };
            let (a, b, c, d) = (two(0), two(1), two(4), two(5));
            let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
            let (ab_high, cd_high) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
            let lanes = [
                _mm256_unpacklo_epi64(ab, cd),
                _mm256_unpackhi_epi64(ab, cd),
                _mm256_unpacklo_epi64(ab_high, cd_high),
                _mm256_unpackhi_epi64(ab_high, cd_high),
            ];
            for (i, lane) in lanes.into_iter().enumerate() {
                let (even, odd) = (_mm256_slli_epi32::<16>(lane), _mm256_and_si256(lane, high));
                let at = out.add((4 * half + i) * STRIP);
                _mm256_storeu_ps(at, _mm256_castsi256_ps(_mm256_unpacklo_epi32(even, odd)));
                _mm256_storeu_ps(at.add(8), _mm256_castsi256_ps(_mm256_unpackhi_epi32(even, odd)));
            }
        }
    }
}

/// Eight lanes of sixteen rows of floats, at distance [`NR`], as eight rows of sixteen.
///
/// # Safety
/// As [`transpose_words_avx2`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn transpose_floats_avx2(values: *const f32, out: *mut f32) {
    use std::arch::x86_64::*;
    // SAFETY: bounds by the caller; all accesses are unaligned loads and stores.
    unsafe {
        for block in 0..4 {
            let (column, lane) = (block / 2 * 8, block % 2 * 4);
            // Rows (i, i + 4), four lanes of each.
            let two = |i: usize| {
                let row = |i: usize| _mm_loadu_ps(values.add((column + i) * NR + lane));
                _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(row(i)), row(i + 4))
            };
            let (a, b, c, d) = (two(0), two(1), two(2), two(3));
            let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
            let (ab_high, cd_high) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
            let lanes = [
                _mm256_shuffle_ps::<0x44>(ab, cd),
                _mm256_shuffle_ps::<0xee>(ab, cd),
                _mm256_shuffle_ps::<0x44>(ab_high, cd_high),
                _mm256_shuffle_ps::<0xee>(ab_high, cd_high),
            ];
            for (i, row) in lanes.into_iter().enumerate() {
                _mm256_storeu_ps(out.add((lane + i) * STRIP + column), row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype;
    use crate::cpu::Cpu;

    #[test]
    fn strips_are_those_of_the_transpose() {
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(1, isa);
            for (n, k) in [(45, 39), (64, 64), (33, 16), (8, 17), (1, 1)] {
                let values: Vec<f32> = (0..n * k).map(|i| (i % 250) as f32 - 100.0).collect();
                for dtype in [Dtype::Bf16, Dtype::F32] {
                    let w = PackedMatrix::pack(&cpu, dtype, k, &[&values]);
                    for from in (0..n).step_by(GROUP) {
                        for column in (0..k).step_by(STRIP) {
                            let steps = n - from;
                            let mut strip = vec![f32::NAN; steps * STRIP];
                            transpose_strip(isa, &w, column, from, &mut strip);
                            for (i, found) in strip.iter().enumerate() {
                                let (row, column) = (from + i / STRIP, column + i % STRIP);
                                let expected = if column < k { values[row * k + column] } else { 0.0 };
                                assert_eq!(*found, expected, "{isa:?} {dtype:?} {n}x{k} at {row}, {column}");
                            }
                        }
                    }
                }
            }
        }
    }
}
