//! Super-blocks of 256 elements: eight blocks with factors of one scale (ggml's `block_q4_K`, `block_q5_K`, `block_q6_K`).

use half::f16;

use super::{BLOCK, Block, SUPER, number};

/// Bytes of the factors of scales and minimums, 6 bits each.
const FACTORS: usize = 12;
/// Bytes of four bits of all elements.
const LOW: usize = SUPER * BLOCK / 2;

pub(super) const Q4K_BYTES: usize = 2 * size_of::<f16>() + FACTORS + LOW;
pub(super) const Q5K_BYTES: usize = Q4K_BYTES + BLOCK;
pub(super) const Q6K_BYTES: usize = LOW + LOW / 2 + 2 * SUPER + size_of::<f16>();

/// The factors of scale and minimum of a block: the low six bits of a byte each in the first four blocks; the others have four
/// bits in a byte and two above the six of another block.
fn factors(bytes: &[u8], part: usize) -> (i8, i8) {
    let (scale, minimum) = match part.checked_sub(4) {
        None => (bytes[part] & 63, bytes[part + 4] & 63),
        Some(high) => {
            let low = bytes[part + 4];
            ((low & 15) | bytes[high] >> 6 << 4, (low >> 4) | bytes[part] >> 6 << 4)
        }
    };
    (scale as i8, minimum as i8)
}

/// Four bits of each element: two blocks share their bytes.
fn nibbles(low: &[u8], part: usize) -> [u8; BLOCK] {
    let (bytes, shift) = (&low[part / 2 * BLOCK..], part % 2 * 4);
    std::array::from_fn(|i| bytes[i] >> shift & 15)
}

pub(super) fn parse_q4k(bytes: &[u8], part: usize) -> Block {
    let (scale, minimum_factor) = factors(&bytes[4..4 + FACTORS], part);
    let quants = nibbles(&bytes[4 + FACTORS..], part);
    Block { scale: number(bytes, 0), minimum: number(bytes, 2), factors: [scale; 2], minimum_factor, quants }
}

pub(super) fn parse_q5k(bytes: &[u8], part: usize) -> Block {
    let (scale, minimum_factor) = factors(&bytes[4..4 + FACTORS], part);
    let (high, low) = bytes[4 + FACTORS..].split_at(BLOCK);
    let mut quants = nibbles(low, part);
    quants.iter_mut().zip(high).for_each(|(quant, high)| *quant |= (high >> part & 1) << 4);
    Block { scale: number(bytes, 0), minimum: number(bytes, 2), factors: [scale; 2], minimum_factor, quants }
}

/// Blocks 0 and 2, and 1 and 3, of each half of a super-block share bytes of low bits; all four share those of high bits.
pub(super) fn parse_q6k(bytes: &[u8], part: usize) -> Block {
    let (half, own) = (part / 4, part % 4);
    let low = &bytes[half * 2 * BLOCK + own % 2 * BLOCK..];
    let high = &bytes[LOW + half * BLOCK..];
    let factors = &bytes[LOW + LOW / 2 + 2 * part..];
    Block {
        scale: number(bytes, Q6K_BYTES - 2),
        minimum: f16::ZERO,
        factors: [factors[0] as i8, factors[1] as i8],
        minimum_factor: 1,
        quants: std::array::from_fn(|i| (low[i] >> (own / 2 * 4) & 15) | (high[i] >> (2 * own) & 3) << 4),
    }
}
