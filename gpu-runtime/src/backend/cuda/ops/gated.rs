//! Gates of attention's output: split off projections, applied to heads, and the gradients.

use super::rows::{DeviceRows, column_blocks};
use crate::backend::AttentionShape;
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;

/// Launches a kernel with a thread for each element of rows of a projection.
fn launch_projected(
    device: &CudaDevice,
    extents: Extents,
    shape: &AttentionShape,
    rows: usize,
    data: [Argument<'_>; 3],
) -> Result {
    let rows = extents.index("the rows", rows)?;
    let width = extents.index("the width of the projection", shape.qkv_width() + shape.q_width())?;
    let q_width = extents.index("the width of the queries", shape.q_width())?;
    let head_dim = extents.index("the width of a head", shape.head_dim)?;
    let [threads, columns] = column_blocks(width);
    let arguments = [&data[..], &[width, q_width, head_dim].map(Argument::from)].concat();
    device.launch(extents.0, [rows, columns, 1], threads, &arguments)
}

/// Queries, keys and values, `[rows, qkv_width]`, and gates, `[rows, q_width]`, from rows in which each query head is followed by its
/// gate.
pub(crate) fn split_gates(
    device: &CudaDevice,
    shape: &AttentionShape,
    projected: &DeviceRows,
) -> Result<[DeviceRows; 2]> {
    let (extents, rows) = (Extents("split_gates"), projected.rows());
    extents.equal("the width of the projection", projected.width(), shape.qkv_width() + shape.q_width())?;
    let mut qkv = DeviceRows::uninitialised(device, rows, shape.qkv_width())?;
    let mut gates = DeviceRows::uninitialised(device, rows, shape.q_width())?;
    let data = [projected.data().into(), qkv.data_mut().into(), gates.data_mut().into()];
    launch_projected(device, extents, shape, rows, data)?;
    Ok([qkv, gates])
}

/// The inverse of [`split_gates`].
pub(crate) fn join_gates(
    device: &CudaDevice,
    shape: &AttentionShape,
    qkv: &DeviceRows,
    gates: &DeviceRows,
) -> Result<DeviceRows> {
    let (extents, rows) = (Extents("join_gates"), qkv.rows());
    extents.equal("the width of q, k and v", qkv.width(), shape.qkv_width())?;
    gates.expect(extents, "the gates", rows, shape.q_width())?;
    let mut projected = DeviceRows::uninitialised(device, rows, shape.qkv_width() + shape.q_width())?;
    let data = [qkv.data().into(), gates.data().into(), projected.data_mut().into()];
    launch_projected(device, extents, shape, rows, data)?;
    Ok(projected)
}

/// `heads · sigmoid(gates)`, element by element.
pub(crate) fn gate_heads(device: &CudaDevice, heads: &DeviceRows, gates: &DeviceRows) -> Result<DeviceRows> {
    let extents = Extents("gate_heads");
    let [rows, width] = gates.expect(extents, "the gates", heads.rows(), heads.width())?;
    let mut out = DeviceRows::uninitialised(device, heads.rows(), heads.width())?;
    let [threads, columns] = column_blocks(width);
    let arguments = [heads.data().into(), gates.data().into(), out.data_mut().into(), width.into()];
    device.launch("gate_heads", [rows, columns, 1], threads, &arguments)?;
    Ok(out)
}

/// Gradients with respect to heads and gates, given that with respect to the result of [`gate_heads`].
pub(crate) fn gate_heads_backward(
    device: &CudaDevice,
    heads: &DeviceRows,
    gates: &DeviceRows,
    d_out: &DeviceRows,
) -> Result<[DeviceRows; 2]> {
    let extents = Extents("gate_heads_backward");
    gates.expect(extents, "the gates", heads.rows(), heads.width())?;
    let [rows, width] = d_out.expect(extents, "the gradient", heads.rows(), heads.width())?;
    let like = || DeviceRows::uninitialised(device, heads.rows(), heads.width());
    let [mut d_heads, mut d_gates] = [like()?, like()?];
    let [threads, columns] = column_blocks(width);
    let arguments = [
        heads.data().into(),
        gates.data().into(),
        d_out.data().into(),
        d_heads.data_mut().into(),
        d_gates.data_mut().into(),
        width.into(),
    ];
    device.launch("gate_heads_backward", [rows, columns, 1], threads, &arguments)?;
    Ok([d_heads, d_gates])
}
