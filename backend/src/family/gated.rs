//! Attention whose output is gated by head (Qiu et al. 2025, arXiv:2505.06708).

use crate::tensors::Tensors;
use crate::types::{AttentionShape, Rotation};

/// Ops of gated attention on a backend `B`.
pub trait GateOps<B: Tensors> {
    /// Whether the backend has these ops, rotates parts of heads, scales queries by position and normalises all heads
    /// together; otherwise, models with such attention are refused.
    const HAS_GATES: bool;

    /// Returns queries, keys and values, `[rows, qkv_width]`, and gates, `[rows, q_width]`, from rows in which each
    /// query head is followed by its gate.
    fn split_gates(backend: &B, shape: &AttentionShape, projected: &B::Rows) -> [B::Rows; 2];

    /// Joins queries, keys, values and gates: the inverse of [`GateOps::split_gates`].
    fn join_gates(backend: &B, shape: &AttentionShape, qkv: &B::Rows, gates: &B::Rows) -> B::Rows;

    /// Returns `heads · sigmoid(gates)`, element by element.
    fn gate_heads(backend: &B, heads: &B::Rows, gates: &B::Rows) -> B::Rows;

    /// Returns the gradients with respect to heads and gates, given that with respect to the result of
    /// [`GateOps::gate_heads`].
    fn gate_heads_backward(backend: &B, heads: &B::Rows, gates: &B::Rows, d_out: &B::Rows) -> [B::Rows; 2];

    /// Same as `Backend::rotate_backward`, but returns rows.
    fn rotate_backward_rows(
        backend: &B,
        rotation: &Rotation<'_, B>,
        before: Option<&B::Rows>,
        d_qkv: B::Rows,
        dw: Option<(&mut B::Params, [usize; 2])>,
    ) -> B::Rows;
}
