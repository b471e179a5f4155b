//! Configuration of indexers, which choose the positions that attention sees.

use super::ModelConfig;
use crate::backend::IndexKeys;

/// Sparse attention by indexers (DeepSeek-AI 2025, arXiv:2512.02556): each query attends to the `count` earlier
/// positions with the largest scores, or to all positions if at most `count` exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexer {
    /// Number of positions that a query attends to.
    pub count: usize,
    /// Number of heads that score positions; their keys are shared.
    pub heads: usize,
    /// Number of elements of a head. The first ones, as many as attention rotates, are rotated.
    pub dim: usize,
    /// Whether rotated pairs are neighbours; otherwise, element `i` pairs with the one half of the rotated elements
    /// behind it.
    pub interleaved: bool,
    /// Whether each block has an indexer; the others attend to the positions of the last block that has one.
    pub layers: Vec<bool>,
}

/// A tensor of an indexer: its name within the block, and its extents.
pub(crate) type IndexerTensor = (&'static str, Vec<usize>);

impl Indexer {
    /// Common prefix of the names of a block's indexer tensors.
    pub const PREFIX: &'static str = "self_attn.indexer.";
    /// Epsilon of the keys' LayerNorm, which the models' code fixes.
    pub const NORM_EPS: f32 = 1e-6;

    /// Tensors of an indexer, given the widths of the queries' latent and of the residual stream: the projections to queries, to
    /// the key and to weights of heads, then factor and bias of the key's LayerNorm.
    pub(crate) fn tensors(&self, latent: usize, hidden: usize) -> [IndexerTensor; 5] {
        [
            ("wq_b.weight", vec![self.heads * self.dim, latent]),
            ("wk.weight", vec![self.dim, hidden]),
            ("weights_proj.weight", vec![self.heads, hidden]),
            ("k_norm.weight", vec![self.dim]),
            ("k_norm.bias", vec![self.dim]),
        ]
    }
}

impl ModelConfig {
    /// Keys of indexers beside those of attention.
    pub(crate) fn index_keys(&self) -> IndexKeys {
        self.indexer.as_ref().map_or(IndexKeys::NONE, |indexer| IndexKeys {
            layers: indexer.layers.iter().filter(|own| **own).count(),
            width: indexer.dim,
        })
    }

    /// Index of a block's indexer among those of the model.
    pub(crate) fn index_layer(&self, layer: usize) -> Option<usize> {
        let layers = &self.indexer.as_ref()?.layers;
        layers[layer].then(|| layers[..layer].iter().filter(|own| **own).count())
    }

    /// Tensors of indexers with their names in the spelling of the parameter table, block by block.
    pub(crate) fn indexer_tensors(&self) -> impl Iterator<Item = (String, Vec<usize>)> {
        let latent = self.latent.and_then(|latent| latent.query_rank).unwrap_or(0);
        let own = self.indexer.iter().flat_map(|indexer| indexer.layers.iter().map(move |is_own| (indexer, *is_own)));
        own.enumerate().filter(|(_, (_, is_own))| *is_own).flat_map(move |(layer, (indexer, _))| {
            let name = move |part: &str| format!("model.layers.{layer}.{}{part}", Indexer::PREFIX);
            indexer.tensors(latent, self.hidden_size).map(|(part, shape)| (name(part), shape))
        })
    }

    /// The model without indexers: its context ends where they would begin to choose.
    #[must_use]
    pub(crate) fn without_indexer(self) -> Self {
        let Some(indexer) = &self.indexer else { return self };
        let max_position_embeddings = self.max_position_embeddings.min(indexer.count);
        Self { max_position_embeddings, indexer: None, ..self }
    }
}
