//! Dense host tensors as requests carry them.

use serde::{Deserialize, Serialize};

/// A dense, row-major tensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tensor {
    /// Extents, outermost first; empty for a scalar.
    pub shape: Vec<usize>,
    /// Elements; their number is the product of `shape`.
    pub values: TensorValues,
}

/// Elements by type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TensorValues {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 64-bit integers.
    I64(Vec<i64>),
}

impl Tensor {
    /// A one-dimensional float tensor.
    pub fn f32(values: Vec<f32>) -> Self {
        Self { shape: vec![values.len()], values: TensorValues::F32(values) }
    }

    /// A one-dimensional integer tensor.
    pub fn i64(values: Vec<i64>) -> Self {
        Self { shape: vec![values.len()], values: TensorValues::I64(values) }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match &self.values {
            TensorValues::F32(v) => v.len(),
            TensorValues::I64(v) => v.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The wire's name of the element type.
    pub fn dtype(&self) -> &'static str {
        match &self.values {
            TensorValues::F32(_) => "float32",
            TensorValues::I64(_) => "int64",
        }
    }
}
