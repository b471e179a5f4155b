//! Tensors in JSON and protobuf, and their conversion to dense host tensors.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use trainyard_protocol::{Tensor, TensorValues};
use utoipa::ToSchema;

use super::numbers::Numbers;
use super::proto::{self, DType};

/// Maximum number of elements that the sparse tensors of one request may expand to: a request of a few bytes must not
/// allocate gigabytes.
pub const MAX_EXPANDED_ELEMENTS: usize = 1 << 25;

/// Maximum number of extents of a tensor.
const MAX_RANK: usize = 8;

/// Error in a tensor. The caller adds the tensor's name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// The tensor is neither dense nor sparse.
    #[error("has no elements: set dense or sparse_csr")]
    NoEncoding,
    /// The element type is unknown.
    #[error("has dtype {0}; expected FLOAT32, INT64, INT32 or BFLOAT16")]
    DType(i32),
    /// The bytes are not a whole number of elements.
    #[error("{part} has {bytes} bytes, expected a multiple of {element}")]
    Ragged {
        /// Name of the array.
        part: &'static str,
        /// Length of the array, in bytes.
        bytes: usize,
        /// Size of an element, in bytes.
        element: usize,
    },
    /// The shape has a negative extent, or more elements than fit in memory.
    #[error("has an invalid shape {0:?}")]
    Shape(Vec<i64>),
    /// The shape does not match the number of elements.
    #[error("has {found} elements, which does not match its shape {shape:?}")]
    Count {
        /// Number of elements in the data.
        found: usize,
        /// Shape of the tensor.
        shape: Vec<i64>,
    },
    /// Compressed rows require a matrix.
    #[error("is sparse, so its shape must be [rows, columns], not {0:?}")]
    SparseRank(Vec<i64>),
    /// An index array has the wrong length.
    #[error("{part} has {found} entries, expected {expected}")]
    IndexCount {
        /// Name of the array.
        part: &'static str,
        /// Length of the array.
        found: usize,
        /// Length that the shape requires.
        expected: usize,
    },
    /// The row pointers do not rise from 0 to the number of values.
    #[error("crow_indices must rise from 0 to the number of values; entry {0} does not")]
    RowPointer(usize),
    /// A column is out of range or out of order.
    #[error("col_indices of row {row} must rise strictly and stay below {columns}; found {found}")]
    Column {
        /// Index of the row.
        row: usize,
        /// Number of columns of the matrix.
        columns: usize,
        /// Column that was found.
        found: i64,
    },
    /// The sparse tensors of the request expand to too many elements.
    #[error("expands to more than {MAX_EXPANDED_ELEMENTS} elements together with the request's other sparse tensors")]
    TooLarge,
    /// The element type can't represent an element.
    #[error("data[{0}] is not a valid {1}")]
    Element(usize, &'static str),
    /// Only one of the two index lists is set.
    #[error("needs both sparse_crow_indices and sparse_col_indices, or neither")]
    HalfSparse,
}

/// Elements of [`MAX_EXPANDED_ELEMENTS`] that the rest of a request may use.
#[derive(Debug)]
pub struct ExpansionBudget(usize);

impl Default for ExpansionBudget {
    fn default() -> Self {
        Self(MAX_EXPANDED_ELEMENTS)
    }
}

impl ExpansionBudget {
    fn take(&mut self, elements: usize) -> Result<(), TensorError> {
        self.0 = self.0.checked_sub(elements).ok_or(TensorError::TooLarge)?;
        Ok(())
    }
}

/// Element types of the JSON form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TensorDtype {
    /// Floating-point number of 32 bits.
    Float32,
    /// Signed integer of 64 bits.
    Int64,
}

/// A tensor in JSON. If both index lists are set, it is sparse, and `data` contains the listed cells row by row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TensorData {
    /// Elements in row-major order.
    #[schema(value_type = Vec<f64>)]
    pub data: Numbers,
    /// Type of the elements.
    pub dtype: TensorDtype,
    /// Extents, outermost first; one dimension by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<i64>>,
    /// Row pointers of a sparse tensor: rows + 1 entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparse_crow_indices: Option<Vec<i64>>,
    /// Columns of a sparse tensor: one per element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparse_col_indices: Option<Vec<i64>>,
}

impl TensorData {
    /// Returns a list of integers.
    pub fn integers_of(data: Vec<i64>) -> Self {
        Self::vector(data.len(), data.into(), TensorDtype::Int64)
    }

    /// Returns a list of floats of 32 bits.
    pub fn floats_of(data: Vec<f32>) -> Self {
        let data: Vec<f64> = data.into_iter().map(f64::from).collect();
        Self::vector(data.len(), data.into(), TensorDtype::Float32)
    }

    fn vector(len: usize, data: Numbers, dtype: TensorDtype) -> Self {
        let shape = Some(vec![len as i64]);
        Self { data, dtype, shape, sparse_crow_indices: None, sparse_col_indices: None }
    }

    /// Converts the tensor to protobuf.
    pub fn to_proto(&self) -> Result<proto::Tensor, TensorError> {
        let (dtype, values) = match self.dtype {
            TensorDtype::Float32 => (DType::Float32, f32_bytes(&self.floats()?)),
            TensorDtype::Int64 => (DType::Int64, i64_bytes(self.integers()?)),
        };
        let encoding = match (&self.sparse_crow_indices, &self.sparse_col_indices) {
            (None, None) => proto::tensor::Encoding::Dense(values),
            (Some(crow), Some(col)) => proto::tensor::Encoding::SparseCsr(proto::SparseCsr {
                values,
                crow_indices: i64_bytes(crow),
                col_indices: i64_bytes(col),
            }),
            _ => return Err(TensorError::HalfSparse),
        };
        Ok(proto::Tensor {
            encoding: Some(encoding),
            dtype: dtype.into(),
            shape: self.shape.clone().unwrap_or_default(),
        })
    }

    /// Returns the second extent; 0 if there is none.
    pub fn columns(&self) -> u64 {
        let extent = self.shape.as_ref().and_then(|shape| shape.get(1).copied());
        extent.and_then(|extent| u64::try_from(extent).ok()).unwrap_or(0)
    }

    fn floats(&self) -> Result<Vec<f32>, TensorError> {
        let float = |(at, number): (usize, f64)| {
            let value = number as f32;
            if value.is_finite() { Ok(value) } else { Err(TensorError::Element(at, "float32")) }
        };
        self.data.floats().enumerate().map(float).collect()
    }

    fn integers(&self) -> Result<&[i64], TensorError> {
        self.data.integers().map_err(|at| TensorError::Element(at, "int64"))
    }
}

/// Expands a tensor to its dense form. Cells that a sparse tensor does not list become `fill`. 16-bit floats and 32-bit
/// integers are widened; an empty shape stands for one dimension.
pub fn densify(tensor: &proto::Tensor, fill: i8, budget: &mut ExpansionBudget) -> Result<Tensor, TensorError> {
    match &tensor.encoding {
        None => Err(TensorError::NoEncoding),
        Some(proto::tensor::Encoding::Dense(bytes)) => {
            let values = elements("dense", tensor.dtype, bytes)?;
            dense(values, &tensor.shape)
        }
        Some(proto::tensor::Encoding::SparseCsr(csr)) => sparse(tensor, csr, fill, budget),
    }
}

fn dense(values: TensorValues, shape: &[i64]) -> Result<Tensor, TensorError> {
    let found = match &values {
        TensorValues::F32(values) => values.len(),
        TensorValues::I64(values) => values.len(),
    };
    if shape.is_empty() {
        return Ok(Tensor { shape: vec![found], values });
    }
    let (extents, count) = extents(shape)?;
    if count != found {
        return Err(TensorError::Count { found, shape: shape.to_vec() });
    }
    Ok(Tensor { shape: extents, values })
}

/// Checks a shape. Returns the extents and their product.
fn extents(shape: &[i64]) -> Result<(Vec<usize>, usize), TensorError> {
    let invalid = || TensorError::Shape(shape.iter().copied().take(MAX_RANK + 1).collect());
    if shape.len() > MAX_RANK {
        return Err(invalid());
    }
    let mut extents = Vec::with_capacity(shape.len());
    let mut count = 1_usize;
    for &extent in shape {
        let extent = usize::try_from(extent).map_err(|_| invalid())?;
        count = count.checked_mul(extent).ok_or_else(invalid)?;
        extents.push(extent);
    }
    Ok((extents, count))
}

fn sparse(
    tensor: &proto::Tensor,
    csr: &proto::SparseCsr,
    fill: i8,
    budget: &mut ExpansionBudget,
) -> Result<Tensor, TensorError> {
    let (extents, count) = extents(&tensor.shape)?;
    let &[rows, columns] = extents.as_slice() else {
        return Err(TensorError::SparseRank(tensor.shape.clone()));
    };
    let values = elements("values", tensor.dtype, &csr.values)?;
    let crow = integers("crow_indices", &csr.crow_indices)?;
    let col = integers("col_indices", &csr.col_indices)?;
    // Rows are bounded by the bytes received; columns are not, hence the budget before any allocation.
    expect_count("crow_indices", crow.len(), rows.saturating_add(1))?;
    budget.take(count)?;
    let expanded = match values {
        TensorValues::F32(values) => TensorValues::F32(scatter(&values, f32::from(fill), &crow, &col, columns, count)?),
        TensorValues::I64(values) => TensorValues::I64(scatter(&values, i64::from(fill), &crow, &col, columns, count)?),
    };
    Ok(Tensor { shape: extents, values: expanded })
}

fn scatter<T: Copy>(
    values: &[T],
    fill: T,
    crow: &[i64],
    col: &[i64],
    columns: usize,
    count: usize,
) -> Result<Vec<T>, TensorError> {
    expect_count("col_indices", col.len(), values.len())?;
    check_row_pointers(crow, values.len())?;
    let mut out = vec![fill; count];
    for (row, bounds) in crow.windows(2).enumerate() {
        // The pointers are checked: they rise within 0..=values.len().
        let (start, end) = (bounds[0] as usize, bounds[1] as usize);
        let mut smallest = 0;
        for at in start..end {
            let found = col[at];
            let column = usize::try_from(found).ok().filter(|&column| column < columns && found >= smallest);
            let column = column.ok_or(TensorError::Column { row, columns, found })?;
            smallest = found.saturating_add(1);
            out[row * columns + column] = values[at];
        }
    }
    Ok(out)
}

fn check_row_pointers(crow: &[i64], count: usize) -> Result<(), TensorError> {
    let last = crow.len().saturating_sub(1);
    let mut previous = 0;
    for (at, &pointer) in crow.iter().enumerate() {
        let in_range = usize::try_from(pointer).is_ok_and(|pointer| pointer <= count);
        let ends_right = at != last || pointer as usize == count;
        if !in_range || pointer < previous || (at == 0 && pointer != 0) || !ends_right {
            return Err(TensorError::RowPointer(at));
        }
        previous = pointer;
    }
    Ok(())
}

fn expect_count(part: &'static str, found: usize, expected: usize) -> Result<(), TensorError> {
    if found == expected { Ok(()) } else { Err(TensorError::IndexCount { part, found, expected }) }
}

fn elements(part: &'static str, dtype: i32, bytes: &[u8]) -> Result<TensorValues, TensorError> {
    let values = match DType::try_from(dtype) {
        Ok(DType::Float32) => TensorValues::F32(words(part, bytes)?.map(f32::from_le_bytes).collect()),
        Ok(DType::Int64) => TensorValues::I64(words(part, bytes)?.map(i64::from_le_bytes).collect()),
        Ok(DType::Int32) => {
            TensorValues::I64(words(part, bytes)?.map(|word| i64::from(i32::from_le_bytes(word))).collect())
        }
        Ok(DType::Bfloat16) => {
            let widen = |word| f32::from_bits(u32::from(u16::from_le_bytes(word)) << 16);
            TensorValues::F32(words(part, bytes)?.map(widen).collect())
        }
        Ok(DType::Unspecified) | Err(_) => return Err(TensorError::DType(dtype)),
    };
    Ok(values)
}

fn integers(part: &'static str, bytes: &[u8]) -> Result<Vec<i64>, TensorError> {
    Ok(words(part, bytes)?.map(i64::from_le_bytes).collect())
}

/// Reads little-endian `int32` token ids.
pub(crate) fn tokens(bytes: &[u8]) -> Result<impl Iterator<Item = i64> + '_, TensorError> {
    Ok(words("tokens", bytes)?.map(|word| i64::from(i32::from_le_bytes(word))))
}

/// Splits bytes into elements of `N` bytes.
fn words<'a, const N: usize>(
    part: &'static str,
    bytes: &'a [u8],
) -> Result<impl Iterator<Item = [u8; N]> + 'a, TensorError> {
    let (words, rest) = bytes.as_chunks::<N>();
    if rest.is_empty() {
        Ok(words.iter().copied())
    } else {
        Err(TensorError::Ragged { part, bytes: bytes.len(), element: N })
    }
}

/// Returns floats as little-endian bytes.
pub fn f32_bytes(values: &[f32]) -> Bytes {
    values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into()
}

/// Returns 64-bit integers as little-endian bytes.
pub fn i64_bytes(values: &[i64]) -> Bytes {
    values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into()
}

/// Returns token ids as little-endian `int32`. Vocabularies are far smaller than 2^31.
pub fn token_bytes(tokens: &[u32]) -> Bytes {
    tokens.iter().flat_map(|token| token.to_le_bytes()).collect::<Vec<u8>>().into()
}

#[cfg(test)]
#[path = "tensor_tests.rs"]
mod tests;
