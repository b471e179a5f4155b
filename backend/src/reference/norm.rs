//! RMSNorm of each row, and its backward pass.

use super::{Reference, dot};
use crate::Norm;

/// RMSNorm of a row.
pub(super) fn norm_row(norm: Norm<'_, Reference>, x: &[f32]) -> Vec<f32> {
    let scale = inverse_rms(norm, x);
    x.iter().zip(norm.weight).map(|(x, w)| x * scale * w).collect()
}

fn inverse_rms(norm: Norm<'_, Reference>, x: &[f32]) -> f32 {
    1.0 / (dot(x, x) / x.len() as f32 + norm.eps).sqrt()
}

/// Gradient with respect to the input of [`norm_row`]; that of the weight is added to `dw`.
pub(super) fn norm_row_backward(norm: Norm<'_, Reference>, x: &[f32], dy: &[f32], dw: Option<&mut [f32]>) -> Vec<f32> {
    let scale = inverse_rms(norm, x);
    let weighted: Vec<f32> = dy.iter().zip(norm.weight).map(|(dy, w)| dy * w).collect();
    if let Some(dw) = dw {
        dw.iter_mut().zip(dy.iter().zip(x)).for_each(|(dw, (dy, x))| *dw += dy * x * scale);
    }
    let mean = dot(&weighted, x) * scale.powi(3) / x.len() as f32;
    weighted.iter().zip(x).map(|(d, x)| d * scale - x * mean).collect()
}
