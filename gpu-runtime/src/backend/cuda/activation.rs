//! Gated activations.

use super::error::Extents;
use super::rows::column_blocks;
use super::{CudaDevice, DeviceRows, Result, RowElement};
use crate::backend::Activation;

/// Its number in `kernels/activation.cu`.
fn kind(activation: Activation) -> u32 {
    match activation {
        Activation::Silu => 0,
        Activation::GeluTanh => 1,
        Activation::ClampedSwish => 2,
    }
}

/// `act(gate) · up`, `[rows, width]`, rounded to `T`, from rows of gate then up, `[rows, 2 * width]`.
pub fn activate<T: RowElement>(
    device: &CudaDevice,
    activation: Activation,
    gate_up: &DeviceRows,
) -> Result<DeviceRows<T>> {
    let extents = Extents("activate");
    let mut out = DeviceRows::uninitialised(device, gate_up.rows(), gate_up.width() / 2)?;
    let [rows, width] = out.extents(extents, "the output")?;
    extents.equal("the width of gate and up", gate_up.width(), 2 * out.width())?;
    let [threads, columns] = column_blocks(width);
    let arguments = [gate_up.data().into(), out.data_mut().into(), width.into(), kind(activation).into()];
    device.launch(&format!("activate_{}", T::SUFFIX), [rows, columns, 1], threads, &arguments)?;
    Ok(out)
}

/// Replaces (gate, up) by the gradients with respect to them, and `d_out`, the gradient with respect to the output of
/// [`activate`], by that output.
pub fn activate_backward(
    device: &CudaDevice,
    activation: Activation,
    gate_up: &mut DeviceRows,
    d_out: &mut DeviceRows,
) -> Result {
    let extents = Extents("activate_backward");
    let [rows, width] = d_out.extents(extents, "the gradient of the output")?;
    gate_up.expect(extents, "gate and up", d_out.rows(), 2 * d_out.width())?;
    let [threads, columns] = column_blocks(width);
    let arguments = [gate_up.data_mut().into(), d_out.data_mut().into(), width.into(), kind(activation).into()];
    device.launch("activate_backward", [rows, columns, 1], threads, &arguments)
}
