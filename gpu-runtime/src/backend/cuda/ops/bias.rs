//! Biases of linear layers.

use std::ops::Range;

use super::rows::{DeviceRows, column_blocks, row_threads};
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;

/// Adds `bias`, `[width]`, to the first `rows` rows of `out`; others stay.
pub(crate) fn add_bias(device: &CudaDevice, bias: &Slice<f32>, rows: usize, out: &mut DeviceRows) -> Result {
    let extents = Extents("add_bias");
    extents.equal("the bias", bias.len(), out.width())?;
    extents.check(rows <= out.rows(), "the number of rows", rows, || format!("at most {}", out.rows()))?;
    let [rows, width] = [extents.index("the rows", rows)?, extents.index("the width", out.width())?];
    let [threads, columns] = column_blocks(width);
    let arguments = [out.data_mut().into(), bias.into(), width.into()];
    device.launch("add_bias", [rows, columns, 1], threads, &arguments)
}

/// `db += Σ dy` over these columns of the gradient with respect to a linear layer's output, rows in order.
pub(crate) fn bias_backward(
    device: &CudaDevice,
    dy: &DeviceRows,
    columns: Range<usize>,
    db: &mut Slice<f32>,
) -> Result {
    let extents = Extents("bias_backward");
    let end = columns.end;
    extents.check(end <= dy.width(), "the last column", end, || format!("at most {}", dy.width()))?;
    extents.equal("the gradient of the bias", db.len(), columns.len())?;
    let [rows, stride] = dy.extents(extents, "the gradient of the output")?;
    let [first, width] = [extents.index("a column", columns.start)?, extents.index("the bias", db.len())?];
    let threads = row_threads(width);
    let arguments = [dy.data().into(), db.into(), rows.into(), stride.into(), first.into(), width.into()];
    device.launch("bias_backward", [width.div_ceil(threads), 1, 1], threads, &arguments)
}
