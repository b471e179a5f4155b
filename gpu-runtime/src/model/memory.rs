//! What a training pass will hold, told before it runs: how many rows fit a budget, and how many blocks may keep their
//! activations when the rows are more (the others compute them again: Chen et al. 2016, arXiv:1604.06174).

use trainyard_protocol::LoraSpec;

use super::adapter::Module;
use super::weights::Weights;

/// Bytes per row of a pass over `w` with adapters of at most `rank` on all modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassMemory {
    /// What a block keeps for its backward pass.
    block: usize,
    /// What a block that computes again keeps: its input.
    input: usize,
    /// Keys and values, and what is alive at once besides: inputs of products and gradients of one block.
    working: usize,
    blocks: usize,
}

impl PassMemory {
    /// For a pass over these weights; `adapters` are those that may take part.
    pub fn of<'a>(w: &Weights, adapters: impl Iterator<Item = &'a LoraSpec>) -> Self {
        let (c, s) = (&w.config, &w.shape);
        let (hidden, inner) = (c.hidden_size, c.intermediate_size);
        let modules = |lora: &LoraSpec| {
            let adapted = |m: &&Module| if m.is_attention() { lora.train_attn } else { lora.train_mlp };
            lora.rank as usize * Module::ALL.iter().filter(adapted).count()
        };
        let z = adapters.map(modules).max().unwrap_or(0);
        let normed = if w.layers.iter().any(|l| l.qk_norm.is_some()) { s.qkv_width() } else { 0 };
        let kept = 2 * hidden + s.qkv_width() + normed + s.q_width() + s.heads + 2 * inner + z;
        let kv = 2 * s.layers * s.kv_width();
        // At its widest, the backward pass of an MLP: gradients of gate and up and their packed copy, the residual
        // stream's, the normalised input and its gradient.
        let working = 4 * inner + 4 * hidden + inner.max(s.qkv_width() + s.q_width());
        Self {
            block: kept * size_of::<f32>(),
            input: hidden * size_of::<f32>(),
            working: (kv + working) * size_of::<f32>(),
            blocks: c.num_layers,
        }
    }

    /// Bytes of a pass over `rows` rows in which `kept` blocks keep their activations.
    pub fn bytes(&self, rows: usize, kept: usize) -> usize {
        let again = self.blocks - kept;
        // A block that computes again holds its activations while its own backward pass runs.
        let one = if again > 0 { self.block } else { 0 };
        rows * (kept * self.block + again * self.input + one + self.working)
    }

    /// Rows of which every block may keep its activations within `budget` bytes.
    pub fn rows_within(&self, budget: usize) -> usize {
        budget / self.bytes(1, self.blocks).max(1)
    }

    /// Most blocks that may keep their activations of `rows` rows within `budget` bytes.
    pub fn kept_within(&self, rows: usize, budget: usize) -> usize {
        (0..=self.blocks).rev().find(|kept| self.bytes(rows, *kept) <= budget).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: PassMemory = PassMemory { block: 100, input: 10, working: 50, blocks: 4 };

    #[test]
    fn a_pass_keeps_what_the_budget_allows() {
        assert_eq!(MEMORY.bytes(2, 4), 2 * (400 + 50));
        assert_eq!(MEMORY.bytes(2, 1), 2 * (100 + 30 + 100 + 50));
        assert_eq!(MEMORY.rows_within(4499), 9);
        assert_eq!(MEMORY.kept_within(2, 900), 4);
        // One block that computes again holds as much as one that does not.
        assert_eq!(MEMORY.kept_within(2, 899), 2);
        assert_eq!(MEMORY.kept_within(2, 560), 1);
        assert_eq!(MEMORY.kept_within(2, 0), 0);
    }
}
