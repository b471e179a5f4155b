//! The part of a decoder block that mixes positions.

use super::{Block, ModelConfig};
use crate::backend::{AttentionShape, ConvolutionShape, RecurrentShape, StateShape};

/// The part of a decoder block that mixes positions.
#[derive(Clone, Debug, PartialEq)]
pub enum Mixer {
    /// Softmax attention over keys and values of all positions, or of a window.
    Attention(Attention),
    /// A linear recurrence over a state of fixed size, behind a short causal convolution.
    Recurrent(RecurrentShape),
    /// A short causal convolution between two gates.
    Convolution(ConvolutionShape),
}

impl From<Attention> for Mixer {
    fn from(attention: Attention) -> Self {
        Self::Attention(attention)
    }
}

impl From<RecurrentShape> for Mixer {
    fn from(shape: RecurrentShape) -> Self {
        Self::Recurrent(shape)
    }
}

impl From<ConvolutionShape> for Mixer {
    fn from(shape: ConvolutionShape) -> Self {
        Self::Convolution(shape)
    }
}

/// Attention of a block. Extents are those of the model ([`ModelConfig`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention {
    /// RMSNorms of q and k before rotation.
    pub head_norms: HeadNorms,
    /// Index of the [`ModelConfig::ropes`] that rotates q and k; `None` for attention without positions.
    pub rope: Option<usize>,
    /// Number of last positions, including its own, that a position attends to; all positions if `None`.
    pub window: Option<usize>,
    /// Whether each query head has a learned score that joins the softmax without a value (Xiao et al. 2023,
    /// arXiv:2309.17453).
    pub sinks: bool,
    /// Whether the query projection also computes a gate for each head, after the head's queries: attention's output is
    /// multiplied by the gate's sigmoid.
    pub gated: bool,
}

impl Default for Attention {
    /// Full attention, rotated by the first rotary embedding.
    fn default() -> Self {
        Self { head_norms: HeadNorms::None, rope: Some(0), window: None, sinks: false, gated: false }
    }
}

/// RMSNorms of queries and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadNorms {
    /// Queries and keys are not normalised.
    None,
    /// Each head is normalised, with weights of `head_dim` elements that all heads share.
    Heads,
    /// All heads are normalised together, with weights of as many elements as all heads have.
    Projections,
}

impl Block {
    /// Returns the block's attention, if that is its mixer.
    pub fn attention(&self) -> Option<&Attention> {
        match &self.mixer {
            Some(Mixer::Attention(attention)) => Some(attention),
            Some(Mixer::Recurrent(_) | Mixer::Convolution(_)) | None => None,
        }
    }

    /// Returns the block's recurrence, if that is its mixer.
    pub fn recurrence(&self) -> Option<&RecurrentShape> {
        match &self.mixer {
            Some(Mixer::Recurrent(shape)) => Some(shape),
            Some(Mixer::Attention(_) | Mixer::Convolution(_)) | None => None,
        }
    }

    /// Returns the block's short convolution, if that is its mixer.
    pub fn convolution(&self) -> Option<&ConvolutionShape> {
        match &self.mixer {
            Some(Mixer::Convolution(shape)) => Some(shape),
            Some(Mixer::Attention(_) | Mixer::Recurrent(_)) | None => None,
        }
    }

    /// Returns the extents of the state that the block keeps per sequence, if it keeps one.
    pub fn state(&self) -> Option<StateShape> {
        match &self.mixer {
            Some(Mixer::Recurrent(shape)) => Some(StateShape::Recurrent(*shape)),
            Some(Mixer::Convolution(shape)) => Some(StateShape::Convolution(*shape)),
            Some(Mixer::Attention(_)) | None => None,
        }
    }
}

impl ModelConfig {
    /// Returns the number of blocks with attention, which have keys and values.
    pub fn attention_layers(&self) -> usize {
        self.blocks.iter().filter(|block| block.attention().is_some()).count()
    }

    /// Extents of attention over all blocks.
    pub(crate) fn attention_shape(&self) -> AttentionShape {
        AttentionShape {
            layers: self.attention_layers(),
            heads: self.num_heads,
            kv_heads: self.num_kv_heads,
            head_dim: self.head_dim,
            scale: self.attention_scale,
            index: self.index_keys(),
        }
    }

    /// Returns the recurrences of the blocks that have one, first to last.
    pub fn recurrences(&self) -> impl Iterator<Item = &RecurrentShape> {
        self.blocks.iter().filter_map(Block::recurrence)
    }

    /// Returns the short convolutions of the blocks that have one, first to last.
    pub fn convolutions(&self) -> impl Iterator<Item = &ConvolutionShape> {
        self.blocks.iter().filter_map(Block::convolution)
    }

    /// Returns the states that blocks keep per sequence, first to last.
    pub fn states(&self) -> impl Iterator<Item = StateShape> {
        self.blocks.iter().filter_map(Block::state)
    }

    /// Returns the bytes of a sequence's state, over all blocks.
    pub fn state_bytes(&self) -> usize {
        self.states().map(|shape| shape.elements() * size_of::<f32>()).sum()
    }

    /// Returns the number of elements of the query projection's output, including gates.
    pub fn projected_queries(&self, layer: usize) -> usize {
        let gated = self.blocks[layer].attention().is_some_and(|attention| attention.gated);
        if gated { 2 * self.q_width() } else { self.q_width() }
    }
}
