//! Kernels of mixers that keep a state: the gated delta net of Qwen3.5-9B and Mamba-2 of Nemotron-3-Nano with fewer heads, the short
//! convolution of LFM2, scaled sums, activations without a gate.

use super::super::support::{rows, values};
use super::Counts;
use crate::backend::check::{span, whole};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;
use crate::backend::cuda::ops::activation::{activate, activate_backward, activate_backward_rounded};
use crate::backend::cuda::ops::convolution::{DeviceConvolution, convolve, convolve_backward};
use crate::backend::cuda::ops::norm::DeviceNorm;
use crate::backend::cuda::ops::recurrence::{DeviceRecurrence, recur};
use crate::backend::cuda::ops::recurrence_backward::recur_backward;
use crate::backend::cuda::ops::recurrence_gate::{DeviceGate, gate_backward, gate_output};
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::cuda::ops::scale::add_scaled;
use crate::backend::cuda::ops::sequences::DeviceSequences;
use crate::backend::{Activation, ConvolutionShape, RecurrentRule, RecurrentShape, StateId};
use half::bf16;

const MAMBA: RecurrentRule = RecurrentRule::Mamba2 { limits: (0.0, f32::INFINITY) };

pub(super) fn count(counts: &mut Counts<'_>) {
    let shape = |rule, key_heads, value_heads, value_dim| RecurrentShape {
        rule,
        key_heads,
        value_heads,
        key_dim: 128,
        value_dim,
        kernel: 4,
    };
    recurrence(counts, "1+2 heads of 128x128, delta rule", &shape(RecurrentRule::DeltaNet, 1, 2, 128));
    recurrence(counts, "1+2 heads of 128x64, Mamba-2", &shape(MAMBA, 1, 2, 64));
    convolution(counts);
    elements(counts);
}

/// Vectors of a recurrence on the device: weights and biases of the convolution, of heads, of the norm.
struct Vectors {
    conv: Slice<f32>,
    bias: Slice<f32>,
    heads: Slice<f32>,
    norm: Slice<f32>,
}

impl Vectors {
    fn new(device: &CudaDevice, shape: &RecurrentShape) -> Self {
        let upload = |count: usize, seed| device.upload(&values(count, seed)).unwrap();
        let norm = if shape.has_beta() { shape.value_dim } else { shape.value_width() };
        Self {
            conv: upload(shape.channels() * shape.kernel, 40),
            bias: upload(shape.channels(), 41),
            heads: upload(shape.value_heads, 42),
            norm: upload(norm, 43),
        }
    }

    fn recurrence<'a>(&'a self, shape: &'a RecurrentShape, sequences: &'a DeviceSequences) -> DeviceRecurrence<'a> {
        let is_mamba = !shape.has_beta();
        DeviceRecurrence {
            shape,
            conv: &self.conv,
            conv_bias: is_mamba.then_some(&self.bias),
            a_log: &self.heads,
            dt_bias: &self.heads,
            skip: is_mamba.then_some(&self.heads),
            sequences,
            state: 0,
        }
    }
}

/// A chunk forward and backward, and a token of decoding in the middle of a chunk.
fn recurrence(counts: &mut Counts<'_>, heads: &str, shape: &RecurrentShape) {
    const ROWS: usize = 64;
    let (device, own) = (counts.device, Vectors::new(counts.device, shape));
    let of = |count: usize, width: usize, seed| rows::<f32>(device, &values(count * width, seed), width);
    let inputs = of(ROWS, shape.input_width(), 44);
    let sequences = DeviceSequences::upload(device, &whole(&[ROWS]), &[0], ROWS).unwrap();
    let pass = own.recurrence(shape, &sequences);
    let gate = DeviceGate { shape, norm: DeviceNorm { weight: &own.norm, eps: 1e-5 } };
    let at = format!("64 rows of {heads}");
    let row = |name| (name, "row", ROWS);
    let forward = ["recurrent_inputs", "chunk_sums", "chunk_dots", "chunk_scan"];
    let out = counts.count(&at, &forward.map(row), |device| recur(device, pass, &inputs).unwrap());
    counts.count(&at, &[row("gate_norm")], |device| gate_output(device, gate, &inputs, &out).unwrap());
    let d_gated = of(ROWS, shape.value_width(), 45);
    let at_backward = format!("{at}, backward");
    let backward = [
        "gate_norm_backward",
        "chunk_scan_backward",
        "chunk_gradients",
        "recurrent_inputs_backward",
        "recurrent_taps_backward",
    ];
    let work: Vec<_> = forward.into_iter().chain(backward).map(row).collect();
    let d_inputs = counts.count(&at_backward, &work, |device| {
        recur_backward(device, pass, gate, &inputs, &out, &d_gated, None).unwrap()
    });
    weights(counts, &at, shape, &inputs, &out, &d_gated, d_inputs);

    let state = device.zeros::<f32>(shape.state_elements()).unwrap();
    let spans = [span(0..1, 40, Some(StateId(0)))];
    let sequences = DeviceSequences::upload(device, &spans, &[state.address()], 1).unwrap();
    let (pass, input) = (own.recurrence(shape, &sequences), of(1, shape.input_width(), 46));
    let at = format!("1 row, its chunk's 41st, of {heads}");
    let work: Vec<_> = forward.into_iter().chain(["recurrent_keep"]).map(|name| (name, "row", 1)).collect();
    counts.count(&at, &work, |device| recur(device, pass, &input).unwrap());
}

/// Gradients of the norm's weight and of the convolution's weights of values.
fn weights(
    counts: &mut Counts<'_>,
    at: &str,
    shape: &RecurrentShape,
    inputs: &DeviceRows,
    out: &DeviceRows,
    d_gated: &DeviceRows,
    mut d_inputs: DeviceRows,
) {
    let (device, count) = (counts.device, inputs.rows());
    let own = Vectors::new(device, shape);
    let gate = DeviceGate { shape, norm: DeviceNorm { weight: &own.norm, eps: 1e-5 } };
    let mut dw = device.zeros(own.norm.len()).unwrap();
    let at = format!("{at}, with the weight");
    let work = [("gate_norm_backward", "row", count), ("gate_norm_weights", "row", count)];
    counts.count(&at, &work, |device| {
        gate_backward(device, gate, inputs, out, d_gated, &mut d_inputs, Some(&mut dw)).unwrap()
    });
    let sequences = DeviceSequences::upload(device, &whole(&[count]), &[0], count).unwrap();
    let d_convolved = rows::<f32>(device, &values(count * shape.channels(), 47), shape.channels());
    let width = shape.value_width() as u32;
    let mut dw = device.zeros::<f32>(shape.value_width() * shape.kernel).unwrap();
    let numbers = [shape.key_heads, shape.value_heads, shape.key_dim, shape.value_dim, shape.kernel];
    let numbers = numbers.map(|number| Argument::from(number as u32));
    counts.count(&at, &[("recurrent_conv_weights", "row", count)], |device| {
        let arguments = [
            inputs.data().into(),
            sequences.sequences().into(),
            d_convolved.data().into(),
            (&mut dw).into(),
            1u32.into(),
            (2 * shape.key_width() as u32).into(),
            width.into(),
        ];
        let arguments = [&arguments[..], &numbers, &[u32::from(shape.has_beta()).into()]].concat();
        let blocks = (width * 4).div_ceil(256);
        device.launch("recurrent_conv_weights", [blocks, 1, 1], 256, &arguments).unwrap();
    });
}

fn convolution(counts: &mut Counts<'_>) {
    const ROWS: usize = 4;
    let device = counts.device;
    let shape = ConvolutionShape { channels: 2048, kernel: 3 };
    let weight = device.upload(&values(shape.channels * shape.kernel, 48)).unwrap();
    let state = device.zeros::<f32>(shape.state_elements()).unwrap();
    let of = |width: usize, seed| rows::<f32>(device, &values(ROWS * width, seed), width);
    let (inputs, d_out) = (of(shape.input_width(), 49), of(shape.channels, 50));
    let spans = [span(0..ROWS, 0, Some(StateId(0)))];
    let sequences = DeviceSequences::upload(device, &spans, &[state.address()], ROWS).unwrap();
    let pass = DeviceConvolution { shape: &shape, weight: &weight, sequences: &sequences, state: 0 };
    let (at, elements) = ("4 rows of 2048 channels, kernel 3", ROWS * shape.channels);
    let work = |name| (name, "element", elements);
    counts.count(at, &["convolve", "convolve_keep"].map(work), |device| convolve(device, pass, &inputs).unwrap());
    let mut dw = device.zeros(weight.len()).unwrap();
    counts.count(at, &["convolve_backward", "convolve_weights"].map(work), |device| {
        convolve_backward(device, pass, &inputs, &d_out, Some(&mut dw)).unwrap()
    });
}

fn elements(counts: &mut Counts<'_>) {
    const WIDTH: usize = 4096;
    let device = counts.device;
    let of = |seed| rows::<f32>(device, &values(WIDTH, seed), WIDTH);
    let (mut x, mut d) = (of(51), of(52));
    let work = |name| [(name, "element", WIDTH)];
    let kind = Activation::SquaredRelu;
    counts.count("1x4096", &work("add_scaled"), |device| add_scaled(device, 0.5, &d, &mut x).unwrap());
    counts.count("1x4096", &work("squared_relu_f32"), |device| activate::<f32>(device, kind, &x).unwrap());
    counts.count("1x4096", &work("squared_relu_bf16"), |device| activate::<bf16>(device, kind, &x).unwrap());
    counts.count("1x4096", &work("squared_relu_backward_bf16"), |device| {
        activate_backward_rounded(device, kind, &x, &d).unwrap()
    });
    counts.count("1x4096", &work("squared_relu_backward_f32"), |device| {
        activate_backward(device, kind, &mut x, &mut d).unwrap();
    });
}
