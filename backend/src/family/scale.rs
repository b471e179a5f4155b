//! Sums with a factor, for families that scale the outputs of blocks, or logits.

use crate::tensors::Tensors;

/// Ops of scaled rows on a backend `B`.
pub trait ScaleOps<B: Tensors> {
    /// Whether the backend has these ops; otherwise, models with such factors are refused.
    const HAS_SCALES: bool;

    /// Adds `scale · from` to `to`, element by element, rounded once.
    fn add_scaled_rows(backend: &B, scale: f32, from: &B::Rows, to: &mut B::Rows);
}
