//! The weights of the projections to queries, keys and values: one linear layer, or those of latent attention.

use super::linear::Linear;
use super::mlp_weights::build_linear;
use super::norm_weight::NormWeight;
use super::param_value::ReadParam;
use super::params::{LatentParams, LinearParams, QkvParams};
use super::projection::Projection;
use crate::backend::Backend;
use crate::config::{LoadError, ModelConfig};

/// Projections from a block's input to queries, keys and values.
pub(super) enum QkvWeights<B: Backend> {
    /// q, k and v, fused.
    Heads(Linear<B>),
    Latent(Box<LatentWeights<B>>),
}

/// The projections of latent attention.
pub(super) struct LatentWeights<B: Backend> {
    /// Projection to the queries' latent, and the latent's norm.
    pub(super) q_down: Option<(Linear<B>, NormWeight<B>)>,
    /// Projection to the queries.
    pub(super) q: Linear<B>,
    /// Projection to the latent of keys and values, and to the part of keys that all heads share.
    pub(super) kv_down: Linear<B>,
    /// Norm of the latent of keys and values.
    pub(super) kv_norm: NormWeight<B>,
    /// Projection from that latent to keys and values.
    pub(super) kv_up: Linear<B>,
}

impl<B: Backend> QkvWeights<B> {
    pub(super) fn build(
        backend: &B,
        c: &ModelConfig,
        layer: usize,
        p: &QkvParams,
        read: &mut ReadParam<'_, '_, B>,
    ) -> Result<Self, LoadError> {
        let linear = |parts: &[(Projection, LinearParams)], read: &mut ReadParam<'_, '_, B>| {
            build_linear(backend, c, layer, parts, read)
        };
        let norm = |index: usize, read: &mut ReadParam<'_, '_, B>| {
            read(index).map(|value| NormWeight::new(backend, value.source(), c.norm_offset))
        };
        match p {
            QkvParams::Heads([q, k, v]) => {
                Ok(Self::Heads(linear(&[(Projection::Q, *q), (Projection::K, *k), (Projection::V, *v)], read)?))
            }
            QkvParams::Latent(LatentParams { q_down, q, kv_down, kv_norm, kv_up }) => {
                let query = if q_down.is_some() { Projection::QUp } else { Projection::Q };
                let q_down = match q_down {
                    Some((down, index)) => Some((linear(&[(Projection::QDown, *down)], read)?, norm(*index, read)?)),
                    None => None,
                };
                Ok(Self::Latent(Box::new(LatentWeights {
                    q_down,
                    q: linear(&[(query, *q)], read)?,
                    kv_down: linear(&[(Projection::KvDown, *kv_down)], read)?,
                    kv_norm: norm(*kv_norm, read)?,
                    kv_up: linear(&[(Projection::KvUp, *kv_up)], read)?,
                })))
            }
        }
    }

    pub(super) fn linears(&self) -> Vec<&Linear<B>> {
        match self {
            Self::Heads(qkv) => vec![qkv],
            Self::Latent(w) => {
                let down = w.q_down.iter().map(|(down, _)| down);
                down.chain([&w.q, &w.kv_down, &w.kv_up]).collect()
            }
        }
    }

    pub(super) fn linears_mut(&mut self) -> Vec<&mut Linear<B>> {
        match self {
            Self::Heads(qkv) => vec![qkv],
            Self::Latent(w) => {
                let LatentWeights { q_down, q, kv_down, kv_up, .. } = &mut **w;
                let down = q_down.iter_mut().map(|(down, _)| down);
                down.chain([q, kv_down, kv_up]).collect()
            }
        }
    }

    /// Norms of latents, in the order of [`QkvParams::norms`].
    pub(super) fn norms(&self) -> Vec<&NormWeight<B>> {
        match self {
            Self::Heads(_) => Vec::new(),
            Self::Latent(w) => w.q_down.iter().map(|(_, norm)| norm).chain([&w.kv_norm]).collect(),
        }
    }

    /// Mutable variant of [`QkvWeights::norms`].
    pub(super) fn norms_mut(&mut self) -> Vec<&mut NormWeight<B>> {
        match self {
            Self::Heads(_) => Vec::new(),
            Self::Latent(w) => {
                let LatentWeights { q_down, kv_norm, .. } = &mut **w;
                q_down.iter_mut().map(|(_, norm)| norm).chain([kv_norm]).collect()
            }
        }
    }
}
