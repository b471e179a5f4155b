//! Mixers that keep a state: linear recurrences, where a task has one key head of one sequence with the value heads that share it,
//! and short convolutions.

mod backward;
mod convolution;
mod forward;
mod gate;
mod head;
mod kernels;
mod products;
mod state;

use super::Cpu;
use super::parallel::{SharedPtr, for_each};
use super::rows::HostRows;
use crate::host::HostParams;
use crate::{RecurrentCall, RecurrentOps, RecurrentParams, Rows, StateId};
use backward::{HeadGradients, InputGradients};
use forward::HeadRows;
use head::{CallWeights, HeadShape};
use state::StatePool;

fn weights<'a>(call: &RecurrentCall<'a, Cpu>) -> CallWeights<'a> {
    CallWeights {
        conv: call.conv,
        conv_bias: call.conv_bias.map(|bias| &bias[..]),
        a_log: call.a_log,
        dt_bias: call.dt_bias,
        skip: call.skip.map(|skip| &skip[..]),
    }
}

impl RecurrentOps<Self> for Cpu {
    const HAS_RECURRENCES: bool = true;

    fn recur(cpu: &Self, call: &RecurrentCall<'_, Self>, pool: &mut StatePool, inputs: &HostRows) -> HostRows {
        let (shape, h) = (call.shape, HeadShape::new(call.shape));
        let (stride, width, all) = (inputs.width(), shape.value_width(), weights(call));
        assert!(stride == shape.input_width(), "input widths differ");
        let mut taken: Vec<StateId> = call.spans.iter().filter_map(|span| span.state).collect();
        taken.sort_unstable();
        assert!(taken.windows(2).all(|pair| pair[0] != pair[1]), "two sequences share a state");
        let states: Vec<Option<SharedPtr<f32>>> = call
            .spans
            .iter()
            .map(|span| span.state.map(|state| SharedPtr(pool.layer(state, call.layer).as_mut_ptr())))
            .collect();
        let mut out = HostRows::zeros(cpu, inputs.rows(), width);
        let base = SharedPtr(out.as_mut_ptr());
        let mut tasks: Vec<(usize, usize)> =
            (0..call.spans.len()).flat_map(|span| (0..shape.key_heads).map(move |head| (span, head))).collect();
        for_each(cpu, &mut tasks, |_, &mut (index, head)| {
            let span = &call.spans[index];
            let rows = &inputs[span.rows.start * stride..span.rows.end * stride];
            let mut own = Vec::new();
            let elements = match states[index] {
                None => {
                    assert!(span.start == 0, "a sequence without a saved state must begin at position 0");
                    own.resize(h.elements(), 0.0);
                    &mut own[..]
                }
                // SAFETY: states have `key_heads` parts of `h.elements()` elements; a task has one part, and sequences have
                // states of their own, as checked above.
                Some(state) => unsafe {
                    std::slice::from_raw_parts_mut(state.ptr().add(head * h.elements()), h.elements())
                },
            };
            let mut state = h.state(elements);
            let first = head * h.values * shape.value_dim;
            let put = |row: usize, value: usize, values: &[f32]| {
                let at = (span.rows.start + row) * width + first + value * shape.value_dim;
                assert!(values.len() == shape.value_dim && span.rows.start + row < span.rows.end);
                // SAFETY: in bounds, as rows and columns of the call are; a task writes the columns of its head in the rows of its
                // sequence.
                unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), base.ptr().add(at), values.len()) };
            };
            HeadRows::new(cpu.isa(), h, head, &all, rows).run(span.start, &mut state, put, |_, _| {});
        });
        out
    }

    fn gate_output(cpu: &Self, call: &RecurrentCall<'_, Self>, inputs: &HostRows, out: &HostRows) -> HostRows {
        gate::forward(cpu, call.shape, call.norm.weight, call.norm.eps, inputs, out)
    }

    fn recur_backward(
        cpu: &Self,
        call: &RecurrentCall<'_, Self>,
        inputs: &HostRows,
        out: &HostRows,
        d_gated: &HostRows,
        mut dw: Option<(&mut HostParams, RecurrentParams)>,
    ) -> HostRows {
        let (shape, h, all) = (call.shape, HeadShape::new(call.shape), weights(call));
        let (stride, width, of_parameters) = (inputs.width(), shape.value_width(), dw.is_some());
        let of_norm = dw.as_mut().map(|(params, own)| &mut params[own.norm]);
        let [d_out, d_gate] =
            gate::backward(cpu, shape, call.norm.weight, call.norm.eps, inputs, out, d_gated, of_norm);
        let mut d_inputs = HostRows::zeros(cpu, inputs.rows(), stride);
        let base = SharedPtr(d_inputs.as_mut_ptr());
        let mut tasks: Vec<(usize, usize, Option<HeadGradients>)> =
            (0..call.spans.len()).flat_map(|span| (0..shape.key_heads).map(move |head| (span, head, None))).collect();
        for_each(cpu, &mut tasks, |_, (index, head, gradients)| {
            let span = &call.spans[*index];
            let rows = &inputs[span.rows.start * stride..span.rows.end * stride];
            let columns = *head * h.values * shape.value_dim..(*head + 1) * h.values * shape.value_dim;
            let mut own_out = Vec::with_capacity(span.rows.len() * columns.len());
            for row in d_out[span.rows.start * width..span.rows.end * width].chunks_exact(width) {
                own_out.extend_from_slice(&row[columns.clone()]);
            }
            let (d, own) = HeadRows::new(cpu.isa(), h, *head, &all, rows).backward(&own_out, of_parameters);
            put_inputs(&h, *head, &d, span.rows.len(), |row, column, values| {
                let at = (span.rows.start + row) * stride + column;
                assert!(row < span.rows.len() && column + values.len() <= stride);
                // SAFETY: in bounds, as just checked; a task writes the columns of its head in the rows of its sequence.
                unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), base.ptr().add(at), values.len()) };
            });
            *gradients = own;
        });
        let gate_column = shape.columns().gate;
        for (row, d) in d_inputs.chunks_exact_mut(stride).enumerate() {
            d[gate_column..gate_column + width].copy_from_slice(&d_gate[row * width..(row + 1) * width]);
        }
        if let Some((params, own)) = dw {
            for (_, head, gradients) in &tasks {
                let Some(gradients) = gradients else { continue };
                add_gradients(&h, *head, gradients, params, &own);
            }
        }
        d_inputs
    }
}

/// Writes a key head's gradients with respect to inputs: `put` gets a row of the sequence, a column and elements from there on.
fn put_inputs(h: &HeadShape, head: usize, d: &InputGradients, rows: usize, put: impl Fn(usize, usize, &[f32])) {
    let shape = &h.shape;
    for ((part, column), width) in d.parts.iter().zip(h.columns(head)).zip(h.widths()) {
        for (row, values) in part.chunks_exact(width).enumerate() {
            put(row, column, values);
        }
    }
    let columns = shape.columns();
    for row in 0..rows {
        let of = |all: &[f32]| (0..h.values).map(|value| all[value * rows + row]).collect::<Vec<f32>>();
        put(row, columns.decays + head * h.values, &of(&d.decays));
        if shape.has_beta() {
            put(row, columns.steps + head * h.values, &of(&d.steps));
        }
    }
}

/// Adds a key head's gradients of one sequence to the parameters.
fn add_gradients(h: &HeadShape, head: usize, from: &HeadGradients, params: &mut HostParams, own: &RecurrentParams) {
    let (kernel, widths) = (h.shape.kernel, h.widths());
    for (part, width) in widths.into_iter().enumerate() {
        let weights = &mut params[own.conv[part]][head * width * kernel..(head + 1) * width * kernel];
        for (t, row) in from.conv[part].chunks_exact(width).enumerate() {
            for (to, d) in weights.iter_mut().skip(t).step_by(kernel).zip(row) {
                *to += d;
            }
        }
        if let Some(biases) = own.conv_bias {
            let to = &mut params[biases[part]][head * width..(head + 1) * width];
            to.iter_mut().zip(&from.bias[part]).for_each(|(to, d)| *to += d);
        }
    }
    let heads = head * h.values..(head + 1) * h.values;
    let vectors = [(Some(own.a_log), &from.a_log), (Some(own.dt_bias), &from.dt_bias), (own.skip, &from.skip)];
    for (index, from) in vectors.into_iter().filter_map(|(index, from)| index.map(|index| (index, from))) {
        params[index][heads.clone()].iter_mut().zip(from).for_each(|(to, d)| *to += d);
    }
}
