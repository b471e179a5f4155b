//! Indexers, which choose the positions that attention reads.

use std::sync::Arc;

use super::block_pass::BlockPass;
use super::indexer_weights::IndexerWeights;
use crate::backend::{Backend, IndexCall, IndexRotation, IndexerOps, LayerNorm, LinearCall, VisionOps};
use crate::config::Indexer;

impl<B: Backend> BlockPass<'_, B> {
    /// Chooses the positions that the block's rows attend to, where it has an indexer, from the block's normalised input and the
    /// normalised latent of its queries. Keys are written even where rows still see all positions: later ones may not.
    pub(super) fn choose(&self, layer: usize, normed: &B::Lhs, latent: &B::Lhs) {
        let (backend, model) = (self.backend, self.model);
        let Some((c, index)) = model.config.indexer.as_ref().zip(model.config.index_layer(layer)) else { return };
        let Some(own) = model.indexers.get(layer).and_then(Option::as_ref) else {
            unreachable!("the model's indexers are not loaded")
        };
        let key = self.rotated(layer, c, &self.key(own, c, normed));
        let mut kv = self.kv.lock();
        let index = self.kv.layer(index);
        kv.write_index(backend, index, self.spans, &key);
        drop(key);
        let call = IndexCall { layer: index, heads: c.heads, count: c.count, spans: self.spans };
        let chosen = call.is_sparse().then(|| {
            let queries = self.rotated(layer, c, &self.project(&own.queries, c.heads * c.dim, latent));
            let weights = self.project(&own.head_weights, c.heads, normed);
            Arc::new(B::Family::choose(backend, call, kv.pool(), &queries, &weights))
        });
        *self.chosen.borrow_mut() = chosen;
    }

    fn project(&self, weight: &B::Matrix, outputs: usize, x: &B::Lhs) -> B::Rows {
        let mut out = self.backend.alloc(self.positions.len(), outputs);
        self.backend.linear(&LinearCall { weight, bias: None, lora: &[] }, x, None, &mut out);
        out
    }

    fn key(&self, own: &IndexerWeights<B>, c: &Indexer, normed: &B::Lhs) -> B::Rows {
        let [weight, bias] = &own.norm;
        let norm = LayerNorm { weight, bias, eps: Indexer::NORM_EPS };
        B::Family::layer_norm(self.backend, norm, &self.project(&own.key, c.dim, normed))
    }

    fn rotated(&self, layer: usize, c: &Indexer, x: &B::Rows) -> B::Rows {
        let Some((rope, _)) = self.model.rope(layer) else { unreachable!("latent attention has no rotary embedding") };
        let rotation = IndexRotation { width: c.dim, interleaved: c.interleaved, rope, positions: self.positions };
        B::Family::rotate_index(self.backend, &rotation, x)
    }
}
