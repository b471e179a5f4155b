//! Rows of an embedding, and their gradient.

use std::collections::BTreeMap;

use super::rows::{DeviceRows, RowElement, column_blocks};
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;

/// `scale · E[token]` for every token, `[tokens, width]`, from an embedding `[vocabulary, width]`.
pub(crate) fn embed<T: RowElement>(
    device: &CudaDevice,
    table: &DeviceRows<T>,
    tokens: &[u32],
    scale: f32,
) -> Result<DeviceRows> {
    let extents = Extents("embed");
    check_tokens(extents, tokens, table.rows())?;
    let [_, width] = table.extents(extents, "the embedding")?;
    let mut out = DeviceRows::uninitialised(device, tokens.len(), table.width())?;
    let [threads, columns] = column_blocks(width);
    let rows = extents.index("the number of tokens", tokens.len())?;
    let ids = device.upload(tokens)?;
    let arguments = [table.data().into(), (&ids).into(), out.data_mut().into(), width.into(), scale.into()];
    device.launch(&format!("embed_{}", T::SUFFIX), [rows, columns, 1], threads, &arguments)?;
    Ok(out)
}

/// Adds `scale · dx[row]` to row `tokens[row]` of `gradient`, `[vocabulary, width]`, rows in order.
pub(crate) fn embed_backward(
    device: &CudaDevice,
    tokens: &[u32],
    dx: &DeviceRows,
    scale: f32,
    gradient: &mut Slice<f32>,
) -> Result {
    let extents = Extents("embed_backward");
    let vocabulary = gradient.len().checked_div(dx.width()).unwrap_or(0);
    extents.equal("the elements of the gradient", gradient.len(), vocabulary * dx.width())?;
    check_tokens(extents, tokens, vocabulary)?;
    let [_, width] = dx.expect(extents, "the gradient of the rows", tokens.len(), dx.width())?;
    let mut rows_of: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    (0u32..).zip(tokens).for_each(|(row, token)| rows_of.entry(*token).or_default().push(row));
    let occurring: Vec<u32> = rows_of.keys().copied().collect();
    let mut first = vec![0];
    let mut rows = Vec::with_capacity(tokens.len());
    for of_token in rows_of.into_values() {
        rows.extend(of_token);
        first.push(extents.index("the number of tokens", rows.len())?);
    }
    let count = extents.index("the number of tokens", occurring.len())?;
    let (occurring, first, rows) = (device.upload(&occurring)?, device.upload(&first)?, device.upload(&rows)?);
    let [threads, columns] = column_blocks(width);
    let arguments = [
        dx.data().into(),
        (&occurring).into(),
        (&first).into(),
        (&rows).into(),
        gradient.into(),
        width.into(),
        scale.into(),
    ];
    device.launch("embed_backward", [count, columns, 1], threads, &arguments)
}

fn check_tokens(extents: Extents, tokens: &[u32], vocabulary: usize) -> Result {
    tokens.iter().try_for_each(|token| extents.below("a token", *token as usize, vocabulary))
}
