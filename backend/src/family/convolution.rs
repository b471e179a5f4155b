//! The gated short convolution of LFM2 (Liquid AI 2025, arXiv:2511.23404).

use super::mixer_shapes::ConvolutionShape;
use super::state::StateOps;
use crate::tensors::Tensors;
use crate::types::Span;

/// A short convolution of one decoder block over the sequences of a pass.
pub struct ConvolutionCall<'a, B: Tensors> {
    /// Extents of the convolution.
    pub shape: &'a ConvolutionShape,
    /// Index among the model's blocks that keep a state.
    pub layer: usize,
    /// The sequences, whose rows are in order and do not overlap.
    pub spans: &'a [Span],
    /// Weights: `[channels, kernel]`; the last one of a channel is the current token's.
    pub weight: &'a B::Vector,
}

impl<B: Tensors> Clone for ConvolutionCall<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Tensors> Copy for ConvolutionCall<'_, B> {}

/// Ops of short convolutions on a backend `B`.
///
/// A row of inputs has the parts `b`, `c` and `x` of `channels` elements each. With `u = b · x`, and zeros before the sequence,
/// `y_i = c_i · Σ_t w_t · u_{i − kernel + 1 + t}`, channel by channel. The sum runs over `t` ascending, from zero, so its bits are the
/// same however the sequence is cut into passes and whatever is beside it: the sampler equals the trainer. All of it is f32.
pub trait ConvolutionOps<B: Tensors>: StateOps<B> {
    /// Whether the backend has these ops; otherwise, models with short convolutions are refused.
    const HAS_CONVOLUTIONS: bool;

    /// Convolves rows of inputs, `[rows, 3 · channels]`, and returns `[rows, channels]`. States of spans that have one are updated;
    /// sequences without one begin at position 0.
    fn convolve(backend: &B, call: &ConvolutionCall<'_, B>, pool: &mut Self::StatePool, inputs: &B::Rows) -> B::Rows;

    /// Returns the gradient with respect to inputs, `[rows, 3 · channels]`, given that with respect to the output,
    /// `d_out`. Every sequence begins at position 0. The gradient of the weights, rows in order, is added to the
    /// parameter of `dw`.
    fn convolve_backward(
        backend: &B,
        call: &ConvolutionCall<'_, B>,
        inputs: &B::Rows,
        d_out: &B::Rows,
        dw: Option<(&mut B::Params, usize)>,
    ) -> B::Rows;
}
