//! Norm and gate of a recurrence's output, and their gradients.

use super::norm::DeviceNorm;
use super::recurrence::{check_heads, shape_arguments};
use super::rows::{DeviceRows, column_blocks, row_threads};
use crate::backend::RecurrentShape;
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;

/// Norm and gate of a recurrence's output: by head `norm(o) · silu(z)` with the delta rule, by group of heads that share a key
/// `norm(o · silu(z))` with Mamba-2.
#[derive(Clone, Copy)]
pub(crate) struct DeviceGate<'a> {
    /// Extents of the recurrence.
    pub shape: &'a RecurrentShape,
    /// Norm of the output: `[value_dim]`, with Mamba-2 `[value_width]`.
    pub norm: DeviceNorm<'a>,
}

/// What is normalised together in a row of outputs, and the number of rows.
struct Groups {
    rows: u32,
    count: u32,
    width: u32,
}

impl DeviceGate<'_> {
    fn check(&self, extents: Extents, inputs: &DeviceRows, out: &DeviceRows) -> Result<Groups> {
        let s = self.shape;
        check_heads(extents, s)?;
        let [rows, _] = inputs.expect(extents, "the inputs", out.rows(), s.input_width())?;
        out.expect(extents, "the outputs", inputs.rows(), s.value_width())?;
        let count = if s.has_beta() { s.value_heads } else { s.key_heads };
        let weight = if s.has_beta() { s.value_dim } else { s.value_width() };
        extents.equal("the weight of the norm", self.norm.weight.len(), weight)?;
        Ok(Groups {
            rows,
            count: extents.index("the groups of heads", count)?,
            width: extents.index("the width of a group", s.value_width() / count)?,
        })
    }
}

/// Normalises and gates outputs of a recurrence, `[rows, value_width]`, with the gates of its inputs.
pub(crate) fn gate_output(
    device: &CudaDevice,
    of: DeviceGate<'_>,
    inputs: &DeviceRows,
    out: &DeviceRows,
) -> Result<DeviceRows> {
    let extents = Extents("gate_output");
    let (groups, shape) = (of.check(extents, inputs, out)?, shape_arguments(extents, of.shape)?);
    let mut gated = DeviceRows::uninitialised(device, out.rows(), out.width())?;
    let arguments =
        [inputs.data().into(), out.data().into(), of.norm.weight.into(), gated.data_mut().into(), of.norm.eps.into()];
    let arguments = [&arguments[..], &shape].concat();
    device.launch("gate_norm", [groups.rows, groups.count, 1], row_threads(groups.width), &arguments)?;
    Ok(gated)
}

/// The gradient with respect to outputs of a recurrence, given that with respect to [`gate_output`]'s result, `d_gated`. Writes the
/// gate's columns of `d_inputs`, and adds the gradient of the norm's weight, rows in order, to `dw`.
pub(crate) fn gate_backward(
    device: &CudaDevice,
    of: DeviceGate<'_>,
    inputs: &DeviceRows,
    out: &DeviceRows,
    d_gated: &DeviceRows,
    d_inputs: &mut DeviceRows,
    dw: Option<&mut Slice<f32>>,
) -> Result<DeviceRows> {
    let extents = Extents("gate_backward");
    let (groups, shape) = (of.check(extents, inputs, out)?, shape_arguments(extents, of.shape)?);
    d_gated.expect(extents, "the gradient of the gated output", out.rows(), out.width())?;
    d_inputs.expect(extents, "the gradient of the inputs", inputs.rows(), inputs.width())?;
    let mut d_out = DeviceRows::uninitialised(device, out.rows(), out.width())?;
    let mut scales = device.uninitialised::<f32>(out.rows() * groups.count as usize)?;
    let arguments = [
        inputs.data().into(),
        out.data().into(),
        of.norm.weight.into(),
        d_gated.data().into(),
        d_out.data_mut().into(),
        d_inputs.data_mut().into(),
        (&mut scales).into(),
        of.norm.eps.into(),
    ];
    let arguments = [&arguments[..], &shape].concat();
    device.launch("gate_norm_backward", [groups.rows, groups.count, 1], row_threads(groups.width), &arguments)?;
    let Some(dw) = dw else { return Ok(d_out) };
    extents.equal("the gradient of the norm's weight", dw.len(), of.norm.weight.len())?;
    let [threads, blocks] = column_blocks(extents.index("the weight of the norm", dw.len())?);
    let arguments = [
        inputs.data().into(),
        out.data().into(),
        d_gated.data().into(),
        (&scales).into(),
        dw.into(),
        groups.rows.into(),
        groups.count.into(),
    ];
    let arguments = [&arguments[..], &shape].concat();
    device.launch("gate_norm_weights", [blocks, 1, 1], threads, &arguments)?;
    Ok(d_out)
}
