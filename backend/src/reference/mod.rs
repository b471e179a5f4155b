//! A second backend, only for tests: each op by its formula, in plain loops over f32 on one thread. It runs every
//! golden family through the same model code as other backends, and their ops are compared with it.

mod activation;
mod attention;
mod convolution;
mod family;
mod gated;
mod head;
mod indexer;
mod latent;
mod linear;
mod norm;
mod ops;
mod recurrent;
mod scale;
mod state;
mod vision;

use std::collections::BTreeMap;

use super::{AttentionShape, Rows};
use crate::collective::Ranks;

/// Activations, the left side of GEMMs, and weights: `[rows, width]`, row-major.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    data: Vec<f32>,
    width: usize,
}

impl Matrix {
    /// Returns a matrix of rows of `width` elements, one after the other.
    pub fn new(data: Vec<f32>, width: usize) -> Self {
        Self { data, width }
    }

    fn zeros(rows: usize, width: usize) -> Self {
        Self::new(vec![0.0; rows * width], width)
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.data[row * self.width..(row + 1) * self.width]
    }

    fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.data[row * self.width..(row + 1) * self.width]
    }

    /// All elements, for tests.
    pub fn data(&self) -> &[f32] {
        &self.data
    }
}

impl Rows for Matrix {
    fn rows(&self) -> usize {
        self.data.len().checked_div(self.width).unwrap_or(0)
    }

    fn width(&self) -> usize {
        self.width
    }

    fn all_reduce(&mut self, ranks: &Ranks) {
        ranks.all_reduce(&mut self.data);
    }
}

/// (cos, sin) of `[position][half]`.
pub struct Rope {
    half: usize,
    table: Vec<(f32, f32)>,
}

/// Keys and values `[layer][slot][kv_width]` of each block.
pub struct KvPool {
    shape: AttentionShape,
    blocks: Vec<[Vec<f32>; 2]>,
    /// Keys of indexers, `[layer][slot][width]` of each block.
    index: Vec<Vec<f32>>,
}

/// Gradients of embedding rows by token.
pub(crate) type EmbeddingSums = BTreeMap<u32, Vec<f32>>;

/// The backend that others are compared with: plain loops on one thread, in f32.
#[derive(Default)]
pub struct Reference;

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `to += scale · from`.
fn add_scaled(to: &mut [f32], from: &[f32], scale: f32) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += scale * from;
    }
}

fn log_sum_exp(x: &[f32]) -> f32 {
    let max = x.iter().fold(f32::NEG_INFINITY, |m, x| m.max(*x));
    max + x.iter().map(|x| (x - max).exp()).sum::<f32>().ln()
}
