//! Rows of a larger matrix.

/// Rows of a matrix, `width` elements each, `stride` apart.
#[derive(Clone, Copy)]
pub(crate) struct RowsView<'a> {
    /// Elements from the first element of the first row on.
    pub data: &'a [f32],
    pub stride: usize,
    /// Elements of a row that are read.
    pub width: usize,
}

impl<'a> RowsView<'a> {
    /// A view of rows without gaps.
    pub(crate) fn dense(data: &'a [f32], width: usize) -> Self {
        Self { data, stride: width, width }
    }

    pub(super) fn holds(&self, rows: usize) -> bool {
        self.width <= self.stride && (rows == 0 || self.data.len() >= (rows - 1) * self.stride + self.width)
    }
}
