//! Indexers, which choose the positions that attention sees. They are part of the base model: no run trains them, and no adapter is on
//! them, so that all runs have the same.

use std::sync::Arc;

use super::block_pass::BlockPass;
use super::weights::Model;
use crate::backend::{
    Backend, IndexCall, IndexRotation, IndexerOps, KV_BLOCK, LayerNorm, LinearCall, MatrixRole, Source, VisionOps,
};
use crate::config::{Indexer, LoadError, ModelConfig, TensorSource};

/// The weights of a block's indexer.
pub(super) struct IndexerWeights<B: Backend> {
    /// Projection from the queries' latent to queries.
    queries: B::Matrix,
    /// Projections from the block's normalised input to the key and to the weights of heads.
    key: B::Matrix,
    head_weights: B::Matrix,
    /// Factor and bias of the key's LayerNorm.
    norm: [B::Vector; 2],
}

/// The indexers of a model by block, read from its files. Elements of each tensor are passed to `seen`.
fn load<B: Backend>(
    backend: &B,
    c: &ModelConfig,
    tensors: &dyn TensorSource,
    seen: &mut dyn FnMut(&str, &[f32]),
) -> Result<Vec<Option<IndexerWeights<B>>>, LoadError> {
    let mut read = c.indexer_tensors().map(|(name, shape)| {
        let values = tensors.read(&name)?;
        seen(&name, &values);
        Ok::<_, LoadError>((values, shape.last().copied().unwrap_or(0)))
    });
    let mut next = || read.next().unwrap_or_else(|| unreachable!("an indexer has five tensors"));
    let matrix = |(values, inputs): (Vec<f32>, usize)| backend.pack(&[Source::Host(&values)], inputs, MatrixRole::Base);
    let vector = |(values, _): (Vec<f32>, usize)| backend.vector(&[Source::Host(&values)], 0.0);
    let layers = c.indexer.iter().flat_map(|indexer| &indexer.layers);
    let mut own = |is_own: &bool| {
        if !is_own {
            return Ok(None);
        }
        let (queries, key, head_weights) = (matrix(next()?), matrix(next()?), matrix(next()?));
        Ok(Some(IndexerWeights { queries, key, head_weights, norm: [vector(next()?), vector(next()?)] }))
    };
    layers.map(&mut own).collect()
}

impl<B: Backend> Model<B> {
    /// The model with its indexers, read from its files. Elements of each tensor are passed to `seen`.
    ///
    /// # Errors
    /// If a tensor cannot be read.
    pub(crate) fn with_indexers(
        mut self,
        backend: &B,
        tensors: &dyn TensorSource,
        seen: &mut dyn FnMut(&str, &[f32]),
    ) -> Result<Self, LoadError> {
        self.indexers = load(backend, &self.whole.config, tensors, seen)?;
        Ok(self)
    }

    /// Bytes of the matrices of a model's indexers that are yet to be packed.
    pub(crate) fn planned_indexer_bytes(backend: &B, c: &ModelConfig) -> usize {
        let bytes = |shape: Vec<usize>| match shape[..] {
            [outputs, inputs] => backend.planned_matrix_bytes(outputs, inputs, MatrixRole::Base, false),
            _ => 0,
        };
        c.indexer_tensors().map(|(_, shape)| bytes(shape)).sum()
    }
}

impl<B: Backend> BlockPass<'_, B> {
    /// Chooses the positions that the block's rows attend to, where it has an indexer, from the block's normalised input and the
    /// normalised latent of its queries. Keys are written even where rows still see all positions: later ones may not.
    pub(super) fn choose(&self, layer: usize, normed: &B::Lhs, latent: &B::Lhs) {
        let (backend, model) = (self.backend, self.model);
        let Some((c, index)) = model.config.indexer.as_ref().zip(model.config.index_layer(layer)) else { return };
        let Some(own) = model.indexers.get(layer).and_then(Option::as_ref) else {
            unreachable!("the model is loaded with its indexers")
        };
        let key = self.rotated(layer, c, &self.key(own, c, normed));
        let mut kv = model.kv();
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
        let Some((rope, _)) = self.model.rope(layer) else { unreachable!("latent attention has positions") };
        let rotation = IndexRotation { width: c.dim, interleaved: c.interleaved, rope, positions: self.positions };
        B::Family::rotate_index(self.backend, &rotation, x)
    }
}

/// What a pass keeps of the positions that indexers choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChosenMemory {
    /// Indexers of the model.
    layers: usize,
    /// Positions that a row attends to.
    count: usize,
    /// Longest sequence.
    context: usize,
}

impl ChosenMemory {
    pub(super) fn of(c: &ModelConfig) -> Option<Self> {
        let (context, layers) = (c.max_position_embeddings, c.index_keys().layers);
        c.indexer.as_ref().map(|indexer| Self { layers, count: indexer.count, context })
    }

    /// Bytes of the choices of a pass over `rows` rows, which are in one sequence at worst. A row has a word for each block of
    /// positions up to its own.
    pub(super) fn bytes(&self, rows: usize) -> usize {
        if rows <= self.count {
            return 0;
        }
        let most = rows.min(self.context).div_ceil(KV_BLOCK);
        self.layers * (rows * (most + 1).div_ceil(2) * size_of::<u32>() + (rows + 1) * size_of::<usize>())
    }
}
