//! Element types of GGUF tensors.

use std::fmt;

use candle_core::Device;
use candle_core::quantized::GgmlDType;
use candle_core::quantized::ggml_file::qtensor_from_ggml;

use crate::blocks::BlockFormat;
use crate::load::mxfp4;

/// An element type that a file can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dtype {
    /// A type that candle dequantizes, and two that are refused by name.
    Ggml(GgmlDType),
    /// Blocks of 32 elements: the exponent, then 16 bytes. Byte `i` holds element `i` in its low half and element `i + 16` in
    /// its high one.
    Mxfp4,
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ggml(GgmlDType::Q2K) => f.write_str("Q2_K"),
            Self::Ggml(GgmlDType::Q3K) => f.write_str("Q3_K"),
            Self::Ggml(GgmlDType::Q4K) => f.write_str("Q4_K"),
            Self::Ggml(GgmlDType::Q5K) => f.write_str("Q5_K"),
            Self::Ggml(GgmlDType::Q6K) => f.write_str("Q6_K"),
            Self::Ggml(GgmlDType::Q8K) => f.write_str("Q8_K"),
            Self::Ggml(dtype) => write!(f, "{dtype:?}"),
            Self::Mxfp4 => f.write_str("MXFP4"),
        }
    }
}

impl Dtype {
    /// The type with ggml's number; `None` for a type that the runtime does not know.
    pub(super) fn of(number: u32) -> Option<Self> {
        Some(Self::Ggml(match number {
            0 => GgmlDType::F32,
            1 => GgmlDType::F16,
            2 => GgmlDType::Q4_0,
            3 => GgmlDType::Q4_1,
            6 => GgmlDType::Q5_0,
            7 => GgmlDType::Q5_1,
            8 => GgmlDType::Q8_0,
            9 => GgmlDType::Q8_1,
            10 => GgmlDType::Q2K,
            11 => GgmlDType::Q3K,
            12 => GgmlDType::Q4K,
            13 => GgmlDType::Q5K,
            14 => GgmlDType::Q6K,
            15 => GgmlDType::Q8K,
            30 => GgmlDType::BF16,
            39 => return Some(Self::Mxfp4),
            _ => return None,
        }))
    }

    /// The format that weights of this type can be kept in.
    pub(super) fn blocks(self) -> Option<BlockFormat> {
        match self {
            Self::Ggml(GgmlDType::Q4_0) => Some(BlockFormat::Q4_0),
            Self::Ggml(GgmlDType::Q4_1) => Some(BlockFormat::Q4_1),
            Self::Ggml(GgmlDType::Q5_0) => Some(BlockFormat::Q5_0),
            Self::Ggml(GgmlDType::Q5_1) => Some(BlockFormat::Q5_1),
            Self::Ggml(GgmlDType::Q8_0) => Some(BlockFormat::Q8_0),
            Self::Ggml(GgmlDType::Q4K) => Some(BlockFormat::Q4K),
            Self::Ggml(GgmlDType::Q5K) => Some(BlockFormat::Q5K),
            Self::Ggml(GgmlDType::Q6K) => Some(BlockFormat::Q6K),
            _ => None,
        }
    }

    /// Whether elements have fewer bits than half a float.
    pub(super) fn is_quantized(self) -> bool {
        !matches!(self, Self::Ggml(GgmlDType::F32 | GgmlDType::F16 | GgmlDType::BF16))
    }

    /// Elements that are stored together.
    pub(super) fn block_size(self) -> usize {
        match self {
            Self::Ggml(dtype) => dtype.block_size(),
            Self::Mxfp4 => mxfp4::BLOCK,
        }
    }

    /// Bytes of whole blocks.
    pub(super) fn bytes(self, elements: usize) -> usize {
        let block = match self {
            Self::Ggml(dtype) => dtype.type_size(),
            Self::Mxfp4 => 1 + mxfp4::BLOCK_BYTES,
        };
        elements / self.block_size() * block
    }

    /// The elements of whole blocks.
    pub(super) fn dequantize(self, raw: &[u8], elements: usize) -> candle_core::Result<Vec<f32>> {
        match self {
            Self::Ggml(dtype) => {
                qtensor_from_ggml(dtype, raw, vec![elements], &Device::Cpu)?.dequantize(&Device::Cpu)?.to_vec1()
            }
            Self::Mxfp4 => Ok(dequantize_mxfp4(raw)),
        }
    }
}

/// The name of an element type that [`Dtype::of`] does not know, by ggml's number.
pub(super) fn name(number: u32) -> String {
    let names = [
        (4, "Q4_2"),
        (5, "Q4_3"),
        (16, "IQ2_XXS"),
        (17, "IQ2_XS"),
        (18, "IQ3_XXS"),
        (19, "IQ1_S"),
        (20, "IQ4_NL"),
        (21, "IQ3_S"),
        (22, "IQ2_S"),
        (23, "IQ4_XS"),
        (24, "I8"),
        (25, "I16"),
        (26, "I32"),
        (27, "I64"),
        (28, "F64"),
        (29, "IQ1_M"),
        (31, "Q4_0_4_4"),
        (32, "Q4_0_4_8"),
        (33, "Q4_0_8_8"),
        (34, "TQ1_0"),
        (35, "TQ2_0"),
        (36, "IQ4_NL_4_4"),
        (37, "IQ4_NL_4_8"),
        (38, "IQ4_NL_8_8"),
    ];
    match names.iter().find(|(known, _)| *known == number) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("number {number}"),
    }
}

fn dequantize_mxfp4(raw: &[u8]) -> Vec<f32> {
    let mut values = Vec::with_capacity(raw.len() / (1 + mxfp4::BLOCK_BYTES) * mxfp4::BLOCK);
    for block in raw.as_chunks::<{ 1 + mxfp4::BLOCK_BYTES }>().0 {
        let (scale, bytes) = (mxfp4::scale(block[0]), &block[1..]);
        values.extend(bytes.iter().map(|byte| mxfp4::value(byte & 15, scale)));
        values.extend(bytes.iter().map(|byte| mxfp4::value(byte >> 4, scale)));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mxfp4_has_the_halves_of_a_block_in_the_halves_of_its_bytes() {
        // 0.5 and -6 times two to the power of 1, and then of -127.
        let mut raw = vec![128, 0x2f];
        raw.extend([0x10; 15]);
        raw.extend([0; 1 + mxfp4::BLOCK_BYTES]);
        raw[1 + mxfp4::BLOCK_BYTES + 1] = 0x02;
        let values = Dtype::Mxfp4.dequantize(&raw, 64).unwrap_or_default();
        assert_eq!(values.len(), 64);
        assert_eq!((values[0], values[16]), (-12.0, 2.0));
        assert_eq!((values[1], values[17]), (0.0, 1.0));
        assert_eq!(values[32], 2f32.powi(-127));
        assert_eq!(Dtype::Mxfp4.bytes(64), raw.len());
    }
}
