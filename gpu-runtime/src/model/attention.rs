//! Attention in a block: from the block's input to the residual stream behind it, forward and backward.

use std::sync::Arc;

use super::backward_pass::{Backward, full};
use super::block_pass::BlockPass;
use super::latent::{Latent, LatentActivations};
use super::latent_weights::QkvWeights;
use super::mixer_weights::AttentionWeights;
use super::params::{AttentionParams, QkvParams};
use crate::backend::{
    AttentionCall, Backend, Chosen, FamilyOps, GateOps, Held, LatentHeads, LatentOps, LatentRotation, Rotation, Rows,
    Tensors,
};
use crate::config::HeadNorms;

/// Activations of a block's attention.
pub(super) struct AttentionActivations<B: Backend> {
    /// Residual stream before the block, `[rows, hidden]`.
    x: B::Rows,
    /// Activations saved by the QKV projection.
    projected: QkvActivations<B>,
    /// q, k, v, rotated.
    qkv: B::Rows,
    /// Attention's output `[rows, q_width]` and log-sum-exp of the scores.
    heads: [B::Rows; 2],
    /// Gates of the output, `[rows, q_width]`, where there are some.
    gates: Option<B::Rows>,
    /// Positions that the rows attend to, unless they see all.
    chosen: Option<Arc<Chosen>>,
    /// Output of the o projection before its norm, where there is one.
    out: Option<B::Rows>,
    /// `scale · (x Aᵀ)` of the adapters on o.
    low_rank: B::LowRank,
}

/// Activations of the QKV projections.
enum QkvActivations<B: Backend> {
    Heads {
        /// q, k, v before head norms, where there are any.
        raw: Option<B::Rows>,
        /// `scale · (x Aᵀ)` of the adapters.
        low_rank: B::LowRank,
    },
    Latent(LatentActivations<B>),
}

/// Rotated queries, keys and values, their gates, and what was saved.
type Queries<B> = (<B as Tensors>::Rows, Option<<B as Tensors>::Rows>, QkvActivations<B>);

impl<B: Backend> BlockPass<'_, B> {
    /// The arguments of a block's attention.
    fn attention_call<'c>(&'c self, layer: usize, chosen: Option<&'c Chosen>) -> AttentionCall<'c> {
        let window = self.model.config.blocks[layer].attention().and_then(|attention| attention.window);
        AttentionCall {
            shape: self.kv.shape,
            layer: self.kv.layer(self.model.mixer_index(layer)),
            window,
            chosen,
            spans: self.spans,
        }
    }

    /// The arguments of a block's head norms and rotation; `None` in attention without positions.
    fn rotation<'r>(&'r self, layer: usize, w: &'r AttentionWeights<B>) -> Option<Rotation<'r, B>> {
        let (rope, query_rope) = self.model.rope(layer)?;
        let eps = self.model.config.rms_norm_eps;
        let norms = w.head_norms.as_ref().map(|norms| norms.each_ref().map(|norm| norm.with(eps)));
        let attention = self.model.config.blocks[layer].attention();
        let whole_norms = attention.is_some_and(|attention| attention.head_norms == HeadNorms::Projections);
        let shape = &self.model.shape;
        let Some((own, index)) = self.rotation.zip(attention.and_then(|attention| attention.rope)) else {
            return Some(Rotation { shape, norms, whole_norms, rope, query_rope, positions: self.positions });
        };
        Some(Rotation { shape, norms, whole_norms, rope: &own.ropes[index], query_rope: None, positions: &own.rows })
    }

    /// The arguments of the rotation of a block whose attention is latent.
    pub(super) fn latent_rotation(&self, layer: usize, heads: LatentHeads) -> LatentRotation<'_, B> {
        let Some((rope, _)) = self.model.rope(layer) else { unreachable!("latent attention has no rotary embedding") };
        LatentRotation { heads, rope, positions: self.positions }
    }

    /// The residual stream `x` after attention; with `save` also its activations. `is_first`: no earlier pass was over the
    /// same batch. Keys and values are written unless such a pass did, and no other block has written over them.
    pub(super) fn attention(
        &self,
        layer: usize,
        w: &AttentionWeights<B>,
        x: B::Rows,
        is_first: bool,
        save: bool,
    ) -> (B::Rows, Option<AttentionActivations<B>>) {
        let (backend, norms, c) = (self.backend, &self.block.norms, &self.model.config);
        let normed = self.normed(norms.pre_attention.as_ref(), &x);
        let (qkv, gates, projected) = self.queries(layer, w, &normed, is_first, save);
        drop(normed);
        let chosen = self.chosen.borrow().clone();
        let (call, mut kv) = (self.attention_call(layer, chosen.as_deref()), self.kv.lock());
        if is_first || self.kv.is_shared {
            kv.write(backend, call.layer, self.spans, &qkv);
        }
        let mut heads = backend.attention(call, kv.pool(), &qkv);
        drop(kv);
        if let Some(sinks) = &w.sinks {
            B::Family::add_sinks(backend, sinks, &mut heads);
        }
        let values = c.latent_heads().map(|latent| B::Family::head_values(backend, latent, &heads[0]));
        let attended = values.as_ref().unwrap_or(&heads[0]);
        let packed = match &gates {
            None => backend.lhs(attended),
            Some(gates) => backend.lhs(&B::Family::gate_heads(backend, attended, gates)),
        };
        drop(values);
        let (sum, out, low_rank) = self.add_residual(layer, &w.o, norms.post_attention.as_ref(), &packed, &x);
        let saved = save.then(|| AttentionActivations { x, projected, qkv, heads, gates, chosen, out, low_rank });
        (sum, saved)
    }

    /// Rotated queries, keys and values of a block's normalised input, and the gates of their heads. `is_first`: no earlier pass was
    /// over the same batch.
    fn queries(
        &self,
        layer: usize,
        w: &AttentionWeights<B>,
        normed: &B::Lhs,
        is_first: bool,
        save: bool,
    ) -> Queries<B> {
        match (&w.qkv, Latent::of(&self.model.config)) {
            (QkvWeights::Latent(w), Some(latent)) => {
                let (qkv, saved) = latent.forward(self, layer, w, normed, is_first);
                (qkv, None, QkvActivations::Latent(saved))
            }
            (QkvWeights::Heads(linear), _) => {
                let (projected, low_rank) = self.linear(layer, linear, normed, None);
                let (mut qkv, gates) = if self.is_gated(layer) {
                    let [qkv, gates] = B::Family::split_gates(self.backend, &self.model.shape, &projected);
                    (qkv, Some(gates))
                } else {
                    (projected, None)
                };
                let rotation = self.rotation(layer, w);
                let raw = rotation.and_then(|rotation| self.backend.rotate(&rotation, &mut qkv, save));
                (qkv, gates, QkvActivations::Heads { raw, low_rank })
            }
            (QkvWeights::Latent(_), None) => unreachable!("weights do not match the model's kind of attention"),
        }
    }

    fn is_gated(&self, layer: usize) -> bool {
        self.model.config.blocks[layer].attention().is_some_and(|attention| attention.gated)
    }
}

impl<'a, B: Backend> Backward<'a, '_, '_, B> {
    /// Adds the gradient with respect to the residual stream before attention to `dx`, that behind it.
    pub(super) fn attention(
        &mut self,
        layer: usize,
        w: &'a AttentionWeights<B>,
        p: &AttentionParams,
        saved: AttentionActivations<B>,
        dx: &mut B::Rows,
    ) {
        let (backend, model, block) = (self.batch.backend, self.batch.model, self.batch.block);
        let (own, c) = (&model.table.blocks[layer], &model.config);
        let AttentionActivations { x, projected, qkv, heads: [heads, lse], gates, chosen, out, low_rank: z_o } = saved;
        let d_out = self.d_output(block.norms.post_attention.as_ref().zip(own.post_attention), out.as_ref(), dx);
        let dy = backend.output_gradient(Held::Borrowed(d_out.as_ref().unwrap_or(dx)), self.sequences);
        // Where attention is latent, o reads its output without padding.
        let latent = c.latent_heads();
        let values = latent.map(|latent| B::Family::head_values(backend, latent, &heads));
        let attended = values.as_ref().unwrap_or(&heads);
        let gated = gates.as_ref().map(|gates| B::Family::gate_heads(backend, attended, gates));
        let o_input = gated.as_ref().unwrap_or(attended);
        let mut d_heads = backend.alloc(o_input.rows(), o_input.width());
        let (lora, dz) = self.input(layer, &w.o, &dy, &mut d_heads);
        let input = backend.weight_input(Held::Borrowed(o_input), self.sequences);
        self.weights(&w.o, &lora, [&z_o, &dz], &input, &dy);
        drop((input, dy));
        drop((d_out, gated));
        let d_gates = gates.map(|gates| {
            let [d_attended, d_gates] = B::Family::gate_heads_backward(backend, attended, &gates, &d_heads);
            d_heads = d_attended;
            d_gates
        });
        drop(values);
        if let Some(latent) = latent {
            d_heads = B::Family::pad_values(backend, latent, &d_heads);
        }
        if let (Some(sinks), Some(index), Some(grads)) = (&w.sinks, p.sinks, full(&mut self.sinks)) {
            B::Family::sinks_backward(backend, sinks, [&heads, &lse], &d_heads, grads, index);
        }
        let call = self.batch.attention_call(layer, chosen.as_deref());
        let mut kv = self.batch.kv.lock();
        if self.batch.kv.is_shared {
            kv.write(backend, call.layer, self.batch.spans, &qkv);
        }
        let d_rotated = backend.attention_backward(call, kv.pool(), &qkv, [&heads, &lse], &d_heads);
        drop((kv, d_heads, qkv, heads, lse));
        let d_normed = match (projected, &w.qkv, &p.qkv) {
            (QkvActivations::Heads { raw, low_rank: z }, QkvWeights::Heads(qkv), _) => {
                let rotation = self.batch.rotation(layer, w);
                let dw = full(&mut self.sinks).zip(p.head_norms);
                let d_qkv = match (rotation, d_gates) {
                    (None, None) => backend.output_gradient(Held::Owned(d_rotated), self.sequences),
                    (Some(rotation), None) => {
                        backend.rotate_backward(&rotation, raw.as_ref(), d_rotated, dw, self.sequences)
                    }
                    (rotation, Some(d_gates)) => {
                        let rotate = |rotation: Rotation<'_, B>, d| {
                            B::Family::rotate_backward_rows(backend, &rotation, raw.as_ref(), d, dw)
                        };
                        let d_qkv = match rotation {
                            Some(rotation) => rotate(rotation, d_rotated),
                            None => d_rotated,
                        };
                        let joined = B::Family::join_gates(backend, &model.shape, &d_qkv, &d_gates);
                        backend.output_gradient(Held::Owned(joined), self.sequences)
                    }
                };
                let mut d_normed = backend.alloc(dx.rows(), dx.width());
                let (lora, dz) = self.input(layer, qkv, &d_qkv, &mut d_normed);
                d_normed.all_reduce(&model.tensor_ranks);
                let pre = block.norms.pre_attention.as_ref();
                self.weights_of_normed(qkv, &lora, [&z, &dz], pre, &x, &d_qkv);
                d_normed
            }
            (QkvActivations::Latent(saved), QkvWeights::Latent(own), QkvParams::Latent(params)) => {
                let Some(latent) = Latent::of(c) else {
                    unreachable!("the block does not match the model's kind of attention")
                };
                latent.backward(self, layer, own, params, saved, &x, d_rotated)
            }
            _ => unreachable!("activations do not match the kind of the block"),
        };
        self.norm_or_add(block.norms.pre_attention.as_ref().zip(own.pre_attention), &x, &d_normed, dx);
    }
}
