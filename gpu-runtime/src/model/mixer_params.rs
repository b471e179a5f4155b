//! The parameters of mixers in a model's table.

use super::params::{LinearParams, TableBuilder};
use super::projection::Projection;
use super::shard_axis::ShardAxis;
use crate::backend::RecurrentParams;
use crate::config::{
    Attention, ConvolutionShape, HeadNorms, LatentAttention, ModelConfig, RecurrentRule, RecurrentShape,
};

/// Indices of a mixer's parameters.
#[derive(Clone, Debug)]
pub(crate) enum MixerParams {
    Attention(AttentionParams),
    Recurrent(RecurrenceParams),
    Convolution(ConvolutionParams),
}

/// Indices of the parameters of attention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttentionParams {
    /// Parameters of the projections to queries, keys and values.
    pub qkv: QkvParams,
    pub o: LinearParams,
    /// Index of the parameter with the scores of the heads' sinks.
    pub sinks: Option<usize>,
    /// Indices of the RMSNorm weights of q and of k.
    pub head_norms: Option<[usize; 2]>,
}

/// Indices of the parameters of a recurrence.
#[derive(Clone, Debug)]
pub(crate) struct RecurrenceParams {
    /// Projections to the inputs, in parameter order.
    pub inputs: Vec<LinearParams>,
    /// Parameters that are not matrices.
    pub vectors: RecurrentParams,
    pub out: LinearParams,
}

/// Indices of the parameters of a short convolution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConvolutionParams {
    /// Projection to gates and values.
    pub inputs: LinearParams,
    /// Weights of the convolution, which are not a matrix.
    pub weight: usize,
    pub out: LinearParams,
}

/// Indices of the parameters that queries, keys and values are made with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum QkvParams {
    /// q, k and v.
    Heads([LinearParams; 3]),
    Latent(LatentParams),
}

impl QkvParams {
    /// Indices of the latents' RMSNorms.
    pub(super) fn norms(&self) -> Vec<usize> {
        match self {
            Self::Heads(_) => Vec::new(),
            Self::Latent(p) => p.q_down.iter().map(|(_, norm)| *norm).chain([p.kv_norm]).collect(),
        }
    }
}

/// Indices of the parameters of latent attention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LatentParams {
    /// Projection to the queries' latent, and the index of the latent's RMSNorm.
    pub q_down: Option<(LinearParams, usize)>,
    /// Projection to the queries.
    pub q: LinearParams,
    /// Projection to the latent of keys and values, and to the part of keys that all heads share.
    pub kv_down: LinearParams,
    /// Index of the RMSNorm of that latent.
    pub kv_norm: usize,
    /// Projection from that latent to keys and values.
    pub kv_up: LinearParams,
}

impl TableBuilder {
    pub(super) fn norm(&mut self, layer: usize, name: &str, width: usize, shard: ShardAxis) -> usize {
        self.add(format!("model.layers.{layer}.{name}.weight"), &[width], shard)
    }

    pub(super) fn attention(&mut self, c: &ModelConfig, layer: usize, attention: &Attention) -> AttentionParams {
        let block = &c.blocks[layer];
        let qkv = match &c.latent {
            Some(latent) => QkvParams::Latent(self.latent(c, layer, latent)),
            None => {
                let parts = [Projection::Q, Projection::K, Projection::V];
                QkvParams::Heads(self.projections(c, layer, parts, block.biases.qkv))
            }
        };
        let [o] = self.projections(c, layer, [Projection::O], block.biases.o);
        let sinks = attention
            .sinks
            .then(|| self.add(format!("model.layers.{layer}.self_attn.sinks"), &[c.num_heads], ShardAxis::Outputs));
        let widths = match attention.head_norms {
            HeadNorms::None => None,
            HeadNorms::Heads => Some([c.head_dim; 2]),
            HeadNorms::Projections => Some([c.q_width(), c.kv_width()]),
        };
        let head_norms = widths.map(|[q, k]| {
            let mut norm = |name: &str, width: usize| {
                let index = self.norm(layer, name, width, ShardAxis::Replicated);
                // A rank normalises its own heads.
                self.specs[index].is_partial = true;
                index
            };
            [norm("self_attn.q_norm", q), norm("self_attn.k_norm", k)]
        });
        AttentionParams { qkv, o, sinks, head_norms }
    }

    pub(super) fn recurrence(&mut self, c: &ModelConfig, layer: usize, shape: &RecurrentShape) -> RecurrenceParams {
        let inputs = Projection::recurrent_inputs(&c.blocks[layer], shape);
        let inputs = inputs.iter().flat_map(|p| self.projections(c, layer, [*p], false)).collect();
        let is_mamba = !shape.has_beta();
        let (module, parts) = if is_mamba { ("mixer", ["c", "b", "x"]) } else { ("linear_attn", ["q", "k", "v"]) };
        let name = |part: &str| format!("model.layers.{layer}.{module}.{part}");
        let widths = [shape.key_width(), shape.key_width(), shape.value_width()];
        let mut of_channels = |kind: &str, extents: &[usize]| {
            std::array::from_fn(|i| {
                let shape = [&[widths[i]], extents].concat();
                self.add(name(&format!("conv_{}.{kind}", parts[i])), &shape, ShardAxis::Outputs)
            })
        };
        let conv = of_channels("weight", &[1, shape.kernel]);
        let conv_bias = is_mamba.then(|| of_channels("bias", &[]));
        let mut of_heads = |part: &str| self.add(name(part), &[shape.value_heads], ShardAxis::Outputs);
        let (a_log, dt_bias) = (of_heads("A_log"), of_heads("dt_bias"));
        let skip = is_mamba.then(|| of_heads("D"));
        let norm = match shape.rule {
            RecurrentRule::Mamba2 { .. } => self.norm(layer, "mixer.norm", shape.value_width(), ShardAxis::Outputs),
            RecurrentRule::DeltaNet => {
                let index = self.norm(layer, "linear_attn.norm", shape.value_dim, ShardAxis::Replicated);
                self.specs[index].is_partial = true;
                index
            }
        };
        let [out] = self.projections(c, layer, [Projection::MixOut], false);
        RecurrenceParams { inputs, vectors: RecurrentParams { conv, conv_bias, a_log, dt_bias, skip, norm }, out }
    }

    pub(super) fn convolution(&mut self, c: &ModelConfig, layer: usize, shape: &ConvolutionShape) -> ConvolutionParams {
        let [inputs] = self.projections(c, layer, [Projection::ConvolutionIn], false);
        let name = format!("model.layers.{layer}.conv.conv.weight");
        let weight = self.add(name, &[shape.channels, 1, shape.kernel], ShardAxis::Outputs);
        let [out] = self.projections(c, layer, [Projection::ConvolutionOut], false);
        ConvolutionParams { inputs, weight, out }
    }

    /// Projections in the order of the computation, each latent's norm after the one to it.
    fn latent(&mut self, c: &ModelConfig, layer: usize, latent: &LatentAttention) -> LatentParams {
        let biased = c.blocks[layer].biases.qkv;
        let norm = |this: &mut Self, name: &str, width: usize| {
            this.add(format!("model.layers.{layer}.self_attn.{name}.weight"), &[width], ShardAxis::Replicated)
        };
        let q_down = latent.query_rank.map(|rank| {
            let [down] = self.projections(c, layer, [Projection::QDown], biased);
            (down, norm(self, "q_a_layernorm", rank))
        });
        let query = if q_down.is_some() { Projection::QUp } else { Projection::Q };
        let [q] = self.projections(c, layer, [query], false);
        let [kv_down] = self.projections(c, layer, [Projection::KvDown], biased);
        let kv_norm = norm(self, "kv_a_layernorm", latent.kv_rank);
        let [kv_up] = self.projections(c, layer, [Projection::KvUp], false);
        LatentParams { q_down, q, kv_down, kv_norm, kv_up }
    }
}
