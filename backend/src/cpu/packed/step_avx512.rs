//! Steps dequantized with AVX-512 to pairs of bf16.

use std::arch::x86_64::*;

use super::elements::NR;
use super::step_layout::{BITS, HALF, SCALES, by_format, high_at, prefetch_ahead, quants_at};
use crate::blocks::{BLOCK, BlockFormat};
use crate::cpu::avx512;

/// Writes the elements of a step as pairs of bf16. They are multiples of the least f16, so that none is a denormal f32, which
/// rounding would flush.
///
/// # Safety
/// The processor has AVX-512 with BF16; `numbers` and `own` have the bytes of a step and `words` its words.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
pub(super) unsafe fn step_words_avx512(format: BlockFormat, numbers: *const u8, own: *const u8, words: *mut u32) {
    // SAFETY: as the caller ensures.
    unsafe { by_format!(format, write_words(numbers, own, words)) }
}

/// [`step_words_avx512`] of one format.
///
/// # Safety
/// As [`step_words_avx512`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn write_words<const FORMAT: usize>(numbers: *const u8, own: *const u8, words: *mut u32) {
    let format = const { BlockFormat::ALL[FORMAT] };
    prefetch_ahead::<FORMAT>(own);
    let halves = avx512::halves();
    let bias = _mm512_set1_epi32(i32::from(format.bias()));
    let nibbles = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let table = _mm512_cvtepi32_ps(_mm512_sub_epi32(nibbles, bias));
    for half in 0..2 {
        // SAFETY: scales, minimums and factors of 16 rows and bytes of 16 rows lie in the step; as many words in `words`.
        unsafe {
            let number = |at: usize| _mm512_cvtph_ps(_mm256_loadu_si256(numbers.add(at + half * NR).cast()));
            let at = |at: usize| _mm_loadu_si128(own.add(at + half * NR / 2).cast());
            let bytes = |row: usize| at(quants_at(format) + row * NR);
            let factor = |row: usize| _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(at(row * NR)));
            let mut scales = [number(0); 2];
            let mut minimums = if format.has_minimum() { number(SCALES) } else { _mm512_setzero_ps() };
            if format.has_factors() {
                let second = factor(1);
                scales = [_mm512_mul_ps(scales[0], factor(0)); 2];
                if format.has_factors_of_halves() {
                    scales[1] = _mm512_mul_ps(number(0), second);
                }
                minimums = _mm512_xor_ps(_mm512_mul_ps(minimums, second), _mm512_set1_ps(-0.0));
            }
            let store = |pair: usize, low: __m512, high: __m512| {
                let rounded = avx512::round(low, high);
                let to = words.add(pair * NR + half * NR / 2);
                _mm512_storeu_si512(to.cast(), _mm512_permutexvar_epi16(halves, rounded));
            };
            for pair in 0..BLOCK / 2 {
                let (low, high) = match format {
                    BlockFormat::Q8_0 => {
                        let row = |row: usize| _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes(row)));
                        (row(2 * pair), row(2 * pair + 1))
                    }
                    BlockFormat::Q4_0 | BlockFormat::Q4_1 | BlockFormat::Q4K => {
                        // Permutations read the low four bits of an index.
                        let both = _mm512_cvtepu8_epi32(bytes(pair));
                        let high = _mm512_srli_epi32::<4>(both);
                        (_mm512_permutexvar_ps(both, table), _mm512_permutexvar_ps(high, table))
                    }
                    BlockFormat::Q5_0 | BlockFormat::Q5_1 | BlockFormat::Q5K | BlockFormat::Q6K => {
                        let both = _mm512_cvtepu8_epi32(bytes(pair));
                        let with = |quants: __m512i, bit: usize, position: usize| {
                            let at = high_at(format) + bit * BITS + (2 * pair + position) * size_of::<u32>() + half * 2;
                            let bits = u16::from_le_bytes([*own.add(at), *own.add(at + 1)]);
                            _mm512_mask_add_epi32(quants, bits, quants, _mm512_set1_epi32(16 << bit))
                        };
                        let whole = |quants: __m512i, position: usize| {
                            let mut all = with(quants, 0, position);
                            if format.high_bits() > 1 {
                                all = with(all, 1, position);
                            }
                            _mm512_cvtepi32_ps(_mm512_sub_epi32(all, bias))
                        };
                        let low = _mm512_and_si512(both, _mm512_set1_epi32(15));
                        (whole(low, 0), whole(_mm512_srli_epi32::<4>(both), 1))
                    }
                };
                let scales = scales[2 * pair / HALF];
                // Products are exact, so that only the addition rounds.
                if format.has_minimum() {
                    let element = |quants: __m512| _mm512_fmadd_ps(quants, scales, minimums);
                    store(pair, element(low), element(high));
                } else {
                    store(pair, _mm512_mul_ps(low, scales), _mm512_mul_ps(high, scales));
                }
            }
        }
    }
}
