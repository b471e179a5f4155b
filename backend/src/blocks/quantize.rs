//! Packs floats in blocks, as ggml's reference quantizers do (`quantize_row_q8_0_ref`, `quantize_row_q4_0_ref` in
//! `ggml-quants.c`).

use half::f16;

use super::{BLOCK, BlockFormat, BlockRows, NIBBLES};

/// The forms that weights are packed in when they are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackedForm {
    /// [`BlockFormat::Q4_0`], and [`BlockFormat::Q8_0`] for embedding and unembedding.
    Q4,
    /// [`BlockFormat::Q8_0`] for all packed weights.
    Q8,
}

impl PackedForm {
    /// Returns the value of `--weights`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Q4 => "q4",
            Self::Q8 => "q8",
        }
    }

    /// The quantizer of a matrix of the blocks, or of embedding and unembedding.
    pub fn quantizer(self, is_vocabulary: bool) -> Quantizer {
        match self {
            Self::Q4 if !is_vocabulary => Quantizer::Q4_0,
            Self::Q4 | Self::Q8 => Quantizer::Q8_0,
        }
    }
}

/// Computes the blocks of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantizer {
    /// The element of the largest magnitude is -8 scales: `d = x / -8`, `q = min(⌊x / d + 8.5⌋, 15)`.
    Q4_0,
    /// The largest magnitude is 127 scales: `d = |x| / 127`, `q = round(x / d)`, halves away from zero.
    Q8_0,
}

impl Quantizer {
    /// Returns the format of the blocks that it makes.
    pub fn format(self) -> BlockFormat {
        match self {
            Self::Q4_0 => BlockFormat::Q4_0,
            Self::Q8_0 => BlockFormat::Q8_0,
        }
    }

    /// Largest magnitude of an element: that of the largest scale.
    pub fn limit(self) -> f32 {
        let scales = match self {
            Self::Q4_0 => 8.0,
            Self::Q8_0 => 127.0,
        };
        f16::MAX.to_f32() * scales
    }

    /// Packs rows of `columns` elements, a multiple of [`BLOCK`].
    ///
    /// # Errors
    /// The first element that is not finite, or beyond [`Quantizer::limit`].
    pub fn pack(self, values: &[f32], columns: usize) -> Result<Option<BlockRows>, f32> {
        let limit = self.limit();
        if let Some(value) = values.iter().find(|x| x.is_nan() || x.abs() > limit) {
            return Err(*value);
        }
        let mut bytes = Vec::with_capacity(values.len() / BLOCK * self.format().bytes());
        for block in values.as_chunks::<BLOCK>().0 {
            match self {
                Self::Q4_0 => pack_q4_0(block, &mut bytes),
                Self::Q8_0 => pack_q8_0(block, &mut bytes),
            }
        }
        Ok(BlockRows::new(self.format(), columns, bytes))
    }
}

/// The inverse of a scale; zero for scales that have none.
fn inverse(scale: f32) -> f32 {
    let inverse = 1.0 / scale;
    if inverse.is_finite() { inverse } else { 0.0 }
}

fn pack_q8_0(values: &[f32; BLOCK], bytes: &mut Vec<u8>) {
    let scale = values.iter().fold(0f32, |most, x| most.max(x.abs())) / 127.0;
    let inverse = inverse(scale);
    bytes.extend(f16::from_f32(scale).to_le_bytes());
    bytes.extend(values.iter().map(|x| (x * inverse).round() as i8 as u8));
}

fn pack_q4_0(values: &[f32; BLOCK], bytes: &mut Vec<u8>) {
    // The first one of equal magnitudes.
    let largest = values.iter().fold(0f32, |most, x| if x.abs() > most.abs() { *x } else { most });
    let scale = largest / -8.0;
    let inverse = inverse(scale);
    let quant = |x: f32| ((x * inverse + 8.5) as u8).min(15);
    bytes.extend(f16::from_f32(scale).to_le_bytes());
    let (low, high) = values.split_at(NIBBLES);
    bytes.extend(low.iter().zip(high).map(|(low, high)| quant(*low) | quant(*high) << 4));
}
