//! Tensors of a graph: candle tensors on the host, of one of three kinds.
//!
//! Floats are computed in f64, whatever their torch type, and rounded to f32 at the end: results agree with torch's f32
//! within its own rounding error, and sums do not depend on how they are divided.

use candle_core::{DType, Device, Tensor, WithDType};

use super::error::{Failure, Result};

/// Kind of the elements, in the order of type promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Truth values, stored as u8.
    Bool,
    /// Integers of 64 bits.
    Int,
    /// Floating-point numbers, stored as f64.
    Float,
}

impl Kind {
    /// The kind of an element type of torch.
    pub(super) fn of_torch(name: &str) -> Result<Self> {
        match name {
            "float32" | "float" | "float64" | "double" => Ok(Self::Float),
            "int64" | "long" | "int32" | "int" => Ok(Self::Int),
            "bool" => Ok(Self::Bool),
            _ => Err(Failure::new(format!("dtype {name} is not supported; use float32, int64 or bool"))),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int => "int64",
            Self::Float => "float32",
        }
    }

    fn stored(self) -> DType {
        match self {
            Self::Bool => DType::U8,
            Self::Int => DType::I64,
            Self::Float => DType::F64,
        }
    }
}

/// A tensor of a graph.
#[derive(Clone, Debug)]
pub(super) struct GraphTensor {
    /// Elements without candle's own record of operations, which the tape replaces.
    pub(super) data: Tensor,
    /// Number of the tensor on the tape, if the loss may have a gradient with respect to it.
    pub(super) id: Option<usize>,
}

impl GraphTensor {
    /// A tensor without a gradient.
    pub(super) fn constant(data: Tensor) -> Self {
        Self { data, id: None }
    }

    pub(super) fn floats(values: Vec<f64>, shape: &[usize]) -> Result<Self> {
        dense(values, shape).map(Self::constant)
    }

    pub(super) fn ints(values: Vec<i64>, shape: &[usize]) -> Result<Self> {
        dense(values, shape).map(Self::constant)
    }

    pub(super) fn bools(values: impl IntoIterator<Item = bool>, shape: &[usize]) -> Result<Self> {
        dense(values.into_iter().map(u8::from).collect(), shape).map(Self::constant)
    }

    pub(super) fn kind(&self) -> Kind {
        match self.data.dtype() {
            DType::U8 => Kind::Bool,
            DType::I64 => Kind::Int,
            _ => Kind::Float,
        }
    }

    pub(super) fn shape(&self) -> &[usize] {
        self.data.dims()
    }

    pub(super) fn rank(&self) -> usize {
        self.data.rank()
    }

    pub(super) fn len(&self) -> usize {
        self.data.elem_count()
    }

    /// The elements as floats, row-major.
    pub(super) fn to_floats(&self) -> Result<Vec<f64>> {
        elements(&self.data.to_dtype(DType::F64)?)
    }

    /// The elements as integers, row-major; floats are truncated towards zero.
    pub(super) fn to_ints(&self) -> Result<Vec<i64>> {
        match self.kind() {
            Kind::Float => Ok(self.to_floats()?.into_iter().map(|value| value as i64).collect()),
            Kind::Int | Kind::Bool => elements(&self.data.to_dtype(DType::I64)?),
        }
    }

    /// Whether each element is not zero, row-major.
    pub(super) fn to_bools(&self) -> Result<Vec<bool>> {
        match self.kind() {
            Kind::Float => Ok(self.to_floats()?.into_iter().map(|value| value != 0.0).collect()),
            Kind::Int | Kind::Bool => Ok(self.to_ints()?.into_iter().map(|value| value != 0).collect()),
        }
    }

    /// The elements in another kind. A float stays on the tape only as a float.
    pub(super) fn to_kind(&self, kind: Kind) -> Result<Self> {
        match kind {
            _ if kind == self.kind() => Ok(self.clone()),
            Kind::Bool => Self::bools(self.to_bools()?, self.shape()),
            Kind::Int => Self::ints(self.to_ints()?, self.shape()),
            Kind::Float => Ok(Self::constant(self.data.to_dtype(kind.stored())?)),
        }
    }

    /// The one element of a tensor.
    pub(super) fn item(&self) -> Result<f64> {
        match self.to_floats()?.as_slice() {
            [value] => Ok(*value),
            values => Err(Failure::new(format!("expected a tensor of one element, found {} elements", values.len()))),
        }
    }
}

/// A tensor of these elements.
pub(super) fn dense<T: WithDType>(values: Vec<T>, shape: &[usize]) -> Result<Tensor> {
    Ok(Tensor::from_vec(values, shape, &Device::Cpu)?)
}

/// The elements of a tensor, row-major.
pub(super) fn elements<T: WithDType>(tensor: &Tensor) -> Result<Vec<T>> {
    Ok(tensor.flatten_all()?.to_vec1()?)
}

/// The product of extents.
pub(super) fn volume(shape: &[usize]) -> usize {
    shape.iter().fold(1, |product, &extent| product.saturating_mul(extent))
}

/// The shape that two shapes broadcast to.
pub(super) fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>> {
    let rank = a.len().max(b.len());
    let extent =
        |shape: &[usize], at: usize| (at + shape.len()).checked_sub(rank).and_then(|at| shape.get(at).copied());
    let merge = |at: usize| match (extent(a, at).unwrap_or(1), extent(b, at).unwrap_or(1)) {
        (left, right) if left == right => Ok(left),
        (1, right) => Ok(right),
        (left, 1) => Ok(left),
        _ => Err(Failure::new(format!("shapes {a:?} and {b:?} do not broadcast"))),
    };
    (0..rank).map(merge).collect()
}
