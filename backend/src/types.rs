//! Arguments and results of ops that are the same for all backends.

mod activation;
mod log_sum;
mod sampling;

use std::borrow::Cow;
use std::ops::{Deref, Range};

use half::bf16;
use trainyard_protocol::AdamParams;

use super::family::{Chosen, IndexKeys};
use super::tensors::Tensors;
use crate::blocks::BlockRows;
pub use activation::Activation;
pub use log_sum::LogSum;
pub use sampling::*;

/// Tokens of a block of the KV pool, and keys of a tile of attention.
pub const KV_BLOCK: usize = 32;

/// Element type of the base weights and of the inputs of their GEMMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    /// bfloat16, sums in f32.
    Bf16,
    /// IEEE 754 single precision (32 bits).
    F32,
}

impl Dtype {
    /// Returns the name in flags and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
        }
    }

    /// Returns the bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Self::Bf16 => size_of::<bf16>(),
            Self::F32 => size_of::<f32>(),
        }
    }

    /// Rounds to the type and back.
    pub fn round(self, x: f32) -> f32 {
        match self {
            Self::Bf16 => bf16::from_f32(x).to_f32(),
            Self::F32 => x,
        }
    }
}

/// A value that is owned or borrowed.
pub enum Held<'a, T> {
    /// A value owned here.
    Owned(T),
    /// A reference to the value.
    Borrowed(&'a T),
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Owned(value) => value,
            Self::Borrowed(value) => value,
        }
    }
}

/// Purpose of a matrix, which decides its element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixRole {
    /// A weight of the model, stored as [`Dtype`].
    Base,
    /// A or B of an adapter: stored as the inputs of GEMMs are, which may be wider than the base weights.
    Adapter,
}

/// Source of a weight's elements.
pub enum Source<'a, B: Tensors> {
    /// Elements on the host: a file that is being loaded.
    Host(&'a [f32]),
    /// A parameter of the backend, by its index.
    Param(&'a B::Params, usize),
    /// A range of the elements of a parameter.
    Part(&'a B::Params, usize, (usize, usize)),
    /// Rows in the blocks of a file, which a backend keeps or dequantizes.
    Blocks(&'a BlockRows),
}

impl<B: Tensors> Clone for Source<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Tensors> Copy for Source<'_, B> {}

impl<'a, B: Tensors> Source<'a, B> {
    /// Returns the elements on the host.
    pub fn host(self) -> Cow<'a, [f32]> {
        match self {
            Self::Host(values) => Cow::Borrowed(values),
            Self::Blocks(blocks) => Cow::Owned(blocks.values(0..blocks.rows())),
            Self::Param(params, index) => super::Params::host(params, index),
            Self::Part(params, index, (first, end)) => match super::Params::host(params, index) {
                Cow::Borrowed(values) => Cow::Borrowed(&values[first..end]),
                Cow::Owned(values) => Cow::Owned(values[first..end].to_vec()),
            },
        }
    }

    /// Returns whether the source has elements rather than blocks.
    pub fn is_dense(self) -> bool {
        !matches!(self, Self::Blocks(_))
    }

    /// Returns a range of the elements. Panics for blocks, which adapters do not have.
    pub fn part(self, range: Range<usize>) -> Self {
        match self {
            Self::Host(values) => Self::Host(&values[range]),
            Self::Param(params, index) => Self::Part(params, index, (range.start, range.end)),
            Self::Part(params, index, (first, _)) => {
                Self::Part(params, index, (first + range.start, first + range.end))
            }
            Self::Blocks(_) => unreachable!("adapters are not in blocks"),
        }
    }
}

/// Extents of a model's attention, and the scale of its scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionShape {
    /// Number of decoder blocks.
    pub layers: usize,
    /// Number of query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Multiplies the scores before the softmax.
    pub scale: f32,
    /// Keys of indexers, in addition to those of attention.
    pub index: IndexKeys,
}

impl AttentionShape {
    /// Returns the extents for keys and values of at most one decoder block.
    #[must_use]
    pub fn of_one_layer(self) -> Self {
        let index = IndexKeys { layers: self.index.layers.min(1), ..self.index };
        Self { layers: self.layers.min(1), index, ..self }
    }

    /// Returns the number of elements of the queries of a row.
    pub fn q_width(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Returns the number of elements of the keys, or values, of a row.
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.head_dim
    }

    /// Returns the number of elements of a row of queries, keys and values, in this order.
    pub fn qkv_width(&self) -> usize {
        self.q_width() + 2 * self.kv_width()
    }
}

/// A block of a KV pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockId(pub u32);

/// State of a sequence in a `StateOps::StatePool`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StateId(pub u32);

/// Rows of a sequence in a pass: its positions from `start` on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Rows of the batch.
    pub rows: Range<usize>,
    /// Position of the first row.
    pub start: usize,
    /// KV blocks of the sequence, [`KV_BLOCK`] positions each from position 0 on, at least up to its last row.
    pub blocks: Vec<BlockId>,
    /// Positions below this one are already in the blocks, which other sequences may share, and are not written.
    pub held: usize,
    /// Recurrent state after the positions before `start`, which the pass updates; `None` for sequences that begin at position 0
    /// and are not continued.
    pub state: Option<StateId>,
}

/// Attention of one decoder block over the sequences of a pass.
#[derive(Clone, Copy)]
pub struct AttentionCall<'a> {
    /// Extents of the model's attention.
    pub shape: &'a AttentionShape,
    /// Index of the decoder block.
    pub layer: usize,
    /// Positions that a query sees, its own included; all before it when `None`.
    pub window: Option<usize>,
    /// Positions that an indexer has chosen for each row of the batch.
    pub chosen: Option<&'a Chosen>,
    /// The sequences, whose rows are in order and do not overlap.
    pub spans: &'a [Span],
}

/// RMSNorm weights of a row or a head.
pub struct Norm<'a, B: Tensors> {
    /// Factor of each column: `[width]`.
    pub weight: &'a B::Vector,
    /// Added to the mean square.
    pub eps: f32,
}

impl<B: Tensors> Clone for Norm<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Tensors> Copy for Norm<'_, B> {}

/// The ops on q and k between projection and attention: RMSNorm, if there are norms, then rotation. The first elements
/// of a head are rotated, as many as the rotary table has angles for; the others stay.
pub struct Rotation<'a, B: Tensors> {
    /// Extents of the columns of `qkv`.
    pub shape: &'a AttentionShape,
    /// Norms of q and of k: of each head, with weights of a head's width, or over all heads together.
    pub norms: Option<[Norm<'a, B>; 2]>,
    /// Whether norms are over all heads together.
    pub whole_norms: bool,
    /// Rotary table of the heads.
    pub rope: &'a B::Rope,
    /// Rotary table of query heads if it differs from that of key heads: their rotation is scaled by position.
    pub query_rope: Option<&'a B::Rope>,
    /// Position of every row of the batch.
    pub positions: &'a [u32],
}

/// The part of a parameter that is one matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GradientSlot {
    /// Index of the parameter.
    pub param: usize,
    /// First element of the matrix.
    pub first: usize,
}

impl GradientSlot {
    /// Returns the slots of A and B that are whole parameters, one after the other.
    pub fn pair(param: usize) -> [Option<Self>; 2] {
        [param, param + 1].map(|param| Some(Self { param, first: 0 }))
    }
}

/// Contribution of an adapter to a linear layer, for one group of rows: `out[rows, column..] += scale · (x Aᵀ) Bᵀ`.
pub struct LoraSegment<'a, B: Tensors> {
    /// Index of the group of rows to which the gradient belongs.
    pub group: usize,
    /// Rows of the batch.
    pub rows: Range<usize>,
    /// First column of the outputs.
    pub column: usize,
    /// Numbers of outputs and inputs.
    pub extents: (usize, usize),
    /// Number of columns of B and rows of A.
    pub rank: usize,
    /// Factor of the product BA: alpha / rank.
    pub scale: f32,
    /// The matrix A: `[rank, inputs]`.
    pub a: &'a B::Matrix,
    /// The matrix B: `[outputs, rank]`.
    pub b: &'a B::Matrix,
    /// Slots of the gradients of A and B among the adapter's parameters; `None` if they are computed elsewhere.
    pub grads: [Option<GradientSlot>; 2],
    /// Whether its gradients are needed; if not, ops of the backward pass skip the segment.
    pub trains: bool,
}

/// A linear layer `y = x Wᵀ + b` with the adapters on it. Segments of one column do not overlap.
pub struct LinearCall<'a, B: Tensors> {
    /// Weight of the layer: `[outputs, inputs]`.
    pub weight: &'a B::Matrix,
    /// Bias of each output: `[outputs]`.
    pub bias: Option<&'a B::Vector>,
    /// Adapters column by column, each with its rows in order.
    pub lora: &'a [LoraSegment<'a, B>],
}

/// A part of a (perhaps fused) linear layer whose weights are trained in full.
#[derive(Clone, Copy, Debug)]
pub struct WeightPart {
    /// Index of the weight `[outputs, inputs]` among the parameters.
    pub weight: usize,
    /// Index of the bias.
    pub bias: Option<usize>,
    /// First column of its outputs.
    pub column: usize,
    /// Number of its outputs.
    pub outputs: usize,
}

/// Destinations of the gradients of weights.
pub enum GradientSinks<'a, 'b, B: Tensors> {
    /// Gradients of adapters, one set per group of rows; `None` for groups that do not train.
    Adapters(&'a mut [Option<&'b mut B::Params>]),
    /// Gradients of all parameters of the model.
    Full(&'a mut B::Params),
}

/// Rows of an embedding that lookups add to.
pub enum EmbeddingGradient<'a, B: Tensors> {
    /// The parameter of this index.
    Param(&'a mut B::Params, usize),
    /// Sums by token, for `Backend::add_embedding_sums`.
    Sums(&'a mut B::EmbeddingSums),
}

/// One AdamW step of one set of parameters. All sets have one layout.
pub struct AdamWStep<'a, B: Tensors> {
    /// Master parameters, which are updated.
    pub params: &'a mut B::Params,
    /// Accumulated gradient of the parameters.
    pub grads: &'a B::Params,
    /// First and second moments, which are updated.
    pub moments: [&'a mut B::Params; 2],
    /// Learning rate, betas, epsilon and weight decay.
    pub hyper: &'a AdamParams,
    /// Number of the step, counted from 1.
    pub step: u64,
    /// Multiplies the gradient: clipping by norm.
    pub grad_scale: f32,
}

/// Description of a device for logs and banners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Kernels in use, e.g. `avx512-bf16`.
    pub kernels: &'static str,
    /// Number of threads that compute.
    pub threads: usize,
}

/// Bytes of the buffers that a backend reuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferBytes {
    /// Maximum number of bytes in use at once since `Backend::reset_peak`.
    pub peak: usize,
    /// Bytes in use now.
    pub used: usize,
    /// Bytes of free buffers that are retained.
    pub unused: usize,
}
