//! Arguments and results of the suite's ops, on the host.

use crate::reference::{Matrix, Reference};
use crate::rng::kaiming_uniform_fill;
use crate::{Backend, Held, HostBackend, Params};

/// Rows from and to the host.
pub trait HostAccess: Backend {
    /// Uploads rows of `width` elements.
    fn rows(&self, rows: &[f32], width: usize) -> Self::Rows;

    /// Returns the elements of rows.
    fn values(&self, rows: &Self::Rows) -> Vec<f32>;

    /// Returns the elements of a gradient with respect to a linear layer's output.
    fn gradient(&self, dy: &Self::OutputGradient<'_>) -> Vec<f32>;

    /// Returns the elements of a linear layer's input.
    fn input(&self, x: &Self::WeightInput<'_>) -> Vec<f32>;

    /// Returns how products with a weight `[outputs, inputs]` are computed, for reports; empty where there is one way.
    fn product_plans(&self, _outputs: usize, _inputs: usize, _backward: bool) -> String {
        String::new()
    }
}

impl HostAccess for HostBackend {
    fn rows(&self, rows: &[f32], width: usize) -> Self::Rows {
        let mut out = self.alloc(rows.len() / width, width);
        out.copy_from_slice(rows);
        out
    }

    fn values(&self, rows: &Self::Rows) -> Vec<f32> {
        rows.to_vec()
    }

    fn gradient(&self, dy: &Self::OutputGradient<'_>) -> Vec<f32> {
        dy.to_rows()
    }

    fn input(&self, x: &Self::WeightInput<'_>) -> Vec<f32> {
        x.to_rows()
    }
}

impl HostAccess for Reference {
    fn rows(&self, rows: &[f32], width: usize) -> Matrix {
        Matrix::new(rows.to_vec(), width)
    }

    fn values(&self, rows: &Matrix) -> Vec<f32> {
        rows.data().to_vec()
    }

    fn gradient(&self, dy: &Held<'_, Matrix>) -> Vec<f32> {
        dy.data().to_vec()
    }

    fn input(&self, x: &Held<'_, Matrix>) -> Vec<f32> {
        x.data().to_vec()
    }
}

/// Results of ops, by name.
pub type Results = Vec<(&'static str, Vec<f32>)>;

/// A number generator; each call returns an independent stream.
pub struct Numbers(pub u64);

impl Numbers {
    /// Numbers in [-1, 1).
    pub fn take(&mut self, len: usize) -> Vec<f32> {
        self.0 += 1;
        let mut out = vec![0.0; len];
        kaiming_uniform_fill(self.0, 7, &mut out, 1.0);
        out
    }
}

/// The elements of all parameters.
pub fn host(params: &impl Params) -> Vec<f32> {
    (0..params.len()).flat_map(|i| params.host(i).into_owned()).collect()
}

/// Cosines and sines of positions from 0 on, `[position][half]`.
pub fn rotary_table(positions: usize, theta: f64, half: usize) -> Vec<(f32, f32)> {
    let angle = |position: usize, i: usize| position as f64 * theta.powf(-(i as f64) / half as f64);
    let pair = |angle: f64| (angle.cos() as f32, angle.sin() as f32);
    (0..positions).flat_map(|position| (0..half).map(move |i| pair(angle(position, i)))).collect()
}

/// Asserts that results differ by at most `tolerance` times the largest magnitude of each array, which counts as 1 at least.
///
/// # Panics
/// If they differ by more, or have other lengths.
pub fn assert_close(class: &str, found: &Results, expected: &Results, tolerance: f32) {
    assert_eq!(found.len(), expected.len());
    for ((name, found), (_, expected)) in found.iter().zip(expected) {
        assert_eq!(found.len(), expected.len(), "{class}, {name}");
        let most = expected.iter().fold(1f32, |m, x| m.max(x.abs()));
        for (i, (a, e)) in found.iter().zip(expected).enumerate() {
            assert!((a - e).abs() <= tolerance * most, "{class}, {name}: element {i} is {a}, not {e}");
        }
    }
}
