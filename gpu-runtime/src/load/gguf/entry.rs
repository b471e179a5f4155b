//! Location of a tensor in a GGUF file, and conversions that a reader must undo.

use super::conversion::{Change, Order};
use super::dtype::Dtype;
use super::header::TensorInfo;
use super::metadata::GgufFile;
use crate::config::LoadError;
use crate::runs::Runs;

/// A tensor of the file, or one of the matrices that are stacked in it.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    /// First byte in the file.
    pub(super) offset: u64,
    pub(super) elements: usize,
    pub(super) order: Order,
    pub(super) change: Change,
}

impl Entry {
    /// Checks that the tensor's bytes are within the file of `size` bytes.
    pub(super) fn new(file: &GgufFile, size: u64, name: &str, info: &TensorInfo) -> Result<Self, LoadError> {
        use candle_core::quantized::GgmlDType::{Q8_1, Q8K};

        let (dtype, shape) = (info.dtype, &info.shape);
        if let Dtype::Ggml(Q8_1 | Q8K) = dtype {
            return Err(LoadError::Unsupported(format!("GGUF tensor {name} of type {dtype}")));
        }
        let odd = || file.malformed(format!("tensor {name} has shape {shape:?}"));
        let elements =
            shape.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent)).ok_or_else(odd)?;
        if shape.is_empty() || elements > isize::MAX as usize / 8 || !elements.is_multiple_of(dtype.block_size()) {
            return Err(odd());
        }
        let offset = file.header.data_start.saturating_add(info.offset);
        let end = offset.saturating_add(dtype.bytes(elements) as u64);
        if end > size {
            return Err(file.malformed(format!("truncated GGUF file: tensor {name} ends at byte {end} of {size}")));
        }
        Ok(Self { dtype, shape: shape.clone(), offset, elements, order: Order::Kept, change: Change::None })
    }

    /// Whether runs are whole blocks of each row, and rows stay whole.
    pub(super) fn has_columns(&self, runs: Runs) -> bool {
        let block = self.dtype.block_size();
        let are_blocks = [runs.first, runs.len, runs.stride].iter().all(|at| at.is_multiple_of(block));
        let are_columns = self.shape.first() == Some(&runs.count) && runs.first + runs.len <= runs.stride;
        are_blocks && are_columns && runs.stride * runs.count == self.elements && self.order.keeps_rows()
    }

    /// Elements of each of the matrices, or rows, that are stacked along the first extent, if they begin with blocks of their
    /// own.
    pub(super) fn stacked_elements(&self) -> Option<usize> {
        let elements = self.elements.checked_div(*self.shape.first()?)?;
        (self.shape.len() > 1 && elements.is_multiple_of(self.dtype.block_size())).then_some(elements)
    }

    /// The matrix or row `index` of them.
    pub(super) fn stacked(&self, index: usize) -> Option<Self> {
        let elements = self.stacked_elements()?;
        (index < self.shape[0]).then(|| Self {
            shape: self.shape[1..].to_vec(),
            offset: self.offset + self.dtype.bytes(index * elements) as u64,
            elements,
            ..self.clone()
        })
    }
}
