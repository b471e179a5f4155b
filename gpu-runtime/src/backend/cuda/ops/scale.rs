//! Sums with a factor.

use super::rows::DeviceRows;
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;

/// Threads of a block, each with one element.
const THREADS: usize = 256;

/// Adds `scale · from` to `to`, element by element, rounded once.
pub(crate) fn add_scaled(device: &CudaDevice, scale: f32, from: &DeviceRows, to: &mut DeviceRows) -> Result {
    let extents = Extents("add_scaled");
    from.expect(extents, "the rows to add", to.rows(), to.width())?;
    let length = from.data().len();
    let blocks = extents.index("the number of blocks", length.div_ceil(THREADS))?;
    let arguments = [from.data().into(), to.data_mut().into(), Argument::wide(length as u64), scale.into()];
    device.launch("add_scaled", [blocks, 1, 1], THREADS as u32, &arguments)
}
