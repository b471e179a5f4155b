//! The memory that a training pass will need, planned before it runs: how many rows fit a budget, and what may be kept for the
//! backward pass when the rows are more (the rest is recomputed: Chen et al. 2016, arXiv:1604.06174).

use trainyard_protocol::LoraSpec;

use super::indexer_weights::ChosenMemory;
use super::parts::PART_ROWS;
use super::projection::Projection;
use super::recompute::Saved;
use super::weights::Model;
use crate::backend::{AttentionShape, Backend, CHUNK, KV_BLOCK, RecurrentOps};
use crate::config::{Block, ConvolutionShape, Experts, HeadNorms, Mixer, ModelConfig, RecurrentShape};

/// Maximum bytes of logits that a pass saves for its backward pass; more are recomputed.
pub(super) const MAX_SAVED_LOGITS: usize = 64 << 20;

/// Bytes per row of a training pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PassMemory {
    /// Bytes per row of the keys and values of one block of the model.
    pub(super) kv: usize,
    /// Bytes per row that the largest block saves for its backward pass.
    pub(super) block: usize,
    /// Bytes per row that a recomputed block saves: its input.
    pub(super) input: usize,
    /// Bytes per row of left sides of GEMMs and gradients that live at once in a block's backward pass.
    pub(super) working: usize,
    /// Bytes per row of the residual stream.
    pub(super) stream: usize,
    /// Bytes per row of a part of the batch that live at once in the loss head, without logits.
    pub(super) head: usize,
    pub(super) logits: usize,
    /// Number of blocks; not in bytes.
    pub(super) blocks: usize,
    /// Where indexers choose positions: what a pass keeps of these.
    pub(super) chosen: Option<ChosenMemory>,
    /// Blocks whose MLP is computed in parts, in models without experts.
    pub(super) parts: Option<PartMemory>,
}

/// Bytes per row of a block that is recomputed in a batch of several parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartMemory {
    /// What it saves for its backward pass, without its MLP.
    pub(super) saved: usize,
    /// Left sides of GEMMs and gradients that live at once in its mixer's backward pass.
    pub(super) working: usize,
    /// The MLP forward and backward, per row of a part.
    pub(super) mlp: usize,
}

impl PassMemory {
    /// The memory of passes over a model; `adapters` are those that may be in the batch.
    pub(crate) fn of<'a, B: Backend>(model: &Model<B>, adapters: impl Iterator<Item = &'a LoraSpec>) -> Self {
        let holds_all = B::Family::HOLDS_ALL_CHUNKS;
        Self::planned_with(&model.config, B::ACTIVATION_BYTES, model.layer_kv_block_bytes, adapters, holds_all)
    }

    /// Like [`PassMemory::of`], but for a model that is not loaded; takes the bytes of an activation and of a KV block of one
    /// layer.
    pub(crate) fn planned<'a>(
        c: &ModelConfig,
        element: usize,
        kv_block_bytes: usize,
        adapters: impl Iterator<Item = &'a LoraSpec>,
    ) -> Self {
        Self::planned_with(c, element, kv_block_bytes, adapters, false)
    }

    /// Like [`PassMemory::planned`], for a GPU: there the chunks of all sequences of a recurrence are in memory at once.
    pub(crate) fn planned_on_gpu<'a>(
        c: &ModelConfig,
        element: usize,
        kv_block_bytes: usize,
        adapters: impl Iterator<Item = &'a LoraSpec>,
    ) -> Self {
        Self::planned_with(c, element, kv_block_bytes, adapters, true)
    }

    fn planned_with<'a>(
        c: &ModelConfig,
        element: usize,
        kv_block_bytes: usize,
        adapters: impl Iterator<Item = &'a LoraSpec>,
        holds_all_chunks: bool,
    ) -> Self {
        let shape = &c.attention_shape();
        let hidden = c.hidden_size;
        let shared = |block: &Block| block.experts.as_ref().and_then(|experts| experts.shared).unwrap_or(0);
        let widest = |layer: usize| c.mlp_width(layer).max(shared(&c.blocks[layer]));
        let inner = (0..c.num_layers()).map(widest).max().unwrap_or(0);
        let experts = c.blocks.iter().filter_map(|block| block.experts.as_ref()).map(|experts| experts.rule.per_token);
        let (routed, per_token) = (c.has_experts(), experts.max().unwrap_or(1));
        // Of a row's experts, this rank may have all that fit it.
        let held =
            c.blocks.iter().filter_map(|block| block.experts.as_ref()).map(Experts::most_held).max().unwrap_or(1);
        let mut mixtures = c.blocks.iter().filter_map(|block| block.experts.as_ref());
        let is_shared = mixtures.any(|experts| experts.held.len() < experts.count);
        // Of all adapters that may be in the batch, those of the largest.
        let adapters: Vec<&LoraSpec> = adapters.collect();
        let low_rank = |layer: usize| {
            let copies = if c.blocks[layer].experts.is_some() { held } else { 1 };
            let of = |p: Projection| if p.is_routed() { copies } else { 1 };
            let on = |lora: &LoraSpec| Projection::adapted(c, layer, lora).map(of).sum::<usize>();
            adapters.iter().map(|lora| lora.rank as usize * on(lora)).max().unwrap_or(0)
        };
        let saved = |(layer, block): (usize, &Block)| saved_elements(c, shape, block) + low_rank(layer);
        // The residual stream's gradient, a normalised input and its gradient; then gate's and up's gradients as the left side
        // of a GEMM, or in attention those of its output, of q, k, v, and of these as the left side of a GEMM.
        let (mlp, attention) = (3 * hidden + 2 * inner, attention_elements(c, shape));
        // With experts the gradients of all of a row's outputs, whose place those of inputs take; and for one expert, which may
        // have all rows, its input, and gradients and products of gate and up. Ranks that share experts then have those of all
        // ranks besides. Experts' activations are freed before attention.
        let gathered = if is_shared { per_token * hidden } else { 0 };
        let mixture = if routed { hidden + (held * hidden + gathered).max(2 * hidden + 4 * inner) } else { 0 };
        let freed = c.blocks.iter().map(|block| if routed { mlp_elements(c, block) } else { 0 }).min().unwrap_or(0);
        let chunks = |shape| if holds_all_chunks { chunk_elements(c, shape) } else { 0 };
        let recurrence =
            c.recurrences().map(|shape| recurrence_elements(c, shape).max(chunks(shape))).max().unwrap_or(0);
        let convolution = c.convolutions().map(|shape| convolution_elements(c, shape)).max().unwrap_or(0);
        let mixer = attention.max(recurrence).max(convolution);
        let working = mlp.max(mixture).max(mixer.saturating_sub(freed));
        let without_mlp = |(layer, block): (usize, &Block)| saved((layer, block)) - mlp_elements(c, block);
        let widest_mlp = c.blocks.iter().map(|block| mlp_elements(c, block)).max().unwrap_or(0);
        let parts = (!routed && widest_mlp > 0).then(|| PartMemory {
            saved: c.blocks.iter().enumerate().map(without_mlp).max().unwrap_or(0) * element,
            working: (mixer + added_output(c)) * element,
            // With copies of the part's rows and of their gradients.
            mlp: (2 * hidden + widest_mlp + mlp + 2 * added_output(c)) * element,
        });
        Self {
            kv: kv_block_bytes / KV_BLOCK,
            block: c.blocks.iter().enumerate().map(saved).max().unwrap_or(0) * element,
            input: hidden * element,
            working: (working + added_output(c)) * element,
            stream: hidden * element,
            // Of rows that have a loss the residual stream, normalised and packed, and three gradients.
            head: 6 * hidden * element,
            logits: c.vocab_rows() * size_of::<f32>(),
            blocks: c.num_layers(),
            chosen: ChosenMemory::of(c),
            parts,
        }
    }

    /// Bytes of a pass over `rows` rows that keeps `saved`.
    pub(crate) fn bytes(&self, rows: usize, saved: Saved) -> usize {
        rows * self.kv + self.buffers(rows, saved)
    }

    /// Like [`PassMemory::bytes`], but without keys and values.
    pub(crate) fn buffers(&self, rows: usize, saved: Saved) -> usize {
        let recomputed = saved.recomputed(self.blocks);
        let (saved, inputs) = (self.blocks - recomputed, recomputed.min(saved.inputs));
        // Blocks that are recomputed are the first ones: when their backward pass runs, one after the other, those that
        // saved their activations have freed them.
        let alive = saved.max(recomputed.min(1));
        let part = rows.min(PART_ROWS);
        // Besides the residual stream and its gradient, what the base model has in its place, with which losses may compare it.
        let head = rows * (saved * self.block + 3 * self.stream) + part * self.head;
        let head = head + (rows * self.logits).min(MAX_SAVED_LOGITS);
        let blocks = match self.parts {
            Some(parts) if saved == 0 && rows > part => {
                let mlp = rows * (parts.saved + self.stream) + part * parts.mlp;
                // What the MLP has read is freed before.
                mlp.max(rows * (parts.saved + parts.working).saturating_sub(self.stream))
            }
            _ => rows * (alive * self.block + self.working),
        };
        let chosen = self.chosen.map_or(0, |chosen| chosen.bytes(rows));
        chosen + rows * inputs * self.input + head.max(blocks)
    }

    /// Number of rows, up to `most`, for which every block can save its activations within `budget` bytes.
    pub(crate) fn rows_within(&self, budget: usize, most: usize) -> usize {
        let (mut fits, mut exceeds) = (0, most + 1);
        while exceeds - fits > 1 {
            let rows = fits + (exceeds - fits) / 2;
            if self.bytes(rows, Saved::with_all_inputs(self.blocks)) <= budget { fits = rows } else { exceeds = rows }
        }
        fits
    }

    /// The most that a pass over `rows` rows can keep within `budget` bytes, or the least if nothing fits.
    pub(crate) fn saved_within(&self, rows: usize, budget: usize) -> Saved {
        let fits = |saved: &Saved| self.bytes(rows, *saved) <= budget;
        let least = Saved::choices(self.blocks).last().unwrap_or_default();
        Saved::choices(self.blocks).find(fits).unwrap_or(least)
    }

    /// Like [`PassMemory::saved_within`], but with the inputs of all blocks that are recomputed: where units are gathered in an order
    /// that is settled, no block is repeated.
    pub(crate) fn saved_once_within(&self, rows: usize, budget: usize) -> Saved {
        Saved::all_inputs(self.blocks).find(|saved| self.bytes(rows, *saved) <= budget).unwrap_or_default()
    }
}

/// Elements of a row that a block saves, adapters apart.
fn saved_elements(c: &ModelConfig, shape: &AttentionShape, block: &Block) -> usize {
    let outputs = [block.norms.post_attention, block.norms.post_mlp].iter().flatten().count() * c.hidden_size;
    let streams = 2 * c.hidden_size;
    streams + outputs + mixer_elements(c, shape, block) + mlp_elements(c, block)
}

/// Elements of a row that a block's mixer saves.
fn mixer_elements(c: &ModelConfig, shape: &AttentionShape, block: &Block) -> usize {
    match &block.mixer {
        None => 0,
        Some(Mixer::Attention(attention)) => {
            let raw_qkv = if attention.head_norms == HeadNorms::None { 0 } else { shape.qkv_width() };
            let gates = if attention.gated { shape.q_width() } else { 0 };
            let latents = c.latent.map_or(0, |l| l.query_rank.unwrap_or(0) + l.kv_rank + l.rope_dim);
            latents + gates + shape.qkv_width() + raw_qkv + shape.q_width() + shape.heads
        }
        Some(Mixer::Recurrent(shape)) => shape.input_width() + shape.value_width(),
        Some(Mixer::Convolution(shape)) => shape.input_width() + shape.channels,
    }
}

/// Elements of a row that are alive at once in the backward pass of a recurrence, beside what the block saved: the gradients of its
/// gated output and of its inputs, the convolution's output and its gradient, and those of the inputs as the left side of a GEMM.
fn recurrence_elements(c: &ModelConfig, shape: &RecurrentShape) -> usize {
    2 * c.hidden_size + 2 * shape.value_width() + 2 * shape.channels() + 2 * shape.input_width()
}

/// The same while a GPU computes the gradients of chunks: the gradients of inputs, of outputs and of gated outputs; the convolution's
/// output and its gradient; products of queries and keys with the chunk's keys; what rows write before and after their steps, and the
/// gradient of that; decays, steps, their sums and gradients; a state and its gradient for each boundary between chunks.
fn chunk_elements(c: &ModelConfig, shape: &RecurrentShape) -> usize {
    let states = 2 * (shape.value_width() * shape.key_dim).div_ceil(CHUNK);
    let rows = shape.input_width() + 5 * shape.value_width() + 2 * shape.channels();
    2 * c.hidden_size + rows + 2 * CHUNK * shape.key_heads + 7 * shape.value_heads + states
}

/// Elements of a row that are alive at once in the backward pass of a short convolution, beside what the block saved: the gradients
/// of its output and of its inputs, those as the left sides of GEMMs, and that of the normalised input.
fn convolution_elements(c: &ModelConfig, shape: &ConvolutionShape) -> usize {
    2 * c.hidden_size + 2 * shape.channels + 2 * shape.input_width()
}

/// Elements of a row that are alive at once in the backward pass of attention, beside what the block saved.
fn attention_elements(c: &ModelConfig, shape: &AttentionShape) -> usize {
    let (hidden, q, qkv) = (c.hidden_size, shape.q_width(), shape.qkv_width());
    let Some(heads) = c.latent_heads() else {
        let is_gated = c.blocks.iter().filter_map(Block::attention).any(|attention| attention.gated);
        let gates = if is_gated { q } else { 0 };
        // In o's backward pass: the gradients of the residual stream, also as the left side of a GEMM, and of attention's output,
        // and that output, gated and as an input of gradients.
        let output = 2 * hidden + 2 * q + gates;
        // In that of attention: the gradients of the residual stream, of the output and its gates, and of q, k, v.
        let scores = hidden + q + gates + qkv;
        // In that of the QKV projection, before which q, k, v, the output and its gates are freed: the gradients of these, also
        // joined and as the left side of a GEMM; and of the normalised input, and that input.
        let joined = if is_gated { 2 * (qkv + gates) } else { 0 };
        let freed = qkv + q + gates + shape.heads;
        let projections = (3 * hidden + 2 * qkv + gates).max(hidden + qkv + gates + joined).saturating_sub(freed);
        return output.max(scores).max(projections);
    };
    // The gradients of q, k, v, and of attention's output; once these and what attention saved are freed, those of what the
    // projections made, as rows and as the left side of a GEMM, and of the normalised input.
    let projected = heads.queries() + heads.keys_and_values() + heads.rope;
    let expanded = (2 * projected + 2 * hidden).saturating_sub(q + qkv);
    hidden + (q + qkv).max(qkv + projected).max(expanded)
}

/// Elements that the MLP or the experts save.
fn mlp_elements(c: &ModelConfig, block: &Block) -> usize {
    let columns = if block.activation.is_gated() { 2 } else { 1 };
    match &block.experts {
        None if !block.has_mlp => 0,
        None => columns * c.intermediate_size,
        // gate, up and the output of each of a row's experts on this rank; logits and weights; gate and up of the MLP beside them,
        // and its output where that has a gate; the latents.
        Some(e) => {
            let gated = if e.shared_is_gated { c.hidden_size + 2 } else { 0 };
            let beside = e.shared.map_or(0, |width| columns * width + gated);
            let routed = e.most_held() * (columns * e.width + e.inputs(c.hidden_size)) + e.rule.per_token + e.count;
            routed + beside + 2 * e.latent.unwrap_or(0)
        }
    }
}

/// Elements of a row of the gradient of what a part of a block adds, where that has a norm or a factor.
fn added_output(c: &ModelConfig) -> usize {
    let has_norm = |block: &Block| block.norms.post_attention.or(block.norms.post_mlp).is_some();
    if c.residual_scale != 1.0 || c.blocks.iter().any(has_norm) { c.hidden_size } else { 0 }
}
