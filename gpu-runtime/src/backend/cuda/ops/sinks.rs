//! Attention sinks (Xiao et al. 2023, arXiv:2309.17453, as gpt-oss learns them): a score for each head, without a value.

use super::bias::bias_backward;
use super::rows::{DeviceRows, row_threads};
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;

/// Warps of a block: each has a head.
const WARPS: u32 = 4;

/// Heads and the width of a head, once all extents are checked.
fn heads(extents: Extents, sinks: &Slice<f32>, [out, log_sums]: [&DeviceRows; 2]) -> Result<[u32; 3]> {
    extents.equal("the sinks", sinks.len(), log_sums.width())?;
    let divides = !sinks.is_empty() && out.width().is_multiple_of(sinks.len());
    extents
        .check(divides, "the width of the output", out.width(), || format!("a multiple of {} heads", sinks.len()))?;
    let [rows, heads] = log_sums.expect(extents, "the log-sum-exps", out.rows(), sinks.len())?;
    Ok([rows, heads, extents.index("the width of a head", out.width() / sinks.len())?])
}

/// Adds a score for each head to the softmax of [`attention()`](super::attention::attention()), with a value of zero: to its output and
/// log-sum-exp, in place.
pub(crate) fn add_sinks(device: &CudaDevice, sinks: &Slice<f32>, [out, log_sums]: [&mut DeviceRows; 2]) -> Result {
    let [rows, heads, head_dim] = heads(Extents("add_sinks"), sinks, [out, log_sums])?;
    let arguments = [sinks.into(), out.data_mut().into(), log_sums.data_mut().into(), heads.into(), head_dim.into()];
    device.launch("add_sinks", [rows, heads, 1], row_threads(head_dim), &arguments)
}

/// Adds the gradient of the sinks to `dw`, `[heads]`, rows in order, given what [`add_sinks`] left and the gradient with respect to
/// the output.
pub(crate) fn sinks_backward(
    device: &CudaDevice,
    sinks: &Slice<f32>,
    [out, log_sums]: [&DeviceRows; 2],
    d_out: &DeviceRows,
    dw: &mut Slice<f32>,
) -> Result {
    let extents = Extents("sinks_backward");
    let [rows, heads, head_dim] = heads(extents, sinks, [out, log_sums])?;
    d_out.expect(extents, "the gradient of the output", out.rows(), out.width())?;
    let mut terms = DeviceRows::uninitialised(device, out.rows(), sinks.len())?;
    let arguments = [
        sinks.into(),
        out.data().into(),
        log_sums.data().into(),
        d_out.data().into(),
        terms.data_mut().into(),
        heads.into(),
        head_dim.into(),
    ];
    device.launch("sinks_terms", [rows, heads.div_ceil(WARPS), 1], 32 * WARPS, &arguments)?;
    bias_backward(device, &terms, 0..sinks.len(), dw)
}
