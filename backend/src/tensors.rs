//! The types of data that a device holds.

use super::{Fences, Rows};

/// Tensors on a device, each in the form that its ops read. Arguments of ops are generic over them.
pub trait Tensors: Fences + Sized + Send + Sync + 'static {
    /// Activations on the device: `[rows, width]`.
    type Rows: Rows;
    /// The left side of GEMMs, `[rows, k]`, in the backend's form.
    type Lhs: Send + Sync;
    /// A weight `[outputs, inputs]` in the form that GEMMs read, and its transpose for backward passes.
    type Matrix: Send + Sync;
    /// Weight of a norm, or a bias, in f32.
    type Vector: Send + Sync;
    /// An embedding `[vocabulary, hidden]` that is not the unembedding.
    type Table: Send + Sync;
    /// Cosines and sines by position.
    type Rope: Send + Sync;
    /// Gradients of embedding rows by token, apart from their parameter.
    type EmbeddingSums: Default + Send;
    /// Rows `scale · (x Aᵀ)` of each segment of a [`LinearCall`](super::LinearCall), or the gradient with respect to `x Aᵀ`.
    type LowRank: Send;
    /// The gradient with respect to a linear layer's output, `[rows, outputs]`, as backward passes read it.
    type OutputGradient<'a>;
    /// A linear layer's input, `[rows, inputs]`, as gradients of its weights read it.
    type WeightInput<'a>;
    /// State of `Backend::target_logprobs` for the backward pass: the log-sum-exp of each row, perhaps its logits.
    type HeadState: Send;
    /// Keys and values in blocks of [`KV_BLOCK`](super::KV_BLOCK) tokens, addressed by [`BlockId`](super::BlockId).
    type KvPool: Send + Sync;

    /// Bytes of an element of [`Tensors::Rows`]: memory plans count in them.
    const ACTIVATION_BYTES: usize;
}
