//! Configuration of multi-head latent attention.

use super::ModelConfig;
use crate::backend::LatentHeads;

/// Multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434): queries, keys and values are projected from normalised
/// latents of fewer elements. A part of each query and key head is rotated; that of keys is the same in all heads, and projected
/// from the residual stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatentAttention {
    /// Width of the queries' latent; without one they are projected from the residual stream.
    pub query_rank: Option<usize>,
    /// Width of the latent of keys and values.
    pub kv_rank: usize,
    /// Number of elements of a query or key head that are not rotated.
    pub nope_dim: usize,
    /// Number of elements of a query or key head that are rotated, after the others.
    pub rope_dim: usize,
    /// Width of a value head.
    pub value_dim: usize,
    /// Whether rotated pairs are neighbours; otherwise, element `i` pairs with `i + rope_dim / 2`.
    pub interleaved: bool,
    /// Added to the mean square in the latents' RMSNorms.
    pub norm_eps: f32,
}

impl LatentAttention {
    /// Returns the number of elements of a query or key head.
    pub fn query_dim(&self) -> usize {
        self.nope_dim + self.rope_dim
    }

    /// Returns the width of a head in attention: queries, keys and values are padded with zeros to it. It is even.
    pub fn head_dim(&self) -> usize {
        self.query_dim().max(self.value_dim).next_multiple_of(2)
    }
}

impl ModelConfig {
    /// Returns the number of elements of a head that are rotated.
    pub fn rope_dim(&self) -> usize {
        self.latent.map_or(self.rotary_dim.unwrap_or(self.head_dim), |latent| latent.rope_dim)
    }

    /// Returns the number of inputs of attention's output projection.
    pub fn attended_width(&self) -> usize {
        self.num_heads * self.latent.map_or(self.head_dim, |latent| latent.value_dim)
    }

    /// Returns the extents of the heads, if attention is latent.
    pub fn latent_heads(&self) -> Option<LatentHeads> {
        self.latent.map(|latent| LatentHeads {
            heads: self.num_heads,
            nope: latent.nope_dim,
            rope: latent.rope_dim,
            value: latent.value_dim,
            width: self.head_dim,
            interleaved: latent.interleaved,
        })
    }
}
