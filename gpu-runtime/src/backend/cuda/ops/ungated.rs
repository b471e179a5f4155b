//! Activations without a gate, and their gradients.

use super::rows::{DeviceRows, RowElement};
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;

/// Threads of a block, each with one element.
const THREADS: usize = 256;

/// The square of what is above zero, rounded to `T`.
pub(super) fn squared_relu<T: RowElement>(device: &CudaDevice, x: &DeviceRows) -> Result<DeviceRows<T>> {
    let length = x.data().len();
    let mut out = DeviceRows::uninitialised(device, x.rows(), x.width())?;
    let blocks = Extents("squared_relu").index("the number of blocks", length.div_ceil(THREADS))?;
    let arguments = [x.data().into(), out.data_mut().into(), Argument::wide(length as u64)];
    device.launch(&format!("squared_relu_{}", T::SUFFIX), [blocks, 1, 1], THREADS as u32, &arguments)?;
    Ok(out)
}

/// Writes the gradient with respect to `x`, and the output of [`squared_relu`], to `outputs`, given the gradient with respect to the
/// output. In f32 the outputs may be `x` and that gradient.
pub(super) fn squared_relu_backward<T: RowElement>(
    device: &CudaDevice,
    x: &DeviceRows,
    d_out: &DeviceRows,
    outputs: [Argument<'_>; 2],
) -> Result {
    let extents = Extents("squared_relu_backward");
    d_out.expect(extents, "the gradient of the output", x.rows(), x.width())?;
    let length = x.data().len();
    let blocks = extents.index("the number of blocks", length.div_ceil(THREADS))?;
    let [d_x, out] = outputs;
    let arguments = [x.data().into(), d_out.data().into(), d_x, out, Argument::wide(length as u64)];
    device.launch(&format!("squared_relu_backward_{}", T::SUFFIX), [blocks, 1, 1], THREADS as u32, &arguments)
}
