//! Mixers that keep a state, on sequences of a pass: recurrences, short convolutions, and scaled sums.

use std::ops::Range;

use super::access::{HostAccess, Numbers, Results};
use crate::rng::kaiming_uniform_fill;
use crate::{
    Backend, ConvolutionCall, ConvolutionOps, ConvolutionShape, FamilyOps, Norm, Params, RecurrentCall, RecurrentOps,
    RecurrentParams, RecurrentShape, ScaleOps, Source, Span, StateId, StateOps, StateShape,
};

const EPS: f32 = 1e-5;
/// Parameters as their indices are in the gradient.
const PARAMS: RecurrentParams =
    RecurrentParams { conv: [0, 1, 2], conv_bias: Some([3, 4, 5]), a_log: 6, dt_bias: 7, skip: Some(8), norm: 9 };

/// Numbers in [-1, 1) that only `len` and `seed` decide.
pub fn values(len: usize, seed: u64) -> Vec<f32> {
    let mut out = vec![0.0; len];
    kaiming_uniform_fill(seed, 0, &mut out, 1.0);
    out
}

/// Rows of a sequence that begins at position `start`.
pub fn span(rows: Range<usize>, start: usize, state: Option<StateId>) -> Span {
    Span { rows, start, blocks: Vec::new(), held: 0, state }
}

/// Whole sequences, one after the other.
pub fn whole(lens: &[usize]) -> Vec<Span> {
    let mut row = 0;
    let next = |len: &usize| {
        row += len;
        span(row - len..row, 0, None)
    };
    lens.iter().map(next).collect()
}

/// A recurrence with its parameters on a backend.
pub struct Recurrence<'b, B: Backend> {
    backend: &'b B,
    shape: RecurrentShape,
    /// Weights and biases of the convolution, rates, biases of decays, factors of own values, the norm.
    vectors: [B::Vector; 6],
}

impl<'b, B: HostAccess> Recurrence<'b, B> {
    /// Returns a recurrence with parameters that its shape decides.
    pub fn new(backend: &'b B, shape: RecurrentShape) -> Self {
        let lens = [
            shape.channels() * shape.kernel,
            shape.channels(),
            shape.value_heads,
            shape.value_heads,
            shape.value_heads,
            if shape.has_beta() { shape.value_dim } else { shape.value_width() },
        ];
        let mut seed = 99;
        let vectors = lens.map(|len| {
            seed += 1;
            backend.vector(&[Source::Host(&values(len, seed))], 0.0)
        });
        Self { backend, shape, vectors }
    }

    /// Returns the call of the op for rows of spans.
    pub fn call<'a>(&'a self, spans: &'a [Span]) -> RecurrentCall<'a, B> {
        let is_mamba = !self.shape.has_beta();
        let [conv, conv_bias, a_log, dt_bias, skip, norm] = &self.vectors;
        RecurrentCall {
            shape: &self.shape,
            layer: 0,
            spans,
            conv,
            conv_bias: is_mamba.then_some(conv_bias),
            a_log,
            dt_bias,
            skip: is_mamba.then_some(skip),
            norm: Norm { weight: norm, eps: EPS },
        }
    }

    /// Outputs and gated outputs of rows of inputs.
    pub fn run(
        &self,
        pool: &mut <B::Family as StateOps<B>>::StatePool,
        spans: &[Span],
        inputs: &[f32],
    ) -> [Vec<f32>; 2] {
        let inputs = self.backend.rows(inputs, self.shape.input_width());
        let out = B::Family::recur(self.backend, &self.call(spans), pool, &inputs);
        let gated = B::Family::gate_output(self.backend, &self.call(spans), &inputs, &out);
        [self.backend.values(&out), self.backend.values(&gated)]
    }

    /// Returns an empty pool of states for one layer.
    pub fn pool(&self) -> <B::Family as StateOps<B>>::StatePool {
        B::Family::state_pool(self.backend, &[StateShape::Recurrent(self.shape)])
    }

    /// Gated outputs of whole sequences, gradients of their inputs, and of the parameters.
    pub fn backward(&self, lens: &[usize], inputs: &[f32]) -> [Vec<f32>; 3] {
        let (b, shape, spans) = (self.backend, &self.shape, whole(lens));
        let [out, gated] = self.run(&mut self.pool(), &spans, inputs);
        let d_gated = values(gated.len(), 7);
        let (keys, own) = (shape.key_width(), shape.value_width());
        let norm = if shape.has_beta() { shape.value_dim } else { own };
        let heads = shape.value_heads;
        let kernel = shape.kernel;
        let lens = [keys * kernel, keys * kernel, own * kernel, keys, keys, own, heads, heads, heads, norm];
        let mut grads = b.begin_gradient(&lens, None);
        let mut params = PARAMS;
        if shape.has_beta() {
            (params.conv_bias, params.skip) = (None, None);
        }
        let rows = |x: &[f32], width: usize| b.rows(x, width);
        let d_inputs = B::Family::recur_backward(
            b,
            &self.call(&spans),
            &rows(inputs, shape.input_width()),
            &rows(&out, own),
            &rows(&d_gated, own),
            Some((&mut grads, params)),
        );
        b.finish_gradient(&mut grads);
        let used = (0..lens.len()).filter(|index| !shape.has_beta() || ![3, 4, 5, 8].contains(index));
        let grads = used.flat_map(|index| grads.host(index).into_owned()).collect();
        [gated, b.values(&d_inputs), grads]
    }
}

/// A short convolution with its weights on a backend.
pub struct Convolution<'b, B: Backend> {
    backend: &'b B,
    shape: ConvolutionShape,
    weight: B::Vector,
}

impl<'b, B: HostAccess> Convolution<'b, B> {
    /// Returns a convolution with weights that its shape decides.
    pub fn new(backend: &'b B, shape: ConvolutionShape) -> Self {
        let weight = backend.vector(&[Source::Host(&values(shape.channels * shape.kernel, 100))], 0.0);
        Self { backend, shape, weight }
    }

    /// Returns the call of the op for rows of spans.
    pub fn call<'a>(&'a self, spans: &'a [Span]) -> ConvolutionCall<'a, B> {
        ConvolutionCall { shape: &self.shape, layer: 0, spans, weight: &self.weight }
    }

    /// Returns an empty pool of states for one layer.
    pub fn pool(&self) -> <B::Family as StateOps<B>>::StatePool {
        B::Family::state_pool(self.backend, &[StateShape::Convolution(self.shape)])
    }

    /// Outputs `[rows, channels]` of the rows of spans, whose states are in a pool.
    pub fn run(&self, pool: &mut <B::Family as StateOps<B>>::StatePool, spans: &[Span], inputs: &[f32]) -> Vec<f32> {
        let inputs = self.backend.rows(inputs, self.shape.input_width());
        self.backend.values(&B::Family::convolve(self.backend, &self.call(spans), pool, &inputs))
    }

    /// Outputs of whole sequences, gradients of their inputs, and of the weights.
    pub fn backward(&self, lens: &[usize], inputs: &[f32]) -> [Vec<f32>; 3] {
        let (b, spans) = (self.backend, whole(lens));
        let out = self.run(&mut self.pool(), &spans, inputs);
        let d_out = b.rows(&values(out.len(), 7), self.shape.channels);
        let mut grads = b.begin_gradient(&[self.shape.channels * self.shape.kernel], None);
        let inputs = b.rows(inputs, self.shape.input_width());
        let d = B::Family::convolve_backward(b, &self.call(&spans), &inputs, &d_out, Some((&mut grads, 0)));
        b.finish_gradient(&mut grads);
        [out, b.values(&d), grads.host(0).into_owned()]
    }
}

/// Outputs, gated outputs and gradients of a recurrence over whole sequences, and outputs of the first one in two passes.
pub fn recurrences<B: HostAccess>(b: &B, shape: RecurrentShape, lens: &[usize], seed: u64) -> Results {
    let (own, width) = (Recurrence::new(b, shape), shape.input_width());
    let inputs = values(lens.iter().sum::<usize>() * width, seed);
    let [gated, d_inputs, d_params] = own.backward(lens, &inputs);
    let mut pool = own.pool();
    let state = B::Family::state_take(b, &mut pool);
    let pieces = [0..lens[0] - 1, lens[0] - 1..lens[0]].map(|rows| {
        let spans = [span(0..rows.len(), rows.start, Some(state))];
        let [out, _] = own.run(&mut pool, &spans, &inputs[rows.start * width..rows.end * width]);
        out
    });
    let [out, _] = own.run(&mut pool, &whole(lens), &inputs);
    vec![
        ("out", out),
        ("gated", gated),
        ("d inputs", d_inputs),
        ("d parameters", d_params),
        ("pieces", pieces.concat()),
    ]
}

/// Outputs and gradients of a short convolution over whole sequences, and outputs of the first one in two passes.
pub fn convolutions<B: HostAccess>(b: &B, shape: ConvolutionShape, lens: &[usize], seed: u64) -> Results {
    let (own, width) = (Convolution::new(b, shape), shape.input_width());
    let inputs = values(lens.iter().sum::<usize>() * width, seed);
    let [out, d_inputs, d_weight] = own.backward(lens, &inputs);
    let mut pool = own.pool();
    let state = B::Family::state_take(b, &mut pool);
    let pieces = [0..lens[0] - 1, lens[0] - 1..lens[0]].map(|rows| {
        let spans = [span(0..rows.len(), rows.start, Some(state))];
        own.run(&mut pool, &spans, &inputs[rows.start * width..rows.end * width])
    });
    vec![("out", out), ("d inputs", d_inputs), ("d weights", d_weight), ("pieces", pieces.concat())]
}

/// A sum with a factor.
pub fn scaled<B: HostAccess>(b: &B, rows: usize, width: usize, seed: u64) -> Results {
    let mut n = Numbers(seed);
    let (from, mut to) = (b.rows(&n.take(rows * width), width), b.rows(&n.take(rows * width), width));
    B::Family::add_scaled_rows(b, 0.3, &from, &mut to);
    vec![("sum", b.values(&to)), ("product", b.values(&B::Family::scaled_rows(b, 0.7, &from)))]
}
