//! The memory that a training pass will need, planned before it runs: how many rows fit a budget, and how many blocks may
//! save their activations when the rows are more (the others recompute them: Chen et al. 2016, arXiv:1604.06174).

use trainyard_protocol::LoraSpec;

use super::params::Projection;
use crate::backend::{AttentionShape, Backend};
use crate::config::{Block, ModelConfig};

/// Most bytes of logits that a pass saves for its backward pass; more are recomputed.
pub(super) const MAX_SAVED_LOGITS: usize = 64 << 20;

/// Bytes per row of a training pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PassMemory {
    /// Keys and values.
    pub(super) kv: usize,
    /// What a block saves for its backward pass: that of the largest one.
    pub(super) block: usize,
    /// What a recomputed block saves: its input.
    pub(super) input: usize,
    /// What else is alive at once in the backward pass of a block: left sides of GEMMs and gradients.
    pub(super) working: usize,
    /// What is alive at once in the loss head, logits excepted.
    pub(super) head: usize,
    /// Logits.
    pub(super) logits: usize,
    /// Number of blocks; not in bytes.
    pub(super) blocks: usize,
}

impl PassMemory {
    /// For passes over a model; `adapters` are those that may be in the batch.
    pub(crate) fn of<'a, B: Backend>(
        c: &ModelConfig,
        shape: &AttentionShape,
        adapters: impl Iterator<Item = &'a LoraSpec>,
    ) -> Self {
        let element = B::ACTIVATION_BYTES;
        let (hidden, inner) = (c.hidden_size, c.intermediate_size);
        let low_rank = |lora: &LoraSpec| {
            lora.rank as usize * Projection::ALL.iter().filter(|projection| projection.is_adapted(lora)).count()
        };
        let low_rank = adapters.map(low_rank).max().unwrap_or(0);
        let saved = |block: &Block| saved_elements(c, shape, block) + low_rank;
        // The residual stream's gradient, a normalised input and its gradient; then gate's and up's gradients as the left side
        // of a GEMM, or in attention those of its output, of q, k, v, and of these as the left side of a GEMM.
        let working = 3 * hidden + (2 * inner).max(shape.q_width() + 2 * shape.qkv_width());
        Self {
            kv: 2 * shape.layers * shape.kv_width() * size_of::<f32>(),
            block: c.blocks.iter().map(saved).max().unwrap_or(0) * element,
            input: hidden * element,
            working: (working + added_output(c)) * element,
            // The residual stream and its gradient; for all rows and for those that have a loss the normalised ones and
            // their packed copy; of the latter rows also the residual stream, and two gradients.
            head: 9 * hidden * element,
            logits: c.vocab_size * size_of::<f32>(),
            blocks: c.num_layers(),
        }
    }

    /// Bytes of a pass over `rows` rows in which `saved` blocks save their activations.
    pub(crate) fn bytes(&self, rows: usize, saved: usize) -> usize {
        rows * self.kv + self.buffers(rows, saved)
    }

    /// As [`PassMemory::bytes`], without keys and values.
    pub(crate) fn buffers(&self, rows: usize, saved: usize) -> usize {
        let recomputed = self.blocks - saved;
        // Blocks that are recomputed are the first ones: when their backward pass runs, one after the other, those that
        // saved their activations have freed them.
        let alive = saved.max(recomputed.min(1));
        let head = rows * (saved * self.block + self.head) + (rows * self.logits).min(MAX_SAVED_LOGITS);
        rows * recomputed * self.input + head.max(rows * (alive * self.block + self.working))
    }

    /// Rows, up to `most`, of which every block may save its activations within `budget` bytes.
    pub(crate) fn rows_within(&self, budget: usize, most: usize) -> usize {
        let (mut fits, mut exceeds) = (0, most + 1);
        while exceeds - fits > 1 {
            let rows = fits + (exceeds - fits) / 2;
            if self.bytes(rows, self.blocks) <= budget { fits = rows } else { exceeds = rows }
        }
        fits
    }

    /// Most blocks that may save their activations of `rows` rows within `budget` bytes.
    pub(crate) fn saved_within(&self, rows: usize, budget: usize) -> usize {
        (0..=self.blocks).rev().find(|saved| self.bytes(rows, *saved) <= budget).unwrap_or(0)
    }
}

/// Elements of a row that a block saves, adapters apart.
fn saved_elements(c: &ModelConfig, shape: &AttentionShape, block: &Block) -> usize {
    let raw_qkv = if block.head_norms { shape.qkv_width() } else { 0 };
    let outputs = [block.norms.post_attention, block.norms.post_mlp].iter().flatten().count() * c.hidden_size;
    let streams = 2 * c.hidden_size;
    streams + outputs + shape.qkv_width() + raw_qkv + shape.q_width() + shape.heads + 2 * c.intermediate_size
}

/// Elements of a row of the gradient of what a part of a block adds, where that has a norm.
fn added_output(c: &ModelConfig) -> usize {
    let has_norm = |block: &Block| block.norms.post_attention.or(block.norms.post_mlp).is_some();
    if c.blocks.iter().any(has_norm) { c.hidden_size } else { 0 }
}
