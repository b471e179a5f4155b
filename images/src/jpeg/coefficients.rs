//! Coefficients of one block in each kind of scan.

use crate::ImageError;
use crate::jpeg::bits::Bits;
use crate::jpeg::huffman::Huffman;
use crate::jpeg::idct::{Block, ZIGZAG};
use crate::jpeg::refusals::damaged;

/// What decoding remembers between the blocks of a scan. A restart resets it.
#[derive(Default)]
pub(super) struct Memory {
    /// The last constant term of each component of the scan.
    pub(super) constants: [i32; 4],
    /// Blocks that have no further new coefficients.
    pub(super) empty: u32,
}

/// The coefficients that a scan of a progressive file sends, and their precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Band {
    /// First and last coefficient in the order of the file.
    pub(super) first: usize,
    pub(super) last: usize,
    /// Lowest bit sent before, if any, and lowest bit sent by this scan.
    pub(super) before: u32,
    pub(super) low: u32,
}

fn outside() -> ImageError {
    damaged("a coefficient outside its block")
}

/// Adds a difference to the last constant term.
fn constant(bits: &mut Bits<'_>, codes: &Huffman, last: &mut i32) -> Result<i32, ImageError> {
    let size = codes.decode(bits)?;
    *last = last.wrapping_add(bits.signed(size.into())?);
    Ok(*last)
}

/// Reads all coefficients of a block of a sequential file.
pub(super) fn sequential(
    bits: &mut Bits<'_>,
    constants: &Huffman,
    codes: &Huffman,
    last: &mut i32,
) -> Result<Block, ImageError> {
    let mut block = [0; 64];
    block[0] = constant(bits, constants, last)? as i16;
    let mut at = 1;
    while at < 64 {
        let code = codes.decode(bits)?;
        let (zeros, size) = (usize::from(code >> 4), u32::from(code & 15));
        if size == 0 && zeros < 15 {
            break;
        }
        at += zeros;
        if size > 0 {
            let index = ZIGZAG.get(at).ok_or_else(outside)?;
            block[usize::from(*index)] = bits.signed(size)? as i16;
        }
        at += 1;
    }
    Ok(block)
}

/// Reads the constant term of a block, or its next bit.
pub(super) fn progressive_constant(
    bits: &mut Bits<'_>,
    codes: Option<&Huffman>,
    last: &mut i32,
    low: u32,
    block: &mut Block,
) -> Result<(), ImageError> {
    match codes {
        Some(codes) => block[0] = (constant(bits, codes, last)? << low) as i16,
        None => block[0] |= (bits.take(1)? << low) as i16,
    }
    Ok(())
}

/// Reads the first bits of a band.
pub(super) fn first_bits(
    bits: &mut Bits<'_>,
    codes: &Huffman,
    band: Band,
    empty: &mut u32,
    block: &mut Block,
) -> Result<(), ImageError> {
    if *empty > 0 {
        *empty -= 1;
        return Ok(());
    }
    let mut at = band.first;
    while at <= band.last {
        let code = codes.decode(bits)?;
        let (zeros, size) = (u32::from(code >> 4), u32::from(code & 15));
        if size == 0 && zeros < 15 {
            *empty = run(bits, zeros)? - 1;
            break;
        }
        at += zeros as usize;
        if size > 0 {
            let index = ZIGZAG.get(at).filter(|_| at <= band.last).ok_or_else(outside)?;
            block[usize::from(*index)] = (bits.signed(size)? << band.low) as i16;
        }
        at += 1;
    }
    Ok(())
}

/// Reads the length of a run of blocks, this one included.
fn run(bits: &mut Bits<'_>, size: u32) -> Result<u32, ImageError> {
    Ok((1 << size) + bits.take(size)?)
}

/// Reads the next bit of each coefficient of a band, and coefficients that were zero so far.
pub(super) fn next_bits(
    bits: &mut Bits<'_>,
    codes: &Huffman,
    band: Band,
    empty: &mut u32,
    block: &mut Block,
) -> Result<(), ImageError> {
    let mut at = band.first;
    while *empty == 0 && at <= band.last {
        let code = codes.decode(bits)?;
        let (zeros, size) = (u32::from(code >> 4), code & 15);
        let new = match size {
            0 if zeros < 15 => {
                *empty = run(bits, zeros)?;
                break;
            }
            0 => 0,
            1 if bits.take(1)? == 1 => 1 << band.low,
            1 => -1 << band.low,
            _ => return Err(damaged("a refined coefficient of more than one bit")),
        };
        at = refine(bits, at, band, Some(zeros), block)?;
        if new != 0 {
            let index = ZIGZAG.get(at).filter(|_| at <= band.last).ok_or_else(outside)?;
            block[usize::from(*index)] = new;
        }
        at += 1;
    }
    if *empty > 0 {
        refine(bits, at, band, None, block)?;
        *empty -= 1;
    }
    Ok(())
}

/// Reads a bit for each coefficient that is not zero, up to the zero after `zeros` others, and returns its place.
fn refine(
    bits: &mut Bits<'_>,
    from: usize,
    band: Band,
    zeros: Option<u32>,
    block: &mut Block,
) -> Result<usize, ImageError> {
    let mut left = zeros;
    for at in from..=band.last {
        let value = &mut block[usize::from(ZIGZAG[at])];
        if *value == 0 {
            match &mut left {
                Some(0) => return Ok(at),
                Some(left) => *left -= 1,
                None => {}
            }
        } else if bits.take(1)? == 1 && *value & (1 << band.low) == 0 {
            let step = 1 << band.low;
            *value = value.wrapping_add(if *value > 0 { step } else { -step });
        }
    }
    Ok(band.last + 1)
}
