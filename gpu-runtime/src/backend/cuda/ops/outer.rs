//! Gradients of weights: sums over rows of products of two rows' elements.

use std::ops::Range;

use half::bf16;

use super::rows::{DeviceRows, RowElement};
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::{Element, Slice};
use crate::backend::cuda::device::open::CudaDevice;

/// Rows that products are of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OuterRows<'a> {
    F32(&'a DeviceRows),
    Bf16(&'a DeviceRows<bf16>),
}

impl<'a> From<&'a DeviceRows> for OuterRows<'a> {
    fn from(rows: &'a DeviceRows) -> Self {
        Self::F32(rows)
    }
}

impl<'a> From<&'a DeviceRows<bf16>> for OuterRows<'a> {
    fn from(rows: &'a DeviceRows<bf16>) -> Self {
        Self::Bf16(rows)
    }
}

/// Columns of some rows: a side of the products.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OuterSide<'a> {
    /// Rows that have the columns.
    pub rows: OuterRows<'a>,
    /// The row that counts as the first one.
    pub first_row: usize,
    /// First column of the side.
    pub column: usize,
    /// Number of columns in the side.
    pub count: usize,
}

impl<'a> OuterSide<'a> {
    /// Columns from `column` on of all rows.
    pub(crate) fn new(rows: impl Into<OuterRows<'a>>, column: usize, count: usize) -> Self {
        Self { rows: rows.into(), first_row: 0, column, count }
    }

    /// Address of the side, elements of a row, and its columns; an error unless it has rows before `end`.
    fn packed(&self, extents: Extents, end: usize) -> Result<(u64, [u32; 2])> {
        match self.rows {
            OuterRows::F32(rows) => self.packed_of(rows, extents, end),
            OuterRows::Bf16(rows) => self.packed_of(rows, extents, end),
        }
    }

    fn packed_of<T: RowElement>(&self, rows: &DeviceRows<T>, extents: Extents, end: usize) -> Result<(u64, [u32; 2])> {
        let last = self.column.saturating_add(self.count);
        extents.check(last <= rows.width(), "the last column", last, || format!("at most {}", rows.width()))?;
        let last = self.first_row.saturating_add(end);
        extents.check(last <= rows.rows(), "the last row", last, || format!("at most {}", rows.rows()))?;
        let (data, first) = (rows.data(), self.first_row * rows.width() + self.column);
        let address = data.address_of(first.min(data.len())..data.len())?;
        Ok((address, [extents.index("a row", rows.width())?, extents.index("a column", self.count)?]))
    }

    /// Bytes of an element.
    fn bytes(&self) -> usize {
        match self.rows {
            OuterRows::F32(_) => size_of::<f32>(),
            OuterRows::Bf16(_) => size_of::<bf16>(),
        }
    }
}

/// A gradient as kernels read it.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Packed {
    out: u64,
    left: u64,
    right: u64,
    left_stride: u32,
    right_stride: u32,
    m: u32,
    n: u32,
    out_m: u32,
    out_n: u32,
    first_piece: u32,
    pieces: u32,
}

impl Element for Packed {}

/// First row and number of rows.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Piece([u32; 2]);

impl Element for Piece {}

/// Gradients that one launch computes. It refers to memory that has to outlive it, and gradients may not overlap.
#[derive(Default)]
pub(crate) struct OuterProducts {
    packed: Vec<Packed>,
    pieces: Vec<Piece>,
    /// Bytes of one element, the same for all sides; 0 before the first product.
    bytes: usize,
}

impl OuterProducts {
    /// An empty list of products.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// `gradient[m, n] += Σ left[row, m] · right[row, n]` over the rows of `sequences`; `[left, right]` elements of `gradient` from
    /// `first` on are the gradient. All sides are of one type.
    pub(crate) fn push(
        &mut self,
        gradient: &mut Slice<f32>,
        first: usize,
        [left, right]: [OuterSide<'_>; 2],
        sequences: &[Range<usize>],
    ) -> Result {
        let extents = Extents("gradients of weights");
        let bytes = if self.packed.is_empty() { left.bytes() } else { self.bytes };
        for side in [left, right] {
            extents.equal("the bytes of an element", side.bytes(), bytes)?;
        }
        self.bytes = bytes;
        let end = sequences.iter().map(|rows| rows.end).max().unwrap_or(0);
        let (out, first_piece) = (gradient.address_of(first..first + left.count * right.count)?, self.pieces.len());
        let ((left, [left_stride, m]), (right, [right_stride, n])) =
            (left.packed(extents, end)?, right.packed(extents, end)?);
        for rows in sequences {
            self.pieces.push(Piece([extents.index("a row", rows.start)?, extents.index("the rows", rows.len())?]));
        }
        let (first_piece, pieces) =
            (extents.index("the sequences", first_piece)?, extents.index("the sequences", sequences.len())?);
        let sides =
            Packed { out, left, right, left_stride, right_stride, m, n, out_m: n, out_n: 1, first_piece, pieces };
        self.packed.push(sides);
        Ok(())
    }

    /// Adds all of them: rows one by one; or where sides are bf16, on tensor cores, a sequence's rows in groups of 16 in an order that
    /// their number decides, and sequences in order.
    pub(crate) fn launch(mut self, device: &CudaDevice) -> Result {
        if self.packed.is_empty() {
            return Ok(());
        }
        let (extents, tensor) = (Extents("gradients of weights"), self.bytes == size_of::<bf16>());
        if tensor {
            self.packed.iter_mut().for_each(Packed::with_fewer_columns_left);
        }
        let most = |of: fn(&Packed) -> u32| self.packed.iter().map(of).max().unwrap_or(0);
        let (m, n) = (most(|of| of.m), most(|of| of.n));
        let count = extents.index("the number of gradients", self.packed.len())?;
        let (gradients, pieces) = (device.upload(&self.packed)?, device.upload(&self.pieces)?);
        let (name, tile) = if tensor { ("tensor_outer_products", TENSOR_TILE) } else { ("outer_products", TILE) };
        let grid = [n.div_ceil(tile[1]), m.div_ceil(tile[0]), count];
        device.launch(name, grid, 256, &[(&gradients).into(), (&pieces).into()])
    }
}

/// Elements (m, n) of a gradient that a block has.
const TILE: [u32; 2] = [8, 32];
const TENSOR_TILE: [u32; 2] = [32, 64];

impl Packed {
    /// Exchanges the sides if the left one has more columns: tiles are wider on the right.
    fn with_fewer_columns_left(&mut self) {
        if self.m > self.n {
            *self = Self {
                left: self.right,
                right: self.left,
                left_stride: self.right_stride,
                right_stride: self.left_stride,
                m: self.n,
                n: self.m,
                out_m: self.out_n,
                out_n: self.out_m,
                ..*self
            };
        }
    }
}
