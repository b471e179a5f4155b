//! What a training pass will hold, told before it runs: how many rows fit a budget, and how many blocks may keep their
//! activations when the rows are more (the others compute them again: Chen et al. 2016, arXiv:1604.06174).

use trainyard_protocol::LoraSpec;

use super::adapter::Module;
use super::weights::Weights;

/// Bytes of logits that a pass may keep for its backward; more are computed again.
pub(super) const KEPT_LOGITS: usize = 64 << 20;

/// Bytes per row of a pass over `w` with adapters of at most `rank` on all modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassMemory {
    /// Keys and values.
    kv: usize,
    /// What a block keeps for its backward pass.
    block: usize,
    /// What a block that computes again keeps: its input.
    input: usize,
    /// What is alive at once besides, in the backward pass of a block: inputs of products and gradients.
    working: usize,
    /// The same in the loss head, logits apart.
    head: usize,
    /// Logits.
    logits: usize,
    blocks: usize,
}

impl PassMemory {
    /// For a pass over these weights; `adapters` are those that may take part.
    pub fn of<'a>(w: &Weights, adapters: impl Iterator<Item = &'a LoraSpec>) -> Self {
        const FLOAT: usize = size_of::<f32>();
        let (c, s) = (&w.config, &w.shape);
        let (hidden, inner) = (c.hidden_size, c.intermediate_size);
        let modules = |lora: &LoraSpec| {
            let adapted = |m: &&Module| if m.is_attention() { lora.train_attn } else { lora.train_mlp };
            lora.rank as usize * Module::ALL.iter().filter(adapted).count()
        };
        let z = adapters.map(modules).max().unwrap_or(0);
        let normed = if w.layers.iter().any(|l| l.qk_norm.is_some()) { s.qkv_width() } else { 0 };
        let kept = 2 * hidden + s.qkv_width() + normed + s.q_width() + s.heads + 2 * inner + z;
        // The residual stream's gradient, a normalised input and its gradient; then gate's and up's gradients as an operand,
        // or in attention those of its output, of q, k, v, and of these as an operand.
        let working = 3 * hidden + (2 * inner).max(s.q_width() + 2 * s.qkv_width());
        Self {
            kv: 2 * s.layers * s.kv_width() * FLOAT,
            block: kept * FLOAT,
            input: hidden * FLOAT,
            working: working * FLOAT,
            // The residual stream and its gradient; for all rows and for those that have a loss the normalised ones and
            // their packed copy; of the latter rows also the residual stream, and two gradients.
            head: 9 * hidden * FLOAT,
            logits: c.vocab_size * FLOAT,
            blocks: c.num_layers,
        }
    }

    /// Bytes of a pass over `rows` rows in which `kept` blocks keep their activations.
    pub fn bytes(&self, rows: usize, kept: usize) -> usize {
        rows * self.kv + self.buffers(rows, kept)
    }

    /// As [`PassMemory::bytes`], without keys and values.
    pub fn buffers(&self, rows: usize, kept: usize) -> usize {
        let again = self.blocks - kept;
        // Blocks that compute again are the first ones: when their backward pass runs, one after the other, those that
        // kept their activations have freed them.
        let alive = kept.max(again.min(1));
        let head = rows * (kept * self.block + self.head) + (rows * self.logits).min(KEPT_LOGITS);
        rows * again * self.input + head.max(rows * (alive * self.block + self.working))
    }

    /// Rows, up to `most`, of which every block may keep its activations within `budget` bytes.
    pub fn rows_within(&self, budget: usize, most: usize) -> usize {
        let (mut fits, mut exceeds) = (0, most + 1);
        while exceeds - fits > 1 {
            let rows = fits + (exceeds - fits) / 2;
            if self.bytes(rows, self.blocks) <= budget { fits = rows } else { exceeds = rows }
        }
        fits
    }

    /// Most blocks that may keep their activations of `rows` rows within `budget` bytes.
    pub fn kept_within(&self, rows: usize, budget: usize) -> usize {
        (0..=self.blocks).rev().find(|kept| self.bytes(rows, *kept) <= budget).unwrap_or(0)
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
