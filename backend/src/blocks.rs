//! Weights in blocks of small integers with a scale, as GGUF files store them. The formats are those of ggml
//! (`ggml-common.h`, `dequantize_row_*`).

mod quantize;
mod super_blocks;

use std::ops::Range;

use half::f16;

pub use quantize::PackedForm;
pub use quantize::Quantizer;

/// Elements of a block.
pub const BLOCK: usize = 32;
/// Bytes of the quants' low halves.
const NIBBLES: usize = BLOCK / 2;
/// Blocks of a super-block.
const SUPER: usize = 8;

/// The formats that weights can be kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockFormat {
    /// 4 bits: `(q - 8) · d`.
    Q4_0,
    /// 4 bits: `q · d + m`.
    Q4_1,
    /// 5 bits: `(q - 16) · d`.
    Q5_0,
    /// 5 bits: `q · d + m`.
    Q5_1,
    /// Signed bytes: `q · d`.
    Q8_0,
    /// 4 bits: `q · (d · s) - m · t`, where eight blocks share a scale `d` and a minimum `m`, with 6-bit factors per
    /// block.
    Q4K,
    /// 5 bits: the same as [`Q4K`](Self::Q4K).
    Q5K,
    /// 6 bits: `(q - 32) · (d · s)`, where eight blocks share a scale `d`, with an 8-bit factor per half block.
    Q6K,
}

/// A block that is taken apart. An element is `quant · scale`, plus `minimum` where the format has one; in super-blocks both are
/// multiplied by factors first, and the minimum is subtracted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Block {
    pub scale: f16,
    /// Minimum of the block; 0 in formats without one.
    pub minimum: f16,
    /// Factors of the scale in the halves of the block; 1 in formats without them.
    pub factors: [i8; 2],
    /// Factor of the minimum; 1 in formats without one.
    pub minimum_factor: i8,
    /// Stored integers: unsigned before the bias of the format, or the bits of signed bytes.
    pub quants: [u8; BLOCK],
}

impl BlockFormat {
    /// All formats: first those of blocks, from the smallest to the largest, then those of super-blocks.
    pub const ALL: [Self; 8] =
        [Self::Q4_0, Self::Q4_1, Self::Q5_0, Self::Q5_1, Self::Q8_0, Self::Q4K, Self::Q5K, Self::Q6K];

    /// Returns the name in ggml.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Q4_0 => "Q4_0",
            Self::Q4_1 => "Q4_1",
            Self::Q5_0 => "Q5_0",
            Self::Q5_1 => "Q5_1",
            Self::Q8_0 => "Q8_0",
            Self::Q4K => "Q4_K",
            Self::Q5K => "Q5_K",
            Self::Q6K => "Q6_K",
        }
    }

    /// Blocks that a file stores together: 1, or those of a super-block.
    #[inline(always)]
    pub(crate) const fn blocks(self) -> usize {
        match self {
            Self::Q4K | Self::Q5K | Self::Q6K => SUPER,
            _ => 1,
        }
    }

    /// Returns the number of elements that a file stores together; rows consist of whole groups.
    pub const fn elements(self) -> usize {
        self.blocks() * BLOCK
    }

    /// Returns the bytes of the elements that a file stores together.
    pub const fn bytes(self) -> usize {
        let scale = size_of::<f16>();
        match self {
            Self::Q4_0 => scale + NIBBLES,
            Self::Q4_1 => 2 * scale + NIBBLES,
            Self::Q5_0 => scale + size_of::<u32>() + NIBBLES,
            Self::Q5_1 => 2 * scale + size_of::<u32>() + NIBBLES,
            Self::Q8_0 => scale + BLOCK,
            Self::Q4K => super_blocks::Q4K_BYTES,
            Self::Q5K => super_blocks::Q5K_BYTES,
            Self::Q6K => super_blocks::Q6K_BYTES,
        }
    }

    /// Whether an element is the sum of a product and a minimum.
    #[inline(always)]
    pub(crate) const fn has_minimum(self) -> bool {
        matches!(self, Self::Q4_1 | Self::Q5_1 | Self::Q4K | Self::Q5K)
    }

    /// Whether blocks have factors of their scale and minimum.
    #[inline(always)]
    pub(crate) const fn has_factors(self) -> bool {
        self.blocks() > 1
    }

    /// Whether the halves of a block have factors of their own.
    #[inline(always)]
    pub(crate) const fn has_factors_of_halves(self) -> bool {
        matches!(self, Self::Q6K)
    }

    /// Bits of a quant beyond the fourth that are stored apart from the others.
    #[inline(always)]
    pub(crate) const fn high_bits(self) -> usize {
        match self {
            Self::Q5_0 | Self::Q5_1 | Self::Q5K => 1,
            Self::Q6K => 2,
            _ => 0,
        }
    }

    /// Subtracted from a stored quant.
    #[inline(always)]
    pub(crate) const fn bias(self) -> u8 {
        match self {
            Self::Q4_0 => 8,
            Self::Q5_0 => 16,
            Self::Q6K => 32,
            _ => 0,
        }
    }

    /// A block of positive zeros.
    pub(crate) const fn zeros(self) -> Block {
        Block { scale: f16::ZERO, minimum: f16::ZERO, factors: [1; 2], minimum_factor: 1, quants: [self.bias(); BLOCK] }
    }

    /// Takes a block apart: number `part` of those in `bytes`, which a file stores together.
    pub(crate) fn parse(self, bytes: &[u8], part: usize) -> Block {
        match self {
            Self::Q4K => super_blocks::parse_q4k(bytes, part),
            Self::Q5K => super_blocks::parse_q5k(bytes, part),
            Self::Q6K => super_blocks::parse_q6k(bytes, part),
            _ => self.parse_block(bytes),
        }
    }

    fn parse_block(self, bytes: &[u8]) -> Block {
        let (minimum, mut at) = if self.has_minimum() { (number(bytes, 2), 4) } else { (f16::ZERO, 2) };
        let fifth = if self.high_bits() > 0 {
            at += 4;
            u32::from_le_bytes([bytes[at - 4], bytes[at - 3], bytes[at - 2], bytes[at - 1]])
        } else {
            0
        };
        let stored = &bytes[at..self.bytes()];
        let mut quants = [0; BLOCK];
        match self {
            Self::Q8_0 => quants.copy_from_slice(stored),
            _ => {
                for (i, byte) in stored.iter().enumerate() {
                    let bit = |position: usize| ((fifth >> position & 1) as u8) << 4;
                    quants[i] = (byte & 15) | bit(i);
                    quants[i + NIBBLES] = (byte >> 4) | bit(i + NIBBLES);
                }
            }
        }
        Block { scale: number(bytes, 0), minimum, quants, ..self.zeros() }
    }

    /// The quant that a stored one stands for.
    #[inline(always)]
    pub(crate) fn quant(self, stored: u8) -> f32 {
        match self {
            Self::Q8_0 => f32::from(stored as i8),
            _ => f32::from(i16::from(stored) - i16::from(self.bias())),
        }
    }

    /// Writes the elements of a block. Products have at most 23 bits, so that only the addition rounds.
    pub(crate) fn dequantize(self, block: &Block, out: &mut [f32]) {
        let (scale, minimum) = (block.scale.to_f32(), block.minimum.to_f32() * f32::from(block.minimum_factor));
        let minimum = if self.has_factors() { -minimum } else { minimum };
        let scales = block.factors.map(|factor| scale * f32::from(factor));
        for (i, (out, stored)) in out.iter_mut().zip(block.quants).enumerate() {
            let product = self.quant(stored) * scales[i / NIBBLES];
            *out = if self.has_minimum() { product + minimum } else { product };
        }
    }
}

/// The f16 at a byte.
fn number(bytes: &[u8], at: usize) -> f16 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// A matrix whose rows are whole blocks, in the bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRows {
    format: BlockFormat,
    /// Elements of a row, a multiple of [`BlockFormat::elements`].
    columns: usize,
    bytes: Vec<u8>,
}

impl BlockRows {
    /// Returns rows of `columns` elements; `None` unless the bytes are whole rows of whole blocks or super-blocks.
    pub fn new(format: BlockFormat, columns: usize, bytes: Vec<u8>) -> Option<Self> {
        let row = columns / format.elements() * format.bytes();
        let is_whole = columns.is_multiple_of(format.elements()) && row > 0 && bytes.len().is_multiple_of(row);
        is_whole.then_some(Self { format, columns, bytes })
    }

    /// These rows, and then those of `rest`; `None` unless both have the same format and length of rows.
    pub fn followed_by(mut self, rest: Self) -> Option<Self> {
        let is_alike = self.format == rest.format && self.columns == rest.columns;
        is_alike.then(|| {
            self.bytes.extend(rest.bytes);
            self
        })
    }

    /// Returns the format of all blocks.
    pub fn format(&self) -> BlockFormat {
        self.format
    }

    /// Returns the number of elements of a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.bytes.len() / self.row_bytes()
    }

    /// Returns the bytes of all blocks.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn row_bytes(&self) -> usize {
        self.columns / self.format.elements() * self.format.bytes()
    }

    /// The blocks of a row.
    pub(crate) fn row(&self, row: usize) -> impl Iterator<Item = Block> {
        let (format, bytes) = (self.format, &self.bytes[row * self.row_bytes()..][..self.row_bytes()]);
        let parts = move |bytes| (0..format.blocks()).map(move |part| format.parse(bytes, part));
        bytes.chunks_exact(format.bytes()).flat_map(parts)
    }

    /// Writes the elements of a row.
    pub(crate) fn write_row(&self, row: usize, out: &mut [f32]) {
        for (block, out) in self.row(row).zip(out.chunks_mut(BLOCK)) {
            self.format.dequantize(&block, out);
        }
    }

    /// The elements of some rows.
    pub fn values(&self, rows: Range<usize>) -> Vec<f32> {
        let mut values = vec![0.0; rows.len() * self.columns];
        rows.zip(values.chunks_exact_mut(self.columns)).for_each(|(row, out)| self.write_row(row, out));
        values
    }
}

#[cfg(test)]
#[path = "blocks/tests.rs"]
pub(crate) mod tests;
