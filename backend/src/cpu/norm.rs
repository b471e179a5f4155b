//! RMSNorm (Zhang & Sennrich 2019, arXiv:1910.07467): `y = x / rms(x) · w`, `rms = sqrt(mean(x²) + eps)`.

use std::ops::Range;

use super::Cpu;
use super::gemm::PackedLhs;
use super::operands::WeightInput;
use super::parallel::{SharedPtr, for_rows, par_chunks, rows_per_task};
use super::vexp::{LANES, multiversion, sum_by};
use crate::Dtype;

#[inline(always)]
fn inverse_rms(x: &[f32], eps: f32) -> f32 {
    1.0 / (sum_by(x, |x| x * x) / x.len() as f32 + eps).sqrt()
}

multiversion! {
    fn norm_row(x: &[f32], w: &[f32], eps: f32, y: &mut [f32]) {
        let scale = inverse_rms(x, eps);
        for ((y, x), w) in y.iter_mut().zip(x).zip(w) {
            *y = x * scale * w;
        }
    }
}

multiversion! {
    fn norm_row_in_place(x: &mut [f32], w: &[f32], eps: f32) {
        let scale = inverse_rms(x, eps);
        for (x, w) in x.iter_mut().zip(w) {
            *x = *x * scale * w;
        }
    }
}

multiversion! {
    fn add_norm_row(x: &[f32], w: &[f32], eps: f32, y: &mut [f32]) {
        let scale = inverse_rms(x, eps);
        for ((y, x), w) in y.iter_mut().zip(x).zip(w) {
            *y += x * scale * w;
        }
    }
}

/// Factors of `dy · w` and of `x` in [`norm_row_backward`]: `1 / rms` and `Σ(dy · w · x) / (n · rms³)`.
#[inline(always)]
fn backward_factors(x: &[f32], w: &[f32], eps: f32, dy: &[f32]) -> (f32, f32) {
    let scale = inverse_rms(x, eps);
    let mut lanes = [0f32; LANES];
    let mut add = |x: &[f32], w: &[f32], dy: &[f32]| {
        for (((lane, x), w), dy) in lanes.iter_mut().zip(x).zip(w).zip(dy) {
            *lane += dy * w * x;
        }
    };
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let (ws, w_rest) = w.as_chunks::<LANES>();
    let (dys, dy_rest) = dy.as_chunks::<LANES>();
    for ((x, w), dy) in xs.iter().zip(ws).zip(dys) {
        add(x, w, dy);
    }
    add(x_rest, w_rest, dy_rest);
    (scale, lanes.iter().sum::<f32>() * scale * scale * scale / x.len() as f32)
}

multiversion! {
    /// Adds the gradient with respect to `x` to `dx`: `dy · w / rms - x · Σ(dy · w · x) / (n · rms³)`.
    fn norm_row_backward(x: &[f32], w: &[f32], eps: f32, dy: &[f32], dx: &mut [f32]) {
        let (scale, mean) = backward_factors(x, w, eps, dy);
        for (((dx, x), w), dy) in dx.iter_mut().zip(x).zip(w).zip(dy) {
            *dx += dy * w * scale - x * mean;
        }
    }
}

multiversion! {
    /// Like `norm_row_backward`, but `dy` becomes the gradient.
    fn norm_row_backward_in_place(x: &[f32], w: &[f32], eps: f32, dy: &mut [f32]) {
        let (scale, mean) = backward_factors(x, w, eps, dy);
        for ((dy, x), w) in dy.iter_mut().zip(x).zip(w) {
            *dy = *dy * w * scale - x * mean;
        }
    }
}

multiversion! {
    /// `1 / rms` of every row.
    fn inverse_rms_rows(x: &[f32], eps: f32, width: usize, scales: &mut [f32]) {
        for (scale, x) in scales.iter_mut().zip(x.chunks_exact(width)) {
            *scale = inverse_rms(x, eps);
        }
    }
}

multiversion! {
    /// `dw[j] += dy · x · scale` of columns `first + j`, rows in order; `x` and `dy` have rows of `width` elements.
    fn add_weight_gradient_columns(x: &[f32], dy: &[f32], width: usize, first: usize, scales: &[f32], dw: &mut [f32]) {
        for (scale, (x, dy)) in scales.iter().zip(x.chunks_exact(width).zip(dy.chunks_exact(width))) {
            for ((dw, x), dy) in dw.iter_mut().zip(&x[first..]).zip(&dy[first..]) {
                *dw += dy * x * scale;
            }
        }
    }
}

/// `rmsnorm(x)` for every row of `w.len()` elements, as the left side of a GEMM.
pub(super) fn rms_norm_lhs(cpu: &Cpu, dtype: Dtype, x: &[f32], w: &[f32], eps: f32) -> PackedLhs {
    let width = w.len();
    PackedLhs::of_rows(cpu, dtype, x.len() / width, width, |i, y| {
        norm_row(cpu.isa(), &x[i * width..(i + 1) * width], w, eps, y);
    })
}

/// `rmsnorm(x)` for every row of `w.len()` elements, as a layer's input for gradients of its weights.
pub(super) fn rms_norm_input(
    cpu: &Cpu,
    x: &[f32],
    w: &[f32],
    eps: f32,
    sequences: &[Range<usize>],
) -> WeightInput<'static> {
    let width = w.len();
    WeightInput::of_rows(cpu, x.len() / width, width, sequences, |i, y| {
        norm_row(cpu.isa(), &x[i * width..(i + 1) * width], w, eps, y);
    })
}

/// `y = rmsnorm(x)` for every row of `w.len()` elements.
pub(super) fn rms_norm(cpu: &Cpu, x: &[f32], w: &[f32], eps: f32, y: &mut [f32]) {
    let width = w.len();
    for_rows(cpu, y, width, |i, y| norm_row(cpu.isa(), &x[i * width..(i + 1) * width], w, eps, y));
}

/// `y += rmsnorm(x)` for every row of `w.len()` elements.
pub(super) fn add_rms_norm(cpu: &Cpu, x: &[f32], w: &[f32], eps: f32, y: &mut [f32]) {
    let width = w.len();
    for_rows(cpu, y, width, |i, y| add_norm_row(cpu.isa(), &x[i * width..(i + 1) * width], w, eps, y));
}

/// Normalises every head of `heads` consecutive heads of `w.len()` elements at `offset` of each row.
pub(super) fn rms_norm_heads(
    cpu: &Cpu,
    x: &mut [f32],
    stride: usize,
    offset: usize,
    heads: usize,
    w: &[f32],
    eps: f32,
) {
    for_rows(cpu, x, stride, |_, x| {
        for head in x[offset..offset + heads * w.len()].chunks_exact_mut(w.len()) {
            norm_row_in_place(cpu.isa(), head, w, eps);
        }
    });
}

/// Adds the gradient with respect to `x` to `dx` and, where `dw` is given, that with respect to `w`, rows in order, to
/// `dw`.
pub(super) fn rms_norm_backward(
    cpu: &Cpu,
    x: &[f32],
    w: &[f32],
    eps: f32,
    dy: &[f32],
    dx: &mut [f32],
    dw: Option<&mut [f32]>,
) {
    let width = w.len();
    for_rows(cpu, dx, width, |i, dx| {
        let at = i * width..(i + 1) * width;
        norm_row_backward(cpu.isa(), &x[at.clone()], w, eps, &dy[at], dx);
    });
    if let Some(dw) = dw {
        add_weight_gradient(cpu, x, eps, dy, dw);
    }
}

/// The backward pass of [`rms_norm_heads`]: the same heads of `dy` become the gradient with respect to `x`, the rows before
/// normalisation. Where `dw` is given, the gradient with respect to `w` is added, rows in order.
pub(super) fn rms_norm_heads_backward(
    cpu: &Cpu,
    x: &[f32],
    stride: usize,
    offset: usize,
    heads: usize,
    w: &[f32],
    eps: f32,
    dy: &mut [f32],
    dw: Option<&mut [f32]>,
) {
    let width = w.len();
    if let Some(dw) = dw {
        let rows = x.len() / stride;
        let mut xs = vec![0.0; rows * heads * width];
        let mut dys = vec![0.0; rows * heads * width];
        for (r, (xs, dys)) in xs.chunks_exact_mut(heads * width).zip(dys.chunks_exact_mut(heads * width)).enumerate() {
            let at = r * stride + offset;
            xs.copy_from_slice(&x[at..at + heads * width]);
            dys.copy_from_slice(&dy[at..at + heads * width]);
        }
        add_weight_gradient(cpu, &xs, eps, &dys, dw);
    }
    for_rows(cpu, dy, stride, |i, dy| {
        for h in 0..heads {
            let at = offset + h * width;
            let x = &x[i * stride + at..i * stride + at + width];
            norm_row_backward_in_place(cpu.isa(), x, w, eps, &mut dy[at..at + width]);
        }
    });
}

/// `dw += Σ dy · x / rms`, rows in order; `x` and `dy` are dense.
fn add_weight_gradient(cpu: &Cpu, x: &[f32], eps: f32, dy: &[f32], dw: &mut [f32]) {
    let width = dw.len();
    let mut scales = vec![0f32; x.len() / width];
    let chunk = rows_per_task(&cpu.pool, scales.len());
    par_chunks(&cpu.pool, &mut scales, chunk, |i, scales| {
        inverse_rms_rows(cpu.isa(), &x[i * chunk * width..], eps, width, scales);
    });
    let out = SharedPtr(dw.as_mut_ptr());
    let columns = 64;
    cpu.pool.run(width.div_ceil(columns), |task| {
        let (start, end) = (task * columns, ((task + 1) * columns).min(width));
        // SAFETY: tasks have disjoint columns of `dw`, which has `width` elements.
        let dw = unsafe { std::slice::from_raw_parts_mut(out.ptr().add(start), end - start) };
        add_weight_gradient_columns(cpu.isa(), x, dy, width, start, &scales, dw);
    });
}
