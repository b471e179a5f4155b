//! The blocks of rows in a step ([`step_layout`](super::step_layout)), and the elements of a step for any processor. Kernels for
//! instruction sets dequantize the same elements faster.

use half::f16;

use super::elements::{NR, bf16_bits};
#[cfg(target_arch = "x86_64")]
use super::step_avx2::step_values_avx2;
#[cfg(target_arch = "x86_64")]
use super::step_avx512::step_words_avx512;
use super::step_layout::{BITS, HALF, SCALES, STEP, StepBytes, high_at, quants_at};
#[cfg(target_arch = "x86_64")]
use super::step_layout::{STEP_WORDS, numbers_bytes, own_bytes};
use crate::blocks::{BLOCK, Block, BlockFormat};
use crate::cpu::Isa;
use crate::cpu::vexp::multiversion;

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
    /// [`step_values`] in plain Rust.
    pub(super) fn plain_values(format: BlockFormat, step: StepBytes<'_>, out: &mut [f32]) {
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

/// Whether the bytes of a step are all there.
#[cfg(target_arch = "x86_64")]
fn is_whole(format: BlockFormat, step: StepBytes<'_>) -> bool {
    step.numbers.len() >= numbers_bytes(format) && step.own.len() >= own_bytes(format)
}

/// Writes the elements of a step, position by position.
pub(super) fn step_values(isa: Isa, format: BlockFormat, step: StepBytes<'_>, out: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx2() && is_x86_feature_detected!("f16c") {
        assert!(is_whole(format, step) && out.len() >= STEP, "a step of too few bytes");
        // SAFETY: the processor has the instructions, as `isa` and the test say; bounds are checked.
        return unsafe { step_values_avx2(format, step.numbers.as_ptr(), step.own.as_ptr(), out.as_mut_ptr()) };
    }
    plain_values(isa, format, step, out);
}

/// Writes the elements of a step as pairs of bf16.
pub(super) fn step_words(isa: Isa, format: BlockFormat, step: StepBytes<'_>, words: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx512() {
        assert!(is_whole(format, step) && words.len() >= STEP_WORDS, "a step of too few bytes");
        // SAFETY: the processor has the instructions, as `isa` says; bounds are checked.
        return unsafe { step_words_avx512(format, step.numbers.as_ptr(), step.own.as_ptr(), words.as_mut_ptr()) };
    }
    let mut values = [0.0; STEP];
    step_values(isa, format, step, &mut values);
    pair_values(isa, &values, words);
}

/// Rounds elements to bf16.
pub(super) fn round_values(values: &mut [f32]) {
    values.iter_mut().for_each(|x| *x = f32::from_bits(u32::from(bf16_bits(*x)) << 16));
}
