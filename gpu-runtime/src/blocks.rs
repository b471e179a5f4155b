//! Weights in blocks of small integers with a scale, as GGUF files store them. The formats are those of ggml
//! (`ggml-common.h`, `dequantize_row_*`).

use std::ops::Range;

use half::f16;

/// Elements of a block.
pub const BLOCK: usize = 32;
/// Bytes of the quants' low halves.
const NIBBLES: usize = BLOCK / 2;

/// The formats that weights can be kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockFormat {
    /// `(q - 8) · d` of 4 bits.
    Q4_0,
    /// `q · d + m` of 4 bits.
    Q4_1,
    /// `(q - 16) · d` of 5 bits.
    Q5_0,
    /// `q · d + m` of 5 bits.
    Q5_1,
    /// `q · d` of signed bytes.
    Q8_0,
}

/// A block that is taken apart: an element is `quant · scale`, plus `minimum` where the format has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Block {
    pub scale: f16,
    /// Zero in formats without.
    pub minimum: f16,
    /// Stored integers: unsigned before the bias of the format, or the bits of signed bytes.
    pub quants: [u8; BLOCK],
}

impl BlockFormat {
    /// All formats, from the smallest to the largest.
    pub const ALL: [Self; 5] = [Self::Q4_0, Self::Q4_1, Self::Q5_0, Self::Q5_1, Self::Q8_0];

    /// Bytes of a block.
    pub const fn bytes(self) -> usize {
        let scale = size_of::<f16>();
        match self {
            Self::Q4_0 => scale + NIBBLES,
            Self::Q4_1 => 2 * scale + NIBBLES,
            Self::Q5_0 => scale + size_of::<u32>() + NIBBLES,
            Self::Q5_1 => 2 * scale + size_of::<u32>() + NIBBLES,
            Self::Q8_0 => scale + BLOCK,
        }
    }

    /// Whether an element is the sum of a product and a minimum.
    pub(crate) const fn has_minimum(self) -> bool {
        matches!(self, Self::Q4_1 | Self::Q5_1)
    }

    /// Whether quants have a fifth bit.
    pub(crate) const fn has_fifth_bit(self) -> bool {
        matches!(self, Self::Q5_0 | Self::Q5_1)
    }

    /// Subtracted from a stored quant.
    pub(crate) const fn bias(self) -> u8 {
        match self {
            Self::Q4_0 => 8,
            Self::Q5_0 => 16,
            Self::Q4_1 | Self::Q5_1 | Self::Q8_0 => 0,
        }
    }

    /// A block of positive zeros.
    pub(crate) const fn zeros(self) -> Block {
        Block { scale: f16::ZERO, minimum: f16::ZERO, quants: [self.bias(); BLOCK] }
    }

    /// Takes the bytes of a block apart.
    pub(crate) fn parse(self, bytes: &[u8]) -> Block {
        let number = |at: usize| f16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let (minimum, mut at) = if self.has_minimum() { (number(2), 4) } else { (f16::ZERO, 2) };
        let fifth = if self.has_fifth_bit() {
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
        Block { scale: number(0), minimum, quants }
    }

    /// The quant that a stored one stands for.
    #[inline(always)]
    pub(crate) fn quant(self, stored: u8) -> f32 {
        match self {
            Self::Q8_0 => f32::from(stored as i8),
            _ => f32::from(i16::from(stored) - i16::from(self.bias())),
        }
    }

    /// Writes the elements of a block.
    pub(crate) fn dequantize(self, block: &Block, out: &mut [f32]) {
        let (scale, minimum) = (block.scale.to_f32(), block.minimum.to_f32());
        for (out, stored) in out.iter_mut().zip(block.quants) {
            let product = self.quant(stored) * scale;
            *out = if self.has_minimum() { product + minimum } else { product };
        }
    }
}

/// A matrix whose rows are whole blocks, in the bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRows {
    format: BlockFormat,
    /// Elements of a row, a multiple of [`BLOCK`].
    columns: usize,
    bytes: Vec<u8>,
}

impl BlockRows {
    /// Rows of `columns` elements; `None` unless the bytes are whole rows of whole blocks.
    pub fn new(format: BlockFormat, columns: usize, bytes: Vec<u8>) -> Option<Self> {
        let row = columns / BLOCK * format.bytes();
        let is_whole = columns.is_multiple_of(BLOCK) && row > 0 && bytes.len().is_multiple_of(row);
        is_whole.then_some(Self { format, columns, bytes })
    }

    /// The format of all blocks.
    pub fn format(&self) -> BlockFormat {
        self.format
    }

    /// Elements of a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of rows that the bytes make.
    pub fn rows(&self) -> usize {
        self.bytes.len() / self.row_bytes()
    }

    /// Bytes of all blocks.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn row_bytes(&self) -> usize {
        self.columns / BLOCK * self.format.bytes()
    }

    /// The blocks of a row.
    pub(crate) fn row(&self, row: usize) -> impl Iterator<Item = Block> {
        let bytes = &self.bytes[row * self.row_bytes()..][..self.row_bytes()];
        bytes.chunks_exact(self.format.bytes()).map(|block| self.format.parse(block))
    }

    /// Writes the elements of a row.
    pub(crate) fn write_row(&self, row: usize, out: &mut [f32]) {
        for (block, out) in self.row(row).zip(out.chunks_mut(BLOCK)) {
            self.format.dequantize(&block, out);
        }
    }

    /// The elements of some rows.
    pub(crate) fn values(&self, rows: Range<usize>) -> Vec<f32> {
        let mut values = vec![0.0; rows.len() * self.columns];
        rows.zip(values.chunks_exact_mut(self.columns)).for_each(|(row, out)| self.write_row(row, out));
        values
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use candle_core::Device;
    use candle_core::quantized::GgmlDType;
    use candle_core::quantized::ggml_file::qtensor_from_ggml;

    use super::*;

    /// Rows of any blocks with finite scales.
    pub(crate) fn rows(format: BlockFormat, rows: usize, columns: usize, seed: u32) -> BlockRows {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let mut bytes = Vec::new();
        for _ in 0..rows * columns / BLOCK {
            let start = bytes.len();
            bytes.extend((0..format.bytes()).map(|_| next()));
            for at in 0..if format.has_minimum() { 2 } else { 1 } {
                let number = f16::from_f32((f32::from(next()) - 127.0) / 4096.0 + f32::from(next()) / 65536.0);
                bytes[start + 2 * at..start + 2 * at + 2].copy_from_slice(&number.to_le_bytes());
            }
        }
        BlockRows::new(format, columns, bytes).unwrap()
    }

    #[test]
    fn elements_are_those_of_the_reference() {
        let types = [GgmlDType::Q4_0, GgmlDType::Q4_1, GgmlDType::Q5_0, GgmlDType::Q5_1, GgmlDType::Q8_0];
        for (format, dtype) in BlockFormat::ALL.into_iter().zip(types) {
            assert_eq!((format.bytes(), BLOCK), (dtype.type_size(), dtype.block_size()));
            let own = rows(format, 3, 96, 7);
            assert_eq!((own.rows(), own.columns(), own.bytes()), (3, 96, 9 * format.bytes()));
            let tensor = qtensor_from_ggml(dtype, &own.bytes, vec![3 * 96], &Device::Cpu).unwrap();
            let expected: Vec<f32> = tensor.dequantize(&Device::Cpu).unwrap().to_vec1().unwrap();
            let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&own.values(0..3)), bits(&expected), "{format:?}");
            assert_eq!(bits(&own.values(1..2)), bits(&expected[96..192]), "{format:?}");
        }
    }

    #[test]
    fn padding_is_positive_zero() {
        for format in BlockFormat::ALL {
            let mut out = [1.0; BLOCK];
            format.dequantize(&format.zeros(), &mut out);
            assert!(out.iter().all(|x| x.to_bits() == 0), "{format:?}");
        }
    }

    #[test]
    fn rows_must_be_whole_blocks() {
        assert_eq!(BlockRows::new(BlockFormat::Q8_0, 48, vec![0; 34]), None);
        assert_eq!(BlockRows::new(BlockFormat::Q8_0, 0, Vec::new()), None);
        assert_eq!(BlockRows::new(BlockFormat::Q8_0, 64, vec![0; 34]), None);
        assert!(BlockRows::new(BlockFormat::Q8_0, 64, vec![0; 68]).is_some());
    }
}
