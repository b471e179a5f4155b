//! The state of one key head of a sequence, with its value heads, and a chunk's rows of inputs for them.

use super::kernels::{convolve, silu_into, softplus, unit_rows};
use crate::cpu::Isa;
use crate::cpu::vexp::{exp, sigmoid};
use crate::{CHUNK, RecurrentRule, RecurrentShape};

/// Parts of the convolution's channels: queries, keys, values.
pub(super) const PARTS: usize = 3;

/// The part of a sequence's state that belongs to one key head.
pub(super) struct HeadState<'a> {
    /// Inputs of the convolution before the next row, by part: `[kernel - 1, channels of the part]`.
    pub(super) tails: [&'a mut [f32]; PARTS],
    /// State at the chunk's start, one for each value head: `[key_dim, value_dim]`.
    pub(super) start: &'a mut [f32],
    /// Keys of the chunk's rows: `[key_dim, CHUNK]`.
    pub(super) keys: &'a mut [f32],
    /// Values that the chunk's rows wrote, for each value head: `[CHUNK, value_dim]`.
    pub(super) written: &'a mut [f32],
    /// Sums of decays of the chunk's rows, for each value head: `[CHUNK]`.
    pub(super) decays: &'a mut [f32],
}

/// Extents of one key head with its value heads.
#[derive(Clone, Copy)]
pub(super) struct HeadShape {
    pub(super) shape: RecurrentShape,
    /// Value heads of a key head.
    pub(super) values: usize,
}

impl HeadShape {
    pub(super) fn new(shape: &RecurrentShape) -> Self {
        Self { shape: *shape, values: shape.value_heads / shape.key_heads.max(1) }
    }

    /// Channels of each part of the convolution.
    pub(super) fn widths(&self) -> [usize; PARTS] {
        [self.shape.key_dim, self.shape.key_dim, self.values * self.shape.value_dim]
    }

    /// First channels of the parts of key head `head` among those of the convolution.
    fn channels(&self, head: usize) -> [usize; PARTS] {
        let [q, k, v] = self.widths();
        let keys = self.shape.key_width();
        [head * q, keys + head * k, 2 * keys + head * v]
    }

    /// First columns of the parts of key head `head` among those of the inputs.
    pub(super) fn columns(&self, head: usize) -> [usize; PARTS] {
        let ([q, k, v], columns) = (self.widths(), self.shape.columns());
        [columns.queries + head * q, columns.keys + head * k, columns.values + head * v]
    }

    /// Lengths of the parts of [`HeadState`]: three tails, start, keys, written values, decays.
    fn lengths(&self) -> [usize; PARTS + 4] {
        let (s, [q, k, v]) = (&self.shape, self.widths());
        let tail = s.kernel - 1;
        let start = self.values * s.key_dim * s.value_dim;
        [tail * q, tail * k, tail * v, start, CHUNK * k, CHUNK * v, CHUNK * self.values]
    }

    /// Elements of the state of one key head.
    pub(super) fn elements(&self) -> usize {
        self.lengths().iter().sum()
    }

    /// The parts of a key head's state.
    pub(super) fn state<'a>(&self, mut elements: &'a mut [f32]) -> HeadState<'a> {
        let mut parts = self.lengths().map(|len| {
            let (part, rest) = std::mem::take(&mut elements).split_at_mut(len);
            elements = rest;
            part
        });
        let mut take = |i: usize| std::mem::take(&mut parts[i]);
        HeadState {
            tails: [take(0), take(1), take(2)],
            start: take(3),
            keys: take(4),
            written: take(5),
            decays: take(6),
        }
    }
}

/// Parameters of one key head with its value heads.
pub(super) struct HeadWeights {
    /// Weights of the convolution by part: `[kernel, channels of the part]`.
    conv: [Vec<f32>; PARTS],
    bias: Option<[Vec<f32>; PARTS]>,
    /// Decay rates `-e^{a_log}`, one for each value head.
    pub(super) rates: Vec<f32>,
    dt_bias: Vec<f32>,
    /// Factors of a row's own value, one for each value head; 0 where the rule has none.
    pub(super) skip: Vec<f32>,
}

/// Parameters as a call has them.
#[derive(Clone, Copy)]
pub(super) struct CallWeights<'a> {
    pub(super) conv: &'a [f32],
    pub(super) conv_bias: Option<&'a [f32]>,
    pub(super) a_log: &'a [f32],
    pub(super) dt_bias: &'a [f32],
    pub(super) skip: Option<&'a [f32]>,
}

impl HeadWeights {
    pub(super) fn of(h: &HeadShape, head: usize, all: &CallWeights<'_>) -> Self {
        let (kernel, widths, channels) = (h.shape.kernel, h.widths(), h.channels(head));
        let conv = std::array::from_fn(|part| {
            let own = &all.conv[channels[part] * kernel..(channels[part] + widths[part]) * kernel];
            (0..kernel).flat_map(|t| own.iter().skip(t).step_by(kernel)).copied().collect()
        });
        let bias =
            all.conv_bias.map(|bias| std::array::from_fn(|p| bias[channels[p]..channels[p] + widths[p]].to_vec()));
        let heads = head * h.values..(head + 1) * h.values;
        let skip = all.skip.map_or_else(|| vec![0.0; h.values], |skip| skip[heads.clone()].to_vec());
        let rates = all.a_log[heads.clone()].iter().map(|a| -exp(*a)).collect();
        Self { conv, bias, rates, dt_bias: all.dt_bias[heads].to_vec(), skip }
    }

    /// Weights of a part's convolution: `[kernel, channels]`.
    pub(super) fn conv(&self, part: usize) -> &[f32] {
        &self.conv[part]
    }
}

/// A chunk's rows of queries, keys and values of one key head, or some of them, and their decays and steps.
pub(super) struct Inputs {
    /// Inputs of the convolution with those before the first row, part after part: `[kernel - 1 + rows, channels]`.
    pub(super) windows: [Vec<f32>; PARTS],
    /// Output of the convolution, part after part: `[rows, channels]`.
    pub(super) convolved: [Vec<f32>; PARTS],
    /// Queries, keys and values: `[rows, channels]`.
    pub(super) parts: [Vec<f32>; PARTS],
    /// Inverses of the norms of queries and keys, with the delta rule.
    pub(super) inverses: [Vec<f32>; 2],
    /// Inputs of the decays with their bias: `[values, rows]`.
    pub(super) raw: Vec<f32>,
    /// Logarithms of decays: `[values, rows]`.
    pub(super) decays: Vec<f32>,
    /// Step sizes β or Δ: `[values, rows]`.
    pub(super) steps: Vec<f32>,
}

impl Inputs {
    /// Reads rows of `inputs`, each of `input_width` elements. `tails` are the convolution's inputs before them.
    pub(super) fn read(
        isa: Isa,
        h: &HeadShape,
        head: usize,
        w: &HeadWeights,
        tails: [&[f32]; PARTS],
        inputs: &[f32],
    ) -> Self {
        let (s, widths, columns) = (&h.shape, h.widths(), h.columns(head));
        let stride = s.input_width();
        let rows = inputs.len() / stride;
        let windows: [Vec<f32>; PARTS] = std::array::from_fn(|part| {
            let mut window = Vec::with_capacity(tails[part].len() + rows * widths[part]);
            window.extend_from_slice(tails[part]);
            for row in inputs.chunks_exact(stride) {
                window.extend_from_slice(&row[columns[part]..columns[part] + widths[part]]);
            }
            window
        });
        let convolved: [Vec<f32>; PARTS] = std::array::from_fn(|part| {
            let mut out = vec![0.0; rows * widths[part]];
            let bias = w.bias.as_ref().map(|bias| &bias[part][..]);
            convolve(isa, &windows[part], &w.conv[part], bias, widths[part], &mut out);
            out
        });
        let mut parts: [Vec<f32>; PARTS] = std::array::from_fn(|part| {
            let mut out = vec![0.0; convolved[part].len()];
            silu_into(isa, &convolved[part], &mut out);
            out
        });
        let mut inverses = [Vec::new(), Vec::new()];
        if s.has_beta() {
            for (part, inverses) in inverses.iter_mut().enumerate() {
                *inverses = vec![0.0; rows];
                unit_rows(isa, &mut parts[part], s.key_dim, h.scale(part), inverses);
            }
        }
        let (mut raw, mut decays, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        let columns = s.columns();
        for value in 0..h.values {
            let own = head * h.values + value;
            for row in inputs.chunks_exact(stride) {
                let x = row[columns.decays + own] + w.dt_bias[value];
                let (decay, step) = match s.rule {
                    RecurrentRule::DeltaNet => (softplus(x), sigmoid(row[columns.steps + own])),
                    RecurrentRule::Mamba2 { limits: (least, most) } => {
                        let step = softplus(x).clamp(least, most);
                        (step, step)
                    }
                };
                raw.push(x);
                decays.push(w.rates[value] * decay);
                steps.push(step);
            }
        }
        Self { windows, convolved, parts, inverses, raw, decays, steps }
    }

    /// The convolution's last inputs of a part, which the next rows need.
    pub(super) fn tail(&self, h: &HeadShape, part: usize) -> &[f32] {
        let window = &self.windows[part];
        &window[window.len() - (h.shape.kernel - 1) * h.widths()[part]..]
    }
}

impl HeadShape {
    /// Factor of normalised queries (part 0) or keys (part 1).
    pub(super) fn scale(&self, part: usize) -> f32 {
        if part == 0 { 1.0 / (self.shape.key_dim as f32).sqrt() } else { 1.0 }
    }
}
