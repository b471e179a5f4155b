//! LoRA adapters (Hu et al. 2021, arXiv:2106.09685): `y = W x + (alpha / rank) B A x`.

use std::ops::Range;
use std::sync::Arc;

use trainyard_protocol::LoraSpec;

use super::adapted::AdaptedModule;
use super::params::ParamTable;
use super::projection::Projection;
use crate::backend::{Backend, GradientSlot, MatrixRole, Source};
use crate::config::ModelConfig;

/// A and B of one module. On experts, one of them has a matrix for each expert of this rank.
pub(crate) struct LoraPair<B: Backend> {
    /// Index of A among the adapter's parameters; B follows.
    pub param: usize,
    /// (outputs, inputs), of each expert.
    pub extents: (usize, usize),
    /// Matrices A: `[rank, inputs]` each.
    a: Vec<B::Matrix>,
    /// Matrices B: `[outputs, rank]` each.
    b: Vec<B::Matrix>,
    /// First expert of this rank, and which of A (0) and B (1) the experts share; only for pairs on experts.
    shared: Option<(usize, usize)>,
}

impl<B: Backend> LoraPair<B> {
    /// A and B, of an expert where it is on experts, and where their gradients go: that of a matrix which experts have in
    /// common is computed apart.
    pub(crate) fn of_expert(
        &self,
        expert: Option<usize>,
        rank: usize,
    ) -> (&B::Matrix, &B::Matrix, [Option<GradientSlot>; 2]) {
        let (Some(expert), Some((first, shared))) = (expert, self.shared) else {
            return (&self.a[0], &self.b[0], GradientSlot::pair(self.param));
        };
        let ((outputs, inputs), expert) = (self.extents, expert - first);
        match shared {
            0 => {
                let own = GradientSlot { param: self.param + 1, first: expert * outputs * rank };
                (&self.a[0], &self.b[expert], [None, Some(own)])
            }
            _ => {
                let own = GradientSlot { param: self.param, first: expert * rank * inputs };
                (&self.a[expert], &self.b[0], [Some(own), None])
            }
        }
    }

    /// Index of the parameter that experts have in common.
    pub(super) fn common_param(&self) -> Option<usize> {
        self.shared.map(|(_, shared)| self.param + shared)
    }

    fn matrices(&self) -> impl Iterator<Item = &B::Matrix> {
        self.a.iter().chain(&self.b)
    }
}

/// The pairs of a block by [`Projection`].
type BlockPairs<B> = [Option<LoraPair<B>>; Projection::ALL.len()];

/// An adapter's weights. They are updated in place only where this is their sole holder.
pub(crate) struct Adapter<B: Backend> {
    pub rank: usize,
    /// Numerator of the scale.
    pub alpha: f32,
    /// Pairs of each block, by [`Projection`].
    blocks: Vec<BlockPairs<B>>,
    /// Pair on the unembedding.
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
        let built = Self::build(backend, c, lora.rank as usize, lora.alpha, |module| {
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
        alpha: f32,
        mut pair: impl FnMut(&AdaptedModule) -> Result<Option<[Source<'p, B>; 2]>, E>,
    ) -> Result<Self, E>
    where
        B: 'p,
    {
        let mut param = 0;
        let mut next = |module: AdaptedModule| -> Result<Option<LoraPair<B>>, E> {
            let Some([a, b]) = pair(&module)? else { return Ok(None) };
            param += 2;
            let (extents, [a_copies, b_copies]) = (module.extents, module.copies());
            let pack = |all: Source<'p, B>, copies: usize, (n, k): (usize, usize)| {
                let matrix = |i| backend.pack(&[all.part(i * n * k..(i + 1) * n * k)], k, MatrixRole::Adapter);
                (0..copies).map(matrix).collect()
            };
            let shared = module.experts.as_ref().map(|experts| (experts.start, usize::from(!module.shares_a())));
            let (a, b) = (pack(a, a_copies, (rank, extents.1)), pack(b, b_copies, (extents.0, rank)));
            Ok(Some(LoraPair { param: param - 2, extents, a, b, shared }))
        };
        let mut blocks = Vec::with_capacity(c.num_layers());
        for layer in 0..c.num_layers() {
            let mut block: BlockPairs<B> = Default::default();
            for projection in Projection::of_block(c, layer) {
                block[projection as usize] = next(AdaptedModule::of(c, layer, projection))?;
            }
            blocks.push(block);
        }
        let unembed = next(AdaptedModule::unembedding(c))?;
        Ok(Self { rank, alpha, blocks, unembed })
    }

    /// Factor of the product BA.
    pub(crate) fn scale(&self) -> f32 {
        self.alpha / self.rank as f32
    }

    /// Repacks all matrices from `params`, in place.
    pub(crate) fn update(&mut self, backend: &B, params: &B::Params) {
        let pairs = self.blocks.iter_mut().flatten().flatten().chain(&mut self.unembed);
        let rank = self.rank;
        let matrices = pairs.flat_map(|LoraPair { param, extents: (outputs, inputs), a, b, .. }| {
            let of = |index, len| move |i| vec![Source::Part(params, index, (i * len, (i + 1) * len))];
            let (a_of, b_of) = (of(*param, rank * *inputs), of(*param + 1, *outputs * rank));
            let a = a.iter_mut().enumerate().map(move |(i, a)| (a, a_of(i)));
            a.chain(b.iter_mut().enumerate().map(move |(i, b)| (b, b_of(i))))
        });
        backend.repack(matrices.collect());
    }

    /// The same adapter without transposes, for samplers. Both share memory until one is updated.
    pub(crate) fn frozen(&self, backend: &B) -> Self {
        let share = |p: &LoraPair<B>| LoraPair {
            param: p.param,
            extents: p.extents,
            a: p.a.iter().map(|a| backend.share(a)).collect(),
            b: p.b.iter().map(|b| backend.share(b)).collect(),
            shared: p.shared,
        };
        let blocks = self.blocks.iter().map(|block| block.each_ref().map(|pair| pair.as_ref().map(share)));
        let unembed = self.unembed.as_ref().map(share);
        Self { rank: self.rank, alpha: self.alpha, blocks: blocks.collect(), unembed }
    }

    /// Bytes of all matrices of an adapter that is yet to be built, with those that backward passes need where it
    /// `trains`.
    pub(crate) fn planned_bytes(backend: &B, c: &ModelConfig, lora: &LoraSpec, trains: bool) -> usize {
        let bytes = |n, k| backend.planned_matrix_bytes(n, k, MatrixRole::Adapter, trains);
        let rank = lora.rank as usize;
        let modules = ParamTable::adapted_modules(c, lora).into_iter();
        modules
            .map(|module| {
                let ((n, k), [a, b]) = (module.extents, module.copies());
                a * bytes(rank, k) + b * bytes(n, rank)
            })
            .sum()
    }

    /// Bytes of its matrices, with the transposes that they have.
    pub(crate) fn bytes(&self, backend: &B) -> usize {
        self.pairs().flat_map(LoraPair::matrices).map(|matrix| backend.matrix_bytes(matrix)).sum()
    }

    /// Parameters of the adapter at a fence, with the rounding of packing.
    pub(crate) fn to_host(&self, backend: &B, fence: &B::Fence) -> Vec<Vec<f32>> {
        let elements =
            |matrices: &[B::Matrix]| matrices.iter().flat_map(|m| backend.matrix_to_host(m, fence)).collect();
        self.pairs().flat_map(|pair| [elements(&pair.a), elements(&pair.b)]).collect()
    }

    /// Whether it is on a projection for which `which` holds.
    pub(crate) fn adapts(&self, mut which: impl FnMut(Projection) -> bool) -> bool {
        let on = |block: &BlockPairs<B>| {
            Projection::ALL.into_iter().any(|projection| block[projection as usize].is_some() && which(projection))
        };
        self.blocks.iter().any(on)
    }

    /// The pair on a projection of a block.
    pub(super) fn pair(&self, layer: usize, projection: Projection) -> Option<&LoraPair<B>> {
        self.blocks[layer][projection as usize].as_ref()
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = &LoraPair<B>> {
        self.blocks.iter().flatten().flatten().chain(&self.unembed)
    }
}
