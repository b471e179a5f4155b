//! Dense host tensors of requests and results.

use serde::{Deserialize, Serialize};

/// A dense, row-major tensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tensor {
    /// Extents, outermost first; empty for a scalar.
    pub shape: Vec<usize>,
    /// Elements; their number is the product of `shape`.
    pub values: TensorValues,
}

/// Elements of a tensor, by type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TensorValues {
    /// Elements as 32-bit floats.
    F32(Vec<f32>),
    /// Elements as 64-bit integers.
    I64(Vec<i64>),
}

impl Tensor {
    /// Makes a one-dimensional float tensor.
    pub fn f32(values: Vec<f32>) -> Self {
        Self { shape: vec![values.len()], values: TensorValues::F32(values) }
    }

    /// Makes a one-dimensional integer tensor.
    pub fn i64(values: Vec<i64>) -> Self {
        Self { shape: vec![values.len()], values: TensorValues::I64(values) }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        match &self.values {
            TensorValues::F32(v) => v.len(),
            TensorValues::I64(v) => v.len(),
        }
    }

    /// Returns whether the tensor is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the element type's name in requests.
    pub fn dtype(&self) -> &'static str {
        match &self.values {
            TensorValues::F32(_) => "float32",
            TensorValues::I64(_) => "int64",
        }
    }
}
