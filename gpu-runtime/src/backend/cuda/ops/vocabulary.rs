//! Rows of ranks that have a part of the vocabulary each; `logits.rs` has what a part contributes to scores.

use super::rows::{DeviceRows, column_blocks};
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;

/// `rows` rows: row `i` of `from` at `at[i]`, which are distinct, and elsewhere -0, which changes no bit of what it is added to.
pub(crate) fn spread(device: &CudaDevice, from: &DeviceRows, at: &[usize], rows: usize) -> Result<DeviceRows> {
    let extents = Extents("spread");
    extents.equal("the rows", from.rows(), at.len())?;
    let mut places = vec![u32::MAX; rows];
    for (i, row) in (0u32..).zip(at) {
        extents.below("a row's place", *row, rows)?;
        if let Some(place) = places.get_mut(*row) {
            extents.check(*place == u32::MAX, "a row's place", *row, || "one's own".to_owned())?;
            *place = i;
        }
    }
    let mut to = DeviceRows::uninitialised(device, rows, from.width())?;
    let [count, width] = to.extents(extents, "the rows")?;
    let ([threads, columns], places) = (column_blocks(width), device.upload(&places)?);
    let arguments = [from.data().into(), (&places).into(), to.data_mut().into(), width.into()];
    device.launch("spread", [count, columns, 1], threads, &arguments)?;
    Ok(to)
}

/// Writes the logits of all ranks, `[rows, width]` each, one rank after the other, to the first `rows` rows of
/// `out[_, vocabulary]`; the last ranks' columns may be beyond the vocabulary's end.
pub(crate) fn join_logits(device: &CudaDevice, parts: &[&Slice<f32>], rows: usize, out: &mut DeviceRows) -> Result {
    let extents = Extents("join_logits");
    extents.check(rows <= out.rows(), "the rows", rows, || format!("at most {}", out.rows()))?;
    let len = parts.first().map_or(0, |part| part.len());
    let width = len.checked_div(rows).unwrap_or(0);
    for part in parts {
        extents.equal("the logits of a rank", part.len(), rows * width)?;
    }
    let enough = parts.len() * width;
    let whole = enough >= out.width() || rows == 0;
    extents.check(whole, "the logits of a row", enough, || format!("at least {}", out.width()))?;
    let [_, vocabulary] = out.extents(extents, "the logits")?;
    let [count, columns] = [extents.index("the rows", rows)?, extents.index("the logits of a rank", width)?];
    let [threads, blocks] = column_blocks(columns);
    for (rank, part) in parts.iter().enumerate() {
        let first = extents.index("a token", rank * width)?;
        let arguments = [(*part).into(), out.data_mut().into(), columns.into(), first.into(), vocabulary.into()];
        device.launch("place_columns", [count, blocks, 1], threads, &arguments)?;
    }
    Ok(())
}
