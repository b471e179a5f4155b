//! LoRA adapters (Hu et al. 2021, arXiv:2106.09685): `y = W x + (alpha / rank) B A x`.

use std::ops::Range;
use std::sync::Arc;

use trainyard_protocol::LoraSpec;
use trainyard_protocol::limits::LORA_ALPHA;

use super::params::{AdaptedModule, ParamTable, Projection};
use crate::backend::{Backend, MatrixRole, Source};
use crate::config::ModelConfig;

/// A and B of one module.
pub(crate) struct LoraPair<B: Backend> {
    /// Index of A among the adapter's parameters; B follows.
    pub param: usize,
    /// (outputs, inputs).
    pub extents: (usize, usize),
    /// A, `[rank, inputs]`.
    pub a: B::Matrix,
    /// B, `[outputs, rank]`.
    pub b: B::Matrix,
}

/// An adapter's weights. They are updated in place only where this is their sole holder.
pub(crate) struct Adapter<B: Backend> {
    pub rank: usize,
    /// alpha / rank.
    pub scale: f32,
    /// Per block, by [`Projection`].
    blocks: Vec<[Option<LoraPair<B>>; 7]>,
    /// On the unembedding.
    pub unembed: Option<LoraPair<B>>,
}

/// Rows of a batch with one adapter, or with none.
pub(crate) struct RowGroup<B: Backend> {
    pub rows: Range<usize>,
    pub adapter: Option<Arc<Adapter<B>>>,
}

impl<B: Backend> Adapter<B> {
    /// The adapter whose parameters, in the order of [`ParamTable::of_adapter`], are `params`.
    pub(crate) fn from_params(backend: &B, c: &ModelConfig, lora: &LoraSpec, params: &B::Params) -> Self {
        let mut adapted = ParamTable::adapted_modules(c, lora).into_iter().peekable();
        let mut index = 0;
        let built = Self::build(backend, c, lora.rank as usize, LORA_ALPHA / lora.rank as f32, |module| {
            let own = adapted.next_if(|next| next == module).map(|_| {
                index += 2;
                [index - 2, index - 1].map(|index| Source::Param(params, index))
            });
            Ok::<_, std::convert::Infallible>(own)
        });
        match built {
            Ok(adapter) => adapter,
        }
    }

    /// An adapter on the modules for which `pair` returns A and B. `pair` is called for every module in parameter order.
    pub(crate) fn build<'p, E>(
        backend: &B,
        c: &ModelConfig,
        rank: usize,
        scale: f32,
        mut pair: impl FnMut(&AdaptedModule) -> Result<Option<[Source<'p, B>; 2]>, E>,
    ) -> Result<Self, E>
    where
        B: 'p,
    {
        let mut param = 0;
        let mut next = |module: AdaptedModule| -> Result<Option<LoraPair<B>>, E> {
            let Some([a, b]) = pair(&module)? else { return Ok(None) };
            param += 2;
            let extents = module.extents;
            let a = backend.pack(&[a], extents.1, MatrixRole::Adapter);
            let b = backend.pack(&[b], rank, MatrixRole::Adapter);
            Ok(Some(LoraPair { param: param - 2, extents, a, b }))
        };
        let mut blocks = Vec::with_capacity(c.num_layers());
        for layer in 0..c.num_layers() {
            let mut block: [Option<LoraPair<B>>; 7] = Default::default();
            for (projection, pair) in Projection::ALL.into_iter().zip(&mut block) {
                *pair = next(AdaptedModule::of(c, (layer, projection)))?;
            }
            blocks.push(block);
        }
        let unembed = next(AdaptedModule::unembedding(c))?;
        Ok(Self { rank, scale, blocks, unembed })
    }

    /// Repacks all matrices from `params`, in place.
    pub(crate) fn update(&mut self, backend: &B, params: &B::Params) {
        for pair in self.blocks.iter_mut().flatten().flatten().chain(&mut self.unembed) {
            backend.repack(&mut pair.a, &[Source::Param(params, pair.param)]);
            backend.repack(&mut pair.b, &[Source::Param(params, pair.param + 1)]);
        }
    }

    /// The same adapter without transposes, for samplers. Both share memory until one is updated.
    pub(crate) fn frozen(&self, backend: &B) -> Self {
        let share = |p: &LoraPair<B>| LoraPair {
            param: p.param,
            extents: p.extents,
            a: backend.share(&p.a),
            b: backend.share(&p.b),
        };
        let blocks = self.blocks.iter().map(|block| block.each_ref().map(|pair| pair.as_ref().map(share)));
        let unembed = self.unembed.as_ref().map(share);
        Self { rank: self.rank, scale: self.scale, blocks: blocks.collect(), unembed }
    }

    /// Bytes of all matrices of an adapter that is yet to be built, with those that backward passes need where it
    /// `trains`.
    pub(crate) fn planned_bytes(backend: &B, c: &ModelConfig, lora: &LoraSpec, trains: bool) -> usize {
        let bytes = |extents| backend.planned_matrix_bytes(extents, MatrixRole::Adapter, trains);
        let rank = lora.rank as usize;
        let modules = ParamTable::adapted_modules(c, lora).into_iter();
        modules.map(|AdaptedModule { extents: (n, k), .. }| bytes((rank, k)) + bytes((n, rank))).sum()
    }

    /// Bytes of its matrices, with the transposes that they have.
    pub(crate) fn bytes(&self, backend: &B) -> usize {
        self.pairs().map(|pair| backend.matrix_bytes(&pair.a) + backend.matrix_bytes(&pair.b)).sum()
    }

    /// Its parameters, with the rounding of packing.
    pub(crate) fn to_host(&self, backend: &B) -> Vec<Vec<f32>> {
        self.pairs().flat_map(|pair| [backend.matrix_to_host(&pair.a), backend.matrix_to_host(&pair.b)]).collect()
    }

    /// Whether it is on a projection for which `which` holds.
    pub(crate) fn adapts(&self, mut which: impl FnMut(Projection) -> bool) -> bool {
        let on = |block: &[Option<LoraPair<B>>; 7]| {
            Projection::ALL.into_iter().any(|projection| block[projection as usize].is_some() && which(projection))
        };
        self.blocks.first().is_some_and(on)
    }

    /// The pair on a projection of a block.
    pub(super) fn pair(&self, layer: usize, projection: Projection) -> Option<&LoraPair<B>> {
        self.blocks[layer][projection as usize].as_ref()
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = &LoraPair<B>> {
        self.blocks.iter().flatten().flatten().chain(&self.unembed)
    }
}
