//! Elementwise steps of a recurrence, its norms and its convolution.

use crate::cpu::vexp::{dot, exp, multiversion, sigmoid};

/// Logarithm of the smallest decay that is kept. A smaller one changes no f32 sum of ordinary values, but leads to denormal
/// numbers, which take a processor a hundred times as long.
const LEAST: f32 = -64.0;

/// `e^x`, or 0 where so little is left that it does not count.
#[inline(always)]
pub(super) fn decay(x: f32) -> f32 {
    if x < LEAST { 0.0 } else { exp(x) }
}

multiversion! {
    /// `out[r][j] = factor · e^{g[first + r] − g[j]} · dots[r][j]` for `j < first + r + own`.
    pub(super) fn decayed(dots: &[f32], g: &[f32], first: usize, own: usize, factor: f32, out: &mut [f32], stride: usize) {
        for (r, (dots, out)) in dots.chunks(stride).zip(out.chunks_mut(stride)).enumerate() {
            let (last, terms) = (g[first + r], first + r + own);
            for ((out, dot), g) in out[..terms].iter_mut().zip(dots).zip(g) {
                *out = factor * decay(last - g) * dot;
            }
        }
    }
}

multiversion! {
    /// `out[i][j] = factor · e^{g[i] − g[j]}` for `j < i + own`; 0 for other `j`. Rows of `out` are `stride` apart.
    pub(super) fn lower_decays(g: &[f32], own: usize, factor: f32, out: &mut [f32], stride: usize) {
        for (i, (last, out)) in g.iter().zip(out.chunks_exact_mut(stride)).enumerate() {
            let (lower, rest) = out.split_at_mut(i + own);
            for (out, g) in lower.iter_mut().zip(g) {
                *out = factor * decay(last - g);
            }
            rest.fill(0.0);
        }
    }
}

multiversion! {
    /// `x ← x · y`.
    pub(super) fn multiply(x: &mut [f32], y: &[f32]) {
        for (x, y) in x.iter_mut().zip(y) {
            *x *= y;
        }
    }
}

multiversion! {
    /// `out[r][j] = x[r][j] · by[j]`; rows of `x` and `out` are `stride` apart.
    pub(super) fn scale_columns(x: &[f32], by: &[f32], stride: usize, out: &mut [f32]) {
        for (x, out) in x.chunks_exact(stride).zip(out.chunks_exact_mut(stride)) {
            for ((out, x), by) in out.iter_mut().zip(x).zip(by) {
                *out = x * by;
            }
        }
    }
}

multiversion! {
    /// Multiplies each row of `width` elements by its factor, and returns dot products with rows of `y`.
    pub(super) fn scale_rows(x: &mut [f32], width: usize, by: &[f32], y: &[f32], dots: &mut [f32]) {
        for (((x, by), y), to) in x.chunks_exact_mut(width).zip(by).zip(y.chunks_exact(width)).zip(dots) {
            for x in x.iter_mut() {
                *x *= by;
            }
            *to = dot(x, y);
        }
    }
}

multiversion! {
    /// Adds `read ∘ dots`, element by element, to sums over rows and, negated, to sums over columns, below the diagonal.
    pub(super) fn add_along(read: &[f32], dots: &[f32], stride: usize, sums: &mut [f32]) {
        for i in 0..sums.len() {
            let (before, own) = sums.split_at_mut(i);
            let (read, dots) = (&read[i * stride..][..i], &dots[i * stride..][..i]);
            for ((before, read), dots) in before.iter_mut().zip(read).zip(dots) {
                *before -= read * dots;
            }
            own[0] += dot(read, dots);
        }
    }
}

multiversion! {
    /// `out[c][r] = x[r][c]`: `x` has rows of `width` elements, rows of `out` are `stride` apart.
    pub(super) fn transpose(x: &[f32], width: usize, out: &mut [f32], stride: usize) {
        for (tile, x) in x.chunks(TILE * width).enumerate() {
            for column in 0..width {
                let out = &mut out[column * stride + tile * TILE..];
                for (out, x) in out.iter_mut().zip(x[column..].iter().step_by(width)) {
                    *out = *x;
                }
            }
        }
    }
}

/// Rows that are transposed together.
const TILE: usize = 16;

multiversion! {
    /// Causal convolution by channel: `out[r] = bias + Σ_t weights[t] x[r + t]`, `t` ascending; `x` has the rows before the first
    /// one first.
    pub(super) fn convolve(x: &[f32], weights: &[f32], bias: Option<&[f32]>, width: usize, out: &mut [f32]) {
        for (r, out) in out.chunks_exact_mut(width).enumerate() {
            match bias {
                Some(bias) => out.copy_from_slice(bias),
                None => out.fill(0.0),
            }
            for (weights, x) in weights.chunks_exact(width).zip(x[r * width..].chunks_exact(width)) {
                for ((out, w), x) in out.iter_mut().zip(weights).zip(x) {
                    *out = w.mul_add(*x, *out);
                }
            }
        }
    }
}

multiversion! {
    /// Gradients of a convolution's weights `[kernel, width]` and biases: adds row after row of `d` with the rows of `x` that it sees.
    pub(super) fn add_taps(d: &[f32], x: &[f32], width: usize, weights: &mut [f32], biases: &mut [f32]) {
        for (row, d) in d.chunks_exact(width).enumerate() {
            for (bias, d) in biases.iter_mut().zip(d) {
                *bias += d;
            }
            for (weights, x) in weights.chunks_exact_mut(width).zip(x[row * width..].chunks_exact(width)) {
                for ((weight, d), x) in weights.iter_mut().zip(d).zip(x) {
                    *weight = d.mul_add(*x, *weight);
                }
            }
        }
    }
}

multiversion! {
    /// Gradients of a convolution's inputs: row `r` is seen by rows `r..r + kernel` of `d`, by the latest one with the first weight.
    pub(super) fn convolve_back(d: &[f32], weights: &[f32], width: usize, out: &mut [f32]) {
        for (row, out) in out.chunks_exact_mut(width).enumerate() {
            for (d, weights) in d[row * width..].chunks_exact(width).zip(weights.chunks_exact(width).rev()) {
                for ((out, d), weight) in out.iter_mut().zip(d).zip(weights) {
                    *out = d.mul_add(*weight, *out);
                }
            }
        }
    }
}

multiversion! {
    /// `out = x · sigmoid(x)`.
    pub(super) fn silu_into(x: &[f32], out: &mut [f32]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = x * sigmoid(*x);
        }
    }
}

multiversion! {
    /// `d ← d · silu'(x)`.
    pub(super) fn silu_backward(x: &[f32], d: &mut [f32]) {
        for (d, x) in d.iter_mut().zip(x) {
            let s = sigmoid(*x);
            *d *= s * (1.0 + x * (1.0 - s));
        }
    }
}

multiversion! {
    /// Divides each row by the root of its sum of squares plus [`NORM_EPS`], times `scale`, and writes the divisors' inverses.
    pub(super) fn unit_rows(x: &mut [f32], width: usize, scale: f32, inverses: &mut [f32]) {
        for (x, inverse) in x.chunks_exact_mut(width).zip(inverses) {
            *inverse = 1.0 / (dot(x, x) + NORM_EPS).sqrt();
            let by = *inverse * scale;
            for x in x.iter_mut() {
                *x *= by;
            }
        }
    }
}

/// Added to the sum of squares of queries and keys.
const NORM_EPS: f32 = 1e-6;

multiversion! {
    /// The gradient with respect to rows before [`unit_rows`] from their results `y`, in place of that with respect to these, `d`.
    pub(super) fn unit_rows_backward(y: &[f32], width: usize, scale: f32, inverses: &[f32], d: &mut [f32]) {
        for ((y, d), inverse) in y.chunks_exact(width).zip(d.chunks_exact_mut(width)).zip(inverses) {
            // y = scale · x · inverse: dx = scale · inverse · d − y (y·d) · inverse / scale.
            let (along, across) = (dot(y, d) * inverse / scale, scale * inverse);
            for (d, y) in d.iter_mut().zip(y) {
                *d = across * *d - along * y;
            }
        }
    }
}

multiversion! {
    /// `to += by · from`.
    pub(super) fn add_scaled(to: &mut [f32], from: &[f32], by: f32) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = by.mul_add(*from, *to);
        }
    }
}

multiversion! {
    pub(super) fn dot_product(x: &[f32], y: &[f32]) -> f32 {
        dot(x, y)
    }
}

/// `ln(1 + e^x)`, to about 1 ulp.
pub(super) fn softplus(x: f32) -> f32 {
    // With e = e^-|x|: ln(1 + e) = 2 artanh(e / (2 + e)), whose argument is at most a third.
    let e = exp(-x.abs());
    let z = e / (2.0 + e);
    let s = z * z;
    let mut p = 1.0 / 15.0;
    for k in [13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0f32] {
        p = s.mul_add(p, 1.0 / k);
    }
    x.max(0.0) + 2.0 * z * p
}
