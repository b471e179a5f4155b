//! Gated SiLU (`silu(g) · u`, Shazeer 2020, arXiv:2002.05202), row sums and additions.

use super::gemm::Operand;
use super::packed::Dtype;
use super::vexp::{multiversion, sigmoid};
use super::{Cpu, Shared, par_chunks, rows_per_task};

multiversion! {
    fn swiglu_row(gate: &[f32], up: &[f32], out: &mut [f32]) {
        for ((out, g), u) in out.iter_mut().zip(gate).zip(up) {
            *out = g * sigmoid(*g) * u;
        }
    }
}

multiversion! {
    /// `gate` and `up` hold (g, u) and become (dg, du); `out` holds the gradient by the output and becomes the output.
    fn swiglu_backward_row(out: &mut [f32], gate: &mut [f32], up: &mut [f32]) {
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

/// `silu(gate) · up`, `[rows, width]`, from rows of gate then up, `[rows, 2 * width]`: the left side of a product.
pub fn swiglu(cpu: &Cpu, dtype: Dtype, gate_up: &[f32], width: usize) -> Operand {
    Operand::of_rows(cpu, dtype, gate_up.len() / (2 * width), width, |row, out| {
        let (gate, up) = gate_up[row * 2 * width..][..2 * width].split_at(width);
        swiglu_row(cpu.isa(), gate, up, out);
    })
}

/// Turns rows of (gate, up) into rows of their gradients, and `out[rows, width]` from the gradient by the output of
/// [`swiglu`] into that output.
pub fn swiglu_backward(cpu: &Cpu, out: &mut [f32], width: usize, gate_up: &mut [f32]) {
    let rows = out.len().checked_div(width).unwrap_or(0);
    assert!(gate_up.len() >= 2 * rows * width, "gate and up have fewer rows than their output");
    let chunk = rows_per_task(&cpu.pool, rows);
    let base = Shared(gate_up.as_mut_ptr());
    par_chunks(&cpu.pool, out, chunk * width, |i, out| {
        // SAFETY: in bounds as checked; each task has the rows of its part of `out`.
        let at = unsafe { std::slice::from_raw_parts_mut(base.ptr().add(i * chunk * 2 * width), 2 * out.len()) };
        for (out, gu) in out.chunks_exact_mut(width).zip(at.chunks_exact_mut(2 * width)) {
            let (gate, up) = gu.split_at_mut(width);
            swiglu_backward_row(cpu.isa(), out, gate, up);
        }
    });
}

/// Adds `bias` to every row of `x`.
pub fn add_bias(cpu: &Cpu, x: &mut [f32], bias: &[f32]) {
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
pub fn add_column_sums(cpu: &Cpu, x: &[f32], stride: usize, offset: usize, sum: &mut [f32]) {
    par_chunks(&cpu.pool, sum, 256, |i, sum| {
        for row in x.chunks_exact(stride) {
            for (s, x) in sum.iter_mut().zip(&row[offset + i * 256..]) {
                *s += x;
            }
        }
    });
}

/// `x *= factor`.
pub fn scale(x: &mut [f32], factor: f32) {
    for x in x {
        *x *= factor;
    }
}

/// `to += from`, element by element.
pub fn add(cpu: &Cpu, to: &mut [f32], from: &[f32]) {
    par_chunks(&cpu.pool, to, 1 << 14, |i, to| {
        for (to, from) in to.iter_mut().zip(&from[i << 14..]) {
            *to += from;
        }
    });
}

/// Runs `f(row)` for rows `[0, rows)` of a dense matrix of `width` columns, giving each its slice.
pub fn for_rows(cpu: &Cpu, x: &mut [f32], width: usize, f: impl Fn(usize, &mut [f32]) + Sync) {
    let chunk = rows_per_task(&cpu.pool, x.len() / width.max(1));
    par_chunks(&cpu.pool, x, chunk * width, |i, rows| {
        for (j, row) in rows.chunks_exact_mut(width).enumerate() {
            f(i * chunk + j, row);
        }
    });
}

/// Runs `f(i)` for each item on all threads, giving each its own element of `items`.
pub fn for_each<T: Send>(cpu: &Cpu, items: &mut [T], f: impl Fn(usize, &mut T) + Sync) {
    let base = Shared(items.as_mut_ptr());
    cpu.pool.run(items.len(), |i| {
        // SAFETY: every task has an element of its own.
        f(i, unsafe { &mut *base.ptr().add(i) });
    });
}
