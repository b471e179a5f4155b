//! Multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434) around [`Backend::attention`]: computes queries,
//! keys and values, forward and backward.
//!
//! Keys and values are expanded from their latent before they are cached, head by head, and padded to one width, so that
//! attention is that of other families. Prefill, decoding and training then have one arithmetic, and the sampler's bits are the
//! trainer's. A cache of latents would be smaller by the heads, and would expand all of a sequence in every pass.
//!
//! Where ranks share the model, each projects its own heads from latents that all ranks compute. A latent's gradient is a sum
//! over all heads, so ranks add up those of the latents; from there on all compute the same.

use super::backward_pass::{Backward, full};
use super::block_pass::BlockPass;
use super::latent_weights::LatentWeights;
use super::norm_weight::NormWeight;
use super::params::LatentParams;
use crate::backend::{Backend, Held, LatentHeads, LatentOps, Norm, Rows};
use crate::config::{LatentAttention, ModelConfig};

/// Activations that the backward pass of latent attention needs.
pub(super) struct LatentActivations<B: Backend> {
    /// The queries' latent, and `scale · (x Aᵀ)` of the adapters on the projection to it.
    q_down: Option<(B::Rows, B::LowRank)>,
    /// The latent of keys and values, and the part of keys that all heads have in common.
    kv_down: B::Rows,
    /// `scale · (x Aᵀ)` of the adapters on q, kv_down and kv_up.
    low_rank: [B::LowRank; 3],
}

/// The extents of a model's latent attention.
pub(super) struct Latent {
    config: LatentAttention,
    heads: LatentHeads,
}

impl Latent {
    /// The extents of a model's latent attention; `None` for other attention.
    pub(super) fn of(c: &ModelConfig) -> Option<Self> {
        let (config, heads) = c.latent.zip(c.latent_heads())?;
        Some(Self { config, heads })
    }

    /// The RMSNorm of a latent, with the epsilon of latents.
    fn norm<'n, B: Backend>(&self, norm: &'n NormWeight<B>) -> Norm<'n, B> {
        norm.with(self.config.norm_eps)
    }

    /// The latent of keys and values.
    fn keys_and_values<B: Backend>(&self, backend: &B, kv_down: &B::Rows) -> B::Rows {
        B::Family::columns(backend, kv_down, 0..self.config.kv_rank)
    }

    /// Queries, keys and values of a block's normalised input, rotated, `[rows, qkv_width]`. The block's indexer, if it has one,
    /// `chooses` unless an earlier pass over the same batch did.
    pub(super) fn forward<B: Backend>(
        &self,
        batch: &BlockPass<'_, B>,
        layer: usize,
        w: &LatentWeights<B>,
        normed: &B::Lhs,
        chooses: bool,
    ) -> (B::Rows, LatentActivations<B>) {
        let backend = batch.backend;
        let (q, z_q, q_down) = match &w.q_down {
            None => {
                let (q, z) = batch.linear(layer, &w.q, normed, None);
                (q, z, None)
            }
            Some((down, norm)) => {
                let (latent, z_down) = batch.linear(layer, down, normed, None);
                let normed_latent = backend.norm_lhs(self.norm(norm), &latent);
                if chooses {
                    batch.choose(layer, normed, &normed_latent);
                }
                let (q, z) = batch.linear(layer, &w.q, &normed_latent, None);
                (q, z, Some((latent, z_down)))
            }
        };
        let (kv_down, z_kv_down) = batch.linear(layer, &w.kv_down, normed, None);
        let latent = backend.norm_lhs(self.norm(&w.kv_norm), &self.keys_and_values(backend, &kv_down));
        let (kv, z_kv_up) = batch.linear(layer, &w.kv_up, &latent, None);
        drop(latent);
        let rotation = batch.latent_rotation(layer, self.heads);
        let qkv = B::Family::join_heads(backend, &rotation, &q, &kv, &kv_down);
        (qkv, LatentActivations { q_down, kv_down, low_rank: [z_q, z_kv_down, z_kv_up] })
    }

    /// The gradient with respect to the block's normalised input, given that with respect to queries, keys and values and the
    /// residual stream `x` before the block.
    pub(super) fn backward<'a, B: Backend>(
        &self,
        pass: &mut Backward<'a, '_, '_, B>,
        layer: usize,
        w: &'a LatentWeights<B>,
        p: &LatentParams,
        saved: LatentActivations<B>,
        x: &B::Rows,
        d_qkv: B::Rows,
    ) -> B::Rows {
        let LatentActivations { q_down, kv_down, low_rank: [z_q, z_kv_down, z_kv_up] } = saved;
        let (backend, ranks, hidden) = (pass.batch.backend, &pass.batch.model.tensor_ranks, x.width());
        let pre = pass.batch.block.norms.pre_attention.as_ref();
        let rotation = pass.batch.latent_rotation(layer, self.heads);
        let [d_q, d_kv, mut d_common] = B::Family::split_heads(backend, &rotation, &d_qkv);
        drop(d_qkv);
        d_common.all_reduce(ranks);

        // Keys and values.
        let latent = self.keys_and_values(backend, &kv_down);
        drop(kv_down);
        let dy = backend.output_gradient(Held::Owned(d_kv), pass.sequences);
        let mut d_normed = backend.alloc(latent.rows(), latent.width());
        let (lora, dz) = pass.input(layer, &w.kv_up, &dy, &mut d_normed);
        d_normed.all_reduce(ranks);
        let input = backend.norm_input(self.norm(&w.kv_norm), &latent, pass.sequences);
        pass.weights(&w.kv_up, &lora, [&z_kv_up, &dz], &input, &dy);
        drop((input, dy));
        let d_latent = self.norm_backward(pass, &w.kv_norm, p.kv_norm, &latent, &d_normed);
        drop((latent, d_normed));
        let d_down = B::Family::join_columns(backend, &d_latent, &d_common);
        drop((d_latent, d_common));
        let dy = backend.output_gradient(Held::Owned(d_down), pass.sequences);
        let mut d_input = backend.alloc(x.rows(), hidden);
        let (lora, dz) = pass.input(layer, &w.kv_down, &dy, &mut d_input);
        pass.weights_of_normed(&w.kv_down, &lora, [&z_kv_down, &dz], pre, x, &dy);
        drop(dy);

        // Queries.
        let dy = backend.output_gradient(Held::Owned(d_q), pass.sequences);
        let mut d_through_q = match (&w.q_down, q_down, p.q_down) {
            (Some((down, norm)), Some((latent, z_down)), Some((_, param))) => {
                let mut d_normed = backend.alloc(latent.rows(), latent.width());
                let (lora, dz) = pass.input(layer, &w.q, &dy, &mut d_normed);
                d_normed.all_reduce(ranks);
                let input = backend.norm_input(self.norm(norm), &latent, pass.sequences);
                pass.weights(&w.q, &lora, [&z_q, &dz], &input, &dy);
                drop((input, dy));
                let d_latent = self.norm_backward(pass, norm, param, &latent, &d_normed);
                drop((latent, d_normed));
                let dy = backend.output_gradient(Held::Owned(d_latent), pass.sequences);
                let mut d_through_q = backend.alloc(x.rows(), hidden);
                let (lora, dz) = pass.input(layer, down, &dy, &mut d_through_q);
                pass.weights_of_normed(down, &lora, [&z_down, &dz], pre, x, &dy);
                d_through_q
            }
            _ => {
                let mut d_through_q = backend.alloc(x.rows(), hidden);
                let (lora, dz) = pass.input(layer, &w.q, &dy, &mut d_through_q);
                d_through_q.all_reduce(ranks);
                pass.weights_of_normed(&w.q, &lora, [&z_q, &dz], pre, x, &dy);
                d_through_q
            }
        };
        B::Family::add_rows(backend, &d_input, &mut d_through_q);
        d_through_q
    }

    /// The gradient with respect to a latent, given that with respect to the normalised one; that of the norm's weight goes to
    /// the sink.
    fn norm_backward<B: Backend>(
        &self,
        pass: &mut Backward<'_, '_, '_, B>,
        norm: &NormWeight<B>,
        param: usize,
        latent: &B::Rows,
        d_normed: &B::Rows,
    ) -> B::Rows {
        let backend = pass.batch.backend;
        let mut d_latent = backend.zeros(latent.rows(), latent.width());
        let dw = full(&mut pass.sinks).map(|params| (params, param));
        backend.norm_backward(self.norm(norm), latent, d_normed, &mut d_latent, dw);
        d_latent
    }
}
