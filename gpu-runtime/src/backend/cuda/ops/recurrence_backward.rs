//! Gradients of linear recurrences over whole sequences.

use super::bias::bias_backward;
use super::recurrence::{DeviceRecurrence, Grids, Prepared, THREADS, Trace, shape_arguments};
use super::recurrence_gate::{DeviceGate, gate_backward};
use super::rows::{DeviceRows, column_blocks};
use crate::backend::RecurrentParams;
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;

const EXTENTS: Extents = Extents("recur_backward");

/// Gradients of parameters, and which of them are those of the recurrence.
pub(crate) struct RecurrenceGradients<'a> {
    /// Gradients of all parameters.
    pub params: &'a mut [Slice<f32>],
    /// Indices of the recurrence's parameters.
    pub own: RecurrentParams,
}

/// A backward pass of a recurrence.
struct Backward<'a> {
    device: &'a CudaDevice,
    of: DeviceRecurrence<'a>,
    inputs: &'a DeviceRows,
    grids: Grids,
    shape: [Argument<'static>; 6],
}

/// Gradients that the chunks of a pass contribute.
struct ChunkGradients {
    /// Gradients with respect to queries, keys and values: `[rows, channels]`.
    d_parts: DeviceRows,
    /// Gradients with respect to logarithms of decays, and to steps: `[rows, value_heads]`.
    d_decays: DeviceRows,
    d_steps: DeviceRows,
    /// What rows add to the gradient of factors of own values, with Mamba-2: `[rows, value_heads]`.
    skip_terms: Option<DeviceRows>,
}

impl Backward<'_> {
    fn launch(&self, name: &str, grid: [u32; 3], threads: u32, arguments: &[Argument<'_>]) -> Result {
        self.device.launch(name, grid, threads, &[arguments, &self.shape].concat())
    }

    fn heads(&self) -> Result<DeviceRows> {
        DeviceRows::uninitialised(self.device, self.inputs.rows(), self.of.shape.value_heads)
    }

    fn values(&self) -> Result<DeviceRows> {
        DeviceRows::uninitialised(self.device, self.inputs.rows(), self.of.shape.value_width())
    }

    fn states(&self) -> Result<DeviceRows> {
        let s = self.of.shape;
        let rows = self.of.sequences.boundaries() * s.value_heads * s.key_dim;
        DeviceRows::uninitialised(self.device, rows, s.value_dim)
    }

    fn chunks(&self, prepared: &Prepared, d_out: &DeviceRows) -> Result<ChunkGradients> {
        let (of, grids, s) = (&self.of, &self.grids, self.of.shape);
        let mut trace = Trace { residuals: self.values()?, written: self.values()?, starts: self.states()? };
        of.scan(self.device, EXTENTS, self.inputs, prepared, Some(&mut trace))?;
        let (mut d_written, mut ends) = (self.values()?, self.states()?);
        let (chunks, skip) = (of.sequences.chunks(), of.skip.map_or(Argument::null(), Argument::from));
        let [parts, steps, sums, dots] =
            [&prepared.parts, &prepared.steps, &prepared.sums, &prepared.dots].map(|rows| Argument::from(rows.data()));
        let arguments = [
            parts,
            steps,
            sums,
            dots,
            d_out.data().into(),
            of.sequences.sequences().into(),
            chunks.into(),
            d_written.data_mut().into(),
            ends.data_mut().into(),
        ];
        self.launch("chunk_scan_backward", of.scan_grid(EXTENTS, grids)?, THREADS, &arguments)?;
        let mut own = ChunkGradients {
            d_parts: DeviceRows::uninitialised(self.device, self.inputs.rows(), s.channels())?,
            d_decays: self.heads()?,
            d_steps: self.heads()?,
            skip_terms: match s.has_beta() {
                true => None,
                false => Some(of.rows_of_sequences(self.device, self.inputs.rows(), s.value_heads)?),
            },
        };
        let arguments = [
            parts,
            steps,
            sums,
            dots,
            skip,
            d_out.data().into(),
            trace.residuals.data().into(),
            trace.written.data().into(),
            d_written.data().into(),
            trace.starts.data().into(),
            ends.data().into(),
            of.sequences.sequences().into(),
            chunks.into(),
            own.d_parts.data_mut().into(),
            own.d_decays.data_mut().into(),
            own.d_steps.data_mut().into(),
            own.skip_terms.as_mut().map_or(Argument::null(), |terms| terms.data_mut().into()),
        ];
        self.launch("chunk_gradients", [grids.chunks, grids.key_heads, 1], THREADS, &arguments)?;
        Ok(own)
    }

    /// Takes gradients back through norms, SiLU, steps and the convolution, to columns of `d_inputs`. Returns what rows add to the
    /// gradient of the logarithms of decays' rates.
    fn inputs(&self, prepared: &Prepared, own: &mut ChunkGradients, d_inputs: &mut DeviceRows) -> Result<DeviceRows> {
        let (of, grids) = (&self.of, &self.grids);
        let mut a_log_terms = self.heads()?;
        let arguments = [
            self.inputs.data().into(),
            of.conv.into(),
            of.conv_bias.map_or(Argument::null(), Argument::from),
            of.a_log.into(),
            of.dt_bias.into(),
            of.sequences.sequences().into(),
            of.sequences.rows().into(),
            prepared.parts.data().into(),
            prepared.decays.data().into(),
            prepared.steps.data().into(),
            own.d_decays.data().into(),
            own.d_steps.data().into(),
            own.d_parts.data_mut().into(),
            d_inputs.data_mut().into(),
            a_log_terms.data_mut().into(),
        ];
        let units = [grids.rows, 2 * grids.key_heads + grids.value_heads, 1];
        let arguments = [&arguments[..], &of.limits()].concat();
        self.launch("recurrent_inputs_backward", units, of.head_threads(EXTENTS)?, &arguments)?;
        let arguments = [
            of.conv.into(),
            of.sequences.sequences().into(),
            of.sequences.rows().into(),
            own.d_parts.data().into(),
            d_inputs.data_mut().into(),
        ];
        let [threads, blocks] = column_blocks(grids.channels);
        self.launch("recurrent_taps_backward", [grids.rows, blocks, 1], threads, &arguments)?;
        Ok(a_log_terms)
    }

    /// Adds the gradients of the convolution's weights and biases: those of queries, keys and values are parameters of their own.
    fn convolution(&self, d_convolved: &DeviceRows, into: &mut RecurrenceGradients<'_>) -> Result {
        let s = self.of.shape;
        let mut first = 0;
        for (part, width) in [s.key_width(), s.key_width(), s.value_width()].into_iter().enumerate() {
            let dw = &mut into.params[into.own.conv[part]];
            EXTENTS.equal("the gradient of the convolution's weights", dw.len(), width * s.kernel)?;
            let [threads, blocks] = column_blocks(EXTENTS.index("the weights of the convolution", dw.len())?);
            let arguments = [
                self.inputs.data().into(),
                self.of.sequences.sequences().into(),
                d_convolved.data().into(),
                dw.into(),
                self.grids.sequences.into(),
                EXTENTS.index("the first channel", first)?.into(),
                EXTENTS.index("the channels", width)?.into(),
            ];
            self.launch("recurrent_conv_weights", [blocks, 1, 1], threads, &arguments)?;
            if let Some(biases) = into.own.conv_bias {
                bias_backward(self.device, d_convolved, first..first + width, &mut into.params[biases[part]])?;
            }
            first += width;
        }
        Ok(())
    }
}

/// The gradient with respect to inputs, `[rows, input_width]`, given that with respect to the gated output, `d_gated`. Every sequence
/// begins at position 0. Gradients of parameters, rows in order, are added to `grads`.
pub(crate) fn recur_backward(
    device: &CudaDevice,
    of: DeviceRecurrence<'_>,
    gate: DeviceGate<'_>,
    inputs: &DeviceRows,
    out: &DeviceRows,
    d_gated: &DeviceRows,
    mut grads: Option<RecurrenceGradients<'_>>,
) -> Result<DeviceRows> {
    let from_start = of.sequences.are_whole();
    EXTENTS.check(from_start, "the number of whole sequences", 0, || "all of them".to_owned())?;
    let (grids, shape) = (of.check(EXTENTS, inputs)?, shape_arguments(EXTENTS, of.shape)?);
    let mut d_inputs = DeviceRows::uninitialised(device, inputs.rows(), inputs.width())?;
    let of_norm = grads.as_mut().map(|grads| &mut grads.params[grads.own.norm]);
    let d_out = gate_backward(device, gate, inputs, out, d_gated, &mut d_inputs, of_norm)?;
    let pass = Backward { device, of, inputs, grids, shape };
    let prepared = of.prepare(device, EXTENTS, inputs)?;
    let mut own = pass.chunks(&prepared, &d_out)?;
    drop(d_out);
    let a_log_terms = pass.inputs(&prepared, &mut own, &mut d_inputs)?;
    let Some(mut grads) = grads else { return Ok(d_inputs) };
    pass.convolution(&own.d_parts, &mut grads)?;
    let RecurrenceGradients { params, own: indices } = grads;
    let (heads, first) = (of.shape.value_heads, of.shape.columns().decays);
    bias_backward(device, &a_log_terms, 0..heads, &mut params[indices.a_log])?;
    bias_backward(device, &d_inputs, first..first + heads, &mut params[indices.dt_bias])?;
    if let (Some(terms), Some(skip)) = (&own.skip_terms, indices.skip) {
        bias_backward(device, terms, 0..heads, &mut params[skip])?;
    }
    Ok(d_inputs)
}
