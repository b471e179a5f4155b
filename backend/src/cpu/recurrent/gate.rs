//! Norm and gate of a recurrence's output.

use std::ops::Range;

use crate::cpu::Cpu;
use crate::cpu::norm::{rms_norm_heads, rms_norm_heads_backward};
use crate::cpu::parallel::for_rows;
use crate::cpu::rows::HostRows;
use crate::cpu::vexp::{multiversion, sigmoid};
use crate::{RecurrentShape, Rows};

multiversion! {
    /// `x ← x · silu(z)`.
    fn gate_row(z: &[f32], x: &mut [f32]) {
        for (x, z) in x.iter_mut().zip(z) {
            *x *= z * sigmoid(*z);
        }
    }
}

multiversion! {
    /// `dz ← d · x · silu'(z)`.
    fn gate_gradient(d: &[f32], x: &[f32], z: &[f32], dz: &mut [f32]) {
        for (((dz, d), x), z) in dz.iter_mut().zip(d).zip(x).zip(z) {
            let s = sigmoid(*z);
            *dz = d * x * (s * (1.0 + z * (1.0 - s)));
        }
    }
}

/// Columns of the gate in a row of inputs.
fn gate_columns(shape: &RecurrentShape) -> Range<usize> {
    let first = shape.columns().gate;
    first..first + shape.value_width()
}

fn gate(cpu: &Cpu, shape: &RecurrentShape, inputs: &HostRows, x: &mut HostRows) {
    let (columns, stride) = (gate_columns(shape), inputs.width());
    for_rows(cpu, x, shape.value_width(), |row, x| {
        gate_row(cpu.isa(), &inputs[row * stride..][columns.clone()], x);
    });
}

/// First column, number of heads and part of the weight of what is normalised together.
fn norms(shape: &RecurrentShape) -> Vec<(usize, usize, Range<usize>)> {
    if shape.has_beta() {
        return vec![(0, shape.value_heads, 0..shape.value_dim)];
    }
    let width = shape.value_width() / shape.key_heads;
    (0..shape.key_heads).map(|group| (group * width, 1, group * width..(group + 1) * width)).collect()
}

fn norm(cpu: &Cpu, shape: &RecurrentShape, weight: &[f32], eps: f32, x: &mut HostRows) {
    for (at, heads, part) in norms(shape) {
        rms_norm_heads(cpu, x, shape.value_width(), at, heads, &weight[part], eps);
    }
}

/// The output of a recurrence, normalised and gated in the order of its rule.
pub(super) fn forward(
    cpu: &Cpu,
    shape: &RecurrentShape,
    weight: &[f32],
    eps: f32,
    inputs: &HostRows,
    out: &HostRows,
) -> HostRows {
    let mut x = out.copy(cpu);
    if shape.has_beta() {
        norm(cpu, shape, weight, eps, &mut x);
        gate(cpu, shape, inputs, &mut x);
    } else {
        gate(cpu, shape, inputs, &mut x);
        norm(cpu, shape, weight, eps, &mut x);
    }
    x
}

/// Gradients with respect to the output and to the gate, given that with respect to [`forward`]'s result.
pub(super) fn backward(
    cpu: &Cpu,
    shape: &RecurrentShape,
    weight: &[f32],
    eps: f32,
    inputs: &HostRows,
    out: &HostRows,
    d_gated: &HostRows,
    mut dw: Option<&mut [f32]>,
) -> [HostRows; 2] {
    let (columns, stride, width) = (gate_columns(shape), inputs.width(), shape.value_width());
    let gradient_of_gate = |d: &HostRows, x: &HostRows| {
        let mut dz = HostRows::alloc(cpu, out.rows(), width);
        for_rows(cpu, &mut dz, width, |row, dz| {
            let own = row * width..(row + 1) * width;
            gate_gradient(cpu.isa(), &d[own.clone()], &x[own], &inputs[row * stride..][columns.clone()], dz);
        });
        dz
    };
    let mut norm_backward = |x: &HostRows, d: &mut HostRows| {
        for (at, heads, part) in norms(shape) {
            let dw = dw.as_deref_mut().map(|dw| &mut dw[part.clone()]);
            rms_norm_heads_backward(cpu, x, width, at, heads, &weight[part], eps, d, dw);
        }
    };
    let mut d = d_gated.copy(cpu);
    if shape.has_beta() {
        let mut normed = out.copy(cpu);
        norm(cpu, shape, weight, eps, &mut normed);
        let dz = gradient_of_gate(d_gated, &normed);
        gate(cpu, shape, inputs, &mut d);
        norm_backward(out, &mut d);
        return [d, dz];
    }
    let mut gated = out.copy(cpu);
    gate(cpu, shape, inputs, &mut gated);
    norm_backward(&gated, &mut d);
    let dz = gradient_of_gate(&d, out);
    gate(cpu, shape, inputs, &mut d);
    [d, dz]
}
