//! A model's weights in the form that its backend reads.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::kv::KvCache;
use super::latent_weights::QkvWeights;
use super::linear::Linear;
use super::mlp_weights::{MlpWeights, build_linear};
use super::norm_weight::NormWeight;
use super::param_value::{ParamValue, ReadParam};
use super::params::{BlockParams, ParamSpec, ParamTable};
use super::projection::Projection;
use super::rope::rope_table;
use super::shard::Shard;
use crate::backend::{AttentionShape, Backend, MatrixRole, Source};
use crate::collective::Ranks;
use crate::config::{LoadError, ModelConfig};
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
    /// Rotary tables by [`ModelConfig::ropes`].
    ropes: Vec<B::Rope>,
    kv: Mutex<KvCache<B>>,
}

/// A model as files have it, whatever part of it a rank holds.
pub(crate) struct WholeModel {
    pub config: ModelConfig,
    pub table: ParamTable,
}

impl<B: Backend> Model<B> {
    /// Computes the tables of this rank's part of a model, which `ranks` share by `layout`, and makes an empty KV pool.
    ///
    /// # Errors
    /// If the ranks cannot share the model.
    pub(crate) fn new(backend: &B, whole: &ModelConfig, ranks: Ranks, layout: Parallel) -> Result<Self, LayoutError> {
        let (shard, config) = Shard::of(whole, ranks.rank(), layout)?;
        let shape = config.attention_shape();
        let rotated = config.rope_dim();
        let table = |rope| rope_table(rope, rotated, config.max_position_embeddings);
        Ok(Self {
            table: ParamTable::new(&config),
            whole: WholeModel { table: ParamTable::new(whole), config: whole.clone() },
            ropes: config.ropes.iter().map(|rope| backend.rope(rotated / 2, table(rope))).collect(),
            kv: Mutex::new(KvCache::new(backend, &shape)),
            kv_block_bytes: backend.kv_block_bytes(&shape),
            shape,
            config,
            tensor_ranks: ranks.among(layout.tensor_group(ranks.rank()).collect()),
            ranks,
            shard,
        })
    }

    /// Frees the memory of KV blocks without holders.
    pub(crate) fn reclaim_kv(&self, backend: &B) {
        self.kv().reclaim(backend);
    }

    pub(super) fn kv(&self) -> MutexGuard<'_, KvCache<B>> {
        // A pass that panicked fails its requests, whose blocks are freed with them; the pool's ids stay consistent.
        self.kv.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn rope(&self, layer: usize) -> &B::Rope {
        &self.ropes[self.config.blocks[layer].rope]
    }
}

pub(crate) struct BlockWeights<B: Backend> {
    pub(super) pre_attention: NormWeight<B>,
    pub(super) qkv: QkvWeights<B>,
    pub(super) head_norms: Option<[NormWeight<B>; 2]>,
    pub(super) o: Linear<B>,
    pub(super) post_attention: Option<NormWeight<B>>,
    pub(super) pre_mlp: NormWeight<B>,
    pub(super) mlp: MlpWeights<B>,
    pub(super) post_mlp: Option<NormWeight<B>>,
    /// Scores of the heads' sinks.
    pub(super) sinks: Option<B::Vector>,
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
    pub(super) fn from_values(
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

    /// Bytes of the weights of a model that are yet to be packed, with the transposes that backward passes need where it
    /// `trains`.
    pub(crate) fn planned_bytes(backend: &B, c: &ModelConfig, trains: bool) -> usize {
        let matrix = |extents| backend.planned_matrix_bytes(extents, MatrixRole::Base, trains);
        let block = |layer: usize| {
            let experts = c.blocks[layer].experts.as_ref();
            let fused = |parts: &&[Projection]| {
                let outputs = parts.iter().map(|part| part.extents(c, layer).0).sum();
                let inputs = parts.first().map_or(0, |part| part.extents(c, layer).1);
                let is_routed = parts.first().is_some_and(|part| part.is_routed());
                let copies = experts.filter(|_| is_routed).map_or(1, |experts| experts.held.len());
                copies * matrix((outputs, inputs))
            };
            let router = experts.map_or(0, |experts| matrix((experts.count, c.hidden_size)));
            router + Projection::layers(c, layer).iter().map(fused).sum::<usize>()
        };
        let blocks: usize = (0..c.num_layers()).map(block).sum();
        let embedding = (c.vocab_rows(), c.hidden_size);
        let table = if c.tie_word_embeddings { 0 } else { c.vocab_rows() * c.hidden_size * backend.dtype().bytes() };
        // Norms and biases, which may be there twice.
        let vectors = 2 * size_of::<f32>() * ParamTable::new(c).specs.iter().map(ParamSpec::vector_len).sum::<usize>();
        matrix(embedding) + table + blocks + vectors
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
            block.write_to_host((backend, fence), own, &mut params);
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

impl<B: Backend> BlockWeights<B> {
    pub(super) fn build(
        backend: &B,
        c: &ModelConfig,
        layer: usize,
        p: &BlockParams,
        read: &mut ReadParam<'_, '_, B>,
    ) -> Result<Self, LoadError> {
        let norm = |read: &mut ReadParam<'_, '_, B>, index: usize| {
            read(index).map(|value| NormWeight::new(backend, value.source(), c.norm_offset))
        };
        let optional =
            |read: &mut ReadParam<'_, '_, B>, index: Option<usize>| index.map(|index| norm(read, index)).transpose();
        let (post_attention, post_mlp) = (optional(read, p.post_attention)?, optional(read, p.post_mlp)?);
        let head_norms = match p.head_norms {
            Some([q, k]) => Some([norm(read, q)?, norm(read, k)?]),
            None => None,
        };
        let sinks = p.sinks.map(|index| read(index).map(|value| backend.vector(&[value.source()], 0.0))).transpose()?;
        Ok(Self {
            qkv: QkvWeights::build(backend, c, layer, &p.qkv, read)?,
            o: build_linear(backend, c, layer, &[(Projection::O, p.o)], read)?,
            mlp: MlpWeights::build(backend, c, layer, &p.mlp, read)?,
            sinks,
            pre_attention: norm(read, p.pre_attention)?,
            pre_mlp: norm(read, p.pre_mlp)?,
            head_norms,
            post_attention,
            post_mlp,
        })
    }

    fn linears(&self) -> Vec<&Linear<B>> {
        self.qkv.linears().into_iter().chain([&self.o]).chain(self.mlp.linears()).collect()
    }

    fn linears_mut(&mut self) -> Vec<&mut Linear<B>> {
        self.qkv.linears_mut().into_iter().chain([&mut self.o]).chain(self.mlp.linears_mut()).collect()
    }

    /// Norms with the indices of their parameters.
    fn norms_mut<'a>(&'a mut self, p: &BlockParams) -> impl Iterator<Item = (usize, &'a mut NormWeight<B>)> {
        let (q, k) = self.head_norms.as_mut().map(|[q, k]| (q, k)).unzip();
        let all = [
            (Some(p.pre_attention), Some(&mut self.pre_attention)),
            (p.post_attention, self.post_attention.as_mut()),
            (p.head_norms.map(|[q, _]| q), q),
            (p.head_norms.map(|[_, k]| k), k),
            (Some(p.pre_mlp), Some(&mut self.pre_mlp)),
            (p.post_mlp, self.post_mlp.as_mut()),
        ];
        let latents = self.qkv.norms_mut().into_iter();
        all.into_iter().filter_map(|(index, norm)| index.zip(norm)).chain(p.qkv.norms().into_iter().zip(latents))
    }

    fn update(&mut self, backend: &B, p: &BlockParams, params: &B::Params, offset: f32) {
        for (index, norm) in self.norms_mut(p) {
            *norm = NormWeight::new(backend, Source::Param(params, index), offset);
        }
        self.linears_mut().into_iter().for_each(|linear| linear.update(backend, params));
        if let (Some(sinks), Some(index)) = (&mut self.sinks, p.sinks) {
            *sinks = backend.vector(&[Source::Param(params, index)], 0.0);
        }
    }

    fn write_to_host(&self, (backend, fence): (&B, &B::Fence), p: &BlockParams, params: &mut [Vec<f32>]) {
        let heads = self.head_norms.iter().flatten().zip(p.head_norms.into_iter().flatten());
        let own = [
            (Some(&self.pre_attention), Some(p.pre_attention)),
            (self.post_attention.as_ref(), p.post_attention),
            (Some(&self.pre_mlp), Some(p.pre_mlp)),
            (self.post_mlp.as_ref(), p.post_mlp),
        ];
        for (norm, index) in own.into_iter().filter_map(|(norm, index)| norm.zip(index)).chain(heads) {
            params[index] = norm.to_host(backend, fence);
        }
        for (index, norm) in p.qkv.norms().into_iter().zip(self.qkv.norms()) {
            params[index] = norm.to_host(backend, fence);
        }
        if let (Some(sinks), Some(index)) = (&self.sinks, p.sinks) {
            params[index] = backend.vector_to_host(sinks, fence);
        }
        for linear in self.linears() {
            linear.write_to_host((backend, fence), params);
        }
    }
}
