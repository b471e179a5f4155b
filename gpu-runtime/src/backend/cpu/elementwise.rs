//! Gated activations, bias, column sums and additions.

use super::Cpu;
use super::gemm::PackedLhs;
use super::parallel::{SharedPtr, par_chunks, rows_per_task};
use super::vexp::{exp, multiversion, sigmoid};
use crate::backend::Activation;

/// sqrt(2 / π), and the cubic term of GELU's tanh approximation.
const GELU_SCALE: f32 = 0.797_884_6;
const GELU_CUBIC: f32 = 0.044_715;

/// tanh(x), with an absolute error of about an ulp of 1.
#[inline(always)]
fn tanh(x: f32) -> f32 {
    1.0 - 2.0 / (exp(2.0 * x) + 1.0)
}

multiversion! {
    fn silu_row(gate: &[f32], up: &[f32], out: &mut [f32]) {
        for ((out, g), u) in out.iter_mut().zip(gate).zip(up) {
            *out = g * sigmoid(*g) * u;
        }
    }
}

multiversion! {
    /// Replaces `gate` and `up` by the gradients with respect to them, and `out`, the gradient with respect to the output,
    /// by the output.
    fn silu_backward_row(out: &mut [f32], gate: &mut [f32], up: &mut [f32]) {
        for ((out, g), u) in out.iter_mut().zip(gate).zip(up) {
            let s = sigmoid(*g);
            let slope = s * (1.0 + *g * (1.0 - s));
            let (d, y) = (*out, *g * s * *u);
            let du = d * (*g * s);
            *g = d * *u * slope;
            *u = du;
            *out = y;
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
    /// As `silu_backward_row`.
    fn gelu_tanh_backward_row(out: &mut [f32], gate: &mut [f32], up: &mut [f32]) {
        for ((out, g), u) in out.iter_mut().zip(gate).zip(up) {
            let x = *g;
            let t = tanh(GELU_SCALE * (x + GELU_CUBIC * x * x * x));
            let inner = GELU_SCALE * (1.0 + 3.0 * GELU_CUBIC * x * x);
            let slope = 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner;
            let (d, act) = (*out, 0.5 * x * (1.0 + t));
            *g = d * *u * slope;
            *out = act * *u;
            *u = d * act;
        }
    }
}

/// `act(gate) · up`, `[rows, width]`, as the left side of a GEMM, from rows of gate then up, `[rows, 2 * width]`.
pub(super) fn activate(cpu: &Cpu, activation: Activation, gate_up: &[f32], width: usize) -> PackedLhs {
    let act = match activation {
        Activation::Silu => silu_row,
        Activation::GeluTanh => gelu_tanh_row,
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
    };
    let rows = out.len().checked_div(width).unwrap_or(0);
    assert!(gate_up.len() >= 2 * rows * width, "gate and up have fewer rows than their output");
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

/// `x *= by`.
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
