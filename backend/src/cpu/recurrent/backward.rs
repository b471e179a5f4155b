//! The backward pass of a recurrence over one key head of a sequence, chunk by chunk from the last one on.
//!
//! With the gradients `ō` of outputs, `S̄` of the state at the chunk's end, `ū_i = β_i δ̄_i` and `D_ij = e^{G_i − G_j}`:
//! `δ̄_j = Σ_{i≥j} D_ij (q_i·k_j) ō_i + D_Cj S̄ᵗ k_j − Σ_{i>j} D_ij (k_i·k_j) ū_i`,
//! `q̄_i = e^{G_i} S ō_i + Σ_{j≤i} D_ij (ō_i·δ_j) k_j`,
//! `k̄_i = −e^{G_i} S ū_i − Σ_{j<i} D_ij (ū_i·δ_j) k_j + Σ_{l≥i} D_li (ō_l·δ_i) q_l − Σ_{l>i} D_li (ū_l·δ_i) k_l + D_Ci S̄ δ_i`,
//! `S̄ ← e^{G_C} S̄ + Σ_i e^{G_i} (q_i ō_iᵗ − k_i ū_iᵗ)`. The gradient of a decay sums those of all `G` from its row to the chunk's end.

use super::forward::{ChunkTrace, HeadRows};
use super::head::PARTS;
use super::kernels::{
    add_along, add_scaled, add_taps, convolve_back, decay, dot_product, lower_decays, multiply, scale_columns,
    scale_rows, silu_backward, transpose, unit_rows_backward,
};
use super::products::{add_lower_product, add_product, add_upper_product, substitute_back, write_state};
use crate::cpu::vexp::sigmoid;
use crate::{CHUNK, RecurrentRule};

/// Gradients of one key head's parameters over one sequence.
pub(super) struct HeadGradients {
    /// Gradients of the convolution's weights, part after part: `[kernel, channels]`.
    pub(super) conv: [Vec<f32>; PARTS],
    /// Gradients of the convolution's biases, part after part.
    pub(super) bias: [Vec<f32>; PARTS],
    /// Gradients of the logarithms of decay rates, one for each value head.
    pub(super) a_log: Vec<f32>,
    pub(super) dt_bias: Vec<f32>,
    pub(super) skip: Vec<f32>,
}

/// Gradients with respect to a row's inputs: columns of queries, keys, values, decays and steps of the key head.
pub(super) struct InputGradients {
    /// Gradients of queries, keys and values: `[rows, channels]`.
    pub(super) parts: [Vec<f32>; PARTS],
    /// Gradients of the decays' inputs: `[values, rows]`.
    pub(super) decays: Vec<f32>,
    pub(super) steps: Vec<f32>,
}

/// State, decays and written values of a chunk as its forward pass left them.
struct Chunk {
    trace: ChunkTrace,
    start: Vec<f32>,
    written: Vec<f32>,
    sums: Vec<f32>,
}

/// Multiplies each row of `width` elements by its factor.
fn scale_each(x: &mut [f32], width: usize, by: &[f32]) {
    for (x, by) in x.chunks_exact_mut(width).zip(by) {
        x.iter_mut().for_each(|x| *x *= by);
    }
}

impl HeadRows<'_> {
    /// Gradients of a whole sequence, given those with respect to the outputs, `d_out`: `[rows, values · value_dim]`; of
    /// parameters if they are asked for.
    pub(super) fn backward(&self, d_out: &[f32], of_parameters: bool) -> (InputGradients, Option<HeadGradients>) {
        let (h, s) = (&self.shape, &self.shape.shape);
        let rows = self.inputs.len() / s.input_width();
        let mut elements = vec![0.0; h.elements()];
        let mut state = h.state(&mut elements);
        // The state at each chunk's start: it has moved on when a chunk's trace arrives only after that.
        let mut chunks: Vec<Chunk> = Vec::new();
        self.run(
            0,
            &mut state,
            |_, _, _| {},
            |trace, state| {
                let (start, written, sums) = (state.start.to_vec(), state.written.to_vec(), state.decays.to_vec());
                chunks.push(Chunk { trace, start, written, sums });
            },
        );
        let widths = h.widths();
        let mut inputs = InputGradients {
            parts: widths.map(|width| vec![0.0; rows * width]),
            decays: vec![0.0; rows * h.values],
            steps: vec![0.0; rows * h.values],
        };
        let mut own = of_parameters.then(|| HeadGradients {
            conv: widths.map(|width| vec![0.0; width * s.kernel]),
            bias: widths.map(|width| vec![0.0; width]),
            a_log: vec![0.0; h.values],
            dt_bias: vec![0.0; h.values],
            skip: vec![0.0; h.values],
        });
        let mut d_state = vec![0.0; h.values * s.key_dim * s.value_dim];
        for (index, chunk) in chunks.iter().enumerate().rev() {
            self.chunk_backward(index * CHUNK, rows, chunk, d_out, &mut d_state, &mut inputs);
        }
        if let Some(own) = &mut own {
            self.parameter_gradients(&chunks, d_out, &inputs, own);
        }
        self.step_gradients(&chunks, rows, &mut inputs);
        self.convolution_backward(&chunks, &mut inputs, own.as_mut());
        (inputs, own)
    }

    /// Gradients of a chunk of which row 0 is row `at` of the sequence: of queries, keys and values behind the convolution, of
    /// decays' logarithms, and of step sizes. `d_state` is that with respect to the state at the chunk's end, and gets that with
    /// respect to the state at its start.
    fn chunk_backward(
        &self,
        at: usize,
        all_rows: usize,
        chunk: &Chunk,
        d_out: &[f32],
        d_state: &mut [f32],
        into: &mut InputGradients,
    ) {
        let (isa, h, s) = (self.isa, &self.shape, &self.shape.shape);
        let [key_dim, value_dim, values] = [s.key_dim, s.value_dim, h.values];
        let is_delta = s.has_beta();
        let [queries, keys, _] = &chunk.trace.inputs.parts;
        let rows = keys.len() / key_dim;
        let last = rows - 1;
        let [d_queries, d_keys, d_values] = &mut into.parts;
        let d_queries = &mut d_queries[at * key_dim..(at + rows) * key_dim];
        let d_keys = &mut d_keys[at * key_dim..(at + rows) * key_dim];
        let columns = |x: &[f32], width: usize| {
            let mut out = vec![0.0; width * CHUNK];
            transpose(isa, x, width, &mut out, CHUNK);
            out
        };
        let [query_columns, key_columns] = [queries, keys].map(|rows| columns(rows, key_dim));
        for value in 0..values {
            let sums = &chunk.sums[value * CHUNK..value * CHUNK + rows];
            let own_state = value * key_dim * value_dim..(value + 1) * key_dim * value_dim;
            let (held, d_held) = (&chunk.start[own_state.clone()], &mut d_state[own_state]);
            let written = &chunk.written[value * CHUNK * value_dim..value * CHUNK * value_dim + rows * value_dim];
            let residuals = &chunk.trace.residuals[value * rows * value_dim..(value + 1) * rows * value_dim];
            let steps = &chunk.trace.inputs.steps[value * rows..(value + 1) * rows];
            // Decays from the chunk's start to each row, and from each row to the last one.
            let from_start: Vec<f32> = sums.iter().map(|sum| decay(*sum)).collect();
            let to_last: Vec<f32> = sums.iter().map(|sum| decay(sums[last] - sum)).collect();
            let mut decays = vec![0.0; rows * CHUNK];
            lower_decays(isa, sums, 1, 1.0, &mut decays, CHUNK);
            // Gradients of outputs, and behind them those of brackets.
            let mut d_rows = Vec::with_capacity(2 * rows * value_dim);
            for i in at..at + rows {
                d_rows.extend_from_slice(&d_out[(i * values + value) * value_dim..][..value_dim]);
            }

            // What rows wrote, from the last one on.
            let mut d_bracket = vec![0.0; rows * value_dim];
            add_product(isa, keys, key_dim, key_dim, d_held, value_dim, &mut d_bracket);
            scale_each(&mut d_bracket, value_dim, &to_last);
            let mut by_query = decays.clone();
            multiply(isa, &mut by_query, &chunk.trace.dots[0]);
            add_upper_product(isa, &columns(&by_query, CHUNK), CHUNK, &d_rows, value_dim, &mut d_bracket);
            if is_delta {
                let mut by_key = vec![0.0; rows * CHUNK];
                lower_decays(isa, sums, 0, -1.0, &mut by_key, CHUNK);
                multiply(isa, &mut by_key, &chunk.trace.dots[1]);
                let mut solved = vec![0.0; rows * value_dim];
                substitute_back(isa, &columns(&by_key, CHUNK), CHUNK, steps, &mut d_bracket, value_dim, &mut solved);
                d_rows.extend_from_slice(&solved);
            }
            let brackets = d_bracket.chunks_exact(value_dim).zip(residuals.chunks_exact(value_dim));
            for (row, (d, residual)) in brackets.enumerate() {
                into.steps[value * all_rows + at + row] = dot_product(isa, d, residual);
                let to = &mut d_values[((at + row) * values + value) * value_dim..][..value_dim];
                if is_delta {
                    to.copy_from_slice(&d_rows[(rows + row) * value_dim..][..value_dim]);
                } else {
                    add_scaled(isa, to, d, steps[row]);
                    add_scaled(isa, to, &d_rows[row * value_dim..][..value_dim], self.weights.skip[value]);
                }
            }

            // Rows' gradients through the state at the chunk's start, and of keys through that at its end.
            let mut d_sums = vec![0.0f32; rows];
            let mut dots = vec![0.0f32; rows];
            let turned = |state: &[f32]| {
                let mut out = vec![0.0; state.len()];
                transpose(isa, state, value_dim, &mut out, key_dim);
                out
            };
            let mut through = vec![0.0; d_rows.len() / value_dim * key_dim];
            add_product(isa, &d_rows, value_dim, value_dim, &turned(held), key_dim, &mut through);
            let (of_queries, of_keys) = through.split_at_mut(rows * key_dim);
            scale_rows(isa, of_queries, key_dim, &from_start, queries, &mut dots);
            add_scaled(isa, &mut d_sums, &dots, 1.0);
            add_scaled(isa, d_queries, of_queries, 1.0);
            if is_delta {
                let negated: Vec<f32> = from_start.iter().map(|by| -by).collect();
                scale_rows(isa, of_keys, key_dim, &negated, keys, &mut dots);
                add_scaled(isa, &mut d_sums, &dots, 1.0);
                add_scaled(isa, d_keys, of_keys, 1.0);
            }
            let mut d_write = vec![0.0; rows * key_dim];
            add_product(isa, written, value_dim, value_dim, &turned(d_held), key_dim, &mut d_write);
            scale_rows(isa, &mut d_write, key_dim, &to_last, keys, &mut dots);
            add_scaled(isa, d_keys, &d_write, 1.0);
            add_scaled(isa, &mut d_sums, &dots, -1.0);
            d_sums[last] += dots.iter().sum::<f32>();

            // Rows' gradients through earlier rows.
            let mut read = vec![0.0; d_rows.len() / value_dim * CHUNK];
            add_product(isa, &d_rows, value_dim, value_dim, &columns(written, value_dim), CHUNK, &mut read);
            let (of_queries, of_keys) = read.split_at_mut(rows * CHUNK);
            multiply(isa, of_queries, &decays);
            add_lower_product(isa, of_queries, CHUNK, 0, keys, key_dim, d_queries);
            add_upper_product(isa, &columns(of_queries, CHUNK), CHUNK, queries, key_dim, d_keys);
            add_along(isa, of_queries, &chunk.trace.dots[0], CHUNK, &mut d_sums);
            if is_delta {
                lower_decays(isa, sums, 0, -1.0, &mut decays, CHUNK);
                multiply(isa, of_keys, &decays);
                add_lower_product(isa, of_keys, CHUNK, 0, keys, key_dim, d_keys);
                add_upper_product(isa, &columns(of_keys, CHUNK), CHUNK, keys, key_dim, d_keys);
                add_along(isa, of_keys, &chunk.trace.dots[1], CHUNK, &mut d_sums);
            }

            // The state at the chunk's start.
            d_sums[last] += from_start[last] * dot_product(isa, held, d_held);
            let mut by_row = from_start.clone();
            by_row.resize(CHUNK, 0.0);
            let mut weighted = vec![0.0; key_dim * CHUNK];
            scale_columns(isa, &query_columns, &by_row, CHUNK, &mut weighted);
            let (d_rows, d_solved) = d_rows.split_at(rows * value_dim);
            write_state(isa, &weighted, CHUNK, rows, from_start[last], d_rows, value_dim, d_held);
            if is_delta {
                by_row.iter_mut().for_each(|by| *by = -*by);
                scale_columns(isa, &key_columns, &by_row, CHUNK, &mut weighted);
                add_product(isa, &weighted, CHUNK, rows, d_solved, value_dim, d_held);
            }
            let mut sum = 0.0;
            for (i, d) in d_sums.iter().enumerate().rev() {
                sum += d;
                into.decays[value * all_rows + at + i] = sum;
            }
        }
    }

    /// Gradients of the rates of decay, of the decays' biases and of the factors of own values, rows in order; `inputs` has those
    /// of decays' logarithms and of step sizes.
    fn parameter_gradients(&self, chunks: &[Chunk], d_out: &[f32], inputs: &InputGradients, into: &mut HeadGradients) {
        let (h, s) = (&self.shape, &self.shape.shape);
        let rows = inputs.decays.len() / h.values;
        for (index, chunk) in chunks.iter().enumerate() {
            let own = &chunk.trace.inputs;
            let taken = own.raw.len() / h.values;
            for value in 0..h.values {
                for i in 0..taken {
                    let (at, row) = (value * taken + i, index * CHUNK + i);
                    let d_decay = inputs.decays[value * rows + row];
                    into.a_log[value] += d_decay * own.decays[at];
                    into.dt_bias[value] +=
                        self.raw_gradient(chunk, value, i, d_decay, inputs.steps[value * rows + row]);
                    if !s.has_beta() {
                        let x = &own.parts[2][(i * h.values + value) * s.value_dim..][..s.value_dim];
                        let d = &d_out[(row * h.values + value) * s.value_dim..][..s.value_dim];
                        into.skip[value] += dot_product(self.isa, x, d);
                    }
                }
            }
        }
    }

    /// The gradient with respect to the input of a row's decay, given those with respect to the decay's logarithm and to the step.
    fn raw_gradient(&self, chunk: &Chunk, value: usize, i: usize, d_decay: f32, d_step: f32) -> f32 {
        let own = &chunk.trace.inputs;
        let at = value * (own.raw.len() / self.shape.values) + i;
        let slope = sigmoid(own.raw[at]);
        match self.shape.shape.rule {
            RecurrentRule::DeltaNet => d_decay * self.weights.rates[value] * slope,
            RecurrentRule::Mamba2 { limits: (least, most) } => {
                let step = own.steps[at];
                // A step at its bound does not move.
                if step <= least && least > 0.0 || step >= most {
                    0.0
                } else {
                    (d_decay * self.weights.rates[value] + d_step) * slope
                }
            }
        }
    }

    /// Replaces gradients with respect to decays' logarithms and step sizes by those with respect to their inputs.
    fn step_gradients(&self, chunks: &[Chunk], rows: usize, inputs: &mut InputGradients) {
        for (index, chunk) in chunks.iter().enumerate() {
            let taken = chunk.trace.inputs.raw.len() / self.shape.values;
            for value in 0..self.shape.values {
                for i in 0..taken {
                    let at = value * rows + index * CHUNK + i;
                    let step = chunk.trace.inputs.steps[value * taken + i];
                    let (d_decay, d_step) = (inputs.decays[at], inputs.steps[at]);
                    inputs.decays[at] = self.raw_gradient(chunk, value, i, d_decay, d_step);
                    inputs.steps[at] = d_step * step * (1.0 - step);
                }
            }
        }
    }

    /// Takes the gradients with respect to queries, keys and values back through the norms, SiLU and the convolution.
    fn convolution_backward(
        &self,
        chunks: &[Chunk],
        inputs: &mut InputGradients,
        mut into: Option<&mut HeadGradients>,
    ) {
        let (isa, h, s) = (self.isa, &self.shape, &self.shape.shape);
        for (part, width) in h.widths().into_iter().enumerate() {
            let mut d_convolved = std::mem::take(&mut inputs.parts[part]);
            for (index, chunk) in chunks.iter().enumerate() {
                let own = &chunk.trace.inputs;
                let rows = own.convolved[part].len() / width;
                let d = &mut d_convolved[index * CHUNK * width..(index * CHUNK + rows) * width];
                if s.has_beta() && part < 2 {
                    unit_rows_backward(isa, &own.parts[part], s.key_dim, h.scale(part), &own.inverses[part], d);
                }
                silu_backward(isa, &own.convolved[part], d);
                if let Some(into) = into.as_deref_mut() {
                    add_taps(isa, d, &own.windows[part], width, &mut into.conv[part], &mut into.bias[part]);
                }
            }
            let mut d_inputs = vec![0.0; d_convolved.len()];
            convolve_back(isa, &d_convolved, self.weights.conv(part), width, &mut d_inputs);
            inputs.parts[part] = d_inputs;
        }
    }
}
