//! Sums of experts' outputs by row.

use std::ops::Range;

use super::routing::check_dispatch;
use super::rows::{DeviceRows, column_blocks, row_threads};
use crate::backend::Dispatch;
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Element;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;

/// A row of an expert's output, as the kernel reads it.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Place {
    part: u64,
    d_part: u64,
}

impl Element for Place {}

/// Checks that `parts` are those of the dispatch in `held`, all of one width.
fn check_parts(
    extents: Extents,
    parts: &[DeviceRows],
    held: &Range<usize>,
    dispatch: &Dispatch,
    width: usize,
) -> Result {
    extents.equal("the parts", parts.len(), held.len())?;
    let all = dispatch.parts().len();
    extents.check(held.end <= all, "the last part", held.end, || format!("at most {all}"))?;
    for (part, own) in parts.iter().zip(dispatch.parts().iter().skip(held.start)) {
        part.expect(extents, "a part", own.rows.len(), width)?;
    }
    Ok(())
}

/// The address of row `at` of part `index` of the dispatch, if it is here.
fn address(parts: &[DeviceRows], first: usize, index: usize, at: usize) -> Result<Option<u64>> {
    let part = index.checked_sub(first).and_then(|index| parts.get(index));
    part.map(|part| part.data().address_of(at * part.width()..(at + 1) * part.width())).transpose()
}

/// `onto[row] += Σ weight · part[row]` over the experts of each row in ascending order, one term after the other; `parts`, by
/// [`Dispatch::parts`], are `[rows of the part, width]`. Without weights they are one.
pub(crate) fn combine(
    device: &CudaDevice,
    parts: &[DeviceRows],
    dispatch: &Dispatch,
    weights: Option<&DeviceRows>,
    onto: &mut DeviceRows,
) -> Result {
    let extents = Extents("combine");
    let slots = dispatch.extents()[1];
    check_dispatch(extents, dispatch, [onto.rows(), slots])?;
    check_parts(extents, parts, &(0..dispatch.parts().len()), dispatch, onto.width())?;
    if let Some(weights) = weights {
        weights.expect(extents, "the weights", onto.rows(), slots)?;
    }
    let places = (0..onto.rows()).flat_map(|row| dispatch.places(row));
    let addresses =
        places.map(|place| Ok(address(parts, 0, place.0, place.1)?.unwrap_or(0))).collect::<Result<Vec<u64>>>()?;
    let addresses = device.upload(&addresses)?;
    let [rows, width] = onto.extents(extents, "the rows")?;
    let [threads, columns] = column_blocks(width);
    let weights = weights.map_or_else(Argument::null, |weights| weights.data().into());
    let slots = extents.index("the experts of a row", slots)?;
    let arguments = [(&addresses).into(), weights, onto.data_mut().into(), slots.into(), width.into()];
    device.launch("combine", [rows, columns, 1], threads, &arguments)
}

/// Gradients of [`combine`] with respect to the parts and to the weights, from the gradient of its result. `parts` are
/// those of the dispatch's experts in `held`; the gradient of other experts' weights is zero. The summation order of a
/// weight's gradient depends only on the width.
pub(crate) fn combine_backward(
    device: &CudaDevice,
    parts: &[DeviceRows],
    held: Range<usize>,
    dispatch: &Dispatch,
    weights: &DeviceRows,
    d_out: &DeviceRows,
) -> Result<(Vec<DeviceRows>, DeviceRows)> {
    let extents = Extents("combine_backward");
    check_dispatch(extents, dispatch, [d_out.rows(), weights.width()])?;
    check_parts(extents, parts, &held, dispatch, d_out.width())?;
    let [rows, slots] = weights.expect(extents, "the weights", d_out.rows(), weights.width())?;
    let mut d_parts = Vec::with_capacity(parts.len());
    for part in parts {
        d_parts.push(DeviceRows::uninitialised(device, part.rows(), part.width())?);
    }
    let mut places = Vec::with_capacity(weights.rows() * weights.width());
    for place in (0..d_out.rows()).flat_map(|row| dispatch.places(row)) {
        let of = |parts: &[DeviceRows]| address(parts, held.start, place.0, place.1);
        places.push(Place { part: of(parts)?.unwrap_or(0), d_part: of(&d_parts)?.unwrap_or(0) });
    }
    let places = device.upload(&places)?;
    let mut d_weights = DeviceRows::uninitialised(device, weights.rows(), weights.width())?;
    let [_, width] = d_out.extents(extents, "the gradient of the sum")?;
    let arguments =
        [(&places).into(), weights.data().into(), d_out.data().into(), d_weights.data_mut().into(), width.into()];
    device.launch("combine_backward", [rows, slots, 1], row_threads(width), &arguments)?;
    Ok((d_parts, d_weights))
}
