//! A model's weights in the form that its backend reads.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use super::block_weights::BlockWeights;
use super::indexer_weights::{self, IndexerWeights};
use super::norm_weight::NormWeight;
use super::param_value::{ParamValue, ReadParam};
use super::params::ParamTable;
use super::pass_kv::PassKv;
use super::shard::Shard;
use crate::backend::kv::KvCache;
use crate::backend::rope::{query_rope_table, rope_table};
use crate::backend::{AttentionShape, Backend, ConvolutionOps, GateOps, MatrixRole, RecurrentOps, ScaleOps, Source};
use crate::collective::Ranks;
use crate::config::{Attention, Block, HeadNorms, LoadError, Mixer, ModelConfig, TensorSource};
use crate::parallel::{LayoutError, Parallel};

/// Data that all runs of a base model share: configuration, parameter table, rotary tables and the KV pool. If ranks
/// share the model, these are of this rank's part.
pub(crate) struct Model<B: Backend> {
    pub config: ModelConfig,
    /// Ranks that compute the model together.
    pub ranks: Ranks,
    /// Ranks among these that share each layer's heads and the width of its MLP.
    pub(crate) tensor_ranks: Ranks,
    pub shard: Shard,
    pub table: ParamTable,
    /// Configuration and table of the ranks' joint model, whose extents files have.
    pub whole: WholeModel,
    pub shape: AttentionShape,
    /// Bytes of a KV block.
    pub kv_block_bytes: usize,
    /// Bytes of a KV block of passes whose sequences no pass continues.
    pub layer_kv_block_bytes: usize,
    /// Rotary tables by [`ModelConfig::ropes`].
    ropes: Vec<B::Rope>,
    /// Indexers of the blocks that have one; empty until they are read.
    pub(super) indexers: Vec<Option<IndexerWeights<B>>>,
    /// Those of queries, where their rotation is scaled by position.
    query_ropes: Vec<B::Rope>,
    /// Index of each block's mixer among those of its kind.
    mixer_indices: Vec<usize>,
    /// Bytes of a sequence's state, in blocks that keep one.
    pub state_bytes: usize,
    kv: Mutex<KvCache<B>>,
    /// Keys and values of one layer, for passes whose sequences no pass continues.
    layer_kv: Mutex<KvCache<B>>,
    layer_shape: AttentionShape,
}

/// A model as files have it, whatever part of it a rank holds.
pub(crate) struct WholeModel {
    pub config: ModelConfig,
    pub table: ParamTable,
}

fn mixer_indices(config: &ModelConfig) -> Vec<usize> {
    let (mut attention, mut stateful) = (0, 0);
    let count = |next: &mut usize| {
        *next += 1;
        *next - 1
    };
    let index = |mixer: &Option<Mixer>| match mixer {
        Some(Mixer::Recurrent(_) | Mixer::Convolution(_)) => count(&mut stateful),
        Some(Mixer::Attention(_)) => count(&mut attention),
        None => 0,
    };
    config.blocks.iter().map(|block| &block.mixer).map(index).collect()
}

impl<B: Backend> Model<B> {
    /// The reason why a backend cannot compute a model, if it cannot.
    pub(crate) fn refusal(backend: &B, c: &ModelConfig) -> Option<String> {
        let attends = c.blocks.iter().filter_map(Block::attention);
        let is_unusual = |a: &Attention| a.gated || a.head_norms == HeadNorms::Projections;
        let has_gates = c.rotary_dim.is_some() || c.query_scaling.is_some() || attends.clone().any(is_unusual);
        let kernels = backend.device().kernels;
        if has_gates && !B::Family::HAS_GATES {
            return Some(format!("{}: its attention is not available on the device ({kernels})", c.arch));
        }
        if c.blocks.iter().any(|block| block.has_mlp && !block.activation.is_gated()) && !B::Family::HAS_RECURRENCES {
            return Some(format!("{}: its MLPs without gates are not available on the device ({kernels})", c.arch));
        }
        if (c.residual_scale != 1.0 || c.logit_scale != 1.0) && !B::Family::HAS_SCALES {
            return Some(format!(
                "{}: its factors on blocks and logits are not available on the device ({kernels})",
                c.arch
            ));
        }
        if c.convolutions().next().is_some() && !B::Family::HAS_CONVOLUTIONS {
            return Some(format!("{}: its short convolutions are not available on the device ({kernels})", c.arch));
        }
        if c.recurrences().next().is_some() && !B::Family::HAS_RECURRENCES {
            return Some(format!("{}: its recurrent blocks are not available on the device ({kernels})", c.arch));
        }
        let (widest, most) = (c.recurrences().map(|shape| shape.key_dim).max().unwrap_or(0), B::Family::MOST_KEY_DIM);
        (widest > most).then(|| {
            format!(
                "{}: keys of recurrences have {widest} elements, more than {most} on the device ({kernels})",
                c.arch
            )
        })
    }

    /// Computes the tables of this rank's part of a model, which `ranks` share by `layout`, and makes an empty KV pool.
    ///
    /// # Errors
    /// If the ranks cannot share the model.
    pub(crate) fn new(backend: &B, whole: &ModelConfig, ranks: Ranks, layout: Parallel) -> Result<Self, LayoutError> {
        let (shard, config) = Shard::of(whole, ranks.rank(), layout)?;
        let shape = config.attention_shape();
        let layer_shape = shape.of_one_layer();
        let rotated = config.rope_dim();
        let positions = config.max_position_embeddings;
        let rope = |table| backend.rope(rotated / 2, table);
        let scaled = config
            .query_scaling
            .iter()
            .flat_map(|scaling| config.ropes.iter().map(|rope| query_rope_table(rope, *scaling, rotated, positions)));
        let states: Vec<_> = config.states().collect();
        Ok(Self {
            table: ParamTable::new(&config),
            whole: WholeModel { table: ParamTable::new(whole), config: whole.clone() },
            indexers: Vec::new(),
            ropes: config.ropes.iter().map(|own| rope(rope_table(own, rotated, positions))).collect(),
            query_ropes: scaled.map(rope).collect(),
            mixer_indices: mixer_indices(&config),
            state_bytes: config.state_bytes(),
            kv: Mutex::new(KvCache::new(backend, &shape, &states)),
            layer_kv: Mutex::new(KvCache::new(backend, &layer_shape, &states)),
            layer_shape,
            kv_block_bytes: backend.kv_block_bytes(&shape),
            layer_kv_block_bytes: backend.kv_block_bytes(&layer_shape),
            shape,
            config,
            tensor_ranks: ranks.among(layout.tensor_group(ranks.rank()).collect()),
            ranks,
            shard,
        })
    }

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
        self.indexers = indexer_weights::load(backend, &self.whole.config, tensors, seen)?;
        Ok(self)
    }

    /// Bytes of the matrices of a model's indexers that are yet to be packed.
    pub(crate) fn planned_indexer_bytes(backend: &B, c: &ModelConfig) -> usize {
        indexer_weights::planned_bytes(backend, c)
    }

    /// Frees the memory of KV blocks without holders.
    pub(crate) fn reclaim_kv(&self, backend: &B) {
        self.kv(true).lock().reclaim(backend);
        self.kv(false).lock().reclaim(backend);
    }

    /// The pool for passes whose sequences later ones continue, or the one for all others.
    pub(super) fn kv(&self, is_continued: bool) -> PassKv<'_, B> {
        match is_continued {
            true => PassKv { pool: &self.kv, shape: &self.shape, is_shared: false },
            false => PassKv { pool: &self.layer_kv, shape: &self.layer_shape, is_shared: true },
        }
    }

    /// The rotary table of a block's attention, and that of its queries where these have another; `None` without positions.
    pub(super) fn rope(&self, layer: usize) -> Option<(&B::Rope, Option<&B::Rope>)> {
        let index = self.config.blocks[layer].attention()?.rope?;
        Some((&self.ropes[index], self.query_ropes.get(index)))
    }

    /// Index of a block's mixer among those of its kind: attention, or mixers that keep a state.
    pub(super) fn mixer_index(&self, layer: usize) -> usize {
        self.mixer_indices[layer]
    }
}

/// Source of token embeddings.
enum Embedding<B: Backend> {
    /// Rows of the unembedding.
    Tied,
    Own(B::Table),
}

/// A model's weights. They are updated in place only where this is their sole holder.
pub(crate) struct Weights<B: Backend> {
    pub model: Arc<Model<B>>,
    embed: Embedding<B>,
    pub(super) blocks: Vec<BlockWeights<B>>,
    pub(super) norm: NormWeight<B>,
    /// Weight of the unembedding.
    pub(super) head: B::Matrix,
}

impl<B: Backend> Weights<B> {
    /// Packs parameters that `read` returns by their index in the model's table.
    pub(crate) fn load<'a>(
        backend: &B,
        model: &Arc<Model<B>>,
        read: &mut dyn FnMut(usize) -> Result<Cow<'a, [f32]>, LoadError>,
    ) -> Result<Self, LoadError> {
        Self::build(backend, model, model.table.blocks.len(), &mut |index| read(index).map(ParamValue::Host))
    }

    /// Packs parameters that are in the backend's memory, in the order of the model's table.
    pub(crate) fn from_params(backend: &B, model: &Arc<Model<B>>, params: &B::Params) -> Result<Self, LoadError> {
        Self::build(backend, model, model.table.blocks.len(), &mut |index| Ok(ParamValue::Param(params, index)))
    }

    /// Packs parameters that `read` returns in any form.
    pub(crate) fn from_values(
        backend: &B,
        model: &Arc<Model<B>>,
        read: &mut ReadParam<'_, '_, B>,
    ) -> Result<Self, LoadError> {
        Self::build(backend, model, model.table.blocks.len(), read)
    }

    /// Like [`Weights::from_params`], but without blocks: embedding, unembedding and the norm before it. Arrays without
    /// elements are left out.
    pub(super) fn ends(backend: &B, model: &Arc<Model<B>>, params: &B::Params) -> Result<Self, LoadError> {
        Self::build(backend, model, 0, &mut |index| Ok(ParamValue::Param(params, index)))
    }

    /// Builds the weights with the first `layers` blocks.
    fn build(
        backend: &B,
        model: &Arc<Model<B>>,
        layers: usize,
        read: &mut ReadParam<'_, '_, B>,
    ) -> Result<Self, LoadError> {
        let (table, c) = (&model.table, &model.config);
        let embedding = read(table.embed)?;
        let (head, embed) = if table.head == table.embed {
            (backend.pack(&[embedding.source()], c.hidden_size, MatrixRole::Base), Embedding::Tied)
        } else {
            let embed = Embedding::Own(backend.table(embedding.source(), c.hidden_size));
            drop(embedding);
            (backend.pack(&[read(table.head)?.source()], c.hidden_size, MatrixRole::Base), embed)
        };
        let blocks = table.blocks.iter().take(layers).enumerate();
        let blocks = blocks.map(|(layer, params)| BlockWeights::build(backend, c, layer, params, read));
        let blocks = blocks.collect::<Result<_, _>>()?;
        let norm = NormWeight::new(backend, read(table.norm)?.source(), c.norm_offset);
        Ok(Self { model: Arc::clone(model), embed, blocks, norm, head })
    }

    /// Repacks all weights from `params`, in the order of the model's table, in place.
    pub(crate) fn update(&mut self, backend: &B, params: &B::Params) {
        let model = Arc::clone(&self.model);
        let (table, offset) = (&model.table, model.config.norm_offset);
        if let Embedding::Own(rows) = &mut self.embed {
            *rows = backend.table(Source::Param(params, table.embed), model.config.hidden_size);
        }
        backend.repack(vec![(&mut self.head, vec![Source::Param(params, table.head)])]);
        self.norm = NormWeight::new(backend, Source::Param(params, table.norm), offset);
        for (block, own) in self.blocks.iter_mut().zip(&table.blocks) {
            block.update(backend, own, params, offset);
        }
    }

    /// Bytes of its matrices.
    pub(crate) fn bytes(&self, backend: &B) -> usize {
        let block = |b: &BlockWeights<B>| b.linears().iter().map(|linear| linear.bytes(backend)).sum::<usize>();
        let embed = match &self.embed {
            Embedding::Tied => 0,
            Embedding::Own(rows) => backend.table_bytes(rows),
        };
        embed + backend.matrix_bytes(&self.head) + self.blocks.iter().map(block).sum::<usize>()
    }

    /// All parameters, with the rounding of packing, in the order of the model's table, as they were at a fence.
    pub(crate) fn to_host(&self, backend: &B, fence: &B::Fence) -> Vec<Vec<f32>> {
        let table = &self.model.table;
        let mut params: Vec<Vec<f32>> = vec![Vec::new(); table.specs.len()];
        params[table.head] = backend.matrix_to_host(&self.head, fence);
        if let Embedding::Own(rows) = &self.embed {
            params[table.embed] = backend.table_to_host(rows, fence);
        }
        params[table.norm] = self.norm.to_host(backend, fence);
        for (block, own) in self.blocks.iter().zip(&table.blocks) {
            block.write_to_host(backend, fence, own, &mut params);
        }
        params
    }

    /// Embeddings of tokens from the rows that are here, `[tokens, hidden]`.
    pub(super) fn embed_held(&self, backend: &B, tokens: &[u32]) -> B::Rows {
        let c = &self.model.config;
        match &self.embed {
            Embedding::Tied => backend.embed_tied(&self.head, tokens, c.embedding_scale),
            Embedding::Own(rows) => backend.embed_table(rows, c.hidden_size, tokens, c.embedding_scale),
        }
    }
}
