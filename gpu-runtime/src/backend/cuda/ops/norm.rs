//! RMSNorm of rows, and its gradients.

use super::rows::{DeviceRows, RowElement, row_threads};
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;

/// RMSNorm weights of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceNorm<'a> {
    /// Factor of each column: `[width]`.
    pub weight: &'a Slice<f32>,
    /// Added to the mean square.
    pub eps: f32,
}

/// RMSNorm `x / sqrt(mean(x²) + eps) · w` (Zhang & Sennrich 2019, arXiv:1910.07467) of every row, in f32, then rounded to `T`.
pub(crate) fn norm<T: RowElement>(device: &CudaDevice, norm: DeviceNorm<'_>, x: &DeviceRows) -> Result<DeviceRows<T>> {
    let extents = Extents("norm");
    extents.equal("the weight", norm.weight.len(), x.width())?;
    let [rows, width] = x.extents(extents, "the rows")?;
    let mut y = DeviceRows::uninitialised(device, x.rows(), x.width())?;
    let arguments = [x.data().into(), norm.weight.into(), y.data_mut().into(), width.into(), norm.eps.into()];
    device.launch(&format!("norm_{}", T::SUFFIX), [rows, 1, 1], row_threads(width), &arguments)?;
    Ok(y)
}

/// Computes `x += norm(y)`, equal to the bit to [`norm()`] and an addition.
pub(crate) fn add_norm(device: &CudaDevice, norm: DeviceNorm<'_>, y: &DeviceRows, x: &mut DeviceRows) -> Result {
    let extents = Extents("add_norm");
    extents.equal("the weight", norm.weight.len(), x.width())?;
    let [rows, width] = y.expect(extents, "the normalised rows", x.rows(), x.width())?;
    let arguments = [y.data().into(), norm.weight.into(), x.data_mut().into(), width.into(), norm.eps.into()];
    device.launch("add_norm", [rows, 1, 1], row_threads(width), &arguments)
}

/// Adds to `dx` the gradient with respect to the input `x` of [`norm()`], given that with respect to its output, `dy`. The gradient
/// of the weight, rows in order, is added to `dw`.
pub(crate) fn norm_backward(
    device: &CudaDevice,
    norm: DeviceNorm<'_>,
    x: &DeviceRows,
    dy: &DeviceRows,
    dx: &mut DeviceRows,
    dw: Option<&mut Slice<f32>>,
) -> Result {
    let extents = Extents("norm_backward");
    extents.equal("the weight", norm.weight.len(), x.width())?;
    let [rows, width] = x.extents(extents, "the rows")?;
    dy.expect(extents, "the gradient of the output", x.rows(), x.width())?;
    dx.expect(extents, "the gradient of the input", x.rows(), x.width())?;
    let mut scales = device.uninitialised::<f32>(x.rows())?;
    let arguments = [
        x.data().into(),
        norm.weight.into(),
        dy.data().into(),
        dx.data_mut().into(),
        (&mut scales).into(),
        width.into(),
        norm.eps.into(),
    ];
    let threads = row_threads(width);
    device.launch("norm_backward", [rows, 1, 1], threads, &arguments)?;
    let Some(dw) = dw else { return Ok(()) };
    extents.equal("the gradient of the weight", dw.len(), x.width())?;
    let arguments = [x.data().into(), dy.data().into(), (&scales).into(), dw.into(), rows.into(), width.into()];
    device.launch("norm_weight_backward", [width.div_ceil(threads), 1, 1], threads, &arguments)
}
