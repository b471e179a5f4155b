//! Ops of vision towers by their formulas.

use std::ops::Range;

use super::{Matrix, Reference, add_scaled, dot, log_sum_exp};
use crate::{Backend, Gelu, LayerNorm, LinearCall, RowMix, Rows, VisionOps};

/// The error function in f64: a series of positive terms, and 1 where that is the nearest f64.
fn erf(x: f64) -> f64 {
    if x.abs() > 6.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..400 {
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

pub(crate) fn gelu(kind: Gelu, x: f32) -> f32 {
    let x = f64::from(x);
    let inner = std::f64::consts::FRAC_2_SQRT_PI / std::f64::consts::SQRT_2 * (x + 0.044_715 * x.powi(3));
    let factor = match kind {
        Gelu::Tanh => inner.tanh(),
        Gelu::Erf => erf(x / std::f64::consts::SQRT_2),
    };
    (0.5 * x * (1.0 + factor)) as f32
}

impl VisionOps<Self> for Reference {
    fn upload_rows(_: &Self, values: &[f32], width: usize) -> Matrix {
        Matrix::new(values.to_vec(), width)
    }

    fn layer_norm(_: &Self, norm: LayerNorm<'_, Self>, x: &Matrix) -> Matrix {
        let row = |row: usize| {
            let (x, n) = (x.row(row), x.width as f32);
            let mean = x.iter().sum::<f32>() / n;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / n;
            let scale = 1.0 / (variance + norm.eps).sqrt();
            let columns = x.iter().zip(norm.weight).zip(norm.bias);
            columns.map(|((x, w), b)| (x - mean) * scale * w + b).collect::<Vec<_>>()
        };
        Matrix::new((0..x.rows()).flat_map(row).collect(), x.width)
    }

    fn linear_gelu(b: &Self, call: &LinearCall<'_, Self>, kind: Gelu, x: &Matrix) -> Matrix {
        let mut out = Matrix::zeros(x.rows(), call.weight.rows());
        b.linear(call, x, None, &mut out);
        Self::gelu(b, kind, &out)
    }

    fn gelu(_: &Self, kind: Gelu, x: &Matrix) -> Matrix {
        Matrix::new(x.data.iter().map(|x| gelu(kind, *x)).collect(), x.width)
    }

    fn mix_rows(_: &Self, table: &Matrix, mix: &RowMix) -> Matrix {
        let mut out = Matrix::zeros(mix.rows.len() / mix.per_row, table.width);
        for (at, (row, weight)) in mix.rows.iter().zip(&mix.weights).enumerate() {
            add_scaled(out.row_mut(at / mix.per_row), table.row(*row), *weight);
        }
        out
    }

    fn attend_all(_: &Self, heads: usize, images: &[Range<usize>], qkv: &Matrix) -> Matrix {
        let width = qkv.width / 3;
        let e = width / heads;
        let scale = 1.0 / (e as f32).sqrt();
        let mut out = Matrix::zeros(qkv.rows(), width);
        for image in images {
            for row in image.clone() {
                for head in 0..heads {
                    let part = |row: usize, which: usize| &qkv.row(row)[which * width + head * e..][..e];
                    let score = |key: usize| dot(part(row, 0), part(key, 1)) * scale;
                    let scores: Vec<f32> = image.clone().map(score).collect();
                    let sum = log_sum_exp(&scores);
                    for (key, score) in image.clone().zip(scores) {
                        add_scaled(&mut out.row_mut(row)[head * e..][..e], part(key, 2), (score - sum).exp());
                    }
                }
            }
        }
        out
    }

    fn join_rows(_: &Self, x: Matrix, count: usize) -> Matrix {
        assert!(x.rows().is_multiple_of(count), "the number of rows is not a multiple of the group size");
        let width = x.width * count;
        Matrix::new(x.data, width)
    }

    fn add_rows(_: &Self, from: &Matrix, rows: &[usize], to: &mut Matrix) {
        rows.iter().enumerate().for_each(|(i, row)| add_scaled(to.row_mut(*row), from.row(i), 1.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_has_its_known_values() {
        // From a table of erf.
        for (x, expected) in [(0.0, 0.0), (0.5, 0.520_499_877_8), (1.0, 0.842_700_792_9), (2.0, 0.995_322_265_0)] {
            assert!((erf(x) - expected).abs() < 1e-9, "{x}");
            assert_eq!(erf(-x), -erf(x));
        }
        assert!((erf(5.9) - 1.0).abs() < 1e-12);
    }
}
