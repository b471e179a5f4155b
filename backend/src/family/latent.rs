//! Ops of multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434) between its projections and
//! `Backend::attention`, which requires heads of one width: queries, keys and values are padded to it with zeros.
//! Zeros add nothing to a sum, so its bits are those of the unpadded heads. The contracts of `Backend` hold for these
//! ops.

use std::ops::Range;

use crate::tensors::Tensors;

/// Extents of the attention heads of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatentHeads {
    /// Number of attention heads.
    pub heads: usize,
    /// Number of elements of a query or key head that are not rotated.
    pub nope: usize,
    /// Number of rotated elements, which follow the others; even. For keys they are shared by all heads.
    pub rope: usize,
    /// Number of elements of a value head.
    pub value: usize,
    /// Width of a head to `Backend::attention`, at least `nope + rope` and `value`.
    pub width: usize,
    /// Whether rotated pairs are neighbours; otherwise, element `i` pairs with `i + rope / 2`.
    pub interleaved: bool,
}

impl LatentHeads {
    /// Returns the number of elements of all queries of a row.
    pub fn queries(&self) -> usize {
        self.heads * (self.nope + self.rope)
    }

    /// Returns the number of elements projected from the latent of keys and values: for each head the key's, then the
    /// value's.
    pub fn keys_and_values(&self) -> usize {
        self.heads * (self.nope + self.value)
    }

    /// Returns the number of elements of attention's output without padding.
    pub fn values(&self) -> usize {
        self.heads * self.value
    }
}

/// How the heads of a batch are rotated.
pub struct LatentRotation<'a, B: Tensors> {
    /// Extents of the heads.
    pub heads: LatentHeads,
    /// Rotary table of `heads.rope / 2` pairs.
    pub rope: &'a B::Rope,
    /// Position of every row of the batch.
    pub positions: &'a [u32],
}

/// Ops of latent attention on a backend `B`.
pub trait LatentOps<B: Tensors> {
    /// Adds `from` to `to`, element by element.
    fn add_rows(backend: &B, from: &B::Rows, to: &mut B::Rows);

    /// Returns some columns of every row.
    fn columns(backend: &B, from: &B::Rows, columns: Range<usize>) -> B::Rows;

    /// Returns rows of `left`, each followed by the same row of `right`.
    fn join_columns(backend: &B, left: &B::Rows, right: &B::Rows) -> B::Rows;

    /// Returns queries, keys and values for `Backend::attention`, `[rows, 3 · heads · width]`, from `q`, `[rows, heads
    /// · (nope + rope)]`, `kv`, `[rows, heads · (nope + value)]`, and the last `rope` columns of `down`, the part of
    /// keys that all heads share. Rotated in f32; a rotated pair's first elements come before the second ones.
    fn join_heads(backend: &B, rotation: &LatentRotation<'_, B>, q: &B::Rows, kv: &B::Rows, down: &B::Rows) -> B::Rows;

    /// Returns the gradients with respect to `q`, `kv` and the common part of keys, `[rows, rope]`, of
    /// [`LatentOps::join_heads`], given that with respect to its result. The last one is summed over heads in order.
    fn split_heads(backend: &B, rotation: &LatentRotation<'_, B>, d_qkv: &B::Rows) -> [B::Rows; 3];

    /// Returns attention's output without padding, `[rows, heads · value]`.
    fn head_values(backend: &B, heads: LatentHeads, attended: &B::Rows) -> B::Rows;

    /// Returns the gradient with respect to attention's output, `[rows, heads · width]`, given that with respect to
    /// [`LatentOps::head_values`].
    fn pad_values(backend: &B, heads: LatentHeads, d_values: &B::Rows) -> B::Rows;
}
