//! Blocks of [`NR`] rows of a matrix side by side, and how they become elements of a panel: [`BLOCK`] positions of `k`, a step.
//! Their bits are those of the file in another order, so that all rows of the step are dequantized together. First, for all
//! steps of a super-block, the scales of all rows, and in formats with minimums these, as f16. Then for each step:
//! - in super-blocks the factors of all rows, a byte each: of the scale, or of the scale in each half of the step; of the minimum;
//! - bits beyond the fourth, first the fifth bits, then the sixth: for each position a bit of each row;
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
/// Bytes of a bit of each element of a step.
const BITS: usize = STEP / 8;
/// Positions of half a step.
const HALF: usize = BLOCK / 2;

/// Bytes of the scales and minimums of a step, or of the steps of a super-block.
pub(super) const fn numbers_bytes(format: BlockFormat) -> usize {
    if format.has_minimum() { 2 * SCALES } else { SCALES }
}

/// First byte of the bits beyond the fourth, which follow the factors.
const fn high_at(format: BlockFormat) -> usize {
    if format.has_factors() { 2 * NR } else { 0 }
}

/// First byte of the quants.
const fn quants_at(format: BlockFormat) -> usize {
    high_at(format) + format.high_bits() * BITS
}

/// Bytes of a step beside its scales and minimums.
pub(super) const fn own_bytes(format: BlockFormat) -> usize {
    quants_at(format) + if matches!(format, BlockFormat::Q8_0) { STEP } else { STEP / 2 }
}

/// The bytes of a step.
#[derive(Clone, Copy)]
pub(super) struct StepBytes<'a> {
    /// Scales and minimums of all rows, as f16.
    pub numbers: &'a [u8],
    pub own: &'a [u8],
}

/// Writes the block of a row, whose other bits are zero so far.
pub(super) fn write_lane(format: BlockFormat, numbers: &mut [u8], own: &mut [u8], lane: usize, block: &Block) {
    numbers[2 * lane..2 * lane + 2].copy_from_slice(&block.scale.to_le_bytes());
    if format.has_minimum() {
        numbers[SCALES + 2 * lane..SCALES + 2 * lane + 2].copy_from_slice(&block.minimum.to_le_bytes());
    }
    if format.has_factors() {
        let second = if format.has_factors_of_halves() { block.factors[1] } else { block.minimum_factor };
        own[lane] = block.factors[0] as u8;
        own[NR + lane] = second as u8;
    }
    for bit in 0..format.high_bits() {
        let bits = &mut own[high_at(format) + bit * BITS..][..BITS];
        for (bits, quant) in bits.chunks_exact_mut(size_of::<u32>()).zip(block.quants) {
            bits[lane / 8] |= (quant >> (4 + bit) & 1) << (lane % 8);
        }
    }
    let quants = &mut own[quants_at(format)..];
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
pub(super) fn read_lane(format: BlockFormat, step: StepBytes<'_>, lane: usize) -> Block {
    let StepBytes { numbers, own } = step;
    let number = |at: usize| f16::from_le_bytes([numbers[at + 2 * lane], numbers[at + 2 * lane + 1]]);
    let quants = &own[quants_at(format)..];
    let quant = |position: usize| {
        if format == BlockFormat::Q8_0 {
            return quants[position * NR + lane];
        }
        let byte = quants[position / 2 * NR + lane];
        let low = if position.is_multiple_of(2) { byte & 15 } else { byte >> 4 };
        let high = |bit: usize| {
            let bits = own[high_at(format) + bit * BITS + position * size_of::<u32>() + lane / 8];
            (bits >> (lane % 8) & 1) << (4 + bit)
        };
        (0..format.high_bits()).fold(low, |quant, bit| quant | high(bit))
    };
    let mut block = Block { scale: number(0), quants: std::array::from_fn(quant), ..format.zeros() };
    if format.has_minimum() {
        block.minimum = number(SCALES);
    }
    if format.has_factors() {
        let [first, second] = [own[lane] as i8, own[NR + lane] as i8];
        block.factors = [first, if format.has_factors_of_halves() { second } else { first }];
        block.minimum_factor = if format.has_factors_of_halves() { 1 } else { second };
    }
    block
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

/// Numbers times the factors of all rows.
#[inline(always)]
fn scaled(mut numbers: [f32; NR], factors: &[u8]) -> [f32; NR] {
    numbers.iter_mut().zip(factors).for_each(|(number, factor)| *number *= f32::from(*factor as i8));
    numbers
}

/// Scales of all rows in both halves of a step.
#[inline(always)]
fn scales(format: BlockFormat, step: StepBytes<'_>) -> [[f32; NR]; 2] {
    let whole = numbers(&step.numbers[..SCALES]);
    if !format.has_factors() {
        return [whole; 2];
    }
    let first = scaled(whole, &step.own[..NR]);
    [first, if format.has_factors_of_halves() { scaled(whole, &step.own[NR..2 * NR]) } else { first }]
}

/// Minimums of all rows, which are added to the products.
#[inline(always)]
fn minimums(format: BlockFormat, step: StepBytes<'_>) -> [f32; NR] {
    let minimums = numbers(&step.numbers[SCALES..2 * SCALES]);
    if !format.has_factors() {
        return minimums;
    }
    scaled(minimums, &step.own[NR..2 * NR]).map(|minimum| -minimum)
}

multiversion! {
    /// Writes the elements of a step, position by position.
    pub(super) fn step_values(format: BlockFormat, step: StepBytes<'_>, out: &mut [f32]) {
        let scales = scales(format, step);
        let quants = &step.own[quants_at(format)..];
        if format == BlockFormat::Q8_0 {
            for (out, row) in out.as_chunks_mut::<NR>().0.iter_mut().zip(quants.as_chunks::<NR>().0) {
                for ((out, stored), scale) in out.iter_mut().zip(row).zip(&scales[0]) {
                    *out = f32::from(*stored as i8) * scale;
                }
            }
            return;
        }
        let bias = i32::from(format.bias());
        let high_bits = &step.own[high_at(format)..quants_at(format)];
        for (pair, row) in quants.as_chunks::<NR>().0.iter().take(HALF).enumerate() {
            let bits = |bit: usize, position: usize| {
                let at = bit * BITS + (2 * pair + position) * size_of::<u32>();
                high_bits.get(at..at + 4).map_or(0, |bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            };
            let (low_bits, high_bits) = ([bits(0, 0), bits(1, 0)], [bits(0, 1), bits(1, 1)]);
            let (low, high) = out[2 * pair * NR..][..2 * NR].split_at_mut(NR);
            let lanes = row.iter().zip(&scales[2 * pair / HALF]).zip(low).zip(high);
            for (lane, (((byte, scale), low), high)) in lanes.enumerate() {
                let above = |[fifth, sixth]: [u32; 2]| ((fifth >> lane & 1) << 4 | (sixth >> lane & 1) << 5) as i32;
                let (a, b) = (i32::from(byte & 15) | above(low_bits), i32::from(byte >> 4) | above(high_bits));
                *low = (a - bias) as f32 * scale;
                *high = (b - bias) as f32 * scale;
            }
        }
        if format.has_minimum() {
            let minimums = minimums(format, step);
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
pub(super) fn step_words(isa: Isa, format: BlockFormat, step: StepBytes<'_>, words: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx512() {
        let is_whole = step.numbers.len() >= numbers_bytes(format) && step.own.len() >= own_bytes(format);
        assert!(is_whole && words.len() >= STEP_WORDS, "a step of too few bytes");
        // SAFETY: the processor has the instructions, as `isa` says; bounds are checked.
        return unsafe { step_words_avx512(format, step.numbers.as_ptr(), step.own.as_ptr(), words.as_mut_ptr()) };
    }
    let mut values = [0.0; STEP];
    step_values(isa, format, step, &mut values);
    pair_values(isa, &values, words);
}

/// [`step_words`]. Elements are multiples of the least f16, so that none is a denormal f32, which rounding would flush.
///
/// # Safety
/// The processor has AVX-512 with BF16; `numbers` and `own` have the bytes of a step and `words` its words.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn step_words_avx512(format: BlockFormat, numbers: *const u8, own: *const u8, words: *mut u32) {
    use std::arch::x86_64::*;
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
