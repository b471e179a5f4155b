//! Sizes of the checks: those of real models, or small ones with the same code.

use crate::{AttentionShape, IndexKeys, RecurrentRule, RecurrentShape};

/// FLOP per second from which on a device gets [`Scale::FULL`]. A GPU has a hundred times as many, a simulated one a
/// thousandth.
const FULL_RATE: f64 = 1e12;

/// Sizes of the checks. Numbers of rows that choose a kernel are the same in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Name of the sizes, for reports.
    pub name: &'static str,
    /// Width of the decoder layer's rows.
    pub(super) hidden: usize,
    /// Query heads of the layer, and its key heads.
    pub(super) heads: [usize; 2],
    /// Width of the MLP.
    pub(super) intermediate: usize,
    /// Rank of the layer's adapters.
    pub(super) rank: usize,
    /// Tokens of the unembedding: two chunks of a GPU's.
    pub(super) vocab: usize,
    /// Rows of the layer's sequences.
    pub(super) sequences: [usize; 2],
    /// Rows of prompts whose attention is compared with the processor's: in one split of keys, and in several.
    pub(super) prompts: [[usize; 2]; 2],
    /// Query heads of these prompts, and their key heads.
    pub(super) prompt_heads: [usize; 2],
    /// Rows of a prompt's end that are computed at once, to compare its last row with decoded ones.
    pub(super) together: usize,
    /// Key heads and value heads of the delta net, and those of Mamba-2.
    pub(super) mixer_heads: [[usize; 2]; 2],
    /// Rows of the sequences of mixers.
    pub(super) mixer_rows: [usize; 2],
    /// Rows, experts, and the width of what experts return.
    pub(super) experts: [usize; 3],
    /// Width of an expert's MLP.
    pub(super) expert: usize,
    /// Numbers of rows among which a row has to have its bits.
    pub(super) counts: &'static [usize],
}

/// Width of the layer's heads in every scale: kernels depend on it.
pub(super) const HEAD_DIM: usize = 128;

/// Widths of heads: each has its own kernels or its own path.
pub(super) const HEAD_DIMS: [usize; 4] = [64, 128, 192, 256];

/// Rows of adapted projections: decoding, and below and above what chooses another kernel. Adapters have one for up to 512 rows,
/// and plans of GEMMs are made for 256.
pub(super) const PROJECTED: [usize; 6] = [1, 16, 256, 257, 512, 513];

/// Rows that are decoded at once.
pub(super) const DECODED: [usize; 2] = [1, 16];

/// Experts of a token.
pub(super) const EXPERTS_OF_TOKEN: usize = 8;

impl Scale {
    /// One layer of an 8B model (Llama 3.1 8B: 4096 wide, 32/8 heads of 128, MLP of 14336; Grattafiori et al. 2024,
    /// arXiv:2407.21783), the mixers of Qwen3-Next 80B and of Nemotron-H 8B, and the experts of Qwen3-30B-A3B, from their
    /// configuration files.
    pub const FULL: Self = Self {
        name: "full",
        hidden: 4096,
        heads: [32, 8],
        intermediate: 14336,
        rank: 32,
        vocab: 8192 + 4480,
        sequences: [1500, 548],
        prompts: [[100, 28], [600, 29]],
        prompt_heads: [8, 2],
        together: 257,
        mixer_heads: [[16, 32], [8, 128]],
        mixer_rows: [130, 7],
        experts: [1024, 128, 2048],
        expert: 768,
        counts: &[1, 2, 16, 256, 2048, 8191],
    };

    /// Sizes for processors and simulated devices.
    pub const SMALL: Self = Self {
        name: "small",
        hidden: 64,
        heads: [2, 1],
        intermediate: 96,
        rank: 8,
        vocab: 8192 + 64,
        sequences: [66, 14],
        prompts: [[40, 28], [130, 1]],
        prompt_heads: [2, 1],
        together: 17,
        mixer_heads: [[1, 2], [1, 2]],
        mixer_rows: [66, 3],
        experts: [12, 16, 40],
        expert: 24,
        counts: &[1, 2, 16, 256, 530],
    };

    /// Returns the sizes for a device with this rate of bf16 GEMMs, in FLOP per second.
    pub fn for_rate(flops: f64) -> Self {
        if flops >= FULL_RATE { Self::FULL } else { Self::SMALL }
    }

    /// Extents of the layer's attention.
    pub(super) fn attention(&self) -> AttentionShape {
        attention(self.heads, HEAD_DIM)
    }

    /// Attention of the prompts, with heads of a width.
    pub(super) fn prompt_attention(&self, head_dim: usize) -> AttentionShape {
        attention(self.prompt_heads, head_dim)
    }

    /// Rows of both sequences.
    pub(super) fn rows(&self) -> usize {
        self.sequences.iter().sum()
    }

    pub(super) fn delta_net(&self) -> RecurrentShape {
        let [key_heads, value_heads] = self.mixer_heads[0];
        RecurrentShape {
            rule: RecurrentRule::DeltaNet,
            key_heads,
            value_heads,
            key_dim: 128,
            value_dim: 128,
            kernel: 4,
        }
    }

    pub(super) fn mamba(&self) -> RecurrentShape {
        let [key_heads, value_heads] = self.mixer_heads[1];
        let rule = RecurrentRule::Mamba2 { limits: (0.0, f32::INFINITY) };
        RecurrentShape { rule, key_heads, value_heads, key_dim: 128, value_dim: 64, kernel: 4 }
    }
}

fn attention([heads, kv_heads]: [usize; 2], head_dim: usize) -> AttentionShape {
    AttentionShape {
        layers: 1,
        heads,
        kv_heads,
        head_dim,
        scale: 1.0 / (head_dim as f32).sqrt(),
        index: IndexKeys::NONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_devices_get_small_sizes() {
        assert_eq!(Scale::for_rate(5e14), Scale::FULL);
        assert_eq!(Scale::for_rate(3e9), Scale::SMALL);
    }
}
