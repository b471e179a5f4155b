//! Checkpoints whose weights are 8-bit floats with a scale for each block of a matrix (DeepSeek-AI 2024, arXiv:2412.19437,
//! section 3.3), dequantized as they are read: `X.weight` in E4M3, and `X.weight_scale_inv`, which multiplies it.

use std::ops::Range;

use super::keys::Keys;
use super::safetensors::SafetensorsSource;
use crate::config::{LoadError, TensorSource, absent_part};
use crate::runs::Runs;

/// Suffix of the names of tensors of scales, after the names of the tensors that they scale.
const SUFFIX: &str = "_scale_inv";

/// Rows and columns of a block.
pub(super) type BlockSize = [usize; 2];

/// A checkpoint with scaled blocks, in f32.
pub(super) struct BlockScaled {
    inner: SafetensorsSource,
    block: BlockSize,
}

/// The blocks that a `quantization_config` describes.
///
/// # Errors
/// Another format than E4M3 in blocks.
pub(super) fn block_size(quantization: &Keys<'_>) -> Result<BlockSize, LoadError> {
    if let Some(format) = quantization.text("fmt")?.filter(|format| *format != "e4m3") {
        return Err(LoadError::Unsupported(format!("quantization_config fp8 with fmt {format:?} (supported: e4m3)")));
    }
    let extents = quantization.list("weight_block_size")?.map(Vec::as_slice).unwrap_or_default();
    let extents: Vec<usize> = extents
        .iter()
        .filter_map(|extent| extent.as_u64().filter(|extent| (1..=1 << 28).contains(extent)))
        .filter_map(|extent| usize::try_from(extent).ok())
        .collect();
    match extents[..] {
        [rows, columns] => Ok([rows, columns]),
        _ => Err(LoadError::Unsupported("quantization_config fp8 without a weight_block_size of two extents".into())),
    }
}

impl BlockScaled {
    /// Checks that every 8-bit tensor has its scales.
    pub(super) fn new(inner: SafetensorsSource, block: BlockSize) -> Result<Self, LoadError> {
        let source = Self { inner, block };
        for name in source.inner.names().into_iter().filter(|name| source.inner.is_packed(name)) {
            let [rows, columns] = source.extents(&name)?;
            let (scales, expected) =
                (format!("{name}{SUFFIX}"), vec![rows.div_ceil(block[0]), columns.div_ceil(block[1])]);
            match source.inner.shape(&scales) {
                None => return Err(LoadError::MissingTensor(source.inner.in_files(&scales))),
                Some(found) if found != expected => {
                    return Err(LoadError::WrongShape { name: source.inner.in_files(&scales), found, expected });
                }
                Some(_) => {}
            }
        }
        Ok(source)
    }

    /// Rows and columns of an 8-bit tensor.
    fn extents(&self, name: &str) -> Result<[usize; 2], LoadError> {
        match self.inner.shape(name).as_deref() {
            Some([rows, columns]) => Ok([*rows, *columns]),
            shape => {
                let name = self.inner.in_files(name);
                Err(LoadError::Unsupported(format!("tensor {name} in FP8 has shape {shape:?}, not two extents")))
            }
        }
    }
}

impl TensorSource for BlockScaled {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.inner.shape(name)
    }

    fn read(&self, name: &str) -> Result<Vec<f32>, LoadError> {
        if !self.inner.is_packed(name) {
            return self.inner.read(name);
        }
        let [rows, columns] = self.extents(name)?;
        self.read_runs(name, Runs::one(0..rows * columns))
    }

    fn read_runs(&self, name: &str, runs: Runs) -> Result<Vec<f32>, LoadError> {
        if !self.inner.is_packed(name) {
            return self.inner.read_runs(name, runs);
        }
        let ([rows, columns], span) = (self.extents(name)?, runs.span());
        if span.end > rows * columns {
            return Err(absent_part(name, &span));
        }
        let scales = self.inner.read(&format!("{name}{SUFFIX}"))?;
        let bytes = self.inner.read_packed_runs(name, runs)?;
        let values: [f32; 256] = std::array::from_fn(|bits| e4m3(bits as u8));
        let of_row = columns.div_ceil(self.block[1]);
        let element = |(at, byte): (usize, u8)| {
            let (row, column) = (at / columns, at % columns);
            values[usize::from(byte)] * scales[row / self.block[0] * of_row + column / self.block[1]]
        };
        Ok(runs.ranges().flatten().zip(bytes).map(element).collect())
    }

    fn read_part(&self, name: &str, elements: Range<usize>) -> Result<Vec<f32>, LoadError> {
        if !self.inner.is_packed(name) {
            return self.inner.read_part(name, elements);
        }
        match elements.start > elements.end {
            true => Err(absent_part(name, &elements)),
            false => self.read_runs(name, Runs::one(elements)),
        }
    }

    fn quantized_type(&self, name: &str) -> Option<String> {
        self.inner.is_packed(name).then(|| "FP8 E4M3".to_owned())
    }

    fn refusal(&self, name: &str) -> Option<LoadError> {
        if self.inner.is_packed(name) { None } else { self.inner.refusal(name) }
    }

    fn bytes_read(&self) -> u64 {
        self.inner.bytes_read()
    }

    fn names(&self) -> Vec<String> {
        let is_scale = |name: &String| name.strip_suffix(SUFFIX).is_some_and(|of| self.inner.is_packed(of));
        self.inner.names().into_iter().filter(|name| !is_scale(name)).collect()
    }
}

/// An 8-bit float with 4 bits of exponent and 3 of mantissa (OCP OFP8 1.0): no infinities, and NaN where all of them are set.
fn e4m3(bits: u8) -> f32 {
    let (exponent, mantissa) = (i32::from(bits >> 3 & 15), f32::from(bits & 7));
    let magnitude = match (exponent, bits & 7) {
        (15, 7) => f32::NAN,
        (0, _) => mantissa * 2f32.powi(-9),
        _ => (1.0 + mantissa / 8.0) * 2f32.powi(exponent - 7),
    };
    if bits & 128 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::e4m3;

    #[test]
    fn eight_bits_are_what_the_format_says() {
        let known = [
            (0x00, 0.0),
            (0x01, 0.001_953_125),
            (0x07, 0.013_671_875),
            (0x08, 0.015_625),
            (0x38, 1.0),
            (0x3c, 1.5),
            (0x7e, 448.0),
            (0xb8, -1.0),
            (0xfe, -448.0),
        ];
        for (bits, value) in known {
            assert_eq!(e4m3(bits), value, "{bits:x}");
        }
        assert!(e4m3(0x7f).is_nan() && e4m3(0xff).is_nan());
        let positive: Vec<f32> = (0..0x7f).map(e4m3).collect();
        assert!(positive.is_sorted_by(|a, b| a < b));
    }
}
