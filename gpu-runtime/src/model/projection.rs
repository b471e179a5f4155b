//! The linear layers of a decoder block that an adapter can be on: their names and extents.

use trainyard_protocol::LoraSpec;

use super::shard_axis::ShardAxis;
use crate::config::{Block, ConvolutionShape, Mixer, ModelConfig, RecurrentShape};

/// A linear layer of a decoder block that an adapter can be on. They are declared in parameter order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Projection {
    /// Queries, from the residual stream.
    Q,
    K,
    V,
    /// Latent of the queries, from the residual stream.
    QDown,
    /// Queries, from their latent.
    QUp,
    /// The latent of keys and values, and the rotated part of keys.
    KvDown,
    /// Keys and values, from their latent.
    KvUp,
    /// Output projection of attention.
    O,
    /// Queries of a recurrence, from the residual stream, like all of its inputs.
    MixQueries,
    MixKeys,
    MixValues,
    /// Gate of the recurrence's output.
    MixGate,
    /// Input of each head's decay.
    MixDecay,
    /// Input of each head's step size.
    MixStep,
    /// All inputs of a recurrence, where they are one module.
    MixIn,
    /// Output projection of a recurrence.
    MixOut,
    /// Gates and values of a short convolution, from the residual stream.
    ConvolutionIn,
    /// Output projection of a short convolution.
    ConvolutionOut,
    Gate,
    Up,
    /// Gate and up, where they are one module.
    GateUp,
    Down,
    /// Gate of the shared MLP of a block with routed experts.
    SharedGate,
    /// Up projection of that MLP.
    SharedUp,
    /// Down projection of that MLP.
    SharedDown,
    /// Projection to the latent that experts read.
    LatentIn,
    /// Projection from the latent that experts write.
    LatentOut,
}

impl Projection {
    /// All projections in parameter order; no block has all of them.
    pub(super) const ALL: [Self; 27] = [
        Self::Q,
        Self::K,
        Self::V,
        Self::QDown,
        Self::QUp,
        Self::KvDown,
        Self::KvUp,
        Self::O,
        Self::MixQueries,
        Self::MixKeys,
        Self::MixValues,
        Self::MixGate,
        Self::MixDecay,
        Self::MixStep,
        Self::MixIn,
        Self::MixOut,
        Self::ConvolutionIn,
        Self::ConvolutionOut,
        Self::Gate,
        Self::Up,
        Self::GateUp,
        Self::Down,
        Self::SharedGate,
        Self::SharedUp,
        Self::SharedDown,
        Self::LatentIn,
        Self::LatentOut,
    ];

    /// Projections of a block in parameter order, by linear layer: projections of the same input are fused.
    pub(super) fn layers(c: &ModelConfig, layer: usize) -> Vec<&'static [Self]> {
        let block = &c.blocks[layer];
        let mixer: &[&[Self]] = match &block.mixer {
            None => &[],
            Some(Mixer::Recurrent(shape)) => &[Self::recurrent_inputs(block, shape), &[Self::MixOut]],
            Some(Mixer::Convolution(_)) => &[&[Self::ConvolutionIn], &[Self::ConvolutionOut]],
            Some(Mixer::Attention(_)) => match c.latent.map(|latent| latent.query_rank) {
                None => &[&[Self::Q, Self::K, Self::V], &[Self::O]],
                Some(None) => &[&[Self::Q], &[Self::KvDown], &[Self::KvUp], &[Self::O]],
                Some(Some(_)) => &[&[Self::QDown], &[Self::QUp], &[Self::KvDown], &[Self::KvUp], &[Self::O]],
            },
        };
        let experts = block.experts.as_ref();
        let mlp: &[&[Self]] = if block.has_mlp { &[Self::inner(block), &[Self::Down]] } else { &[] };
        let has_shared = experts.is_some_and(|experts| experts.shared.is_some());
        let shared: &[&[Self]] = if has_shared { &[Self::shared_inner(block), &[Self::SharedDown]] } else { &[] };
        let has_latent = experts.is_some_and(|experts| experts.latent.is_some());
        let latent: &[&[Self]] = if has_latent { &[&[Self::LatentIn], &[Self::LatentOut]] } else { &[] };
        [mixer, mlp, shared, latent].concat()
    }

    /// Projections from the input of a block's MLP, or of its experts.
    pub(super) fn inner(block: &Block) -> &'static [Self] {
        match block.activation.is_gated() {
            true if block.joins_inputs && block.experts.is_none() => &[Self::GateUp],
            true => &[Self::Gate, Self::Up],
            false => &[Self::Up],
        }
    }

    /// Projections from the input of the MLP beside a block's experts.
    pub(super) fn shared_inner(block: &Block) -> &'static [Self] {
        if block.activation.is_gated() { &[Self::SharedGate, Self::SharedUp] } else { &[Self::SharedUp] }
    }

    /// Projections to the inputs of a block's recurrence, in parameter order.
    pub(super) fn recurrent_inputs(block: &Block, shape: &RecurrentShape) -> &'static [Self] {
        const INPUTS: [Projection; 6] = [
            Projection::MixQueries,
            Projection::MixKeys,
            Projection::MixValues,
            Projection::MixGate,
            Projection::MixDecay,
            Projection::MixStep,
        ];
        match shape.has_beta() {
            _ if block.joins_inputs => &[Self::MixIn],
            true => &INPUTS,
            false => &INPUTS[..5],
        }
    }

    /// First column of the projection's outputs in a row of inputs to a recurrence.
    pub(super) fn input_column(self, shape: &RecurrentShape) -> usize {
        let columns = shape.columns();
        match self {
            Self::MixQueries => columns.queries,
            Self::MixKeys => columns.keys,
            Self::MixValues => columns.values,
            Self::MixGate => columns.gate,
            Self::MixDecay => columns.decays,
            Self::MixStep => columns.steps,
            _ => 0,
        }
    }

    /// Projections of a block, in parameter order.
    pub(super) fn of_block(c: &ModelConfig, layer: usize) -> impl Iterator<Item = Self> {
        Self::layers(c, layer).into_iter().flatten().copied()
    }

    /// Projections of a block that adapters of a kind are on.
    pub(super) fn adapted<'a>(c: &'a ModelConfig, layer: usize, lora: &'a LoraSpec) -> impl Iterator<Item = Self> + 'a {
        Self::of_block(c, layer).filter(move |p| p.is_adapted(&c.blocks[layer], lora))
    }

    /// Module within a block, in the spelling of Hugging Face.
    pub(crate) fn module(self, block: &Block) -> &'static str {
        let is_mamba = block.recurrence().is_some_and(|shape| !shape.has_beta());
        match self {
            Self::MixQueries if is_mamba => "mixer.c_proj",
            Self::MixKeys if is_mamba => "mixer.b_proj",
            Self::MixValues if is_mamba => "mixer.x_proj",
            Self::MixGate if is_mamba => "mixer.gate_proj",
            Self::MixDecay if is_mamba => "mixer.dt_proj",
            Self::MixIn if is_mamba => "mixer.in_proj",
            Self::MixOut if is_mamba => "mixer.out_proj",
            Self::MixQueries => "linear_attn.in_proj_q",
            Self::MixKeys => "linear_attn.in_proj_k",
            Self::MixValues => "linear_attn.in_proj_v",
            Self::MixGate => "linear_attn.in_proj_z",
            Self::MixDecay => "linear_attn.in_proj_a",
            Self::MixStep => "linear_attn.in_proj_b",
            Self::MixIn => "linear_attn.in_proj",
            Self::MixOut => "linear_attn.out_proj",
            Self::ConvolutionIn => "conv.in_proj",
            Self::ConvolutionOut => "conv.out_proj",
            Self::Q => "self_attn.q_proj",
            Self::K => "self_attn.k_proj",
            Self::V => "self_attn.v_proj",
            Self::O => "self_attn.o_proj",
            Self::Gate => "mlp.gate_proj",
            Self::Up => "mlp.up_proj",
            Self::GateUp => "mlp.gate_up_proj",
            Self::Down => "mlp.down_proj",
            Self::QDown => "self_attn.q_a_proj",
            Self::QUp => "self_attn.q_b_proj",
            Self::KvDown => "self_attn.kv_a_proj_with_mqa",
            Self::KvUp => "self_attn.kv_b_proj",
            Self::SharedGate => "mlp.shared_experts.gate_proj",
            Self::SharedUp => "mlp.shared_experts.up_proj",
            Self::SharedDown => "mlp.shared_experts.down_proj",
            Self::LatentIn => "mlp.fc1_latent_proj",
            Self::LatentOut => "mlp.fc2_latent_proj",
        }
    }

    /// Module of a block's experts as adapters name it: `w1` is gate, or up where there is none, `w3` up and `w2` down.
    pub(super) fn expert_module(self, block: &Block) -> &'static str {
        match self {
            Self::Gate => "mlp.experts.w1",
            Self::Up if !block.activation.is_gated() => "mlp.experts.w1",
            Self::Up => "mlp.experts.w3",
            Self::Down => "mlp.experts.w2",
            _ => self.module(block),
        }
    }

    /// (outputs, inputs) in a block; of an expert's projection where it has experts.
    pub(crate) fn extents(self, c: &ModelConfig, layer: usize) -> (usize, usize) {
        let experts = c.blocks[layer].experts.as_ref();
        let shared = || experts.and_then(|experts| experts.shared).unwrap_or(0);
        let latent = || experts.and_then(|experts| experts.latent).unwrap_or(0);
        let read = || experts.map_or(c.hidden_size, |experts| experts.inputs(c.hidden_size));
        let queries = c.latent.map_or_else(|| c.projected_queries(layer), |latent| c.num_heads * latent.query_dim());
        // 0 where attention is not latent.
        let query_rank = c.latent.and_then(|latent| latent.query_rank).unwrap_or(0);
        let (kv_rank, rope, of_head) =
            c.latent.map_or((0, 0, 0), |latent| (latent.kv_rank, latent.rope_dim, latent.nope_dim + latent.value_dim));
        // Extents of 0 where the block has no recurrence or convolution.
        let recurrence = c.blocks[layer].recurrence();
        let of = |width: fn(&RecurrentShape) -> usize| recurrence.map_or(0, width);
        let convolution = c.blocks[layer].convolution();
        let convolved = |width: fn(&ConvolutionShape) -> usize| convolution.map_or(0, width);
        match self {
            Self::MixQueries | Self::MixKeys => (of(RecurrentShape::key_width), c.hidden_size),
            Self::MixValues | Self::MixGate => (of(RecurrentShape::value_width), c.hidden_size),
            Self::MixDecay | Self::MixStep => (of(|shape| shape.value_heads), c.hidden_size),
            Self::MixIn => (of(RecurrentShape::input_width), c.hidden_size),
            Self::MixOut => (c.hidden_size, of(RecurrentShape::value_width)),
            Self::ConvolutionIn => (convolved(ConvolutionShape::input_width), c.hidden_size),
            Self::ConvolutionOut => (c.hidden_size, convolved(|shape| shape.channels)),
            Self::Q => (queries, c.hidden_size),
            Self::K | Self::V => (c.kv_width(), c.hidden_size),
            Self::O => (c.hidden_size, c.attended_width()),
            Self::Gate | Self::Up => (c.mlp_width(layer), read()),
            Self::GateUp => (2 * c.mlp_width(layer), read()),
            Self::Down => (read(), c.mlp_width(layer)),
            Self::QDown => (query_rank, c.hidden_size),
            Self::QUp => (queries, query_rank),
            Self::KvDown => (kv_rank + rope, c.hidden_size),
            Self::KvUp => (c.num_heads * of_head, kv_rank),
            Self::SharedGate | Self::SharedUp => (shared(), c.hidden_size),
            Self::SharedDown => (c.hidden_size, shared()),
            Self::LatentIn => (latent(), c.hidden_size),
            Self::LatentOut => (c.hidden_size, latent()),
        }
    }

    /// Whether it belongs to the block's mixer, else to the MLP.
    pub(crate) fn is_attention(self) -> bool {
        (self as usize) <= Self::ConvolutionOut as usize
    }

    /// Whether it projects from a latent to heads.
    pub(crate) fn is_latent_up(self) -> bool {
        matches!(self, Self::QUp | Self::KvUp)
    }

    /// Whether each expert has one, where a block has experts.
    pub(super) fn is_routed(self) -> bool {
        matches!(self, Self::Gate | Self::Up | Self::Down)
    }

    /// Whether adapters of this kind are on it.
    pub(crate) fn is_adapted(self, block: &Block, lora: &LoraSpec) -> bool {
        let is_mamba = block.recurrence().is_some_and(|shape| !shape.has_beta());
        match self {
            Self::MixDecay | Self::MixStep => false,
            Self::MixQueries | Self::MixKeys if is_mamba => false,
            _ if self.is_latent_up() => lora.train_attn && lora.latent_up,
            _ if self.is_attention() => lora.train_attn,
            _ => lora.train_mlp,
        }
    }

    /// Along which dimension ranks share its weight.
    pub(super) fn shard(self) -> ShardAxis {
        match self {
            Self::K | Self::V => ShardAxis::KvHeads,
            Self::O | Self::MixOut | Self::ConvolutionOut | Self::Down | Self::SharedDown => ShardAxis::Inputs,
            Self::ConvolutionIn => ShardAxis::StackedOutputs(3),
            Self::GateUp => ShardAxis::StackedOutputs(2),
            Self::QDown | Self::KvDown | Self::LatentIn | Self::LatentOut => ShardAxis::Replicated,
            // Ranks that share heads do not share models in which it is one module.
            Self::MixIn => ShardAxis::Replicated,
            Self::MixQueries | Self::MixKeys | Self::MixValues | Self::MixGate | Self::MixDecay | Self::MixStep => {
                ShardAxis::Outputs
            }
            Self::Q | Self::QUp | Self::KvUp | Self::Gate | Self::Up | Self::SharedGate | Self::SharedUp => {
                ShardAxis::Outputs
            }
        }
    }
}
