//! Short convolutions on the processor, row by row.

use std::ops::Range;

use super::kernels::multiply;
use super::state::StatePool;
use crate::cpu::Cpu;
use crate::cpu::parallel::{for_rows, par_chunks};
use crate::cpu::rows::HostRows;
use crate::cpu::vexp::multiversion;
use crate::host::HostParams;
use crate::{ConvolutionCall, ConvolutionOps, Rows, Span, StateId};

/// Channels whose weights' gradients a task adds up.
const COLUMNS: usize = 64;

multiversion! {
    /// `out += w · (b · x)`, element by element.
    fn add_gated(w: &[f32], b: &[f32], x: &[f32], out: &mut [f32]) {
        for (((out, w), b), x) in out.iter_mut().zip(w).zip(b).zip(x) {
            *out = w.mul_add(b * x, *out);
        }
    }
}

multiversion! {
    /// `out += w · u`, element by element.
    fn add_held(w: &[f32], u: &[f32], out: &mut [f32]) {
        for ((out, w), u) in out.iter_mut().zip(w).zip(u) {
            *out = w.mul_add(*u, *out);
        }
    }
}

multiversion! {
    /// `sum += (d · c) · (b · x)`, element by element.
    fn add_products(d: &[f32], c: &[f32], b: &[f32], x: &[f32], sum: &mut [f32]) {
        for ((((sum, d), c), b), x) in sum.iter_mut().zip(d).zip(c).zip(b).zip(x) {
            *sum = (d * c).mul_add(b * x, *sum);
        }
    }
}

/// A call with what is derived from its arguments.
struct Convolution<'a> {
    cpu: &'a Cpu,
    call: &'a ConvolutionCall<'a, Cpu>,
    /// Weights by token: `[kernel, channels]`.
    weights: Vec<f32>,
    inputs: &'a HostRows,
    /// Index of the sequence of each row; none for rows of no sequence.
    sequences: Vec<Option<usize>>,
}

/// Parts of a row of inputs.
#[derive(Clone, Copy)]
struct Row<'a> {
    b: &'a [f32],
    c: &'a [f32],
    x: &'a [f32],
}

impl<'a> Convolution<'a> {
    fn new(cpu: &'a Cpu, call: &'a ConvolutionCall<'a, Cpu>, inputs: &'a HostRows) -> Self {
        let kernel = call.shape.kernel;
        assert!(inputs.width() == call.shape.input_width(), "input widths differ");
        let weights = (0..kernel).flat_map(|t| call.weight.iter().skip(t).step_by(kernel)).copied().collect();
        let mut sequences = vec![None; inputs.rows()];
        for (index, span) in call.spans.iter().enumerate() {
            sequences[span.rows.clone()].fill(Some(index));
        }
        Self { cpu, call, weights, inputs, sequences }
    }

    fn channels(&self) -> usize {
        self.call.shape.channels
    }

    fn weights_of(&self, token: usize) -> &[f32] {
        &self.weights[token * self.channels()..(token + 1) * self.channels()]
    }

    fn row(&self, row: usize) -> Row<'a> {
        let width = self.call.shape.input_width();
        let (b, rest) = self.inputs[row * width..(row + 1) * width].split_at(self.call.shape.channels);
        let (c, x) = rest.split_at(self.call.shape.channels);
        Row { b, c, x }
    }

    /// The sequence of a row.
    fn span(&self, row: usize) -> Option<&'a Span> {
        self.sequences[row].map(|index| &self.call.spans[index])
    }

    /// The sum of a row before the gate behind it. `held` has the inputs of the convolution before the sequence's rows, if there are
    /// any: `[kernel - 1, channels]`.
    fn sum(&self, row: usize, first: usize, held: Option<&[f32]>, out: &mut [f32]) {
        let (isa, channels, kernel) = (self.cpu.isa(), self.channels(), self.call.shape.kernel);
        out.fill(0.0);
        for token in 0..kernel {
            // The row that the weight is for, counted from `kernel - 1` rows before the first one.
            let source = row - first + token;
            match source.checked_sub(kernel - 1) {
                Some(source) => {
                    let Row { b, x, .. } = self.row(first + source);
                    add_gated(isa, self.weights_of(token), b, x, out);
                }
                None => {
                    let held = held.map(|held| &held[source * channels..(source + 1) * channels]);
                    held.into_iter().for_each(|held| add_held(isa, self.weights_of(token), held, out));
                }
            }
        }
    }

    /// Moves a sequence's state behind its rows.
    fn move_state(&self, rows: &Range<usize>, state: &mut [f32]) {
        let (channels, tail) = (self.channels(), self.call.shape.kernel - 1);
        let kept = tail.saturating_sub(rows.len());
        state.copy_within((tail - kept) * channels.., 0);
        for (row, to) in (rows.end - (tail - kept)..rows.end).zip(state[kept * channels..].chunks_exact_mut(channels)) {
            let Row { b, x, .. } = self.row(row);
            to.copy_from_slice(b);
            multiply(self.cpu.isa(), to, x);
        }
    }

    /// Gradients of a row's inputs, given those with respect to the output, `d_out`.
    fn row_backward(&self, row: usize, d_out: &[f32], d_inputs: &mut [f32]) {
        let (isa, channels, kernel) = (self.cpu.isa(), self.channels(), self.call.shape.kernel);
        let Some(span) = self.span(row) else { return };
        let (d_b, rest) = d_inputs.split_at_mut(channels);
        let (d_c, d_x) = rest.split_at_mut(channels);
        let d_of = |row: usize| &d_out[row * channels..(row + 1) * channels];
        self.sum(row, span.rows.start, None, d_c);
        multiply(isa, d_c, d_of(row));
        // Later rows see this one through earlier weights.
        for ahead in 0..kernel.min(span.rows.end - row) {
            let later = self.row(row + ahead);
            add_gated(isa, self.weights_of(kernel - 1 - ahead), d_of(row + ahead), later.c, d_b);
        }
        d_x.copy_from_slice(d_b);
        let Row { b, x, .. } = self.row(row);
        multiply(isa, d_b, x);
        multiply(isa, d_x, b);
    }

    /// Adds gradients of the weights of some channels, sequence by sequence.
    fn weights_backward(&self, columns: Range<usize>, d_out: &[f32], dw: &mut [f32]) {
        let (isa, channels, kernel) = (self.cpu.isa(), self.channels(), self.call.shape.kernel);
        for span in self.call.spans {
            let mut sums = vec![0.0; kernel * columns.len()];
            for row in span.rows.clone() {
                let d = &d_out[row * channels..][columns.clone()];
                let c = &self.row(row).c[columns.clone()];
                for (token, sum) in sums.chunks_exact_mut(columns.len()).enumerate() {
                    let Some(source) = (row - span.rows.start + token).checked_sub(kernel - 1) else { continue };
                    let Row { b, x, .. } = self.row(span.rows.start + source);
                    add_products(isa, d, c, &b[columns.clone()], &x[columns.clone()], sum);
                }
            }
            for (token, sum) in sums.chunks_exact(columns.len()).enumerate() {
                dw.iter_mut().skip(token).step_by(kernel).zip(sum).for_each(|(to, d)| *to += d);
            }
        }
    }
}

impl ConvolutionOps<Self> for Cpu {
    const HAS_CONVOLUTIONS: bool = true;

    fn convolve(cpu: &Self, call: &ConvolutionCall<'_, Self>, pool: &mut StatePool, inputs: &HostRows) -> HostRows {
        let own = Convolution::new(cpu, call, inputs);
        let mut taken: Vec<StateId> = call.spans.iter().filter_map(|span| span.state).collect();
        taken.sort_unstable();
        assert!(taken.windows(2).all(|pair| pair[0] != pair[1]), "two sequences share a state");
        let mut stateless = call.spans.iter().filter(|span| span.state.is_none());
        assert!(stateless.all(|span| span.start == 0), "a sequence without a saved state must begin at position 0");
        let mut out = HostRows::zeros(cpu, inputs.rows(), own.channels());
        let states = &*pool;
        for_rows(cpu, &mut out, own.channels(), |row, out| {
            let Some(span) = own.span(row) else { return };
            own.sum(row, span.rows.start, span.state.map(|state| states.held(state, call.layer)), out);
            multiply(cpu.isa(), out, own.row(row).c);
        });
        for span in call.spans {
            if let Some(state) = span.state {
                own.move_state(&span.rows, pool.layer(state, call.layer));
            }
        }
        out
    }

    fn convolve_backward(
        cpu: &Self,
        call: &ConvolutionCall<'_, Self>,
        inputs: &HostRows,
        d_out: &HostRows,
        dw: Option<(&mut HostParams, usize)>,
    ) -> HostRows {
        let own = Convolution::new(cpu, call, inputs);
        let mut d_inputs = HostRows::zeros(cpu, inputs.rows(), inputs.width());
        for_rows(cpu, &mut d_inputs, inputs.width(), |row, d| own.row_backward(row, d_out, d));
        if let Some((params, index)) = dw {
            let kernel = call.shape.kernel;
            par_chunks(&cpu.pool, &mut params[index], COLUMNS * kernel, |i, dw| {
                own.weights_backward(i * COLUMNS..i * COLUMNS + dw.len() / kernel, d_out, dw);
            });
        }
        d_inputs
    }
}
