//! A model's weights in the form that its backend reads.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::kv::KvCache;
use super::linear::Linear;
use super::params::{BlockParams, ParamSpec, ParamTable, Projection};
use super::rope::rope_table;
use crate::backend::{AttentionShape, Backend, MatrixRole, Norm, Source};
use crate::config::{LoadError, ModelConfig};

/// What all runs of a base model share: configuration, parameter table, rotary tables and the KV pool.
pub(crate) struct Model<B: Backend> {
    pub config: ModelConfig,
    pub table: ParamTable,
    pub shape: AttentionShape,
    /// By [`ModelConfig::ropes`].
    ropes: Vec<B::Rope>,
    kv: Mutex<KvCache<B>>,
}

impl<B: Backend> Model<B> {
    /// Computes the tables and makes an empty KV pool.
    pub(crate) fn new(backend: &B, config: ModelConfig) -> Self {
        let shape = AttentionShape {
            layers: config.num_layers(),
            heads: config.num_heads,
            kv_heads: config.num_kv_heads,
            head_dim: config.head_dim,
            scale: config.attention_scale,
        };
        let table = |rope| rope_table(rope, config.head_dim, config.max_position_embeddings);
        Self {
            table: ParamTable::new(&config),
            ropes: config.ropes.iter().map(|rope| backend.rope(config.head_dim / 2, table(rope))).collect(),
            kv: Mutex::new(KvCache::new(backend, &shape)),
            shape,
            config,
        }
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

/// An RMSNorm's weight.
pub(super) struct NormWeight<B: Backend> {
    /// Multiplies normalised elements: the stored weight plus the family's offset.
    effective: B::Vector,
    /// As files have it, where that differs.
    stored: Option<B::Vector>,
}

impl<B: Backend> NormWeight<B> {
    fn new(backend: &B, source: Source<'_, B>, offset: f32) -> Self {
        let stored = (offset != 0.0).then(|| backend.vector(&[source], 0.0));
        Self { effective: backend.vector(&[source], offset), stored }
    }

    /// For ops, with the model's epsilon.
    pub(super) fn with(&self, eps: f32) -> Norm<'_, B> {
        Norm { weight: &self.effective, eps }
    }

    fn to_host(&self, backend: &B) -> Vec<f32> {
        backend.vector_to_host(self.stored.as_ref().unwrap_or(&self.effective))
    }
}

/// A decoder block.
pub(super) struct BlockWeights<B: Backend> {
    pub(super) pre_attention: NormWeight<B>,
    /// q, k and v, fused.
    pub(super) qkv: Linear<B>,
    pub(super) head_norms: Option<[NormWeight<B>; 2]>,
    pub(super) o: Linear<B>,
    pub(super) post_attention: Option<NormWeight<B>>,
    pub(super) pre_mlp: NormWeight<B>,
    /// gate and up, fused.
    pub(super) gate_up: Linear<B>,
    pub(super) down: Linear<B>,
    pub(super) post_mlp: Option<NormWeight<B>>,
}

/// The token embedding.
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
    /// Unembedding.
    pub(super) head: B::Matrix,
}

/// The elements of a parameter.
enum ParamValue<'a, B: Backend> {
    Host(Cow<'a, [f32]>),
    Param(&'a B::Params, usize),
}

impl<B: Backend> ParamValue<'_, B> {
    fn source(&self) -> Source<'_, B> {
        match self {
            Self::Host(values) => Source::Host(values),
            Self::Param(params, index) => Source::Param(*params, *index),
        }
    }
}

/// Reads the parameter of an index.
type ReadParam<'r, 'a, B> = dyn FnMut(usize) -> Result<ParamValue<'a, B>, LoadError> + 'r;

impl<B: Backend> Weights<B> {
    /// Packs parameters that `read` returns by their index in the model's table.
    pub(crate) fn load<'a>(
        backend: &B,
        model: &Arc<Model<B>>,
        read: &mut dyn FnMut(usize) -> Result<Cow<'a, [f32]>, LoadError>,
    ) -> Result<Self, LoadError> {
        Self::build(backend, model, &mut |index| read(index).map(ParamValue::Host))
    }

    /// Packs parameters that are in the backend's memory, in the order of the model's table.
    pub(crate) fn from_params(backend: &B, model: &Arc<Model<B>>, params: &B::Params) -> Result<Self, LoadError> {
        Self::build(backend, model, &mut |index| Ok(ParamValue::Param(params, index)))
    }

    fn build(backend: &B, model: &Arc<Model<B>>, read: &mut ReadParam<'_, '_, B>) -> Result<Self, LoadError> {
        let (table, c) = (&model.table, &model.config);
        let embedding = read(table.embed)?;
        let (head, embed) = if table.head == table.embed {
            (backend.pack(&[embedding.source()], c.hidden_size, MatrixRole::Base), Embedding::Tied)
        } else {
            let embed = Embedding::Own(backend.table(embedding.source(), c.hidden_size));
            drop(embedding);
            (backend.pack(&[read(table.head)?.source()], c.hidden_size, MatrixRole::Base), embed)
        };
        let blocks = table.blocks.iter().map(|params| BlockWeights::build(backend, c, params, read));
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
        backend.repack(&mut self.head, &[Source::Param(params, table.head)]);
        self.norm = NormWeight::new(backend, Source::Param(params, table.norm), offset);
        for (block, own) in self.blocks.iter_mut().zip(&table.blocks) {
            block.update(backend, own, params, offset);
        }
    }

    /// Bytes of the weights of a model that are yet to be packed, with the transposes that backward passes need where it
    /// `trains`.
    pub(crate) fn planned_bytes(backend: &B, c: &ModelConfig, trains: bool) -> usize {
        let matrix = |extents| backend.planned_matrix_bytes(extents, MatrixRole::Base, trains);
        let fused = |parts: &[Projection]| {
            matrix((
                parts.iter().map(|part| part.extents(c).0).sum(),
                parts.first().map_or(0, |part| part.extents(c).1),
            ))
        };
        let block: usize = Linear::<B>::FUSED.iter().map(|parts| fused(parts)).sum();
        let embedding = (c.vocab_size, c.hidden_size);
        let table = if c.tie_word_embeddings { 0 } else { c.vocab_size * c.hidden_size * backend.dtype().bytes() };
        // Norms and biases, which may be there twice.
        let vectors = 2 * size_of::<f32>() * ParamTable::new(c).specs.iter().map(ParamSpec::vector_len).sum::<usize>();
        matrix(embedding) + table + c.num_layers() * block + vectors
    }

    /// Bytes of its matrices.
    pub(crate) fn bytes(&self, backend: &B) -> usize {
        let block = |b: &BlockWeights<B>| {
            [&b.qkv, &b.o, &b.gate_up, &b.down].iter().map(|linear| linear.bytes(backend)).sum::<usize>()
        };
        let embed = match &self.embed {
            Embedding::Tied => 0,
            Embedding::Own(rows) => backend.table_bytes(rows),
        };
        embed + backend.matrix_bytes(&self.head) + self.blocks.iter().map(block).sum::<usize>()
    }

    /// All parameters, with the rounding of packing, in the order of the model's table.
    pub(crate) fn to_host(&self, backend: &B) -> Vec<Vec<f32>> {
        let table = &self.model.table;
        let mut params: Vec<Vec<f32>> = vec![Vec::new(); table.specs.len()];
        params[table.head] = backend.matrix_to_host(&self.head);
        if let Embedding::Own(rows) = &self.embed {
            params[table.embed] = backend.table_to_host(rows);
        }
        params[table.norm] = self.norm.to_host(backend);
        for (block, own) in self.blocks.iter().zip(&table.blocks) {
            block.write_to_host(backend, own, &mut params);
        }
        params
    }

    /// Embeddings of tokens, `[tokens, hidden]`.
    pub(super) fn embed(&self, backend: &B, tokens: &[u32]) -> B::Rows {
        let c = &self.model.config;
        match &self.embed {
            Embedding::Tied => backend.embed_tied(&self.head, tokens, c.embedding_scale),
            Embedding::Own(rows) => backend.embed_table(rows, c.hidden_size, tokens, c.embedding_scale),
        }
    }
}

impl<B: Backend> BlockWeights<B> {
    fn build(
        backend: &B,
        c: &ModelConfig,
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
        let [qkv, o, gate_up, down] = Linear::<B>::FUSED;
        let mut linear = |parts: &[Projection]| build_linear(backend, c, p, parts, read);
        Ok(Self {
            qkv: linear(qkv)?,
            o: linear(o)?,
            gate_up: linear(gate_up)?,
            down: linear(down)?,
            pre_attention: norm(read, p.pre_attention)?,
            pre_mlp: norm(read, p.pre_mlp)?,
            head_norms,
            post_attention,
            post_mlp,
        })
    }

    fn linears_mut(&mut self) -> [&mut Linear<B>; 4] {
        [&mut self.qkv, &mut self.o, &mut self.gate_up, &mut self.down]
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
        all.into_iter().filter_map(|(index, norm)| index.zip(norm))
    }

    fn update(&mut self, backend: &B, p: &BlockParams, params: &B::Params, offset: f32) {
        for (index, norm) in self.norms_mut(p) {
            *norm = NormWeight::new(backend, Source::Param(params, index), offset);
        }
        self.linears_mut().into_iter().for_each(|linear| linear.update(backend, p, params));
    }

    fn write_to_host(&self, backend: &B, p: &BlockParams, params: &mut [Vec<f32>]) {
        let heads = self.head_norms.iter().flatten().zip(p.head_norms.into_iter().flatten());
        let own = [
            (Some(&self.pre_attention), Some(p.pre_attention)),
            (self.post_attention.as_ref(), p.post_attention),
            (Some(&self.pre_mlp), Some(p.pre_mlp)),
            (self.post_mlp.as_ref(), p.post_mlp),
        ];
        for (norm, index) in own.into_iter().filter_map(|(norm, index)| norm.zip(index)).chain(heads) {
            params[index] = norm.to_host(backend);
        }
        for linear in [&self.qkv, &self.o, &self.gate_up, &self.down] {
            linear.write_to_host(backend, p, params);
        }
    }
}

/// A linear layer of the projections, fused along the outputs.
fn build_linear<B: Backend>(
    backend: &B,
    c: &ModelConfig,
    p: &BlockParams,
    projections: &[Projection],
    read: &mut ReadParam<'_, '_, B>,
) -> Result<Linear<B>, LoadError> {
    let weights = projections.iter().map(|of| read(p.projection(*of).weight)).collect::<Result<Vec<_>, _>>()?;
    let biases = projections.iter().filter_map(|of| p.projection(*of).bias);
    let biases = biases.map(&mut *read).collect::<Result<Vec<_>, _>>()?;
    Ok(Linear::new(backend, c, projections, &sources(&weights), &sources(&biases)))
}

fn sources<'v, B: Backend>(values: &'v [ParamValue<'_, B>]) -> Vec<Source<'v, B>> {
    values.iter().map(ParamValue::source).collect()
}
