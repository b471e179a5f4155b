//! The forward pass of a recurrence, chunk by chunk.

use super::head::{CallWeights, HeadShape, HeadState, HeadWeights, Inputs};
use super::kernels::{add_scaled, decay, decayed, scale_columns, transpose};
use super::products::{add_lower_product, add_product, substitute, write_state};
use crate::CHUNK;
use crate::cpu::Isa;

/// Rows of one key head of a sequence.
pub(super) struct HeadRows<'a> {
    pub(super) isa: Isa,
    pub(super) shape: HeadShape,
    pub(super) head: usize,
    pub(super) weights: HeadWeights,
    /// Rows of inputs: `[rows, input_width]`.
    pub(super) inputs: &'a [f32],
}

/// Values of a chunk's rows of one value head that a backward pass needs.
pub(super) struct ChunkTrace {
    pub(super) inputs: Inputs,
    /// Rows of each value head before the step size is applied: `[values, rows, value_dim]`.
    pub(super) residuals: Vec<f32>,
    /// Dot products of queries and of keys with keys of the chunk, of which those up to their own row count: `[rows, CHUNK]`.
    pub(super) dots: [Vec<f32>; 2],
}

impl<'a> HeadRows<'a> {
    pub(super) fn new(isa: Isa, shape: HeadShape, head: usize, all: &CallWeights<'_>, inputs: &'a [f32]) -> Self {
        Self { isa, shape, head, weights: HeadWeights::of(&shape, head, all), inputs }
    }

    /// Runs the rows, which are at positions `start..` of their sequence. `put` gets, for each value head of a row, the row and
    /// its output; `trace` what each chunk computed, before the state moves on.
    pub(super) fn run(
        &self,
        start: usize,
        state: &mut HeadState<'_>,
        mut put: impl FnMut(usize, usize, &[f32]),
        mut trace: impl FnMut(ChunkTrace, &HeadState<'_>),
    ) {
        let stride = self.shape.shape.input_width();
        let rows = self.inputs.len() / stride;
        let mut row = 0;
        while row < rows {
            let first = (start + row) % CHUNK;
            let taken = (CHUNK - first).min(rows - row);
            let inputs = &self.inputs[row * stride..(row + taken) * stride];
            let traced = self.chunk(first, inputs, state, |i, value, out| put(row + i, value, out));
            trace(traced, state);
            row += taken;
            if first + taken == CHUNK {
                self.end_chunk(state);
            }
        }
    }

    /// Computes consecutive rows of a chunk, from row `first` of it on.
    fn chunk(
        &self,
        first: usize,
        inputs: &[f32],
        state: &mut HeadState<'_>,
        mut put: impl FnMut(usize, usize, &[f32]),
    ) -> ChunkTrace {
        let (isa, h, s) = (self.isa, &self.shape, &self.shape.shape);
        let [key_dim, value_dim] = [s.key_dim, s.value_dim];
        let tails = state.tails.each_ref().map(|tail| &**tail);
        let own = Inputs::read(isa, h, self.head, &self.weights, tails, inputs);
        let rows = own.decays.len() / h.values;
        for (part, tail) in state.tails.iter_mut().enumerate() {
            tail.copy_from_slice(own.tail(h, part));
        }
        let [queries, keys, values] = &own.parts;
        transpose(isa, keys, key_dim, &mut state.keys[first..], CHUNK);
        // Queries and keys read the state together.
        let readers = [&queries[..], &keys[..]].concat();
        let mut dots = [vec![0.0; rows * CHUNK], vec![0.0; rows * CHUNK]];
        // With all keys of the chunk: those of later rows are not used.
        add_product(isa, queries, key_dim, key_dim, state.keys, CHUNK, &mut dots[0]);
        if s.has_beta() {
            add_product(isa, keys, key_dim, key_dim, state.keys, CHUNK, &mut dots[1]);
        }
        let mut weights = vec![0.0; rows * CHUNK];
        let mut residuals = Vec::with_capacity(rows * h.values * value_dim);
        for value in 0..h.values {
            let decays = &mut state.decays[value * CHUNK..(value + 1) * CHUNK];
            let mut sum = if first == 0 { 0.0 } else { decays[first - 1] };
            for (to, decay) in decays[first..].iter_mut().zip(&own.decays[value * rows..(value + 1) * rows]) {
                sum += decay;
                *to = sum;
            }
            let sums = &decays[first..first + rows];
            let held = &state.start[value * key_dim * value_dim..(value + 1) * key_dim * value_dim];
            let written = &mut state.written[value * CHUNK * value_dim..(value + 1) * CHUNK * value_dim];
            let readers = if s.has_beta() { &readers[..] } else { &readers[..rows * key_dim] };
            let mut read = vec![0.0; readers.len() / key_dim * value_dim];
            add_product(isa, readers, key_dim, key_dim, held, value_dim, &mut read);
            for (row, sum) in read.chunks_exact_mut(value_dim).zip(sums.iter().chain(sums)) {
                let by = decay(*sum);
                row.iter_mut().for_each(|x| *x *= by);
            }
            let (out, of_keys) = read.split_at_mut(rows * value_dim);
            let steps = &own.steps[value * rows..(value + 1) * rows];
            let mut own_residuals = Vec::with_capacity(rows * value_dim);
            for row in values.chunks_exact(h.values * value_dim) {
                own_residuals.extend_from_slice(&row[value * value_dim..(value + 1) * value_dim]);
            }
            if s.has_beta() {
                own_residuals.iter_mut().zip(of_keys.iter()).for_each(|(x, read)| *x -= read);
                decayed(isa, &dots[1], decays, first, 0, -1.0, &mut weights, CHUNK);
                substitute(isa, &weights, CHUNK, first, steps, &mut own_residuals, value_dim, written);
            } else {
                let rows = written[first * value_dim..].chunks_exact_mut(value_dim);
                for ((to, x), step) in rows.zip(own_residuals.chunks_exact(value_dim)).zip(steps) {
                    to.iter_mut().zip(x).for_each(|(to, x)| *to = step * x);
                }
            }
            decayed(isa, &dots[0], decays, first, 1, 1.0, &mut weights, CHUNK);
            add_lower_product(isa, &weights, CHUNK, first, written, value_dim, out);
            let skip = self.weights.skip[value];
            for (row, out) in out.chunks_exact_mut(value_dim).enumerate() {
                if !s.has_beta() {
                    let x = &own_residuals[row * value_dim..(row + 1) * value_dim];
                    add_scaled(isa, out, x, skip);
                }
                put(row, value, out);
            }
            residuals.append(&mut own_residuals);
        }
        ChunkTrace { inputs: own, residuals, dots }
    }

    /// Moves the state to the start of the next chunk.
    fn end_chunk(&self, state: &mut HeadState<'_>) {
        let s = &self.shape.shape;
        let [key_dim, value_dim] = [s.key_dim, s.value_dim];
        let mut keys = vec![0.0; key_dim * CHUNK];
        for value in 0..self.shape.values {
            let decays = &state.decays[value * CHUNK..(value + 1) * CHUNK];
            let last = decays[CHUNK - 1];
            let by: Vec<f32> = decays.iter().map(|sum| decay(last - sum)).collect();
            scale_columns(self.isa, state.keys, &by, CHUNK, &mut keys);
            let held = &mut state.start[value * key_dim * value_dim..(value + 1) * key_dim * value_dim];
            let written = &state.written[value * CHUNK * value_dim..(value + 1) * CHUNK * value_dim];
            write_state(self.isa, &keys, CHUNK, CHUNK, decay(last), written, value_dim, held);
        }
    }
}
