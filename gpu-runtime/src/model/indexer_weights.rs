//! The weights of indexers. They are part of the base model: no run trains them, and no adapter is on them, so that all runs have the
//! same.

use crate::backend::{Backend, KV_BLOCK, MatrixRole, Source};
use crate::config::{LoadError, ModelConfig, TensorSource};

/// The weights of a block's indexer.
pub(super) struct IndexerWeights<B: Backend> {
    /// Projection from the queries' latent to queries.
    pub(super) queries: B::Matrix,
    /// Projections from the block's normalised input to the key and to the weights of heads.
    pub(super) key: B::Matrix,
    pub(super) head_weights: B::Matrix,
    /// Factor and bias of the key's LayerNorm.
    pub(super) norm: [B::Vector; 2],
}

/// The indexers of a model by block, read from its files. Elements of each tensor are passed to `seen`.
pub(super) fn load<B: Backend>(
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
    let mut next = || read.next().unwrap_or_else(|| unreachable!("an indexer does not have five tensors"));
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

/// Bytes of the matrices of a model's indexers that are yet to be packed.
pub(super) fn planned_bytes<B: Backend>(backend: &B, c: &ModelConfig) -> usize {
    let bytes = |shape: Vec<usize>| match shape[..] {
        [outputs, inputs] => backend.planned_matrix_bytes(outputs, inputs, MatrixRole::Base, false),
        _ => 0,
    };
    c.indexer_tensors().map(|(_, shape)| bytes(shape)).sum()
}

/// What a pass keeps of the positions that indexers choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChosenMemory {
    /// Indexers of the model.
    layers: usize,
    /// Positions that a row attends to.
    count: usize,
    /// Positions of the longest sequence.
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
