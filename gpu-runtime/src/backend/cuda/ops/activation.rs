//! Gated activations and their gradients.

use half::bf16;

use super::rows::{DeviceRows, RowElement, column_blocks};
use super::ungated::{squared_relu, squared_relu_backward};
use crate::backend::Activation;
use crate::backend::cuda::device::error::{CudaError, Extents, Result};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;

/// Columns that a thread has.
const OF_THREAD: u32 = 4;

/// Number of the activation in `kernels/activation.cu`, which has those with a gate.
fn kind(activation: Activation) -> Result<u32> {
    match activation {
        Activation::Silu => Ok(0),
        Activation::GeluTanh => Ok(1),
        Activation::ClampedSwish => Ok(2),
        Activation::SquaredRelu => {
            Err(CudaError::Kernel { name: "activate".into(), problem: "takes activations with a gate".into() })
        }
    }
}

/// `act(gate) · up`, `[rows, width]`, rounded to `T`, from rows of gate then up, `[rows, 2 * width]`.
pub(crate) fn activate<T: RowElement>(
    device: &CudaDevice,
    activation: Activation,
    gate_up: &DeviceRows,
) -> Result<DeviceRows<T>> {
    if !activation.is_gated() {
        return squared_relu(device, gate_up);
    }
    let extents = Extents("activate");
    let mut out = DeviceRows::uninitialised(device, gate_up.rows(), gate_up.width() / 2)?;
    let [rows, width] = out.extents(extents, "the output")?;
    extents.equal("the width of gate and up", gate_up.width(), 2 * out.width())?;
    let [threads, columns] = column_blocks(width.div_ceil(OF_THREAD));
    let arguments = [gate_up.data().into(), out.data_mut().into(), width.into(), kind(activation)?.into()];
    device.launch(&format!("activate_{}", T::SUFFIX), [rows, columns, 1], threads, &arguments)?;
    Ok(out)
}

/// Replaces (gate, up) by the gradients with respect to them, and `d_out`, the gradient with respect to the output of
/// [`activate`], by that output.
pub(crate) fn activate_backward(
    device: &CudaDevice,
    activation: Activation,
    gate_up: &mut DeviceRows,
    d_out: &mut DeviceRows,
) -> Result {
    let outputs = [gate_up.data().address(), d_out.data().address()].map(Argument::address);
    launch_backward::<f32>(device, activation, gate_up, d_out, outputs)
}

/// The gradient with respect to (gate, up), and the output of [`activate`], rounded to bf16.
pub(crate) fn activate_backward_rounded(
    device: &CudaDevice,
    activation: Activation,
    gate_up: &DeviceRows,
    d_out: &DeviceRows,
) -> Result<[DeviceRows<bf16>; 2]> {
    let rows = |like: &DeviceRows| DeviceRows::uninitialised(device, like.rows(), like.width());
    let (mut d_gate_up, mut out) = (rows(gate_up)?, rows(d_out)?);
    let outputs = [d_gate_up.data_mut().into(), out.data_mut().into()];
    launch_backward::<bf16>(device, activation, gate_up, d_out, outputs)?;
    Ok([d_gate_up, out])
}

fn launch_backward<T: RowElement>(
    device: &CudaDevice,
    activation: Activation,
    gate_up: &DeviceRows,
    d_out: &DeviceRows,
    [d_gate_up, out]: [Argument<'_>; 2],
) -> Result {
    if !activation.is_gated() {
        return squared_relu_backward::<T>(device, gate_up, d_out, [d_gate_up, out]);
    }
    let extents = Extents("activate_backward");
    let [rows, width] = d_out.extents(extents, "the gradient of the output")?;
    gate_up.expect(extents, "gate and up", d_out.rows(), 2 * d_out.width())?;
    let [threads, columns] = column_blocks(width.div_ceil(OF_THREAD));
    let arguments =
        [gate_up.data().into(), d_out.data().into(), d_gate_up, out, width.into(), kind(activation)?.into()];
    device.launch(&format!("activate_backward_{}", T::SUFFIX), [rows, columns, 1], threads, &arguments)
}
