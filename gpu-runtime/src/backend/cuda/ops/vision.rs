//! Ops of vision towers on rows.

use super::copies::indices;
use super::rows::{DeviceRows, RowElement, column_blocks, row_threads};
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::{Gelu, RowMix};

/// LayerNorm weights of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceLayerNorm<'a> {
    /// Factor of each column: `[width]`.
    pub weight: &'a Slice<f32>,
    /// Added to each column: `[width]`.
    pub bias: &'a Slice<f32>,
    /// Added to the variance.
    pub eps: f32,
}

/// LayerNorm (Ba et al. 2016, arXiv:1607.06450) of every row, in f32, then rounded to `T`.
pub(crate) fn layer_norm<T: RowElement>(
    device: &CudaDevice,
    norm: DeviceLayerNorm<'_>,
    x: &DeviceRows,
) -> Result<DeviceRows<T>> {
    let extents = Extents("layer_norm");
    extents.equal("the weight", norm.weight.len(), x.width())?;
    extents.equal("the bias", norm.bias.len(), x.width())?;
    let [rows, width] = x.extents(extents, "the rows")?;
    let mut y = DeviceRows::uninitialised(device, x.rows(), x.width())?;
    let arguments =
        [x.data().into(), norm.weight.into(), norm.bias.into(), y.data_mut().into(), width.into(), norm.eps.into()];
    device.launch(&format!("layer_norm_{}", T::SUFFIX), [rows, 1, 1], row_threads(width), &arguments)?;
    Ok(y)
}

/// GELU (Hendrycks & Gimpel 2016, arXiv:1606.08415) of every element, in f32, then rounded to `T`.
pub(crate) fn gelu<T: RowElement>(device: &CudaDevice, kind: Gelu, x: &DeviceRows) -> Result<DeviceRows<T>> {
    let [rows, width] = x.extents(Extents("gelu"), "the rows")?;
    let mut y = DeviceRows::uninitialised(device, x.rows(), x.width())?;
    let [threads, columns] = column_blocks(width);
    let arguments = [x.data().into(), y.data_mut().into(), width.into(), u32::from(kind == Gelu::Erf).into()];
    device.launch(&format!("gelu_{}", T::SUFFIX), [rows, columns, 1], threads, &arguments)?;
    Ok(y)
}

/// Sums of rows of `table`, `[rows, width]`, each multiplied by its factor, in f32 and in the order of the mix.
pub(crate) fn mix_rows(device: &CudaDevice, table: &DeviceRows, mix: &RowMix) -> Result<DeviceRows> {
    let extents = Extents("mix_rows");
    extents.equal("the number of factors", mix.weights.len(), mix.rows.len())?;
    let rows = mix.rows.len().checked_div(mix.per_row).unwrap_or(0);
    extents.equal("the number of rows that are added up", mix.rows.len(), rows * mix.per_row)?;
    let mut out = DeviceRows::uninitialised(device, rows, table.width())?;
    let [rows, width] = out.extents(extents, "the rows")?;
    let [threads, columns] = column_blocks(width);
    let (from, weights) = (indices(device, extents, &mix.rows, table.rows())?, device.upload(&mix.weights)?);
    let count = extents.index("the rows of a sum", mix.per_row)?;
    let arguments =
        [table.data().into(), (&from).into(), (&weights).into(), out.data_mut().into(), count.into(), width.into()];
    device.launch("mix_rows", [rows, columns, 1], threads, &arguments)?;
    Ok(out)
}

/// Adds row `i` of `from` to row `rows[i]` of `to`. Indices are distinct.
pub(crate) fn add_rows(device: &CudaDevice, from: &DeviceRows, rows: &[usize], to: &mut DeviceRows) -> Result {
    let extents = Extents("add_rows");
    let [count, width] = from.expect(extents, "the rows", rows.len(), to.width())?;
    let [threads, columns] = column_blocks(width);
    let rows = indices(device, extents, rows, to.rows())?;
    let arguments = [from.data().into(), (&rows).into(), to.data_mut().into(), width.into()];
    device.launch("add_rows", [count, columns, 1], threads, &arguments)
}
