//! Kernels for rotations other than the plain one: of the first elements of heads, of queries with a table of their
//! own, and after norms over all heads.

use super::rotary::{Checked, DeviceRotation, weights};
use super::rows::{DeviceRows, row_threads};
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;

/// Tables of queries and of keys, and the positions in them.
fn tables<'a>(rotation: &DeviceRotation<'a>, checked: &'a Checked) -> [Argument<'a>; 3] {
    let rope = rotation.rope;
    [rotation.query_rope.unwrap_or(rope).data().into(), rope.data().into(), (&checked.positions).into()]
}

/// How many elements of a head are rotated.
fn rotated(rotation: &DeviceRotation<'_>) -> Result<[Argument<'static>; 1]> {
    Ok([Extents("rotate").index("the width of the rotary table", rotation.rope.width())?.into()])
}

/// Threads of a block that has a row's queries or its keys.
fn joint_threads(rotation: &DeviceRotation<'_>) -> Result<u32> {
    Ok(row_threads(Extents("rotate").index("the width of the queries", rotation.shape.q_width())?))
}

/// `1 / rms` of all queries and of all keys of every row: `[rows, 2]`.
fn joint_scales(
    device: &CudaDevice,
    rotation: &DeviceRotation<'_>,
    checked: &Checked,
    qkv: Argument<'_>,
) -> Result<Slice<f32>> {
    let mut scales = device.uninitialised::<f32>(2 * checked.rows as usize)?;
    let arguments = [&[qkv, (&mut scales).into()][..], &checked.extents(), &checked.eps()].concat();
    device.launch("joint_norm_scales", [checked.rows, 2, 1], joint_threads(rotation)?, &arguments)?;
    Ok(scales)
}

/// Normalises and rotates q and k from the first rows to the second ones, which may be the same; v is copied with `values`.
pub(super) fn rotate(
    device: &CudaDevice,
    rotation: &DeviceRotation<'_>,
    checked: &Checked,
    rows: [Argument<'_>; 2],
    values: bool,
) -> Result {
    let scales = if rotation.is_joint() { Some(joint_scales(device, rotation, checked, rows[0])?) } else { None };
    let scales = [scales.as_ref().map_or_else(Argument::null, Argument::from)];
    let data = [&rows[..], &tables(rotation, checked), &weights(rotation.norms), &scales].concat();
    checked.launch(device, "rotate_parts", values, &[&data, &checked.extents(), &rotated(rotation)?, &checked.eps()])
}

/// Rotates gradients back, in place. Where each head has a norm, and `before` is what was rotated, writes `1 / rms` of the heads to
/// `scales`, `[row][head]`.
pub(super) fn rotate_back(
    device: &CudaDevice,
    rotation: &DeviceRotation<'_>,
    checked: &Checked,
    before: Argument<'_>,
    d_qkv: &mut DeviceRows,
    scales: &mut Slice<f32>,
) -> Result {
    let data = [&[d_qkv.data_mut().into(), before][..], &tables(rotation, checked), &[scales.into()]].concat();
    checked.launch(
        device,
        "rotate_parts_back",
        false,
        &[&data, &checked.extents(), &rotated(rotation)?, &checked.eps()],
    )
}

/// Takes gradients back through rotation and norms over all heads, in place; those of the norms are added to `dw` (q's, k's), rows in
/// order.
pub(super) fn rotate_backward_joint(
    device: &CudaDevice,
    rotation: &DeviceRotation<'_>,
    checked: &Checked,
    before: Argument<'_>,
    d_qkv: &mut DeviceRows,
    dw: Option<[&mut Slice<f32>; 2]>,
) -> Result {
    rotate_back(device, rotation, checked, Argument::null(), d_qkv, &mut device.uninitialised(0)?)?;
    let scales = joint_scales(device, rotation, checked, before)?;
    let threads = joint_threads(rotation)?;
    if let Some([dq, dk]) = dw {
        let widest = rotation.shape.q_width().max(rotation.shape.kv_width());
        let blocks = Extents("rotate").index("the width of a norm", widest)?.div_ceil(threads);
        let data = [d_qkv.data().into(), before, (&scales).into(), dq.into(), dk.into(), checked.rows.into()];
        let arguments = [&data[..], &checked.extents()].concat();
        device.launch("joint_norm_weight_backward", [blocks, 2, 1], threads, &arguments)?;
    }
    let data = [d_qkv.data_mut().into(), before, (&scales).into()];
    let arguments = [&data[..], &weights(rotation.norms), &checked.extents()].concat();
    device.launch("joint_norm_backward", [checked.rows, 2, 1], threads, &arguments)
}
