//! Interface between models and devices: coarse ops with static dispatch.
//!
//! `model/` and `engine/` are written once, over [`Backend`]; a device implements it in a folder of its own. A backend
//! decides what an op fuses, packs, transposes or launches; the trait documents the op's contract.
//!
//! Contracts that hold for every op:
//! - **Rounding.** Rows, gradients and sums are f32 (or rounded as the backend documents). Base weights and embeddings are
//!   rounded to [`Dtype`], to nearest even, when they are packed. The left side of a GEMM with packed weights is rounded to
//!   [`Dtype`] where the backend multiplies that type (the CPU: bf16 with AVX-512 BF16), and A and B of adapters with it;
//!   elsewhere both stay f32. Attention is rounded where the op documents it. Both sides of weight gradients are
//!   rounded to [`Dtype`] where the backend sums them in tiles of that type (the CPU: bf16 with AMX), and nothing else.
//! - **Batch invariance.** An output row is reduced in an order that depends only on its own sequence: its bits do not
//!   depend on the other rows of the batch, nor on how a sequence is cut into passes.
//! - **Order of sums.** Gradients of weights are added to the old values in the order of rows: one by one, or, where a backend
//!   adds several at once, in groups that begin anew with each sequence: how examples form microbatches changes no bits.
//! - **Uninitialised rows.** [`Backend::alloc`] returns rows with arbitrary contents (the reference backend: NaN) for
//!   [`Backend::linear`] and [`Backend::linear_backward`], which overwrite them. Other ops read only written elements.
//! - **Panics.** Extents that do not fit together are a bug of the caller and panic; nothing is written out of bounds.

pub mod blocks;
pub mod check;
pub mod collective;
pub mod cpu;
mod family;
pub mod fault;
mod fences;
pub mod host;
pub mod interrupt;
pub mod kv;
pub mod memory;
mod microbatch;
pub mod parallel;
mod passes;
pub mod reference;
pub mod rng;
pub mod rope;
pub mod sampling;
mod storage;
mod targets;
mod tensors;
#[cfg(test)]
mod tests;
mod types;

pub use cpu::{Cpu as HostBackend, Isa as HostKernels};
pub use family::*;
pub use fences::{ChunkSink, Fences};
pub use microbatch::MicrobatchRows;
pub use passes::{BALANCED_ROWS, Passes};
pub use sampling::{LogitChanges, SamplingRule};
pub use storage::{Params, PlannedPart, Rows};
pub use targets::*;
pub use tensors::Tensors;
pub use types::*;

use std::ops::Range;

/// A device with its kernels. One engine owns it; ops run in the order in which they are called.
pub trait Backend: Passes + Tensors {
    /// Ops that only some families or runs need.
    type Family: FamilyOps<Self>;

    /// Returns the device's name and threads, for logs.
    fn device(&self) -> DeviceInfo;

    /// Returns the reason of a permanent failure of the device, if there is one: all ops then panic, and the engine
    /// ends.
    fn failure(&self) -> Option<String> {
        None
    }

    /// Returns the element type of base weights and of the inputs of their GEMMs.
    fn dtype(&self) -> Dtype;

    // Weights.
    /// Returns a matrix `[Σ n_i, k]` from row-major parts `[n_i, k]`, stacked along the outputs and rounded for its
    /// role.
    fn pack(&self, parts: &[Source<'_, Self>], k: usize, role: MatrixRole) -> Self::Matrix;

    /// Overwrites matrices and their transposes with parts of the same extents. Other matrices that share their memory
    /// are unchanged.
    fn repack(&self, matrices: Vec<(&mut Self::Matrix, Vec<Source<'_, Self>>)>);

    /// Returns the same matrix without a transpose, for forward passes. Both share memory until one is repacked.
    fn share(&self, matrix: &Self::Matrix) -> Self::Matrix;

    /// Returns the elements `[outputs, inputs]` of a matrix, with the rounding of packing, as they were at a fence.
    fn matrix_to_host(&self, matrix: &Self::Matrix, fence: &Self::Fence) -> Vec<f32>;

    /// Returns the bytes of a matrix, including its transpose if it has one.
    fn matrix_bytes(&self, matrix: &Self::Matrix) -> usize;

    /// Returns the bytes that a matrix of (outputs, inputs) will take; if it `trains`, including the transpose that
    /// backward passes may need.
    fn planned_matrix_bytes(&self, outputs: usize, inputs: usize, role: MatrixRole, trains: bool) -> usize;

    /// Returns the bytes of a matrix of a base model whose parts, of `inputs` elements per row, stay in the blocks of a file;
    /// `None` if the backend dequantizes them.
    fn planned_block_bytes(&self, _parts: &[PlannedPart], _inputs: usize) -> Option<usize> {
        None
    }

    /// Returns the elements of `parts`, one part after the other, each plus `offset`, in f32.
    fn vector(&self, parts: &[Source<'_, Self>], offset: f32) -> Self::Vector;

    /// Returns the elements of a vector, as they were at a fence.
    fn vector_to_host(&self, vector: &Self::Vector, fence: &Self::Fence) -> Vec<f32>;

    /// Returns an embedding from its rows of `width` elements, rounded to [`Dtype`].
    fn table(&self, rows: Source<'_, Self>, width: usize) -> Self::Table;

    /// Returns the elements of an embedding, with the rounding to [`Dtype`], as they were at a fence.
    fn table_to_host(&self, table: &Self::Table, fence: &Self::Fence) -> Vec<f32>;

    /// Returns the bytes of an embedding.
    fn table_bytes(&self, table: &Self::Table) -> usize;

    /// Returns a rotary table from (cos, sin) of `[position][half]`, in f32.
    fn rope(&self, half: usize, table: Vec<(f32, f32)>) -> Self::Rope;

    // Parameters, moments and gradients.
    /// Returns zeros, one array for each length.
    fn zero_params(&self, lens: &[usize]) -> Self::Params;

    /// Returns arrays with the given elements.
    fn upload_params(&self, values: Vec<Vec<f32>>) -> Self::Params;

    /// Returns zeros to which a gradient is added, one array for each length, in the memory of `old`, if given, which
    /// has these lengths. They can be read after [`Backend::finish_gradient`]: until something is added, memory may be
    /// uninitialised.
    fn begin_gradient(&self, lens: &[usize], old: Option<Self::Params>) -> Self::Params;

    /// Ends the additions to a gradient.
    fn finish_gradient(&self, _gradient: &mut Self::Params) {}

    /// Adds `from` to `to`, element by element.
    fn add_params(&self, to: &mut Self::Params, from: &Self::Params);

    /// Returns the sum of squares of each array's elements in `a`, or in `a + b` if `b` is given. It is computed in
    /// f64, in an order that depends only on the array's length. A sum is finite if and only if all elements are
    /// finite.
    fn squared_norms(&self, a: &Self::Params, b: Option<&Self::Params>) -> Vec<f64>;

    /// AdamW (Loshchilov & Hutter 2019, arXiv:1711.05101) in the order of operations of `torch.optim.AdamW`: decay,
    /// moments, bias correction, update. Elements are independent. If the denominator is zero (`eps` 0 and no gradient
    /// yet), the parameter only decays. A panic affects only the step in which it happened.
    fn adamw(&self, steps: Vec<AdamWStep<'_, Self>>) -> Vec<Result<(), fault::Fault>>;
    // Rows.
    /// Returns rows with arbitrary contents, NaN included: an op must write their elements before another one reads
    /// them.
    fn alloc(&self, rows: usize, width: usize) -> Self::Rows;

    /// Returns rows filled with zeros.
    fn zeros(&self, rows: usize, width: usize) -> Self::Rows;

    /// Returns a copy of rows.
    fn copy(&self, rows: &Self::Rows) -> Self::Rows;

    /// Gathers the rows with these indices, which may repeat, into dense rows.
    fn gather(&self, from: &Self::Rows, rows: &[usize]) -> Self::Rows;

    /// Writes row `i` of `from` to row `rows[i]` of `to`, whose other rows are unchanged. Indices are distinct.
    fn scatter(&self, from: &Self::Rows, rows: &[usize], to: &mut Self::Rows);

    // Ops of a decoder block.
    /// Returns `scale · E[token]` for every token, `[tokens, width]`, in f32 from the stored elements.
    fn embed_table(&self, table: &Self::Table, width: usize, tokens: &[u32], scale: f32) -> Self::Rows;

    /// Same as [`Backend::embed_table`] with the unembedding as `E`, for models that tie both.
    fn embed_tied(&self, head: &Self::Matrix, tokens: &[u32], scale: f32) -> Self::Rows;

    /// Adds `scale · dx[row]` to the gradient of each row's token, rows in order. `dx` is `[tokens, width]`.
    fn embed_backward(&self, tokens: &[u32], dx: &Self::Rows, scale: f32, into: EmbeddingGradient<'_, Self>);

    /// Adds each token's sum, as one term, to its row of parameter `index`.
    fn add_embedding_sums(&self, sums: Self::EmbeddingSums, params: &mut Self::Params, index: usize);

    /// Returns the RMSNorm `x / sqrt(mean(x²) + eps) · w` (Zhang & Sennrich 2019, arXiv:1910.07467) of every row, in
    /// f32. The order of the mean's sum depends only on the width.
    fn norm(&self, norm: Norm<'_, Self>, x: &Self::Rows) -> Self::Rows;

    /// Returns [`Backend::lhs`] of [`Backend::norm`], to the bit, without storing the rows.
    fn norm_lhs(&self, norm: Norm<'_, Self>, x: &Self::Rows) -> Self::Lhs;

    /// Computes `x += norm(y)`, equal to the bit to [`Backend::norm`] and an addition.
    fn add_norm(&self, norm: Norm<'_, Self>, y: &Self::Rows, x: &mut Self::Rows);

    /// Adds to `dx` the gradient with respect to the input `x` of [`Backend::norm`], given that with respect to its output,
    /// `dy`. The gradient of the weight, rows in order, is added to the parameter of `dw`.
    fn norm_backward(
        &self,
        norm: Norm<'_, Self>,
        x: &Self::Rows,
        dy: &Self::Rows,
        dx: &mut Self::Rows,
        dw: Option<(&mut Self::Params, usize)>,
    );

    /// Returns rows as the left side of GEMMs with weights of [`MatrixRole::Base`], rounded as these GEMMs require; the
    /// rows themselves are unchanged for gradients.
    fn lhs(&self, x: &Self::Rows) -> Self::Lhs;

    /// Computes `out = residual + x Wᵀ + Σ segments + b`, all `[rows, outputs]`; `residual` is zero unless given.
    /// `residual` and `out` may have more rows than `x`; additional rows of `out` are unchanged. Old elements of `out`
    /// are not read. An element is summed in f32 in this order: the residual, the terms of `x Wᵀ` along the inputs in
    /// sequence, those of its segment's `z Bᵀ` along the rank, the bias. `z = scale · (x Aᵀ)` is summed in f32, scaled,
    /// and rounded as the left side of a GEMM with B; `x` is rounded by [`Backend::lhs`]. Returns the unrounded `z` of
    /// every segment.
    fn linear(
        &self,
        call: &LinearCall<'_, Self>,
        x: &Self::Lhs,
        residual: Option<&Self::Rows>,
        out: &mut Self::Rows,
    ) -> Self::LowRank;

    /// Same as [`Backend::linear`] of gate and up, or only up, without a residual, followed by [`Backend::activate`] of
    /// its output.
    fn linear_activated(
        &self,
        call: &LinearCall<'_, Self>,
        x: &Self::Lhs,
        activation: Activation,
        out: &mut Self::Rows,
    ) -> (Self::LowRank, Self::Lhs) {
        let low_rank = self.linear(call, x, None, out);
        (low_rank, self.activate(activation, out))
    }

    /// Returns rows as the gradient with respect to a linear layer's output. `sequences` are, in all ops of backward
    /// passes, the rows of the batch by sequence.
    fn output_gradient<'a>(&self, dy: Held<'a, Self::Rows>, sequences: &[Range<usize>]) -> Self::OutputGradient<'a>;

    /// Returns rows as a linear layer's input.
    fn weight_input<'a>(&self, x: Held<'a, Self::Rows>, sequences: &[Range<usize>]) -> Self::WeightInput<'a>;

    /// Returns [`Backend::weight_input`] of [`Backend::norm`], to the bit.
    fn norm_input(
        &self,
        norm: Norm<'_, Self>,
        x: &Self::Rows,
        sequences: &[Range<usize>],
    ) -> Self::WeightInput<'static>;

    /// Overwrites `dx`, `[rows, inputs]`, with the gradient with respect to the input, `dy W + Σ dz A` over the segments that
    /// train; `dy` is `[rows, outputs]`. Sums are in f32: along the outputs in sequence, then segment by segment along the
    /// rank. `dy`, and `dz = scale · (dy B)` after scaling, are rounded as the left sides of their GEMMs. Returns `dz`, the
    /// gradient with respect to `x Aᵀ`, unrounded; empty for segments that do not train.
    fn linear_backward(
        &self,
        call: &LinearCall<'_, Self>,
        dy: &Self::OutputGradient<'_>,
        dx: &mut Self::Rows,
    ) -> Self::LowRank;

    /// Adds the gradients of A, `dzᵀ x`, and of B, `dyᵀ z`, of the segments that train to the parameters with the indices
    /// `param` (A) and `param + 1` (B) of their group's sink; a group without a sink is skipped. `low_rank` is what
    /// [`Backend::linear`] (`z`) and [`Backend::linear_backward`] (`dz`) returned for the same segments. A sequence is in
    /// one group. Rows are summed in order.
    fn lora_gradients(
        &self,
        lora: &[LoraSegment<'_, Self>],
        sequences: &[Range<usize>],
        x: &Self::WeightInput<'_>,
        dy: &Self::OutputGradient<'_>,
        low_rank: [&Self::LowRank; 2],
        sinks: &mut [Option<&mut Self::Params>],
    );

    /// Adds `dyᵀ x` to `dW`, and `Σ dy` to `db`, for every part, rows in order.
    fn weight_gradients(
        &self,
        parts: &[WeightPart],
        sequences: &[Range<usize>],
        x: &Self::WeightInput<'_>,
        dy: &Self::OutputGradient<'_>,
        grads: &mut Self::Params,
    );

    /// Normalises the heads of q and k where there are norms, then rotates them (Su et al. 2021, arXiv:2104.09864;
    /// element `i` of a head pairs with `i + head_dim / 2`), in place and in f32; v is unchanged. If `save` is set and
    /// there are norms, returns a copy of the original `qkv`.
    fn rotate(&self, rotation: &Rotation<'_, Self>, qkv: &mut Self::Rows, save: bool) -> Option<Self::Rows>;

    /// Returns the gradient with respect to the input of [`Backend::rotate`], given that with respect to its result,
    /// `d_qkv`; those of the norms are added to the parameters of `dw` (q's, k's), rows and in them heads in order.
    /// `before` is what [`Backend::rotate`] returned with `save`: present if there are norms.
    fn rotate_backward(
        &self,
        rotation: &Rotation<'_, Self>,
        before: Option<&Self::Rows>,
        d_qkv: Self::Rows,
        dw: Option<(&mut Self::Params, [usize; 2])>,
        sequences: &[Range<usize>],
    ) -> Self::OutputGradient<'static>;

    /// Causal grouped-query attention of the rotated queries in `qkv` over keys and values in `kv`, into which
    /// [`Backend::kv_write`] has written those of every position up to each row's own. Returns the output, `[rows,
    /// q_width]`, and the log-sum-exp of the scaled scores, `[rows, heads]`; rows outside all spans are undefined.
    ///
    /// Softmax runs in f32 over tiles of a fixed multiple of [`KV_BLOCK`] keys that begin at a sequence's first token, in order
    /// (Dao et al. 2022, arXiv:2205.14135); scores are multiplied by the scale after their sum. The score matrix is not
    /// stored. Values of a tile that a row does not see may be multiplied by zero, so all elements of a block have to be
    /// finite.
    ///
    /// Sums are f32, and their terms too, unless the backend multiplies them as bf16 tiles (the CPU: with AMX, where
    /// [`Backend::dtype`] is bf16). Then queries, keys, values and probabilities relative to the running maximum are rounded to
    /// bf16, to nearest even. The output is divided by the sum of the rounded probabilities, so that its weights add up to
    /// one; the log-sum-exp is of the unrounded ones.
    fn attention(&self, call: AttentionCall<'_>, kv: &Self::KvPool, qkv: &Self::Rows) -> [Self::Rows; 2];

    /// Returns the gradient with respect to rotated `qkv`, `[rows, qkv_width]`, given the results of
    /// [`Backend::attention`] and the gradient with respect to its output. Every span starts at position 0 and its keys
    /// and values are still in `kv`. Sums are f32: a key's and value's runs over the query heads that share it, in each
    /// over the queries in order, from the sequence's first one on; a query's over the tiles in order. Probabilities
    /// are recomputed from the log-sum-exp. Terms are f32, or where [`Backend::attention`] rounds, what it rounds,
    /// `d_out`, probabilities and the gradients of scores before the scale are rounded to bf16.
    fn attention_backward(
        &self,
        call: AttentionCall<'_>,
        kv: &Self::KvPool,
        qkv: &Self::Rows,
        forward: [&Self::Rows; 2],
        d_out: &Self::Rows,
    ) -> Self::Rows;

    /// Returns [`Backend::lhs`] of `act(gate) · up`, `[rows, width]`, from rows of gate then up, or without a gate only
    /// of up.
    fn activate(&self, activation: Activation, gate_up: &Self::Rows) -> Self::Lhs;

    /// Returns the gradient with respect to (gate, up), and the output of [`Backend::activate`], given the gradient
    /// with respect to that output, `d_out`. `biased` requests the gradients of the biases of gate and up.
    fn activate_backward(
        &self,
        activation: Activation,
        gate_up: Self::Rows,
        d_out: Self::Rows,
        sequences: &[Range<usize>],
        biased: bool,
    ) -> (Self::OutputGradient<'static>, Self::WeightInput<'static>);

    /// Returns a pool without blocks for a model's attention.
    fn kv_pool(&self, shape: &AttentionShape) -> Self::KvPool;

    /// Returns the bytes of a block of such a pool: keys and values of [`KV_BLOCK`] tokens, all layers and heads.
    fn kv_block_bytes(&self, shape: &AttentionShape) -> usize;

    /// Allocates a block whose elements are finite, zeros as a rule: see [`Backend::attention`].
    fn kv_take(&self, pool: &mut Self::KvPool) -> BlockId;

    /// Frees a block; its id may be reused. No later op may name it in a span.
    fn kv_release(&self, pool: &mut Self::KvPool, block: BlockId);

    /// Overwrites block `to` with the elements of block `from`, all layers.
    fn kv_copy(&self, pool: &mut Self::KvPool, from: BlockId, to: BlockId);

    /// Writes the rotated keys and the values of the rows of `qkv` into the blocks of their sequences, rounded only where
    /// [`Backend::attention`] rounds them; positions below [`Span::held`] are skipped. Two spans that write one block panic.
    fn kv_write(&self, pool: &mut Self::KvPool, shape: &AttentionShape, layer: usize, spans: &[Span], qkv: &Self::Rows);

    /// Returns the log-probabilities of the targets of all rows at temperature 1, in the order of the targets, from
    /// normalised hidden states `[rows, hidden]`; rows without targets are allowed. Logits have the bits of
    /// [`Backend::linear`] with [`Backend::lhs`] of `hidden`; `head` has no bias. The log-sum-exp is in f32, in an
    /// order that the vocabulary's size decides. The vocabulary is processed in chunks: no `[rows, vocabulary]` matrix
    /// is stored unless `save_logits` is set, which spares [`Backend::head_backward`] from recomputing them.
    fn target_logprobs(
        &self,
        head: &LinearCall<'_, Self>,
        hidden: &Self::Rows,
        targets: &Targets,
        save_logits: bool,
    ) -> (Vec<f32>, Self::HeadState);

    /// Returns the gradient with respect to `hidden`: the rows `gradient.rows` of the forward pass, gathered. Targets,
    /// and rows of the segments in `head`, count within these. With [`GradientSinks::Full`], adds the gradient of the
    /// unembedding to parameter `param`; else those of A and B of the segments whose group has a sink.
    ///
    /// The gradient with respect to a row's logits is f32: `d_logprobs` of its targets, minus their sum times the softmax p; minus
    /// that with respect to an entropy H times `p (ln p + H)`; plus that with respect to a divergence D from q times
    /// `p (ln p - ln q - D)`. It is rounded as the left side of GEMMs with the unembedding and B, not for the gradients of weights,
    /// which add rows in order. Whether `state` has logits or they are recomputed does not change the bits.
    fn head_backward(
        &self,
        head: &LinearCall<'_, Self>,
        hidden: &Self::Rows,
        gradient: &HeadGradient<'_, Self>,
        state: &Self::HeadState,
        param: usize,
        sinks: &mut GradientSinks<'_, '_, Self>,
    ) -> Self::Rows;

    /// Samples a token for each request from its row of `logits`, `[_, vocabulary]`: cut to top-k, of these to top-p, then by
    /// the inverse distribution function at `u`, candidates in order of id, or with a cut, most likely first. Ties go to the
    /// lowest id. NaN counts as -inf, and -inf is not sampled unless there is nothing else.
    fn sample(&self, logits: &Logits<'_, Self>, requests: &[TokenRequest<'_>]) -> Vec<SampledToken>;

    /// Returns log-probabilities from rows of `logits`; those of targets are bit-identical to
    /// [`Backend::target_logprobs`]. Alternatives are sampled without cuts.
    fn score(&self, logits: &Logits<'_, Self>, requests: &[ScoreRequest]) -> Vec<RowScores>;
}
