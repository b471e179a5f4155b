//! Operands of the backward passes of linear layers: gradients of outputs, and inputs. Kernels in tiles read both
//! packed, each packed once, where rows are computed; others read rows.

use std::ops::Range;

use super::Cpu;
use super::gemm::{
    GradientSide, PackedLhs, PackedPart, PackedSide, RowsView, pack_input, pack_output_gradient, uses_tiles,
};
use super::rows::HostRows;
use super::tile_layout::{TILE, TILE_K};
use crate::{Held, Rows};

/// The gradient with respect to a linear layer's output.
pub struct OutputGradient<'a> {
    /// `None` where they were never stored: only for whole tiles of columns, without gradients of biases.
    rows: Option<Held<'a, HostRows>>,
    /// The left side of the product with the weights.
    pub(super) lhs: PackedLhs,
    /// A side of gradients of weights, for kernels in tiles.
    side: Option<PackedSide>,
}

/// A linear layer's input, for gradients of its weights.
pub enum WeightInput<'a> {
    /// Rows, for kernels that read rows.
    Rows(Held<'a, HostRows>),
    /// A side of gradients, for kernels in tiles.
    Packed(PackedSide),
}

/// Rows of `width` elements, packed or not, that gradients are computed from.
#[derive(Clone, Copy)]
pub(super) struct Operand<'a> {
    /// Empty where there is but the packed form.
    pub(super) rows: &'a [f32],
    pub(super) width: usize,
    pub(super) packed: Option<&'a PackedSide>,
}

impl<'a> Operand<'a> {
    pub(super) fn rows(rows: &'a [f32], width: usize) -> Self {
        Self { rows, width, packed: None }
    }

    /// Columns of the rows from `row` on.
    pub(super) fn part(&self, row: usize, columns: Range<usize>) -> GradientSide<'a> {
        let (column, width) = (columns.start, columns.len());
        match self.packed {
            Some(side) if column.is_multiple_of(TILE) => GradientSide::Packed(PackedPart { side, column, width, row }),
            _ => {
                let data = &self.rows[(row * self.width + column).min(self.rows.len())..];
                GradientSide::Rows(RowsView { data, stride: self.width, width })
            }
        }
    }
}

impl<'a> OutputGradient<'a> {
    /// Makes the gradient from rows; `sequences` are the rows by sequence.
    pub(super) fn new(cpu: &Cpu, rows: Held<'a, HostRows>, sequences: &[Range<usize>]) -> Self {
        let width = rows.width();
        if !uses_tiles(cpu) {
            let lhs = PackedLhs::new(cpu, cpu.dtype, &rows, width);
            return Self { rows: Some(rows), lhs, side: None };
        }
        let view = RowsView::dense(&rows, width);
        let (lhs, side) =
            // SAFETY: each group is packed once.
            pack_output_gradient(cpu, rows.rows(), width, sequences, |packer, i, group| unsafe {
                packer.put(i, &view, group.first, 0);
            });
        Self { rows: Some(rows), lhs, side: Some(side) }
    }

    /// Makes the gradient from its packed forms.
    pub(super) fn packed(rows: Option<Held<'a, HostRows>>, lhs: PackedLhs, side: PackedSide) -> Self {
        Self { rows, lhs, side: Some(side) }
    }

    /// The gradient's rows; empty if they were not stored.
    pub(super) fn rows(&self) -> &[f32] {
        match &self.rows {
            Some(rows) => rows,
            None => &[],
        }
    }

    pub(super) fn operand(&self) -> Operand<'_> {
        Operand { rows: self.rows(), width: self.lhs.k(), packed: self.side.as_ref() }
    }
}

impl<'a> WeightInput<'a> {
    /// Makes the input from rows; `sequences` are the rows by sequence.
    pub(super) fn new(cpu: &Cpu, rows: Held<'a, HostRows>, sequences: &[Range<usize>]) -> Self {
        if !uses_tiles(cpu) {
            return Self::Rows(rows);
        }
        let view = RowsView::dense(&rows, rows.width());
        // SAFETY: each group is packed once.
        Self::Packed(pack_input(cpu, rows.width(), sequences, |packer, i, group| unsafe {
            packer.put(i, &view, group.first, 0);
        }))
    }

    /// Makes the input from rows that `row` computes, given their index and a buffer of `width` elements.
    pub(super) fn of_rows(
        cpu: &Cpu,
        rows: usize,
        width: usize,
        sequences: &[Range<usize>],
        row: impl Fn(usize, &mut [f32]) + Sync,
    ) -> Self {
        if !uses_tiles(cpu) {
            let mut all = HostRows::alloc(cpu, rows, width);
            super::parallel::for_rows(cpu, &mut all, width, row);
            return Self::Rows(Held::Owned(all));
        }
        Self::Packed(pack_input(cpu, width, sequences, |packer, i, group| {
            let mut some = cpu.buffer(group.rows * width);
            for (j, out) in some.chunks_exact_mut(width).enumerate() {
                row(group.first + j, out);
            }
            // SAFETY: each group is packed once.
            unsafe { packer.put(i, &RowsView::dense(&some, width), 0, 0) };
        }))
    }

    pub(super) fn operand(&self) -> Operand<'_> {
        match self {
            Self::Rows(rows) => Operand::rows(rows, rows.width()),
            Self::Packed(side) => Operand { rows: &[], width: side.width(), packed: Some(side) },
        }
    }
}

/// Whether columns from `width` on begin at a tile of left sides.
pub(super) fn is_whole_tiles(width: usize) -> bool {
    width.is_multiple_of(TILE_K)
}

impl OutputGradient<'_> {
    /// The gradient's rows, with the rounding of packing if they were not stored.
    pub fn to_rows(&self) -> Vec<f32> {
        self.rows.as_deref().map_or_else(|| self.lhs.to_rows(), |rows| rows.to_vec())
    }
}

impl WeightInput<'_> {
    /// The input's rows, for kernels that read rows.
    pub fn to_rows(&self) -> Vec<f32> {
        self.operand().rows.to_vec()
    }
}
