//! Copies of rows, and conversions of their elements.

use std::ops::Range;

use half::bf16;

use super::rows::{DeviceRows, RowElement, column_blocks};
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;

/// Indices of rows as kernels take them, all below `limit`.
pub(super) fn indices(device: &CudaDevice, extents: Extents, rows: &[usize], limit: usize) -> Result<Slice<u32>> {
    let index = |row: &usize| {
        extents.below("a row", *row, limit)?;
        extents.index("a row", *row)
    };
    device.upload(&rows.iter().map(index).collect::<Result<Vec<u32>>>()?)
}

/// Gathers the rows with these indices, which may repeat, into dense rows.
pub(crate) fn gather(device: &CudaDevice, from: &DeviceRows, rows: &[usize]) -> Result<DeviceRows> {
    let extents = Extents("gather");
    let [_, width] = from.extents(extents, "the rows")?;
    let mut to = DeviceRows::uninitialised(device, rows.len(), from.width())?;
    let ([threads, columns], count) = (column_blocks(width), extents.index("the number of rows", rows.len())?);
    let rows = indices(device, extents, rows, from.rows())?;
    let arguments = [from.data().into(), (&rows).into(), to.data_mut().into(), width.into()];
    device.launch("gather_rows", [count, columns, 1], threads, &arguments)?;
    Ok(to)
}

/// Writes row `i` of `from` to row `rows[i]` of `to`, whose other rows stay. Indices are distinct.
pub(crate) fn scatter(device: &CudaDevice, from: &DeviceRows, rows: &[usize], to: &mut DeviceRows) -> Result {
    let extents = Extents("scatter");
    let [count, width] = from.expect(extents, "the rows", rows.len(), to.width())?;
    let [threads, columns] = column_blocks(width);
    let rows = indices(device, extents, rows, to.rows())?;
    let arguments = [from.data().into(), (&rows).into(), to.data_mut().into(), width.into()];
    device.launch("scatter_rows", [count, columns, 1], threads, &arguments)
}

/// The first `width` elements of some rows, in f32.
pub(crate) fn part_of_rows<T: RowElement>(
    device: &CudaDevice,
    from: &DeviceRows<T>,
    rows: Range<usize>,
    width: usize,
) -> Result<DeviceRows> {
    let extents = Extents("part of rows");
    extents.check(width <= from.width(), "the width", width, || format!("at most {}", from.width()))?;
    let at = from.data().address_of(rows.start * from.width()..rows.end * from.width())?;
    let mut to = DeviceRows::uninitialised(device, rows.len(), width)?;
    let ([count, width], [_, stride]) = (to.extents(extents, "the rows")?, from.extents(extents, "the rows")?);
    let [threads, columns] = column_blocks(width);
    let arguments = [Argument::address(at), to.data_mut().into(), stride.into(), width.into()];
    device.launch(&format!("part_of_rows_{}", T::SUFFIX), [count, columns, 1], threads, &arguments)?;
    Ok(to)
}

/// Threads of a block that has as many elements.
const THREADS: usize = 256;

fn blocks(extents: Extents, length: usize) -> Result<[u32; 3]> {
    Ok([extents.index("the number of blocks", length.div_ceil(THREADS))?, 1, 1])
}

/// Overwrites the elements of `to` from `first` on with some of `from`, rounded to nearest even.
pub(crate) fn round_bf16(
    device: &CudaDevice,
    from: &Slice<f32>,
    range: Range<usize>,
    to: &mut Slice<bf16>,
    first: usize,
) -> Result {
    let extents = Extents("round to bf16");
    let length = range.len();
    let [from, to] = [from.address_of(range)?, to.address_of(first..first + length)?].map(Argument::address);
    let arguments = [from, to, Argument::wide(length as u64)];
    device.launch("round_to_bf16", blocks(extents, length.div_ceil(4))?, THREADS as u32, &arguments)
}

/// Overwrites the elements of `to` from `first` on with some of `from`, plus `offset`.
pub(crate) fn shift(
    device: &CudaDevice,
    from: &Slice<f32>,
    range: Range<usize>,
    offset: f32,
    to: &mut Slice<f32>,
    first: usize,
) -> Result {
    let extents = Extents("shift");
    let length = range.len();
    let [from, to] = [from.address_of(range)?, to.address_of(first..first + length)?].map(Argument::address);
    let arguments = [from, to, Argument::wide(length as u64), offset.into()];
    device.launch("shift", blocks(extents, length)?, THREADS as u32, &arguments)
}
