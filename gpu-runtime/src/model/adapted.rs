//! The parameters of adapters: which modules they are on, with what extents.

use std::ops::Range;

use trainyard_protocol::LoraSpec;

use super::params::{Init, ParamSpec, ParamTable};
use super::projection::Projection;
use super::shard_axis::ShardAxis;
use crate::config::ModelConfig;

/// A module with an adapter on it.
///
/// On experts, one of A and B is common to all of a block's: of gate and up A, which reads what all of them read, of down B,
/// which writes where all of them write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdaptedModule {
    /// Name of the module: `model.layers.0.self_attn.q_proj` … `lm_head`.
    pub name: String,
    /// (outputs, inputs); of each expert where it is on several.
    pub extents: (usize, usize),
    /// Block and projection; `None` is the unembedding.
    pub slot: Option<(usize, Projection)>,
    /// Experts that have it, of those of this rank.
    pub experts: Option<Range<usize>>,
}

impl AdaptedModule {
    /// A projection of a block.
    pub(crate) fn of(c: &ModelConfig, layer: usize, projection: Projection) -> Self {
        let experts = c.blocks[layer].experts.as_ref().filter(|_| projection.is_routed());
        let block = &c.blocks[layer];
        let module = if experts.is_some() { projection.expert_module(block) } else { projection.module(block) };
        Self {
            name: format!("model.layers.{layer}.{module}"),
            extents: projection.extents(c, layer),
            slot: Some((layer, projection)),
            experts: experts.map(|experts| experts.held.clone()),
        }
    }

    /// The unembedding as a layer for adapters.
    pub(crate) fn unembedding(c: &ModelConfig) -> Self {
        Self { name: "lm_head".into(), extents: (c.vocab_rows(), c.hidden_size), slot: None, experts: None }
    }

    /// Whether A is what all experts have in common, else B.
    pub(super) fn shares_a(&self) -> bool {
        !matches!(self.slot, Some((_, Projection::Down)))
    }

    /// Whether adapters of the hosted service lack the module: it adapts no projection from a latent. A pair that is lacking is as
    /// one that was never trained.
    pub(crate) fn may_be_absent(&self) -> bool {
        self.slot.is_some_and(|(_, projection)| projection.is_latent_up())
    }

    /// Weights that an adapter on the module changes, expert by expert, each with its A `[rank, inputs]` and B `[outputs, rank]`.
    pub(crate) fn weights<'v>(&self, c: &ModelConfig, pair: [&'v [f32]; 2]) -> Vec<(String, [&'v [f32]; 2])> {
        let Some((layer, projection)) = self.slot else { return vec![(format!("{}.weight", self.name), pair)] };
        let module = projection.module(&c.blocks[layer]);
        let name = |module: &str| format!("model.layers.{layer}.{module}.weight");
        let Some(experts) = &self.experts else { return vec![(name(module), pair)] };
        let copies = self.copies();
        let own = |at: usize| {
            std::array::from_fn(|side| {
                let length = pair[side].len() / copies[side].max(1);
                let first = if copies[side] > 1 { at * length } else { 0 };
                &pair[side][first..first + length]
            })
        };
        let of = |expert: usize| name(&module.replace("mlp.", &format!("mlp.experts.{expert}.")));
        experts.clone().enumerate().map(|(at, expert)| (of(expert), own(at))).collect()
    }

    /// Matrices of A and of B.
    pub(super) fn copies(&self) -> [usize; 2] {
        match &self.experts {
            None => [1, 1],
            Some(experts) if self.shares_a() => [1, experts.len()],
            Some(experts) => [experts.len(), 1],
        }
    }

    /// Extents of A and B at a rank: `[rank, inputs]` and `[outputs, rank]`, on experts with the number of matrices first.
    pub(crate) fn shapes(&self, rank: usize) -> [Vec<usize>; 2] {
        let (outputs, inputs) = self.extents;
        let [a, b] = self.copies();
        match &self.experts {
            None => [vec![rank, inputs], vec![outputs, rank]],
            Some(_) => [vec![a, rank, inputs], vec![b, outputs, rank]],
        }
    }

    /// How ranks share A and B, and for each of both whether a rank has only a part of the gradient.
    fn shards(&self) -> [(ShardAxis, bool); 2] {
        const ALL: (ShardAxis, bool) = (ShardAxis::Replicated, false);
        if self.experts.is_some() {
            // Every rank computes all of the gradient of what experts have in common.
            let own = (ShardAxis::Experts, false);
            return if self.shares_a() { [ALL, own] } else { [own, ALL] };
        }
        // The one that is on every rank meets there a part of the outputs, or of the inputs.
        match self.slot.map(|(_, projection)| projection.shard()) {
            None => [(ShardAxis::Replicated, true), (ShardAxis::Vocabulary, false)],
            Some(ShardAxis::Replicated) => [ALL, ALL],
            Some(ShardAxis::Inputs) => [(ShardAxis::Inputs, false), (ShardAxis::Replicated, true)],
            Some(outputs) => [(ShardAxis::Replicated, true), (outputs, false)],
        }
    }
}

impl ParamTable {
    /// Modules that adapters of a kind are on, in parameter order.
    pub(crate) fn adapted_modules(c: &ModelConfig, lora: &LoraSpec) -> Vec<AdaptedModule> {
        let of_block = |layer| Projection::adapted(c, layer, lora).map(move |p| AdaptedModule::of(c, layer, p));
        let mut modules: Vec<_> = (0..c.num_layers()).flat_map(of_block).collect();
        if lora.train_unembed {
            modules.push(AdaptedModule::unembedding(c));
        }
        modules
    }

    /// Parameters of an adapter: A and B of each module, one after the other.
    pub(crate) fn of_adapter(c: &ModelConfig, lora: &LoraSpec) -> Vec<ParamSpec> {
        let modules = Self::adapted_modules(c, lora).into_iter();
        modules
            .flat_map(|module| {
                let ([a, b], [a_shard, b_shard]) = (module.shapes(lora.rank as usize), module.shards());
                let spec = |part, shape, init, (shard, is_partial)| {
                    let name = format!("{}.{part}", module.name);
                    ParamSpec { name, shape, init, shard, is_partial }
                };
                [spec("lora_A", a, Init::KaimingUniform, a_shard), spec("lora_B", b, Init::Zeros, b_shard)]
            })
            .collect()
    }
}
