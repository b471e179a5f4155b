//! Gated short convolutions, and their gradients.

use super::rows::{DeviceRows, column_blocks};
use super::sequences::DeviceSequences;
use crate::backend::ConvolutionShape;
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;

/// A short convolution of one decoder block over the sequences of a pass.
#[derive(Clone, Copy)]
pub(crate) struct DeviceConvolution<'a> {
    /// Extents of the convolution.
    pub shape: &'a ConvolutionShape,
    /// Weights: `[channels, kernel]`; the last one of a channel is the current token's.
    pub weight: &'a Slice<f32>,
    /// The sequences; their states are updated to the end of their rows.
    pub sequences: &'a DeviceSequences,
    /// First element of the block's part of a state.
    pub state: usize,
}

impl DeviceConvolution<'_> {
    /// Channels and kernel as kernels take them, once they are checked together with the inputs.
    fn check(&self, extents: Extents, inputs: &DeviceRows) -> Result<[u32; 2]> {
        let Self { shape, weight, sequences, .. } = self;
        extents.check(shape.kernel > 0, "the kernel", shape.kernel, || "at least 1".to_owned())?;
        inputs.expect(extents, "the inputs", sequences.row_count(), shape.input_width())?;
        extents.equal("the weights", weight.len(), shape.channels * shape.kernel)?;
        extents.index("the weights", weight.len())?;
        Ok([extents.index("the channels", shape.channels)?, extents.index("the kernel", shape.kernel)?])
    }
}

/// Convolves rows of inputs, `[rows, 3 · channels]`, and returns `[rows, channels]`. Moves the states of sequences that have one.
pub(crate) fn convolve(device: &CudaDevice, of: DeviceConvolution<'_>, inputs: &DeviceRows) -> Result<DeviceRows> {
    let extents = Extents("convolve");
    let [channels, kernel] = of.check(extents, inputs)?;
    let mut out = DeviceRows::uninitialised(device, inputs.rows(), of.shape.channels)?;
    let ([threads, columns], state) = (column_blocks(channels), Argument::wide(of.state as u64));
    let arguments = [
        inputs.data().into(),
        of.weight.into(),
        of.sequences.sequences().into(),
        of.sequences.rows().into(),
        out.data_mut().into(),
        state,
        channels.into(),
        kernel.into(),
    ];
    device.launch("convolve", [extents.index("the rows", inputs.rows())?, columns, 1], threads, &arguments)?;
    if !of.sequences.have_states() {
        return Ok(out);
    }
    let count = extents.index("the sequences", of.sequences.count())?;
    let arguments = [inputs.data().into(), of.sequences.sequences().into(), state, channels.into(), kernel.into()];
    device.launch("convolve_keep", [count, columns, 1], threads, &arguments)?;
    Ok(out)
}

/// The gradient with respect to inputs of [`convolve`], given that with respect to its output. Every sequence begins at position 0. The
/// gradient of the weights is added to `dw`, sequence by sequence.
pub(crate) fn convolve_backward(
    device: &CudaDevice,
    of: DeviceConvolution<'_>,
    inputs: &DeviceRows,
    d_out: &DeviceRows,
    dw: Option<&mut Slice<f32>>,
) -> Result<DeviceRows> {
    let extents = Extents("convolve_backward");
    let [channels, kernel] = of.check(extents, inputs)?;
    let [rows, _] = d_out.expect(extents, "the gradient of the output", inputs.rows(), of.shape.channels)?;
    let from_start = of.sequences.are_whole();
    extents.check(from_start, "the number of whole sequences", 0, || "all of them".to_owned())?;
    let mut d_inputs = DeviceRows::uninitialised(device, inputs.rows(), inputs.width())?;
    let [threads, columns] = column_blocks(channels);
    let arguments = [
        inputs.data().into(),
        of.weight.into(),
        of.sequences.sequences().into(),
        of.sequences.rows().into(),
        d_out.data().into(),
        d_inputs.data_mut().into(),
        channels.into(),
        kernel.into(),
    ];
    device.launch("convolve_backward", [rows, columns, 1], threads, &arguments)?;
    let Some(dw) = dw else { return Ok(d_inputs) };
    extents.equal("the gradient of the weights", dw.len(), of.weight.len())?;
    let [threads, blocks] = column_blocks(channels * kernel);
    let arguments = [
        inputs.data().into(),
        of.sequences.sequences().into(),
        d_out.data().into(),
        dw.into(),
        extents.index("the sequences", of.sequences.count())?.into(),
        channels.into(),
        kernel.into(),
    ];
    device.launch("convolve_weights", [blocks, 1, 1], threads, &arguments)?;
    Ok(d_inputs)
}
