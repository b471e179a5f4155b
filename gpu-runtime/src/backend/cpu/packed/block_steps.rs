//! Blocks of [`NR`] rows of a matrix side by side, and how they become elements of a panel: [`BLOCK`] positions of `k`, a step.
//! Their bits are those of the file in another order, so that all rows of the step are dequantized together:
//! - the scales of all rows, and in formats with minimums these, as f16;
//! - in formats of five bits the fifth bits: for each position a bit of each row;
//! - nibbles: for each pair of positions a byte of each row, the lower position in the low half; or for each position a byte of
//!   each row.

use half::f16;

use super::elements::{NR, bf16_bits};
use crate::backend::cpu::Isa;
#[cfg(target_arch = "x86_64")]
use crate::backend::cpu::avx512;
use crate::backend::cpu::vexp::multiversion;
use crate::blocks::{BLOCK, Block, BlockFormat};

/// Elements of a step.
pub(super) const STEP: usize = BLOCK * NR;
/// Words of a step in bf16.
pub(in crate::backend::cpu) const STEP_WORDS: usize = STEP / 2;
/// Bytes of the scales of a step.
const SCALES: usize = NR * size_of::<f16>();

/// Bytes of a step.
pub(super) const fn step_bytes(format: BlockFormat) -> usize {
    NR * format.bytes()
}

/// First byte of the fifth bits, which follow the scales and minimums.
const fn fifth_at(format: BlockFormat) -> usize {
    if format.has_minimum() { 2 * SCALES } else { SCALES }
}

/// First byte of the quants.
const fn quants_at(format: BlockFormat) -> usize {
    fifth_at(format) + if format.has_fifth_bit() { BLOCK * size_of::<u32>() } else { 0 }
}

/// Writes the block of a row, whose other bits are zero so far.
pub(super) fn write_lane(format: BlockFormat, step: &mut [u8], lane: usize, block: &Block) {
    step[2 * lane..2 * lane + 2].copy_from_slice(&block.scale.to_le_bytes());
    if format.has_minimum() {
        step[SCALES + 2 * lane..SCALES + 2 * lane + 2].copy_from_slice(&block.minimum.to_le_bytes());
    }
    if format.has_fifth_bit() {
        for (position, quant) in block.quants.iter().enumerate() {
            step[fifth_at(format) + position * size_of::<u32>() + lane / 8] |= (quant >> 4) << (lane % 8);
        }
    }
    let quants = &mut step[quants_at(format)..];
    if format == BlockFormat::Q8_0 {
        for (row, quant) in quants.chunks_exact_mut(NR).zip(block.quants) {
            row[lane] = quant;
        }
        return;
    }
    for (row, [low, high]) in quants.chunks_exact_mut(NR).zip(block.quants.as_chunks::<2>().0) {
        row[lane] = (low & 15) | high << 4;
    }
}

/// Reads what [`write_lane`] wrote.
pub(super) fn read_lane(format: BlockFormat, step: &[u8], lane: usize) -> Block {
    let number = |at: usize| f16::from_le_bytes([step[at + 2 * lane], step[at + 2 * lane + 1]]);
    let quants = &step[quants_at(format)..];
    let quant = |position: usize| {
        if format == BlockFormat::Q8_0 {
            return quants[position * NR + lane];
        }
        let byte = quants[position / 2 * NR + lane];
        let low = if position.is_multiple_of(2) { byte & 15 } else { byte >> 4 };
        let fifth = format.has_fifth_bit().then(|| step[fifth_at(format) + position * size_of::<u32>() + lane / 8]);
        low | fifth.map_or(0, |bits| (bits >> (lane % 8) & 1) << 4)
    };
    Block {
        scale: number(0),
        minimum: if format.has_minimum() { number(SCALES) } else { f16::ZERO },
        quants: std::array::from_fn(quant),
    }
}

/// Scales or minimums of all rows.
#[inline(always)]
fn numbers(bytes: &[u8]) -> [f32; NR] {
    let mut numbers = [0.0; NR];
    for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks::<2>().0) {
        *number = f16::from_le_bytes(*bytes).to_f32();
    }
    numbers
}

multiversion! {
    /// Writes the elements of a step, position by position.
    pub(super) fn step_values(format: BlockFormat, step: &[u8], out: &mut [f32]) {
        let scales = numbers(&step[..SCALES]);
        let quants = &step[quants_at(format)..];
        if format == BlockFormat::Q8_0 {
            for (out, row) in out.as_chunks_mut::<NR>().0.iter_mut().zip(quants.as_chunks::<NR>().0) {
                for ((out, stored), scale) in out.iter_mut().zip(row).zip(&scales) {
                    *out = f32::from(*stored as i8) * scale;
                }
            }
            return;
        }
        let bias = i32::from(format.bias());
        let fifth = &step[fifth_at(format)..quants_at(format)];
        for (pair, row) in quants.as_chunks::<NR>().0.iter().take(BLOCK / 2).enumerate() {
            let bits = |position: usize| {
                let at = (2 * pair + position) * size_of::<u32>();
                fifth.get(at..at + 4).map_or(0, |bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            };
            let (low_bits, high_bits) = (bits(0), bits(1));
            let (low, high) = out[2 * pair * NR..][..2 * NR].split_at_mut(NR);
            let lanes = row.iter().zip(&scales).zip(low).zip(high);
            for (lane, (((byte, scale), low), high)) in lanes.enumerate() {
                let fifth = |bits: u32| ((bits >> lane & 1) << 4) as i32;
                let (a, b) = (i32::from(byte & 15) | fifth(low_bits), i32::from(byte >> 4) | fifth(high_bits));
                *low = (a - bias) as f32 * scale;
                *high = (b - bias) as f32 * scale;
            }
        }
        if format.has_minimum() {
            let minimums = numbers(&step[SCALES..2 * SCALES]);
            for row in out.as_chunks_mut::<NR>().0.iter_mut().take(BLOCK) {
                row.iter_mut().zip(&minimums).for_each(|(out, minimum)| *out += minimum);
            }
        }
    }
}

multiversion! {
    /// Rounds positions to pairs of bf16.
    fn pair_values(values: &[f32], words: &mut [u32]) {
        for (rows, words) in values.chunks_exact(2 * NR).zip(words.chunks_exact_mut(NR)) {
            let (low, high) = rows.split_at(NR);
            for ((word, low), high) in words.iter_mut().zip(low).zip(high) {
                *word = u32::from(bf16_bits(*low)) | u32::from(bf16_bits(*high)) << 16;
            }
        }
    }
}

/// Writes the elements of a step as pairs of bf16.
pub(super) fn step_words(isa: Isa, format: BlockFormat, step: &[u8], words: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx512() {
        assert!(step.len() >= step_bytes(format) && words.len() >= STEP_WORDS, "a step of too few bytes");
        // SAFETY: the processor has the instructions, as `isa` says; bounds are checked.
        return unsafe { step_words_avx512(format, step.as_ptr(), words.as_mut_ptr()) };
    }
    let mut values = [0.0; STEP];
    step_values(isa, format, step, &mut values);
    pair_values(isa, &values, words);
}

/// [`step_words`]. Elements are multiples of the least f16, so that none is a denormal f32, which rounding would flush.
///
/// # Safety
/// The processor has AVX-512 with BF16; `step` has the bytes of a step and `words` its words.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn step_words_avx512(format: BlockFormat, step: *const u8, words: *mut u32) {
    use std::arch::x86_64::*;
    let halves = avx512::halves();
    let bias = _mm512_set1_epi32(i32::from(format.bias()));
    let nibbles = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let table = _mm512_cvtepi32_ps(_mm512_sub_epi32(nibbles, bias));
    for half in 0..2 {
        // SAFETY: scales and minimums of 16 rows, f16 each, and bytes of 16 rows lie in the step; as many words in `words`.
        unsafe {
            let numbers = |at: usize| _mm512_cvtph_ps(_mm256_loadu_si256(step.add(at + half * NR).cast()));
            let bytes = |row: usize| _mm_loadu_si128(step.add(quants_at(format) + row * NR + half * NR / 2).cast());
            let scales = numbers(0);
            let minimums = if format.has_minimum() { numbers(SCALES) } else { _mm512_setzero_ps() };
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
                    BlockFormat::Q4_0 | BlockFormat::Q4_1 => {
                        // Permutations read the low four bits of an index.
                        let both = _mm512_cvtepu8_epi32(bytes(pair));
                        let high = _mm512_srli_epi32::<4>(both);
                        (_mm512_permutexvar_ps(both, table), _mm512_permutexvar_ps(high, table))
                    }
                    BlockFormat::Q5_0 | BlockFormat::Q5_1 => {
                        let both = _mm512_cvtepu8_epi32(bytes(pair));
                        let fifth = |quants: __m512i, position: usize| {
                            let at = fifth_at(format) + (2 * pair + position) * size_of::<u32>() + half * 2;
                            let bits = u16::from_le_bytes([*step.add(at), *step.add(at + 1)]);
                            let all = _mm512_mask_add_epi32(quants, bits, quants, _mm512_set1_epi32(16));
                            _mm512_cvtepi32_ps(_mm512_sub_epi32(all, bias))
                        };
                        let low = _mm512_and_si512(both, _mm512_set1_epi32(15));
                        (fifth(low, 0), fifth(_mm512_srli_epi32::<4>(both), 1))
                    }
                };
                let (low, high) = (_mm512_mul_ps(low, scales), _mm512_mul_ps(high, scales));
                if format.has_minimum() {
                    store(pair, _mm512_add_ps(low, minimums), _mm512_add_ps(high, minimums));
                } else {
                    store(pair, low, high);
                }
            }
        }
    }
}

/// Rounds elements to bf16.
pub(super) fn round_values(values: &mut [f32]) {
    values.iter_mut().for_each(|x| *x = f32::from_bits(u32::from(bf16_bits(*x)) << 16));
}
