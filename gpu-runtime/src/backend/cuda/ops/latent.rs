//! Multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434) between its projections and
//! [`attention()`](super::attention::attention()), which sees heads of one width, padded with zeros to it.

use std::ops::Range;

use super::rows::{DeviceRows, column_blocks};
use super::squares::add;
use crate::backend::LatentHeads;
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;

/// How the heads of a batch are rotated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceLatentRotation<'a> {
    /// Extents of the heads.
    pub heads: LatentHeads,
    /// (cos, sin) of `[position][heads.rope / 2]`, pair by pair: `[positions, heads.rope]`.
    pub rope: &'a DeviceRows,
    /// Position of every row of the batch.
    pub positions: &'a [u32],
}

impl DeviceLatentRotation<'_> {
    /// The positions on the device, once all is checked.
    fn positions(&self, device: &CudaDevice, extents: Extents, rows: usize) -> Result<Slice<u32>> {
        let h = self.heads;
        check_width(extents, h)?;
        let used = h.nope + h.rope;
        extents.check(h.width >= used, "the width of a head", h.width, || format!("at least {used}"))?;
        extents.check(h.rope.is_multiple_of(2), "the rotated elements of a head", h.rope, || "even".to_owned())?;
        extents.equal("the width of the rotary table", self.rope.width(), h.rope)?;
        extents.equal("the number of positions", self.positions.len(), rows)?;
        for position in self.positions {
            extents.below("a position", *position as usize, self.rope.rows())?;
        }
        device.upload(self.positions)
    }

    /// The last parameters of kernels.
    fn arguments(&self, extents: Extents) -> Result<[Argument<'static>; 6]> {
        let LatentHeads { heads, nope, rope, value, width, interleaved } = self.heads;
        let index = |extent| extents.index("an extent of heads", extent).map(Argument::from);
        Ok([index(heads)?, index(nope)?, index(rope)?, index(value)?, index(width)?, u32::from(interleaved).into()])
    }
}

fn check_width(extents: Extents, h: LatentHeads) -> Result {
    extents.check(h.width >= h.value, "the width of a head", h.width, || format!("at least {}", h.value))
}

/// Copies columns `from.1` of every row to columns `to.1..` of as many rows.
fn copy_columns(
    device: &CudaDevice,
    extents: Extents,
    from: &Slice<f32>,
    columns: Range<usize>,
    to: &mut Slice<f32>,
    first: usize,
    [rows, from_stride, to_stride]: [usize; 3],
) -> Result {
    let index = |extent| extents.index("an extent of rows", extent);
    let width = index(columns.len())?;
    let [threads, blocks] = column_blocks(width);
    let arguments = [
        from.into(),
        to.into(),
        index(from_stride)?.into(),
        index(columns.start)?.into(),
        index(to_stride)?.into(),
        index(first)?.into(),
        width.into(),
    ];
    device.launch("copy_columns", [index(rows)?, blocks, 1], threads, &arguments)
}

/// Adds `from` to `to`, element by element.
pub(crate) fn add_rows(device: &CudaDevice, from: &DeviceRows, to: &mut DeviceRows) -> Result {
    from.expect(Extents("add_rows"), "the rows", to.rows(), to.width())?;
    add(device, to.data_mut(), from.data())
}

/// Some columns of every row.
pub(crate) fn columns(device: &CudaDevice, from: &DeviceRows, columns: Range<usize>) -> Result<DeviceRows> {
    let extents = Extents("columns");
    let end = columns.end;
    extents.check(end <= from.width(), "the last column", end, || format!("at most {}", from.width()))?;
    let mut out = DeviceRows::uninitialised(device, from.rows(), columns.len())?;
    let strides = [from.rows(), from.width(), columns.len()];
    copy_columns(device, extents, from.data(), columns, out.data_mut(), 0, strides)?;
    Ok(out)
}

/// Rows of `left`, each followed by the same row of `right`.
pub(crate) fn join_columns(device: &CudaDevice, left: &DeviceRows, right: &DeviceRows) -> Result<DeviceRows> {
    let extents = Extents("join_columns");
    extents.equal("the rows on the right", right.rows(), left.rows())?;
    let width = left.width() + right.width();
    let mut out = DeviceRows::uninitialised(device, left.rows(), width)?;
    for (from, first) in [(left, 0), (right, left.width())] {
        let strides = [from.rows(), from.width(), width];
        copy_columns(device, extents, from.data(), 0..from.width(), out.data_mut(), first, strides)?;
    }
    Ok(out)
}

/// Queries, keys and values for [`attention()`](super::attention::attention()), `[rows, 3 · heads · width]`, from `q`,
/// `[rows, heads · (nope + rope)]`, `kv`, `[rows, heads · (nope + value)]`, and the last `rope` columns of `down`, the part of keys
/// that all heads have in common. Rotated in f32; a rotated pair's first elements come before the second ones.
pub(crate) fn join_heads(
    device: &CudaDevice,
    rotation: &DeviceLatentRotation<'_>,
    q: &DeviceRows,
    kv: &DeviceRows,
    down: &DeviceRows,
) -> Result<DeviceRows> {
    let (extents, h) = (Extents("join_heads"), rotation.heads);
    let [rows, _] = q.expect(extents, "the queries", q.rows(), h.queries())?;
    kv.expect(extents, "keys and values", q.rows(), h.keys_and_values())?;
    extents.equal("the rows of the keys' common part", down.rows(), q.rows())?;
    extents.check(down.width() >= h.rope, "the width of the keys' common part", down.width(), || {
        format!("at least {}", h.rope)
    })?;
    let positions = rotation.positions(device, extents, q.rows())?;
    let mut out = DeviceRows::uninitialised(device, q.rows(), 3 * h.heads * h.width)?;
    let [[_, width], [_, down_width]] =
        [out.extents(extents, "queries, keys and values")?, down.extents(extents, "the keys' common part")?];
    let [threads, columns] = column_blocks(width);
    let arguments = [
        q.data().into(),
        kv.data().into(),
        down.data().into(),
        rotation.rope.data().into(),
        (&positions).into(),
        out.data_mut().into(),
        down_width.into(),
    ];
    let arguments = [&arguments[..], &rotation.arguments(extents)?].concat();
    device.launch("join_heads", [rows, columns, 1], threads, &arguments)?;
    Ok(out)
}

/// Gradients with respect to `q`, `kv` and the common part of keys, `[rows, rope]`, of [`join_heads`], given that with respect to
/// its result. The last one adds up heads in order.
pub(crate) fn split_heads(
    device: &CudaDevice,
    rotation: &DeviceLatentRotation<'_>,
    d_qkv: &DeviceRows,
) -> Result<[DeviceRows; 3]> {
    let (extents, h) = (Extents("split_heads"), rotation.heads);
    let [rows, _] = d_qkv.expect(extents, "the gradient", d_qkv.rows(), 3 * h.heads * h.width)?;
    let positions = rotation.positions(device, extents, d_qkv.rows())?;
    let rows_of = |width| DeviceRows::uninitialised(device, d_qkv.rows(), width);
    let [mut d_q, mut d_kv, mut d_common] = [rows_of(h.queries())?, rows_of(h.keys_and_values())?, rows_of(h.rope)?];
    let all = extents.index("the columns", h.queries() + h.keys_and_values() + h.rope)?;
    let [threads, columns] = column_blocks(all);
    let arguments = [
        d_qkv.data().into(),
        rotation.rope.data().into(),
        (&positions).into(),
        d_q.data_mut().into(),
        d_kv.data_mut().into(),
        d_common.data_mut().into(),
    ];
    let arguments = [&arguments[..], &rotation.arguments(extents)?].concat();
    device.launch("split_heads", [rows, columns, 1], threads, &arguments)?;
    Ok([d_q, d_kv, d_common])
}

/// Attention's output without padding, `[rows, heads · value]`.
pub(crate) fn head_values(device: &CudaDevice, h: LatentHeads, attended: &DeviceRows) -> Result<DeviceRows> {
    let extents = Extents("head_values");
    check_width(extents, h)?;
    extents.equal("the width of the output", attended.width(), h.heads * h.width)?;
    let mut out = DeviceRows::uninitialised(device, attended.rows(), h.values())?;
    let strides = [attended.rows() * h.heads, h.width, h.value];
    copy_columns(device, extents, attended.data(), 0..h.value, out.data_mut(), 0, strides)?;
    Ok(out)
}

/// The gradient with respect to attention's output, `[rows, heads · width]`, given that with respect to [`head_values`].
pub(crate) fn pad_values(device: &CudaDevice, h: LatentHeads, d_values: &DeviceRows) -> Result<DeviceRows> {
    let extents = Extents("pad_values");
    check_width(extents, h)?;
    extents.equal("the width of the gradient", d_values.width(), h.values())?;
    let mut out = DeviceRows::zeros(device, d_values.rows(), h.heads * h.width)?;
    let strides = [d_values.rows() * h.heads, h.value, h.width];
    copy_columns(device, extents, d_values.data(), 0..h.value, out.data_mut(), 0, strides)?;
    Ok(out)
}
