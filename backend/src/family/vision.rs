//! Vision transformers (Dosovitskiy et al. 2021, arXiv:2010.11929): frozen towers that turn the patches of images into
//! embeddings.

use std::ops::Range;

use crate::{Backend, LinearCall};

/// Form of the GELU (Hendrycks & Gimpel 2016, arXiv:1606.08415) of an MLP without a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gelu {
    /// The approximation with tanh.
    Tanh,
    /// `x · Φ(x)`, with the error function.
    Erf,
}

/// LayerNorm (Ba et al. 2016, arXiv:1607.06450) of a row.
pub struct LayerNorm<'a, B: Backend> {
    /// Factor of each column: `[width]`.
    pub weight: &'a B::Vector,
    /// Added to each column: `[width]`.
    pub bias: &'a B::Vector,
    /// Added to the variance.
    pub eps: f32,
}

/// Rows of a table that are summed for each row of a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowMix {
    /// Number of rows of the table that each row of the result adds up.
    pub per_row: usize,
    /// Indices in the table: `[rows][per_row]`.
    pub rows: Vec<usize>,
    /// Factors of these rows: `[rows][per_row]`.
    pub weights: Vec<f32>,
}

/// Ops of vision towers on a backend `B`. A row's sums contain only its own image, in a fixed order: its bits do not
/// depend on the other images of a pass.
pub trait VisionOps<B: Backend> {
    /// Uploads rows of `width` elements.
    fn upload_rows(backend: &B, values: &[f32], width: usize) -> B::Rows;

    /// LayerNorm of every row, in f32: the mean, then the mean of squared differences, then
    /// `(x − mean) / sqrt(variance + eps) · weight + bias`. The order of sums depends only on the width.
    fn layer_norm(backend: &B, norm: LayerNorm<'_, B>, x: &B::Rows) -> B::Rows;

    /// Returns [`Backend::lhs`] of [`VisionOps::layer_norm`], with its bits.
    fn layer_norm_lhs(backend: &B, norm: LayerNorm<'_, B>, x: &B::Rows) -> B::Lhs {
        backend.lhs(&Self::layer_norm(backend, norm, x))
    }

    /// Returns [`VisionOps::gelu`] of [`Backend::linear`] without a residual, with its bits.
    fn linear_gelu(backend: &B, call: &LinearCall<'_, B>, kind: Gelu, x: &B::Lhs) -> B::Lhs;

    /// Returns [`Backend::lhs`] of GELU of every element.
    fn gelu(backend: &B, kind: Gelu, x: &B::Rows) -> B::Lhs;

    /// Returns sums of rows of `table`, each multiplied by its factor, in f32 and in the order of the mix: `[rows,
    /// width]`.
    fn mix_rows(backend: &B, table: &B::Rows, mix: &RowMix) -> B::Rows;

    /// Softmax attention of every row to all rows of its image, which are consecutive; `qkv` are rows of queries, keys
    /// and values of `heads` heads each, in this order. Scores are scaled by `e^-½`, with `e` the width of a head. Both
    /// sides of both GEMMs are rounded like those of [`Backend::linear`] with base weights. Returns `[rows, heads ·
    /// e]`.
    fn attend_all(backend: &B, heads: usize, images: &[Range<usize>], qkv: &B::Rows) -> B::Rows;

    /// Returns rows that each consist of `count` consecutive rows.
    fn join_rows(backend: &B, x: B::Rows, count: usize) -> B::Rows;

    /// Adds row `i` of `from` to row `rows[i]` of `to`. Indices are distinct.
    fn add_rows(backend: &B, from: &B::Rows, rows: &[usize], to: &mut B::Rows);
}
