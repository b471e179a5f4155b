//! Values of a graph's nodes and arguments, and reading the arguments of an operation.

use super::error::{Failure, Result};
use super::tensor::{GraphTensor, Kind};

/// A value of Python or torch.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// An argument that was not given.
    Absent,
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    DType(Kind),
    /// A device, layout or memory format.
    Place,
    Ellipsis,
    Slice(Box<[Value; 3]>),
    List(Vec<Value>),
    Tuple(Vec<Value>),
    Tensor(GraphTensor),
}

impl Value {
    /// A description of the value for error texts.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Absent => "absent".to_owned(),
            Self::None => "None".to_owned(),
            Self::Bool(_) => "a bool".to_owned(),
            Self::Int(_) => "an int".to_owned(),
            Self::Float(_) => "a float".to_owned(),
            Self::Text(_) => "a text".to_owned(),
            Self::DType(_) => "a dtype".to_owned(),
            Self::Place => "a device".to_owned(),
            Self::Ellipsis => "an ellipsis".to_owned(),
            Self::Slice(_) => "a slice".to_owned(),
            Self::List(_) => "a list".to_owned(),
            Self::Tuple(_) => "a tuple".to_owned(),
            Self::Tensor(tensor) => format!("a {} tensor of shape {:?}", tensor.kind().name(), tensor.shape()),
        }
    }

    /// Elements of all tensors in it.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Tensor(tensor) => tensor.len(),
            Self::List(items) | Self::Tuple(items) => items.iter().fold(1, |sum, item| sum.saturating_add(item.len())),
            _ => 1,
        }
    }

    fn is_given(&self) -> bool {
        !matches!(self, Self::Absent | Self::None)
    }

    /// The integer that Python's `operator.index` makes of it; a tensor of one integer is one.
    pub(super) fn to_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Bool(value) => Some(i64::from(*value)),
            Self::Tensor(tensor) if tensor.len() == 1 && tensor.kind() != Kind::Float => tensor.to_ints().ok()?.pop(),
            _ => None,
        }
    }

    /// The value as a tensor; a number becomes a tensor without dimensions.
    pub(super) fn to_tensor(&self) -> Result<GraphTensor> {
        match self {
            Self::Tensor(tensor) => Ok(tensor.clone()),
            Self::Bool(value) => GraphTensor::bools([*value], &[]),
            Self::Int(value) => GraphTensor::ints(vec![*value], &[]),
            Self::Float(value) => GraphTensor::floats(vec![*value], &[]),
            _ => Err(Failure::new(format!("expected a tensor or a number, found {}", self.describe()))),
        }
    }
}

/// The arguments of one operation, in the order of its parameters.
pub(super) struct Arguments {
    values: Vec<Value>,
}

impl Arguments {
    pub(super) fn new(values: Vec<Value>) -> Self {
        Self { values }
    }

    pub(super) fn at(&self, index: usize) -> &Value {
        self.values.get(index).unwrap_or(&Value::Absent)
    }

    /// Elements of all tensors among them.
    pub(super) fn len(&self) -> usize {
        self.values.iter().fold(0, |sum, value| sum.saturating_add(value.len()))
    }

    pub(super) fn is_given(&self, index: usize) -> bool {
        self.at(index).is_given()
    }

    fn wrong<T>(&self, index: usize, needed: &str) -> Result<T> {
        Err(Failure::new(format!("argument {index} must be {needed}, not {}", self.at(index).describe())))
    }

    /// A tensor; numbers are none.
    pub(super) fn tensor(&self, index: usize) -> Result<&GraphTensor> {
        match self.at(index) {
            Value::Tensor(tensor) => Ok(tensor),
            _ => self.wrong(index, "a tensor"),
        }
    }

    /// A tensor of floats; integers and truth values become floats.
    pub(super) fn floats(&self, index: usize) -> Result<GraphTensor> {
        self.tensor(index)?.to_kind(Kind::Float)
    }

    pub(super) fn int(&self, index: usize) -> Result<i64> {
        self.at(index).to_int().map_or_else(|| self.wrong(index, "an int"), Ok)
    }

    pub(super) fn int_or(&self, index: usize, default: i64) -> Result<i64> {
        if self.is_given(index) { self.int(index) } else { Ok(default) }
    }

    /// A number; a tensor of one element is one.
    pub(super) fn number(&self, index: usize) -> Result<f64> {
        match self.at(index) {
            Value::Float(value) => Ok(*value),
            Value::Int(value) => Ok(*value as f64),
            Value::Bool(value) => Ok(f64::from(u8::from(*value))),
            Value::Tensor(tensor) => tensor.item(),
            _ => self.wrong(index, "a number"),
        }
    }

    pub(super) fn number_or(&self, index: usize, default: f64) -> Result<f64> {
        if self.is_given(index) { self.number(index) } else { Ok(default) }
    }

    pub(super) fn flag(&self, index: usize) -> Result<bool> {
        match self.at(index) {
            Value::Absent | Value::None => Ok(false),
            Value::Bool(value) => Ok(*value),
            _ => self.wrong(index, "a bool"),
        }
    }

    pub(super) fn text_or<'a>(&'a self, index: usize, default: &'a str) -> Result<&'a str> {
        match self.at(index) {
            Value::Absent | Value::None => Ok(default),
            Value::Text(text) => Ok(text),
            _ => self.wrong(index, "a text"),
        }
    }

    pub(super) fn kind(&self, index: usize) -> Result<Option<Kind>> {
        match self.at(index) {
            Value::Absent | Value::None | Value::Place => Ok(None),
            Value::DType(kind) => Ok(Some(*kind)),
            _ => self.wrong(index, "a dtype"),
        }
    }

    pub(super) fn list(&self, index: usize) -> Result<&[Value]> {
        match self.at(index) {
            Value::List(items) | Value::Tuple(items) => Ok(items),
            _ => self.wrong(index, "a list"),
        }
    }

    /// One integer or a list of them, whose items may be lists again (`expand(x.shape)`).
    pub(super) fn ints(&self, index: usize) -> Result<Vec<i64>> {
        let mut found = Vec::new();
        let mut collect = |value: &Value| value.to_int().map(|integer| found.push(integer)).is_some();
        let complete = match self.at(index) {
            Value::List(items) | Value::Tuple(items) => items.iter().all(|item| match item {
                Value::List(inner) | Value::Tuple(inner) => inner.iter().all(&mut collect),
                item => collect(item),
            }),
            value => collect(value),
        };
        if complete { Ok(found) } else { self.wrong(index, "an int or a list of ints") }
    }

    /// Extents of a shape.
    pub(super) fn shape(&self, index: usize) -> Result<Vec<usize>> {
        let checked = |extent: i64| {
            usize::try_from(extent).map_err(|_| Failure::new(format!("an extent of a shape is negative: {extent}")))
        };
        if !self.is_given(index) {
            return Ok(Vec::new());
        }
        self.ints(index)?.into_iter().map(checked).collect()
    }

    /// A dimension of a tensor of this rank.
    pub(super) fn dim(&self, index: usize, rank: usize) -> Result<usize> {
        dimension(self.int(index)?, rank)
    }

    pub(super) fn dim_or(&self, index: usize, default: i64, rank: usize) -> Result<usize> {
        dimension(self.int_or(index, default)?, rank)
    }

    /// Dimensions in ascending order; all of them where none are given.
    pub(super) fn dims(&self, index: usize, rank: usize) -> Result<Vec<usize>> {
        if !self.is_given(index) {
            return Ok((0..rank).collect());
        }
        let given = self.ints(index)?;
        if given.is_empty() {
            return Ok((0..rank).collect());
        }
        let mut dims = given.into_iter().map(|dim| dimension(dim, rank)).collect::<Result<Vec<_>>>()?;
        dims.sort_unstable();
        if dims.windows(2).any(|pair| pair.first() == pair.last()) {
            return Err(Failure::new("a dimension is listed twice"));
        }
        // A tensor without dimensions has dimension 0 as far as reductions go.
        dims.retain(|dim| *dim < rank);
        Ok(dims)
    }
}

/// A dimension, counted from the end where negative. A tensor without dimensions has dimension 0.
pub(super) fn dimension(dim: i64, rank: usize) -> Result<usize> {
    let extent = i64::try_from(rank.max(1)).unwrap_or(i64::MAX);
    let from_start = if dim < 0 { dim.checked_add(extent) } else { Some(dim) };
    let found = from_start.filter(|at| (0..extent).contains(at)).and_then(|at| usize::try_from(at).ok());
    found.ok_or_else(|| Failure::new(format!("dimension {dim} is out of range for a tensor of {rank} dimensions")))
}

/// An index into an extent, counted from the end where negative.
pub(super) fn position(index: i64, extent: usize) -> Result<usize> {
    let most = i64::try_from(extent).unwrap_or(i64::MAX);
    let from_start = if index < 0 { index.checked_add(most) } else { Some(index) };
    let found = from_start.filter(|at| (0..most).contains(at)).and_then(|at| usize::try_from(at).ok());
    found.ok_or_else(|| Failure::new(format!("index {index} is out of range for an extent of {extent}")))
}
