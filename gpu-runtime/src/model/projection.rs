//! The linear layers of a decoder block that an adapter can be on: their names and extents.

use trainyard_protocol::LoraSpec;

use super::shard_axis::ShardAxis;
use crate::config::ModelConfig;

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
    Gate,
    Up,
    Down,
    /// Gate of the MLP beside routed experts.
    SharedGate,
    /// Up projection of that MLP.
    SharedUp,
    /// Down projection of that MLP.
    SharedDown,
}

impl Projection {
    /// All projections in parameter order; no block has all of them.
    pub(super) const ALL: [Self; 14] = [
        Self::Q,
        Self::K,
        Self::V,
        Self::QDown,
        Self::QUp,
        Self::KvDown,
        Self::KvUp,
        Self::O,
        Self::Gate,
        Self::Up,
        Self::Down,
        Self::SharedGate,
        Self::SharedUp,
        Self::SharedDown,
    ];

    /// Projections of a block in parameter order, by linear layer: projections of the same input are fused.
    pub(super) fn layers(c: &ModelConfig, layer: usize) -> Vec<&'static [Self]> {
        let attention: &[&[Self]] = match c.latent.map(|latent| latent.query_rank) {
            None => &[&[Self::Q, Self::K, Self::V]],
            Some(None) => &[&[Self::Q], &[Self::KvDown], &[Self::KvUp]],
            Some(Some(_)) => &[&[Self::QDown], &[Self::QUp], &[Self::KvDown], &[Self::KvUp]],
        };
        let mlp: &[&[Self]] = &[&[Self::O], &[Self::Gate, Self::Up], &[Self::Down]];
        let has_shared = c.blocks[layer].experts.as_ref().is_some_and(|experts| experts.shared.is_some());
        let shared: &[&[Self]] =
            if has_shared { &[&[Self::SharedGate, Self::SharedUp], &[Self::SharedDown]] } else { &[] };
        [attention, mlp, shared].concat()
    }

    /// Projections of a block, in parameter order.
    pub(super) fn of_block(c: &ModelConfig, layer: usize) -> impl Iterator<Item = Self> {
        Self::layers(c, layer).into_iter().flatten().copied()
    }

    /// Module within a block, in the spelling of Hugging Face.
    pub(crate) fn module(self) -> &'static str {
        match self {
            Self::Q => "self_attn.q_proj",
            Self::K => "self_attn.k_proj",
            Self::V => "self_attn.v_proj",
            Self::O => "self_attn.o_proj",
            Self::Gate => "mlp.gate_proj",
            Self::Up => "mlp.up_proj",
            Self::Down => "mlp.down_proj",
            Self::QDown => "self_attn.q_a_proj",
            Self::QUp => "self_attn.q_b_proj",
            Self::KvDown => "self_attn.kv_a_proj_with_mqa",
            Self::KvUp => "self_attn.kv_b_proj",
            Self::SharedGate => "mlp.shared_experts.gate_proj",
            Self::SharedUp => "mlp.shared_experts.up_proj",
            Self::SharedDown => "mlp.shared_experts.down_proj",
        }
    }

    /// Module of a block's experts as adapters name it: `w1` is gate, `w3` up and `w2` down.
    pub(super) fn expert_module(self) -> &'static str {
        match self {
            Self::Gate => "mlp.experts.w1",
            Self::Up => "mlp.experts.w3",
            Self::Down => "mlp.experts.w2",
            _ => self.module(),
        }
    }

    /// (outputs, inputs) in a block; of an expert's projection where it has experts.
    pub(crate) fn extents(self, c: &ModelConfig, layer: usize) -> (usize, usize) {
        let shared = || c.blocks[layer].experts.as_ref().and_then(|experts| experts.shared).unwrap_or(0);
        let queries = c.latent.map_or(c.q_width(), |latent| c.num_heads * latent.query_dim());
        // 0 where attention is not latent.
        let query_rank = c.latent.and_then(|latent| latent.query_rank).unwrap_or(0);
        let (kv_rank, rope, of_head) =
            c.latent.map_or((0, 0, 0), |latent| (latent.kv_rank, latent.rope_dim, latent.nope_dim + latent.value_dim));
        match self {
            Self::Q => (queries, c.hidden_size),
            Self::K | Self::V => (c.kv_width(), c.hidden_size),
            Self::O => (c.hidden_size, c.attended_width()),
            Self::Gate | Self::Up => (c.mlp_width(layer), c.hidden_size),
            Self::Down => (c.hidden_size, c.mlp_width(layer)),
            Self::QDown => (query_rank, c.hidden_size),
            Self::QUp => (queries, query_rank),
            Self::KvDown => (kv_rank + rope, c.hidden_size),
            Self::KvUp => (c.num_heads * of_head, kv_rank),
            Self::SharedGate | Self::SharedUp => (shared(), c.hidden_size),
            Self::SharedDown => (c.hidden_size, shared()),
        }
    }

    /// Whether it belongs to attention, else to the MLP.
    pub(crate) fn is_attention(self) -> bool {
        (self as usize) <= Self::O as usize
    }

    /// Whether each expert has one, where a block has experts.
    pub(super) fn is_routed(self) -> bool {
        matches!(self, Self::Gate | Self::Up | Self::Down)
    }

    /// Whether adapters of this kind are on it.
    pub(crate) fn is_adapted(self, lora: &LoraSpec) -> bool {
        if self.is_attention() { lora.train_attn } else { lora.train_mlp }
    }

    /// Along which dimension ranks share its weight.
    pub(super) fn shard(self) -> ShardAxis {
        match self {
            Self::K | Self::V => ShardAxis::KvHeads,
            Self::O | Self::Down | Self::SharedDown => ShardAxis::Inputs,
            Self::QDown | Self::KvDown => ShardAxis::Replicated,
            Self::Q | Self::QUp | Self::KvUp | Self::Gate | Self::Up | Self::SharedGate | Self::SharedUp => {
                ShardAxis::Outputs
            }
        }
    }
}
