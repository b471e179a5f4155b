//! Activations by their formulas.

use super::Matrix;
use crate::{Activation, Rows};

/// The activation of a gate and its derivative.
fn activation(kind: Activation, x: f32) -> (f32, f32) {
    match kind {
        Activation::Silu => {
            let s = 1.0 / (1.0 + (-x).exp());
            (x * s, s * (1.0 + x * (1.0 - s)))
        }
        Activation::ClampedSwish => {
            let (x, slope) = if x > 7.0 { (7.0, 0.0) } else { (x, 1.0) };
            let s = 1.0 / (1.0 + (-1.702 * x).exp());
            (x * s, slope * s * (1.0 + 1.702 * x * (1.0 - s)))
        }
        Activation::GeluTanh => {
            let c = (2.0 / std::f32::consts::PI).sqrt();
            let t = (c * (x + 0.044_715 * x.powi(3))).tanh();
            let slope = 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * c * (1.0 + 3.0 * 0.044_715 * x * x);
            (0.5 * x * (1.0 + t), slope)
        }
        Activation::SquaredRelu if x < 0.0 => (0.0, 0.0),
        Activation::SquaredRelu => (x * x, 2.0 * x),
    }
}

/// Factor of the activation, from up, and its derivative.
fn factor(kind: Activation, up: f32) -> (f32, f32) {
    match kind {
        Activation::Silu | Activation::GeluTanh | Activation::SquaredRelu => (up, 1.0),
        Activation::ClampedSwish if up.abs() > 7.0 => (up.clamp(-7.0, 7.0) + 1.0, 0.0),
        Activation::ClampedSwish => (up + 1.0, 1.0),
    }
}

pub(super) fn forward(kind: Activation, gate_up: &Matrix) -> Matrix {
    let width = kind.outputs(gate_up.width);
    let act = |row: &[f32]| {
        let factor = |i: usize| if kind.is_gated() { factor(kind, row[width + i]).0 } else { 1.0 };
        (0..width).map(|i| activation(kind, row[i]).0 * factor(i)).collect::<Vec<_>>()
    };
    Matrix::new((0..gate_up.rows()).flat_map(|row| act(gate_up.row(row))).collect(), width)
}

/// Replaces (gate, up) by the gradients with respect to them, and `d_out`, the gradient with respect to the output, by it.
pub(super) fn backward(kind: Activation, gate_up: &mut Matrix, d_out: &mut Matrix) {
    let width = d_out.width;
    for row in 0..d_out.rows() {
        let (out, gate_up) = (d_out.row_mut(row), gate_up.row_mut(row));
        for i in 0..width {
            if !kind.is_gated() {
                let (act, slope) = activation(kind, gate_up[i]);
                (gate_up[i], out[i]) = (out[i] * slope, act);
                continue;
            }
            let ((act, slope), (up, up_slope)) = (activation(kind, gate_up[i]), factor(kind, gate_up[width + i]));
            let d = out[i];
            (gate_up[i], gate_up[width + i], out[i]) = (d * up * slope, d * act * up_slope, act * up);
        }
    }
}
