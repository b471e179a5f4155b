//! Linear recurrences over a state of fixed size, after a short causal convolution: the gated delta net (Yang et al.
//! 2024, arXiv:2412.06464) and Mamba-2 (Dao & Gu 2024, arXiv:2405.21060).

use super::mixer_shapes::RecurrentShape;
use super::state::StateOps;
use crate::tensors::Tensors;
use crate::types::{Norm, Span};

/// A recurrence of one decoder block over the sequences of a pass.
pub struct RecurrentCall<'a, B: Tensors> {
    /// Extents of the recurrence.
    pub shape: &'a RecurrentShape,
    /// Index among the model's blocks that keep a state.
    pub layer: usize,
    /// The sequences, whose rows are in order and do not overlap.
    pub spans: &'a [Span],
    /// Weights of the convolution: `[channels, kernel]`; the last one of a channel is the current token's.
    pub conv: &'a B::Vector,
    /// Bias of the convolution: `[channels]`.
    pub conv_bias: Option<&'a B::Vector>,
    /// Logarithm of each head's decay rate: `[value_heads]`.
    pub a_log: &'a B::Vector,
    /// Added to the decay's input: `[value_heads]`.
    pub dt_bias: &'a B::Vector,
    /// Factor of a token's own value: `[value_heads]`, with `RecurrentRule::Mamba2`.
    pub skip: Option<&'a B::Vector>,
    /// Norm of the output: `[value_dim]`, with `RecurrentRule::Mamba2` `[value_width]`.
    pub norm: Norm<'a, B>,
}

impl<B: Tensors> Clone for RecurrentCall<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Tensors> Copy for RecurrentCall<'_, B> {}

/// Indices of a recurrence's parameters among those that are trained in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecurrentParams {
    /// Indices of the convolution's weights: of queries, keys and values.
    pub conv: [usize; 3],
    /// Indices of the convolution's biases: of queries, keys and values.
    pub conv_bias: Option<[usize; 3]>,
    /// Index of the logarithms of decay rates.
    pub a_log: usize,
    /// Index of the bias of the decay's input.
    pub dt_bias: usize,
    /// Index of the factors of a token's own value.
    pub skip: Option<usize>,
    /// Index of the weight of the output's norm.
    pub norm: usize,
}

/// Ops of recurrent blocks on a backend `B`.
///
/// With S the state at the chunk's start, `G` the sum of `g` from there on, keys `k`, queries `q`, values `v` and step sizes `β`, a
/// token `i` of a chunk writes and reads, with the delta rule
///
/// `δ_i = β_i (v_i − e^{G_i} Sᵗk_i − Σ_{j<i} e^{G_i−G_j} (k_i·k_j) δ_j)`, `o_i = e^{G_i} Sᵗq_i + Σ_{j≤i} e^{G_i−G_j}
/// (q_i·k_j) δ_j`,
///
/// and at the chunk's end `S ← e^{G} S + Σ_j e^{G−G_j} k_j δ_jᵗ`. Mamba-2 writes `δ_i = Δ_i v_i`. A row depends on S
/// and on earlier rows of its chunk only, and each element's sum has one order (along the head, then `j` ascending). So
/// the bits are the same whether a token comes alone, in a chunk or in a pass of any length: the sampler equals the
/// trainer. All of it is f32. A backend may round decays below e^-64 to 0.
///
/// `g = −e^{a_log} softplus(a + dt_bias)`; with Mamba-2 `Δ = softplus(a + dt_bias)` within its limits and `g = −e^{a_log} Δ`. Queries,
/// keys and values are those of the convolution, after SiLU; with the delta rule queries and keys are divided by the root of their
/// sum of squares plus 1e-6, and queries by the root of their width.
pub trait RecurrentOps<B: Tensors>: StateOps<B> {
    /// Whether the backend has these ops, and activations without a gate, which models with recurrences have;
    /// otherwise, models with either are refused.
    const HAS_RECURRENCES: bool;

    /// Whether the backward pass holds the chunks of all sequences in memory at once; otherwise, only those being
    /// computed.
    const HOLDS_ALL_CHUNKS: bool = false;

    /// Maximum number of elements of a key head; models with wider ones are refused.
    const MOST_KEY_DIM: usize = usize::MAX;

    /// Runs the recurrence over rows of inputs, `[rows, input_width]`, and returns its output before the norm and the gate,
    /// `[rows, value_width]`. States of spans that have one are updated; sequences without one begin at position 0.
    fn recur(backend: &B, call: &RecurrentCall<'_, B>, pool: &mut Self::StatePool, inputs: &B::Rows) -> B::Rows;

    /// Normalises and gates outputs of [`RecurrentOps::recur`]: by head `norm(o) · silu(z)` with the delta rule, by group
    /// `norm(o · silu(z))` with Mamba-2.
    fn gate_output(backend: &B, call: &RecurrentCall<'_, B>, inputs: &B::Rows, out: &B::Rows) -> B::Rows;

    /// Returns the gradient with respect to inputs, `[rows, input_width]`, given that with respect to the gated output,
    /// `d_gated`. Every sequence begins at position 0. Gradients of parameters, rows in order, are added to those of
    /// `dw`.
    fn recur_backward(
        backend: &B,
        call: &RecurrentCall<'_, B>,
        inputs: &B::Rows,
        out: &B::Rows,
        d_gated: &B::Rows,
        dw: Option<(&mut B::Params, RecurrentParams)>,
    ) -> B::Rows;
}
