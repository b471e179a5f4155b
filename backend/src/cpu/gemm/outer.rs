//! Inputs and outputs of weight gradients: rows of two matrices, and the output of their product.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::rows_view::RowsView;
use super::sides::{PackedSide, groups};

/// A side of a gradient.
#[derive(Clone, Copy)]
pub(crate) enum GradientSide<'a> {
    Rows(RowsView<'a>),
    Packed(PackedPart<'a>),
}

/// Columns of packed rows: for kernels in tiles.
#[derive(Clone, Copy)]
pub(crate) struct PackedPart<'a> {
    pub side: &'a PackedSide,
    /// The first column, where a tile or panel of the side begins.
    pub column: usize,
    pub width: usize,
    /// Row of the side that is row 0 of the gradient.
    pub row: usize,
}

impl<'a> GradientSide<'a> {
    pub(super) fn width(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.width,
            Self::Packed(part) => part.width,
        }
    }

    /// The side's rows; a packed side has none, so [`WeightGradient::check_rows`] refuses it.
    pub(super) fn rows(&self) -> RowsView<'a> {
        match self {
            Self::Rows(rows) => *rows,
            Self::Packed(part) => RowsView::dense(&[], part.width),
        }
    }

    fn holds(&self, runs: &[Range<usize>]) -> bool {
        match self {
            Self::Rows(rows) => rows.holds(runs.last().map_or(0, |run| run.end)),
            Self::Packed(part) => part.first_group(runs).is_some() && part.column + part.width <= part.side.width,
        }
    }
}

impl PackedPart<'_> {
    /// Index of the first group of `runs` in the side; `None` where the side was packed in other groups.
    pub(super) fn first_group(&self, runs: &[Range<usize>]) -> Option<usize> {
        let own = groups(runs);
        let Some(first) = own.first() else { return Some(0) };
        let start = self.side.groups.partition_point(|group| group.first < self.row + first.first);
        let found = self.side.groups.get(start..start + own.len())?;
        let same = found.iter().zip(&own).all(|(a, b)| (a.first, a.rows) == (b.first + self.row, b.rows));
        same.then_some(start)
    }
}

/// Destination of a gradient's product, dense.
pub(crate) enum GradientOut<'a> {
    /// The product is added to these elements.
    Add(&'a mut [f32]),
    /// The product is written to these uninitialised elements. They are as many as the product has, and it has rows, so
    /// that all of them are written.
    Write(&'a mut [MaybeUninit<f32>]),
}

impl GradientOut<'_> {
    /// Whether the elements that it has are read.
    pub(super) fn adds(&self) -> bool {
        matches!(self, Self::Add(_))
    }

    /// Pointer to the first element.
    pub(super) fn at(&mut self) -> *mut f32 {
        match self {
            Self::Add(out) => out.as_mut_ptr(),
            Self::Write(out) => out.as_mut_ptr().cast(),
        }
    }
}

/// Whether there is a row in one of the runs, so that [`GradientOut::Write`] is allowed.
pub(crate) fn has_rows(runs: &[Range<usize>]) -> bool {
    runs.iter().any(|run| !run.is_empty())
}

/// `out[left.width, right.width] += leftᵀ · right`, or `=`, or the transpose.
pub(crate) struct WeightGradient<'a> {
    /// Rows that are summed, in order. Kernels that add several rows at once count them from the first row of each range.
    pub runs: &'a [Range<usize>],
    /// The left side: `[rows, left.width]`.
    pub left: GradientSide<'a>,
    /// The right side: `[rows, right.width]`; it is faster to have the wider matrix here.
    pub right: GradientSide<'a>,
    /// Whether the result is written transposed: `[right.width, left.width]`.
    pub transposed: bool,
    /// The gradient, in the order given by `transposed`.
    pub out: GradientOut<'a>,
}

impl WeightGradient<'_> {
    /// Rows of both sides.
    pub(super) fn rows(&self) -> usize {
        self.runs.last().map_or(0, |run| run.end)
    }

    pub(super) fn check(&self) {
        let in_order =
            self.runs.is_sorted_by(|a, b| a.end <= b.start) && self.runs.iter().all(|run| run.start <= run.end);
        assert!(in_order, "rows of a gradient out of order");
        assert!(self.left.holds(self.runs) && self.right.holds(self.runs), "gradient of mismatched matrices");
        let len = self.left.width() * self.right.width();
        match &self.out {
            GradientOut::Add(out) => assert!(out.len() >= len, "gradient out of bounds"),
            GradientOut::Write(out) => {
                assert!(out.len() == len && has_rows(self.runs), "a gradient that does not write all elements");
            }
        }
    }

    /// [`WeightGradient::check`] for kernels that read rows, which can't read packed sides.
    pub(super) fn check_rows(&self) {
        self.check();
        let rows = [self.left, self.right].map(|side| side.rows().holds(self.rows()));
        assert!(rows == [true; 2], "a packed side for kernels that read rows");
    }
}
