//! Short convolutions token by token.

use super::state::{State, StatePool};
use super::{Matrix, Reference, add_scaled};
use crate::host::HostParams;
use crate::{ConvolutionCall, ConvolutionOps, Rows};

/// The gates before and behind the convolution, and the values, of a row of inputs.
fn parts(row: &[f32], channels: usize) -> [&[f32]; 3] {
    [&row[..channels], &row[channels..2 * channels], &row[2 * channels..]]
}

fn times(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a * b).collect()
}

/// The convolution's sums of a token, given its inputs, oldest first.
fn sums(call: &ConvolutionCall<'_, Reference>, window: &[Vec<f32>]) -> Vec<f32> {
    let kernel = call.shape.kernel;
    let of = |c: usize| window.iter().enumerate().map(|(t, u)| call.weight[c * kernel + t] * u[c]).sum();
    (0..call.shape.channels).map(of).collect()
}

impl ConvolutionOps<Self> for Reference {
    const HAS_CONVOLUTIONS: bool = true;

    fn convolve(_: &Self, call: &ConvolutionCall<'_, Self>, pool: &mut StatePool, inputs: &Matrix) -> Matrix {
        let channels = call.shape.channels;
        let mut out = Matrix::zeros(inputs.rows(), channels);
        for span in call.spans {
            let mut own = State::of_convolution(call.shape);
            let state = match span.state {
                Some(id) => pool.layer(id, call.layer),
                None => &mut own,
            };
            for row in span.rows.clone() {
                let [b, c, x] = parts(inputs.row(row), channels);
                state.tail.push(times(b, x));
                out.row_mut(row).copy_from_slice(&times(c, &sums(call, &state.tail)));
                state.tail.remove(0);
            }
        }
        out
    }

    fn convolve_backward(
        _: &Self,
        call: &ConvolutionCall<'_, Self>,
        inputs: &Matrix,
        d_out: &Matrix,
        mut dw: Option<(&mut HostParams, usize)>,
    ) -> Matrix {
        let (channels, kernel) = (call.shape.channels, call.shape.kernel);
        let mut d_inputs = Matrix::zeros(inputs.rows(), inputs.width);
        for span in call.spans {
            let len = span.rows.len();
            let mut window = State::of_convolution(call.shape).tail;
            let mut d_written = vec![vec![0.0; channels]; len];
            for (i, row) in span.rows.clone().enumerate() {
                let [b, c, x] = parts(inputs.row(row), channels);
                window.push(times(b, x));
                let d_gate = times(d_out.row(row), &sums(call, &window));
                d_inputs.row_mut(row)[channels..2 * channels].copy_from_slice(&d_gate);
                let d_sums = times(d_out.row(row), c);
                for t in 0..kernel {
                    let weights: Vec<f32> = (0..channels).map(|c| call.weight[c * kernel + t]).collect();
                    if let Some(source) = (i + t).checked_sub(kernel - 1) {
                        add_scaled(&mut d_written[source], &times(&weights, &d_sums), 1.0);
                    }
                    if let Some((params, index)) = &mut dw {
                        for (c, d) in times(&d_sums, &window[t]).into_iter().enumerate() {
                            params[*index][c * kernel + t] += d;
                        }
                    }
                }
                window.remove(0);
            }
            for (row, d) in span.rows.clone().zip(&d_written) {
                let [b, _, x] = parts(inputs.row(row), channels);
                let d_row = d_inputs.row_mut(row);
                d_row[..channels].copy_from_slice(&times(d, x));
                d_row[2 * channels..].copy_from_slice(&times(d, b));
            }
        }
        d_inputs
    }
}
