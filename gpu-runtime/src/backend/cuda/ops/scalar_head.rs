//! Heads with one output: a weight `[hidden]` and a bias `[1]`. Nothing is rounded.

use std::ops::Range;

use super::rows::{DeviceRows, column_blocks, row_threads};
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;

/// The weight, `[hidden]`, and the bias, `[1]`, of a head, or the gradients with respect to them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceScalarHead<T> {
    /// Weight of the head: `[hidden]`.
    pub weight: T,
    /// Bias of the head: one element.
    pub bias: T,
}

/// First row, number of rows, and width, once they are checked.
fn check(extents: Extents, head: [&Slice<f32>; 2], x: &DeviceRows, rows: &Range<usize>) -> Result<[u32; 3]> {
    let [weight, bias] = head;
    extents.equal("the weight", weight.len(), x.width())?;
    extents.equal("the bias", bias.len(), 1)?;
    extents.check(rows.end <= x.rows(), "the last row", rows.end, || format!("at most {}", x.rows()))?;
    let [_, width] = x.extents(extents, "the rows")?;
    Ok([extents.index("the first row", rows.start)?, extents.index("the rows", rows.len())?, width])
}

/// Computes `x · w + b` for some rows of `x`. The order of the sum depends only on the width, and the bias is added
/// last. Waits for all work on the device.
pub(crate) fn scalar_head(
    device: &CudaDevice,
    head: DeviceScalarHead<&Slice<f32>>,
    x: &DeviceRows,
    rows: Range<usize>,
) -> Result<Vec<f32>> {
    let [first, count, width] = check(Extents("scalar_head"), [head.weight, head.bias], x, &rows)?;
    let mut out = device.uninitialised(rows.len())?;
    let arguments =
        [x.data().into(), head.weight.into(), head.bias.into(), (&mut out).into(), first.into(), width.into()];
    device.launch("scalar_head", [count, 1, 1], row_threads(width), &arguments)?;
    out.to_host()
}

/// Writes the gradient with respect to these rows of `x` to those of `dx`, given that with respect to their values, `dy`. Those of
/// weight and bias are added to `grads`, rows in order.
pub(crate) fn scalar_head_backward(
    device: &CudaDevice,
    head: DeviceScalarHead<&Slice<f32>>,
    x: &DeviceRows,
    rows: Range<usize>,
    dy: &[f32],
    dx: &mut DeviceRows,
    grads: Option<DeviceScalarHead<&mut Slice<f32>>>,
) -> Result {
    let extents = Extents("scalar_head_backward");
    let [first, count, width] = check(extents, [head.weight, head.bias], x, &rows)?;
    extents.equal("the gradients of values", dy.len(), rows.len())?;
    dx.expect(extents, "the gradient of the rows", x.rows(), x.width())?;
    let dy = device.upload(dy)?;
    let [threads, columns] = column_blocks(width);
    let arguments = [head.weight.into(), (&dy).into(), dx.data_mut().into(), first.into(), width.into()];
    device.launch("scalar_head_backward", [count, columns, 1], threads, &arguments)?;
    let Some(grads) = grads else { return Ok(()) };
    check(extents, [grads.weight, grads.bias], x, &rows)?;
    let arguments = [
        x.data().into(),
        (&dy).into(),
        grads.weight.into(),
        grads.bias.into(),
        first.into(),
        count.into(),
        width.into(),
    ];
    device.launch("scalar_head_gradients", [width / threads + 1, 1, 1], threads, &arguments)
}
