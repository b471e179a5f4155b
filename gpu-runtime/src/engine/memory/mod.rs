//! The engine's memory budget: its division, and the prediction of a run's memory.
//!
//! Base weights, a training pass and sampler checkpoints have fixed parts. Runs are admitted by the caller, by their
//! predicted bytes, into what is left; keys and values use what the loaded runs leave, and at least their own part.

use std::sync::Arc;

use trainyard_protocol::{MemoryPlan, PlanMemory, RunMemory, RunSpec};

use super::EngineOptions;
use super::base::Base;
use crate::backend::Backend;
use crate::config::{LoadError, ModelConfig, ModelSource};
use crate::model::zero::replicas::part_elements;
use crate::model::{
    Adapter, Model, ParamSpec, ParamTable, Shard, TrainedParams, Units, Weights, lookup_bytes, packed_bytes,
};
use crate::parallel::Parallel;
pub use blocks::block_formats;
pub(crate) use blocks::saved_by_blocks;
use images::ImageMemory;

/// The fraction of the limit of keys and values that runs never get.
pub(super) const KV_PART: usize = 4;

/// The division of the budget.
#[derive(Clone, Copy)]
pub(super) struct Budget {
    pub(super) plan: MemoryPlan,
    /// Maximum bytes of keys and values.
    kv_max: usize,
}

impl Budget {
    /// Divides the budget of `options`, a rank's, for the engine of rank `rank`, which serves its part of `models`, each set of
    /// weights once.
    ///
    /// # Errors
    /// Fails if nothing would be left for runs, or the ranks cannot share a model.
    pub(super) fn new<'a, B: Backend>(
        backend: &B,
        models: impl Iterator<Item = &'a ModelSource>,
        options: &EngineOptions,
        rank: usize,
    ) -> Result<Self, LoadError> {
        let rank = rank % options.parallel.replica();
        let of =
            |config| (Weights::planned_bytes(backend, config, true), Weights::planned_bytes(backend, config, false));
        let mut saved = 0;
        let own: Vec<_> = models
            .map(|model| {
                let formats = block_formats(&model.config, Some(&*model.tensors), options.weights);
                saved += saved_by_blocks(backend, &model.config, &formats);
                Shard::of(&model.config, rank, options.parallel).map(|(_, own)| own)
            })
            .collect::<Result<_, _>>()?;
        let shared = |config| shared_bytes(backend, config);
        let sizes: Vec<_> = own.iter().map(|config| (of(config), shared(config))).collect();
        let images = ImageMemory::new(backend, &own, options);
        let weights = sizes.iter().map(|((trained, _), shared)| trained + shared).sum::<usize>() + images.weights;
        let weights = weights.saturating_sub(saved);
        let largest = sizes.iter().map(|((_, sampled), _)| *sampled).max().unwrap_or(0);
        let bounded = options.memory_bytes.is_some();
        let plan = MemoryPlan {
            budget: options.memory_bytes.map(bytes),
            weights: bytes(weights),
            // Passes over images and of training take turns.
            activations: bytes(
                options.activation_bytes.max(images.pass) + images.cache + backend.exchange_bytes(options.parallel),
            ),
            // Any checkpoint of all parameters fits.
            checkpoints: bytes(if bounded { options.checkpoint_bytes.max(largest) } else { options.checkpoint_bytes }),
            kv: bytes(options.kv_bytes / KV_PART),
        };
        match plan.budget {
            Some(budget) if plan.runs() == 0 => Err(LoadError::Memory { budget, plan }),
            _ => Ok(Self { plan, kv_max: options.kv_bytes }),
        }
    }

    /// Maximum bytes of checkpoints that are sampled from.
    pub(super) fn checkpoint_limit(&self) -> usize {
        usize::try_from(self.plan.checkpoints).unwrap_or(usize::MAX)
    }

    /// Maximum bytes of keys and values while runs, snapshots and checkpoints beyond their part take `held` bytes.
    pub(super) fn kv_limit(&self, held: u64) -> usize {
        let left = self.plan.runs().saturating_add(self.plan.kv).saturating_sub(held);
        usize::try_from(left.max(self.plan.kv)).unwrap_or(usize::MAX).min(self.kv_max)
    }
}

/// Memory that a run of a model takes on a rank of `layout` whose part of the model is `config`. With several replicas
/// each has a part of the optimizer's state, or of the whole state.
pub(super) fn run_memory<'a, B: Backend>(
    backend: &B,
    config: &ModelConfig,
    what: impl Into<TrainedParams<'a>>,
    layout: Parallel,
) -> RunMemory {
    let (table, what, replicas) = (ParamTable::new(config), what.into(), layout.dp());
    let trained = table.trained(config, what);
    let lens: Vec<usize> = trained.iter().map(ParamSpec::len).collect();
    let [whole, part] = [1, replicas].map(|replicas| part_elements(lens.iter().copied(), replicas) * size_of::<f32>());
    if layout.divides_parameters() && what.lora.is_none() {
        // Masters, two moments, and the gradients of the request in progress and those accumulated.
        let packed = |param: &ParamSpec, trains| packed_bytes(backend, param, trains);
        let gathered = Units::of(&table, &trained).memory(&trained, packed, lookup_bytes(config));
        let snapshot = Weights::planned_bytes(backend, config, false);
        let held = 5 * part + gathered.weights + gathered.gradients;
        return RunMemory { bytes: bytes(held), snapshot_bytes: bytes(snapshot) };
    }
    // Masters and the gradient of the request in progress; two moments and the accumulated gradient; and in a step the masters
    // that this replica updates, where there are others.
    let arrays = 2 * whole + 3 * part + if replicas > 1 { part } else { 0 };
    let (packed, snapshot) = match what.lora {
        Some(lora) => {
            let [frozen, trained] = [false, true].map(|trains| Adapter::planned_bytes(backend, config, lora, trains));
            (trained, frozen)
        }
        None => {
            // A snapshot is the weights of the passes, until a step replaces these. Sums of tied embeddings are apart.
            let lookups = if config.tie_word_embeddings { config.vocab_rows() * config.hidden_size } else { 0 };
            let weights = Weights::planned_bytes(backend, config, true);
            (weights + lookups * size_of::<f32>(), weights)
        }
    };
    RunMemory { bytes: bytes(arrays + packed), snapshot_bytes: bytes(snapshot) }
}

/// The plan of all ranks, given the plan of one.
pub(super) fn plan_of_all(one: MemoryPlan, ranks: u64) -> MemoryPlan {
    MemoryPlan {
        budget: one.budget.map(|budget| budget * ranks),
        weights: one.weights * ranks,
        activations: one.activations * ranks,
        checkpoints: one.checkpoints * ranks,
        kv: one.kv * ranks,
    }
}

/// What all runs of a model share beside its weights: pairs of cosine and sine for every position, and indexers.
fn shared_bytes<B: Backend>(backend: &B, config: &ModelConfig) -> usize {
    config.rope_bytes() + Model::planned_indexer_bytes(backend, config)
}

pub(super) fn bytes(bytes: usize) -> u64 {
    bytes as u64
}

/// Predicts the memory of runs.
pub(super) struct Planner<B: Backend> {
    pub(super) backend: Arc<B>,
    pub(super) bases: Vec<Arc<Base<B>>>,
    pub(super) plan: MemoryPlan,
}

impl<B: Backend> PlanMemory for Planner<B> {
    fn plan(&self) -> MemoryPlan {
        self.plan
    }

    fn run(&self, spec: &RunSpec) -> Option<RunMemory> {
        let base = self.bases.iter().find(|base| base.name == spec.base_model)?;
        Some(run_memory(&*self.backend, base.config(), spec, base.layout))
    }
}

mod blocks;
pub(crate) mod gpu;
mod held;
mod images;
#[cfg(test)]
mod tests;
