//! Activations, bias, column sums and additions.

use std::ops::Range;

use super::gemm::{PackedLhs, PackedSide, RowsView, pack_between};
use super::parallel::{SharedPtr, par_chunks, rows_per_task};
use super::stream::prefetch;
use super::vexp::{exp, multiversion, sigmoid};
use super::{Cpu, Isa};
use crate::Activation;

/// sqrt(2 / π), and the cubic term of GELU's tanh approximation.
const GELU_SCALE: f32 = 0.797_884_6;
const GELU_CUBIC: f32 = 0.044_715;

/// Constants of gpt-oss: the gate's factor in the sigmoid, and the bound of gate and up.
const SWISH_SCALE: f32 = 1.702;
const CLAMP: f32 = 7.0;

/// tanh(x), with an absolute error of about an ulp of 1.
#[inline(always)]
fn tanh(x: f32) -> f32 {
    1.0 - 2.0 / (exp(2.0 * x) + 1.0)
}

/// GELU with the tanh approximation.
#[inline(always)]
pub(super) fn gelu_tanh(x: f32) -> f32 {
    0.5 * x * (1.0 + tanh(GELU_SCALE * (x + GELU_CUBIC * x * x * x)))
}

multiversion! {
    fn silu_row(gate: &[f32], up: &[f32], out: &mut [f32]) {
        for ((out, g), u) in out.iter_mut().zip(gate).zip(up) {
            *out = g * sigmoid(*g) * u;
        }
    }
}

multiversion! {
    fn gelu_tanh_row(gate: &[f32], up: &[f32], out: &mut [f32]) {
        for ((out, g), u) in out.iter_mut().zip(gate).zip(up) {
            let t = tanh(GELU_SCALE * (g + GELU_CUBIC * g * g * g));
            *out = 0.5 * g * (1.0 + t) * u;
        }
    }
}

multiversion! {
    fn clamped_swish_row(gate: &[f32], up: &[f32], out: &mut [f32]) {
        for ((out, g), u) in out.iter_mut().zip(gate).zip(up) {
            let gate = if *g > CLAMP { CLAMP } else { *g };
            *out = gate * sigmoid(SWISH_SCALE * gate) * (u.clamp(-CLAMP, CLAMP) + 1.0);
        }
    }
}

/// The gradients with respect to a gate and an up value, given that with respect to the output, `d`, and the output.
#[inline(always)]
fn silu_gradients(g: f32, u: f32, d: f32) -> [f32; 3] {
    let s = sigmoid(g);
    let slope = s * (1.0 + g * (1.0 - s));
    [d * u * slope, d * (g * s), g * s * u]
}

/// Gradients of GELU with tanh; parameters and result as in [`silu_gradients`].
#[inline(always)]
fn gelu_tanh_gradients(g: f32, u: f32, d: f32) -> [f32; 3] {
    let t = tanh(GELU_SCALE * (g + GELU_CUBIC * g * g * g));
    let inner = GELU_SCALE * (1.0 + 3.0 * GELU_CUBIC * g * g);
    let slope = 0.5 * (1.0 + t) + 0.5 * g * (1.0 - t * t) * inner;
    let act = 0.5 * g * (1.0 + t);
    [d * u * slope, d * act, act * u]
}

/// Gradients of the clamped swish; parameters and result as in [`silu_gradients`].
#[inline(always)]
fn clamped_swish_gradients(g: f32, u: f32, d: f32) -> [f32; 3] {
    let (gate, up) = (if g > CLAMP { CLAMP } else { g }, u.clamp(-CLAMP, CLAMP) + 1.0);
    let s = sigmoid(SWISH_SCALE * gate);
    let slope = s * (1.0 + SWISH_SCALE * gate * (1.0 - s));
    let act = gate * s;
    let d_gate = if g > CLAMP { 0.0 } else { d * up * slope };
    let d_up = if u.abs() > CLAMP { 0.0 } else { d * act };
    [d_gate, d_up, act * up]
}

/// Defines functions of rows from the gradients of an element: in place, where `out` is first the gradient with respect to the
/// output, and from inputs (gate, up, d) to outputs (gate's and up's gradient, output).
macro_rules! backward_rows {
    ($in_place:ident, $apart:ident, $gradients:ident) => {
        multiversion! {
            fn $in_place(out: &mut [f32], gate: &mut [f32], up: &mut [f32]) {
                for ((out, g), u) in out.iter_mut().zip(gate).zip(up) {
                    [*g, *u, *out] = $gradients(*g, *u, *out);
                }
            }
        }

        multiversion! {
            fn $apart(from: [&[f32]; 3], to: [&mut [f32]; 3]) {
                let ([gate, up, d], [d_gate, d_up, out]) = (from, to);
                let from = gate.iter().zip(up).zip(d);
                for (((g, u), d), ((dg, du), out)) in from.zip(d_gate.iter_mut().zip(d_up).zip(out)) {
                    [*dg, *du, *out] = $gradients(*g, *u, *d);
                }
            }
        }
    };
}

backward_rows!(silu_backward_row, silu_backward_apart, silu_gradients);
backward_rows!(gelu_tanh_backward_row, gelu_tanh_backward_apart, gelu_tanh_gradients);
backward_rows!(clamped_swish_backward_row, clamped_swish_backward_apart, clamped_swish_gradients);

multiversion! {
    fn squared_relu_row(up: &[f32], out: &mut [f32]) {
        for (out, x) in out.iter_mut().zip(up) {
            let positive = if *x < 0.0 { 0.0 } else { *x };
            *out = positive * positive;
        }
    }
}

multiversion! {
    /// Replaces `out`, the gradient with respect to the activation, by it, and `up` by the gradient with respect to that.
    fn squared_relu_backward_row(out: &mut [f32], up: &mut [f32]) {
        for (out, x) in out.iter_mut().zip(up) {
            let positive = if *x < 0.0 { 0.0 } else { *x };
            *x = *out * (2.0 * positive);
            *out = positive * positive;
        }
    }
}

/// Computes `act(gate) · up` of elements.
pub(super) type GatedRow = fn(Isa, &[f32], &[f32], &mut [f32]);

/// The function for an activation with a gate.
pub(super) fn gated_row(activation: Activation) -> Option<GatedRow> {
    match activation {
        Activation::Silu => Some(silu_row),
        Activation::GeluTanh => Some(gelu_tanh_row),
        Activation::ClampedSwish => Some(clamped_swish_row),
        Activation::SquaredRelu => None,
    }
}

/// `act(gate) · up`, `[rows, width]`, as the left side of a GEMM, from rows of gate then up, `[rows, 2 * width]`; without a gate
/// from rows of up.
pub(super) fn activate(cpu: &Cpu, activation: Activation, gate_up: &[f32], width: usize) -> PackedLhs {
    let Some(act) = gated_row(activation) else {
        return PackedLhs::of_rows(cpu, cpu.dtype, gate_up.len() / width, width, |row, out| {
            squared_relu_row(cpu.isa(), &gate_up[row * width..][..width], out);
        });
    };
    PackedLhs::of_rows(cpu, cpu.dtype, gate_up.len() / (2 * width), width, |row, out| {
        let (gate, up) = gate_up[row * 2 * width..][..2 * width].split_at(width);
        act(cpu.isa(), gate, up, out);
    })
}

/// Replaces rows of (gate, up) by the gradients with respect to them, and `out[rows, width]`, the gradient with respect to
/// the output of [`activate`], by that output.
pub(super) fn activate_backward(cpu: &Cpu, activation: Activation, out: &mut [f32], width: usize, gate_up: &mut [f32]) {
    let backward = match activation {
        Activation::Silu => silu_backward_row,
        Activation::GeluTanh => gelu_tanh_backward_row,
        Activation::ClampedSwish => clamped_swish_backward_row,
        Activation::SquaredRelu => return squared_relu_backward(cpu, out, width, gate_up),
    };
    let rows = out.len().checked_div(width).unwrap_or(0);
    assert!(gate_up.len() >= 2 * rows * width, "gate and up have fewer rows than the output");
    let chunk = rows_per_task(&cpu.pool, rows);
    let base = SharedPtr(gate_up.as_mut_ptr());
    par_chunks(&cpu.pool, out, chunk * width, |i, out| {
        // SAFETY: in bounds as checked; each task has the rows of its chunk of `out`.
        let at = unsafe { std::slice::from_raw_parts_mut(base.ptr().add(i * chunk * 2 * width), 2 * out.len()) };
        for (out, gu) in out.chunks_exact_mut(width).zip(at.chunks_exact_mut(2 * width)) {
            let (gate, up) = gu.split_at_mut(width);
            backward(cpu.isa(), out, gate, up);
        }
    });
}

/// [`activate_backward`] without a gate.
fn squared_relu_backward(cpu: &Cpu, out: &mut [f32], width: usize, up: &mut [f32]) {
    assert_eq!(out.len(), up.len(), "an activation without a gate has as many outputs as inputs");
    let chunk = rows_per_task(&cpu.pool, out.len().checked_div(width).unwrap_or(0)) * width.max(1);
    let base = SharedPtr(up.as_mut_ptr());
    par_chunks(&cpu.pool, out, chunk, |i, out| {
        // SAFETY: in bounds as checked; each task has the elements of its chunk of `out`.
        let up = unsafe { std::slice::from_raw_parts_mut(base.ptr().add(i * chunk), out.len()) };
        squared_relu_backward_row(cpu.isa(), out, up);
    });
}

/// Columns of a group of rows that are computed together: they stay in the second-level cache until they are packed.
const PACKED_COLUMNS: usize = 256;
/// Rows by which they are prefetched.
const ROWS_AHEAD: usize = 2;

/// [`activate_backward`] for kernels in tiles: returns the gradient with respect to (gate, up), and the output, both
/// packed. `width` is a multiple of a tile's width. `None` for an activation without a gate.
pub(super) fn activate_backward_packed(
    cpu: &Cpu,
    activation: Activation,
    gate_up: &[f32],
    d_out: &[f32],
    width: usize,
    sequences: &[Range<usize>],
) -> Option<(PackedLhs, PackedSide, PackedSide)> {
    let backward = match activation {
        Activation::Silu => silu_backward_apart,
        Activation::GeluTanh => gelu_tanh_backward_apart,
        Activation::ClampedSwish => clamped_swish_backward_apart,
        Activation::SquaredRelu => return None,
    };
    let rows = d_out.len().checked_div(width).unwrap_or(0);
    let packed = pack_between(cpu, rows, [2 * width, width], sequences, |[dy, input], i, group| {
        let mut results = cpu.buffer(3 * group.rows * PACKED_COLUMNS.min(width));
        for at in (0..width).step_by(PACKED_COLUMNS) {
            let columns = (width - at).min(PACKED_COLUMNS);
            let part = group.rows * columns;
            let (d_gate, rest) = results.split_at_mut(part);
            let (d_up, rest) = rest.split_at_mut(part);
            let out = &mut rest[..part];
            let end = group.first + group.rows;
            for (j, row) in (group.first..end).enumerate() {
                // Pieces of rows are too short for hardware prefetchers.
                let next = (row + ROWS_AHEAD).min(end - 1);
                prefetch(&gate_up[next * 2 * width + at..][..columns]);
                prefetch(&gate_up[next * 2 * width + width + at..][..columns]);
                prefetch(&d_out[next * width + at..][..columns]);
                let (gate, up) = gate_up[row * 2 * width..][..2 * width].split_at(width);
                let d = &d_out[row * width + at..][..columns];
                let own = j * columns..(j + 1) * columns;
                let to = [&mut d_gate[own.clone()], &mut d_up[own.clone()], &mut out[own]];
                backward(cpu.isa(), [&gate[at..][..columns], &up[at..][..columns], d], to);
            }
            // SAFETY: each group is packed once.
            unsafe {
                dy.put(i, &RowsView::dense(d_gate, columns), 0, at);
                dy.put(i, &RowsView::dense(d_up, columns), 0, width + at);
                input.put(i, &RowsView::dense(out, columns), 0, at);
            }
        }
    });
    Some(packed)
}

/// Adds `bias` to every row of `x`.
pub(super) fn add_bias(cpu: &Cpu, x: &mut [f32], bias: &[f32]) {
    let chunk = rows_per_task(&cpu.pool, x.len() / bias.len().max(1));
    par_chunks(&cpu.pool, x, chunk * bias.len(), |_, x| {
        for row in x.chunks_exact_mut(bias.len()) {
            for (x, b) in row.iter_mut().zip(bias) {
                *x += b;
            }
        }
    });
}

/// `sum[j] += Σ_rows x[row, offset + j]`, rows in order; rows of `x` have `stride` elements.
pub(super) fn add_column_sums(cpu: &Cpu, x: &[f32], stride: usize, offset: usize, sum: &mut [f32]) {
    par_chunks(&cpu.pool, sum, 256, |i, sum| {
        for row in x.chunks_exact(stride) {
            for (s, x) in sum.iter_mut().zip(&row[offset + i * 256..]) {
                *s += x;
            }
        }
    });
}

/// Multiplies all elements by a factor.
pub(super) fn scale(x: &mut [f32], by: f32) {
    for x in x {
        *x *= by;
    }
}

/// `to += from`, element by element.
pub(super) fn add(cpu: &Cpu, to: &mut [f32], from: &[f32]) {
    par_chunks(&cpu.pool, to, 1 << 14, |i, to| {
        for (to, from) in to.iter_mut().zip(&from[i << 14..]) {
            *to += from;
        }
    });
}
