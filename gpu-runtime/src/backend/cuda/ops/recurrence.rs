//! Linear recurrences by chunk: the gated delta net and Mamba-2. All of it is f32.

use super::rows::{DeviceRows, column_blocks, row_threads};
use super::sequences::DeviceSequences;
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;
use crate::backend::{CHUNK, RecurrentRule, RecurrentShape};

/// Maximum number of elements of a key, whose state a thread block holds for some columns of values.
pub(crate) const MOST_KEY_DIM: usize = 256;

/// Columns of values that a thread block of a scan has, and its threads.
const COLUMNS: u32 = 32;
pub(super) const THREADS: u32 = 256;

/// A recurrence of one decoder block over the sequences of a pass.
#[derive(Clone, Copy)]
pub(crate) struct DeviceRecurrence<'a> {
    /// Extents of the recurrence.
    pub shape: &'a RecurrentShape,
    /// Weights of the convolution: `[channels, kernel]`; the last one of a channel is the current token's.
    pub conv: &'a Slice<f32>,
    /// Bias of the convolution: `[channels]`.
    pub conv_bias: Option<&'a Slice<f32>>,
    /// Logarithm of each head's decay rate: `[value_heads]`.
    pub a_log: &'a Slice<f32>,
    /// Added to the decay's input: `[value_heads]`.
    pub dt_bias: &'a Slice<f32>,
    /// Factor of a token's own value: `[value_heads]`, with Mamba-2.
    pub skip: Option<&'a Slice<f32>>,
    /// The sequences; their states are updated to the end of their rows.
    pub sequences: &'a DeviceSequences,
    /// First element of the block's part of a state.
    pub state: usize,
}

/// Numbers of rows, sequences, chunks and heads as kernels take them.
#[derive(Clone, Copy)]
pub(super) struct Grids {
    pub(super) rows: u32,
    pub(super) sequences: u32,
    pub(super) chunks: u32,
    pub(super) key_heads: u32,
    pub(super) value_heads: u32,
    pub(super) channels: u32,
}

/// What a chunk's outputs are computed from.
pub(super) struct Prepared {
    /// Queries, keys and values: `[rows, channels]`.
    pub(super) parts: DeviceRows,
    /// Logarithms of decays: `[rows, value_heads]`.
    pub(super) decays: DeviceRows,
    /// Step sizes: `[rows, value_heads]`.
    pub(super) steps: DeviceRows,
    /// Sums of logarithms of decays from the chunk's start on: `[rows, value_heads]`.
    pub(super) sums: DeviceRows,
    /// Products of rows' queries and keys with keys of their chunk: `[rows, key_heads · 2 · CHUNK]`.
    pub(super) dots: DeviceRows,
}

/// What a backward pass needs of a forward pass.
pub(super) struct Trace {
    /// What rows write before and after their steps: `[rows, value_width]`.
    pub(super) residuals: DeviceRows,
    pub(super) written: DeviceRows,
    /// States at boundaries between chunks of a sequence: `[boundaries · value_heads · key_dim, value_dim]`.
    pub(super) starts: DeviceRows,
}

/// Returns an error unless kernels take heads of these extents.
pub(super) fn check_heads(extents: Extents, s: &RecurrentShape) -> Result {
    let between = |what, found: usize, most: usize| {
        extents.check((1..=most).contains(&found), what, found, || format!("between 1 and {most}"))
    };
    between("the width of a key head", s.key_dim, MOST_KEY_DIM)?;
    between("the kernel", s.kernel, usize::MAX)?;
    between("the number of key heads", s.key_heads, s.value_heads)?;
    let is_shared = s.value_heads.is_multiple_of(s.key_heads);
    extents.check(is_shared, "the number of value heads", s.value_heads, || format!("a multiple of {}", s.key_heads))
}

/// Arguments of kernels that take a shape.
pub(super) fn shape_arguments(extents: Extents, s: &RecurrentShape) -> Result<[Argument<'static>; 6]> {
    let numbers = [s.key_heads, s.value_heads, s.key_dim, s.value_dim, s.kernel, usize::from(s.has_beta())];
    let mut arguments = [Argument::null(); 6];
    for (argument, number) in arguments.iter_mut().zip(numbers) {
        *argument = extents.index("an extent of the recurrence", number)?.into();
    }
    Ok(arguments)
}

impl DeviceRecurrence<'_> {
    /// Numbers as kernels take them, once all extents are checked.
    pub(super) fn check(&self, extents: Extents, inputs: &DeviceRows) -> Result<Grids> {
        let s = self.shape;
        check_heads(extents, s)?;
        inputs.expect(extents, "the inputs", self.sequences.row_count(), s.input_width())?;
        extents.equal("the weights of the convolution", self.conv.len(), s.channels() * s.kernel)?;
        extents.index("the weights of the convolution", self.conv.len())?;
        if let Some(bias) = self.conv_bias {
            extents.equal("the bias of the convolution", bias.len(), s.channels())?;
        }
        extents.equal("the rates of decay", self.a_log.len(), s.value_heads)?;
        extents.equal("the bias of decays", self.dt_bias.len(), s.value_heads)?;
        let skip = if s.has_beta() { 0 } else { s.value_heads };
        extents.equal("the factors of own values", self.skip.map_or(0, Slice::len), skip)?;
        Ok(Grids {
            rows: extents.index("the rows", inputs.rows())?,
            sequences: extents.index("the sequences", self.sequences.count())?,
            chunks: extents.index("the chunks", self.sequences.chunk_count())?,
            key_heads: extents.index("the key heads", s.key_heads)?,
            value_heads: extents.index("the value heads", s.value_heads)?,
            channels: extents.index("the channels", s.channels())?,
        })
    }

    /// Bounds of a step, as kernels take them.
    pub(super) fn limits(&self) -> [Argument<'static>; 2] {
        match self.shape.rule {
            RecurrentRule::DeltaNet => [0.0, 0.0],
            RecurrentRule::Mamba2 { limits: (least, most) } => [least, most],
        }
        .map(Argument::from)
    }

    /// Threads of a block that has a head of a row.
    pub(super) fn head_threads(&self, extents: Extents) -> Result<u32> {
        Ok(row_threads(extents.index("the width of a head", self.shape.key_dim.max(self.shape.value_dim))?))
    }

    /// Rows of which sequences write all: zeros where rows are outside of all sequences.
    pub(super) fn rows_of_sequences(&self, device: &CudaDevice, rows: usize, width: usize) -> Result<DeviceRows> {
        match self.sequences.covers_all_rows() {
            true => DeviceRows::uninitialised(device, rows, width),
            false => DeviceRows::zeros(device, rows, width),
        }
    }

    /// The grid of a scan over sequences.
    pub(super) fn scan_grid(&self, extents: Extents, grids: &Grids) -> Result<[u32; 3]> {
        let value_dim = extents.index("the width of a value head", self.shape.value_dim)?;
        Ok([value_dim.div_ceil(COLUMNS), grids.value_heads, grids.sequences])
    }

    pub(super) fn prepare(&self, device: &CudaDevice, extents: Extents, inputs: &DeviceRows) -> Result<Prepared> {
        let (grids, shape) = (self.check(extents, inputs)?, shape_arguments(extents, self.shape)?);
        let (rows, s, state) = (inputs.rows(), self.shape, Argument::wide(self.state as u64));
        let heads = || DeviceRows::uninitialised(device, rows, s.value_heads);
        let mut parts = DeviceRows::uninitialised(device, rows, s.channels())?;
        let [mut decays, mut steps, mut sums] = [heads()?, heads()?, heads()?];
        let mut dots = DeviceRows::uninitialised(device, rows, s.key_heads * 2 * CHUNK)?;
        let arguments = [
            inputs.data().into(),
            self.conv.into(),
            self.conv_bias.map_or(Argument::null(), Argument::from),
            self.a_log.into(),
            self.dt_bias.into(),
            self.sequences.sequences().into(),
            self.sequences.rows().into(),
            parts.data_mut().into(),
            decays.data_mut().into(),
            steps.data_mut().into(),
            state,
        ];
        let arguments = [&arguments[..], &self.limits(), &shape].concat();
        let units = [grids.rows, 2 * grids.key_heads + grids.value_heads, 1];
        device.launch("recurrent_inputs", units, self.head_threads(extents)?, &arguments)?;
        let (sequences, chunks) = (self.sequences.sequences().into(), self.sequences.chunks().into());
        let arguments = [decays.data().into(), sequences, chunks, sums.data_mut().into(), state];
        let arguments = [&arguments[..], &shape].concat();
        let [threads, blocks] = column_blocks(grids.value_heads);
        device.launch("chunk_sums", [grids.chunks, blocks, 1], threads, &arguments)?;
        let arguments = [parts.data().into(), sequences, chunks, dots.data_mut().into(), state];
        let arguments = [&arguments[..], &shape].concat();
        device.launch("chunk_dots", [grids.chunks, grids.key_heads, 1], THREADS, &arguments)?;
        Ok(Prepared { parts, decays, steps, sums, dots })
    }

    /// Outputs of rows, and a trace if one is given to be written.
    pub(super) fn scan(
        &self,
        device: &CudaDevice,
        extents: Extents,
        inputs: &DeviceRows,
        prepared: &Prepared,
        trace: Option<&mut Trace>,
    ) -> Result<DeviceRows> {
        let (grids, shape) = (self.check(extents, inputs)?, shape_arguments(extents, self.shape)?);
        let mut out = self.rows_of_sequences(device, inputs.rows(), self.shape.value_width())?;
        let traced = trace.map_or([Argument::null(); 3], |trace| {
            [&mut trace.residuals, &mut trace.written, &mut trace.starts].map(|rows| rows.data_mut().into())
        });
        let arguments = [
            prepared.parts.data().into(),
            prepared.steps.data().into(),
            prepared.sums.data().into(),
            prepared.dots.data().into(),
            self.skip.map_or(Argument::null(), Argument::from),
            self.sequences.sequences().into(),
            self.sequences.chunks().into(),
            out.data_mut().into(),
        ];
        let arguments = [&arguments[..], &traced, &[Argument::wide(self.state as u64)], &shape].concat();
        device.launch("chunk_scan", self.scan_grid(extents, &grids)?, THREADS, &arguments)?;
        Ok(out)
    }
}

/// Runs the recurrence over rows of inputs, `[rows, input_width]`, and returns its output before the norm and the gate,
/// `[rows, value_width]`. Moves the states of sequences that have one.
pub(crate) fn recur(device: &CudaDevice, of: DeviceRecurrence<'_>, inputs: &DeviceRows) -> Result<DeviceRows> {
    let extents = Extents("recur");
    let (grids, shape) = (of.check(extents, inputs)?, shape_arguments(extents, of.shape)?);
    let prepared = of.prepare(device, extents, inputs)?;
    let out = of.scan(device, extents, inputs, &prepared, None)?;
    if of.sequences.have_states() {
        let arguments = [
            inputs.data().into(),
            prepared.parts.data().into(),
            prepared.sums.data().into(),
            of.sequences.sequences().into(),
            of.sequences.chunks().into(),
            Argument::wide(of.state as u64),
        ];
        let [threads, blocks] = column_blocks(grids.channels.max(grids.value_heads));
        let arguments = [&arguments[..], &shape].concat();
        device.launch("recurrent_keep", [grids.sequences, blocks, 1], threads, &arguments)?;
    }
    Ok(out)
}
