//! The engine: runs, training microbatches and continuous batching over one backend.

mod base;
mod control_ops;
mod control_queue;
mod divided_run;
mod fair_share;
mod fingerprint;
mod image_starts;
mod images;
mod load_progress;
mod lockstep;
mod memory;
mod optimizer;
mod options;
mod parallel;
mod rank_groups;
mod run;
mod sample_starts;
mod sampler;
mod saves;
mod schema_compiles;
mod step;
mod tenant_queues;
mod train;
mod turns;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use trainyard_protocol::{
    BaseModel, Completion, EngineStats, IsAbandoned, MemoryPlan, Numerics, OpError, OpResult, Operation, PlanMemory,
    Prepare, RequestId, RunId, SampleProgress, TenantShare,
};

pub use self::memory::block_formats;
pub use self::memory::gpu::ConfiguredParts;
use self::memory::gpu::distinct_sources;
pub(crate) use self::memory::saved_by_blocks;
use self::saves::background::Background;
use self::saves::loads::CheckpointLoads;
use self::saves::snapshots::Snapshots;
use crate::backend::{Backend, HostBackend, HostKernels, MicrobatchRows};
use crate::collective::Ranks;
use crate::config::{LoadError, ModelConfig, ModelSource};
use crate::loss::Preparer;
use crate::model::Shard;
use crate::parallel::{LayoutError, Parallel};
use base::Base;
use control_queue::ControlQueue;
use images::ImageQueue;
use lockstep::{Digest, agreed_turn};
use memory::{Budget, Planner, plan_of_all};
pub use options::{EngineOptions, WeightStorage};
pub use parallel::{FetchDone, FetchFailure, FolderCopies, FollowError, ParallelEngine, ProcessRank, RankFolders};
use rank_groups::RankGroups;
use run::{TrainingRun, unknown_run};
pub(crate) use sampler::LOGIT_ROWS;
pub use sampler::MAX_SEQUENCES;
use sampler::{Sampler, SamplerWeights};
use schema_compiles::SchemaCompiles;
use train::Trainer;
use turns::Turns;
use watch::SampleWatch;

/// How long a step waits for each thread in the background when there is nothing else to do.
const BACKGROUND_WAIT: Duration = Duration::from_millis(2);
/// Must be increased by each release that changes the bits of any result on any kernel class, as the recorded checksums
/// show (`tests/engine/checksums.rs`): runs of other versions are not silently continued.
const NUMERICS_VERSION: u32 = 2;

/// A snapshot to register: its key, its weights and their bytes.
type NewSnapshot<B> = (String, SamplerWeights<B>, usize);

/// Trains runs and samples from them on one backend.
pub struct Engine<B: Backend> {
    backend: Arc<B>,
    /// Ranks that execute the same calls.
    ranks: Ranks,
    parallel: Parallel,
    /// Number of steps since the start, on which ranks agree.
    steps: usize,
    bases: Vec<Arc<Base<B>>>,
    runs: BTreeMap<RunId, TrainingRun<B>>,
    trainer: Trainer<B>,
    sampler: Sampler<B>,
    images: ImageQueue<B>,
    watch: SampleWatch<B>,
    budget: Budget,
    /// Sampler snapshots in memory, by key.
    snapshots: Snapshots<B>,
    checkpoints: CheckpointLoads<B>,
    schemas: SchemaCompiles<B>,
    control: ControlQueue,
    turns: Turns,
    save_thread: Background<RequestId, OpResult>,
    /// The snapshot to register when the current save is complete.
    snapshot_after_save: Option<NewSnapshot<B>>,
    done: Vec<Completion>,
}

/// An engine on the host backend.
pub type CpuEngine = Engine<HostBackend>;

impl CpuEngine {
    /// Makes an engine of one rank on the host backend with the threads, kernels and type of weights of `options`.
    ///
    /// # Errors
    /// The error of the first model that cannot be loaded.
    pub fn new(models: Vec<(String, ModelSource)>, options: EngineOptions) -> Result<Self, LoadError> {
        Self::on(host_backend(&options), models, options)
    }

    /// Returns the division of memory of an engine for these models, over all ranks together, without loading the
    /// models.
    ///
    /// # Errors
    /// [`LoadError::Memory`] if the budget leaves nothing for runs, [`LoadError::Layout`] if the ranks cannot share a
    /// model.
    pub fn memory_plan(models: &[ModelSource], options: &EngineOptions) -> Result<MemoryPlan, LoadError> {
        let backend = host_backend(options);
        let world = options.parallel.world();
        let budget = Budget::new(&backend, distinct_sources(models.iter()), &options.of_rank(), 0)?;
        Ok(plan_of_all(budget.plan, world as u64))
    }
}

fn host_backend(options: &EngineOptions) -> HostBackend {
    let kernels = options.kernels.unwrap_or_else(HostKernels::detect);
    HostBackend::with_isa(options.threads, kernels).with_dtype(options.dtype)
}

/// Whether the ranks of a layout can share a model.
pub(crate) fn check_layout(config: &ModelConfig, parallel: Parallel) -> Result<(), LayoutError> {
    Shard::of(config, 0, parallel).map(drop)
}

impl<B: Backend> Engine<B> {
    /// Loads and packs `models`: the name that clients use, and the source. Names of the same files share their weights. The
    /// type of weights is the backend's; `options.dtype`, `options.threads`, `options.kernels` and `options.parallel` are
    /// ignored.
    ///
    /// # Errors
    /// The error of the first model that cannot be loaded, or [`LoadError::Memory`] if the budget leaves nothing for
    /// runs.
    pub fn on(backend: B, models: Vec<(String, ModelSource)>, options: EngineOptions) -> Result<Self, LoadError> {
        Self::on_ranks(backend, models, EngineOptions { parallel: Parallel::default(), ..options }, Ranks::default())
    }

    /// [`Engine::on`] for one of the ranks of `options.parallel`, with its part of the models. Budgets are the rank's.
    fn on_ranks(
        backend: B,
        models: Vec<(String, ModelSource)>,
        options: EngineOptions,
        ranks: Ranks,
    ) -> Result<Self, LoadError> {
        let models = base::packed(base::on_device::<B>(models), options.weights);
        let distinct = distinct_sources(models.iter().map(|(_, model)| model));
        let budget = Budget::new(&backend, distinct, &options, ranks.rank())?;
        let groups = RankGroups::new(ranks, options.parallel).connected(&backend)?;
        let mut bases = Vec::with_capacity(models.len());
        for (name, source) in models {
            bases.push(Arc::new(Base::new(&backend, name, source, &groups, &bases, options.weights)?));
        }
        let RankGroups { all: ranks, replicas, .. } = groups;
        backend.limit_unused(options.activation_bytes);
        let microbatch = options.microbatch_tokens.map(MicrobatchRows::of_all);
        let microbatch = microbatch.unwrap_or_else(|| backend.microbatch_rows());
        Ok(Self {
            trainer: Trainer::new(microbatch, options.activation_bytes).on(&replicas, &ranks),
            sampler: Sampler::new(options.kv_bytes).with_balanced_rows(backend.balanced_rows()).on(&replicas),
            images: ImageQueue::new(options.image_cache_bytes),
            watch: SampleWatch::new(options.verified_per_million, options.activation_bytes),
            backend: Arc::new(backend),
            bases,
            budget,
            runs: BTreeMap::new(),
            snapshots: Snapshots::default(),
            checkpoints: CheckpointLoads::new(budget.checkpoint_limit(), options.memory_bytes.is_some()).on(&ranks),
            schemas: SchemaCompiles::new().on(&ranks),
            control: ControlQueue::new(),
            turns: Turns::default(),
            save_thread: Background::new("save").on(&ranks),
            snapshot_after_save: None,
            done: Vec::new(),
            parallel: options.parallel,
            ranks,
            steps: 0,
        })
    }

    /// Returns the backend, which describes its device and has counters.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    fn base(&self, name: &str) -> Result<Arc<Base<B>>, OpError> {
        self.bases.iter().find(|base| base.name == name).cloned().ok_or_else(|| {
            let served: Vec<_> = self.bases.iter().map(|base| base.name.as_str()).collect();
            OpError::user(format!("base_model {name:?} is not served; served models: {}", served.join(", ")))
        })
    }

    fn finish(&mut self, id: RequestId, result: Result<OpResult, OpError>) {
        self.done.push(Completion::new(id, result));
    }

    fn run(&self, id: &RunId) -> Result<&TrainingRun<B>, OpError> {
        self.runs.get(id).ok_or_else(|| unknown_run(id))
    }

    fn drop_run(&mut self, run: &RunId) {
        self.runs.remove(run);
        self.sampler.evict_unused();
        if self.runs.is_empty() {
            self.backend.trim();
        }
    }
}

impl<B: Backend> trainyard_protocol::Engine for Engine<B> {
    fn models(&self) -> Vec<BaseModel> {
        self.bases.iter().map(|base| base.describe()).collect()
    }

    fn numerics(&self) -> BTreeMap<String, Numerics> {
        let (device, dtype) = (self.backend.device(), self.backend.dtype());
        let of = |base: &Arc<Base<B>>| Numerics {
            weights: base.fingerprint.to_string(),
            dtype: dtype.name().to_owned(),
            kernels: device.kernels.to_owned(),
            layout: self.parallel.name(),
            version: NUMERICS_VERSION,
        };
        self.bases.iter().map(|base| (base.name.clone(), of(base))).collect()
    }

    fn preparer(&self) -> Arc<dyn Prepare> {
        Arc::new(Preparer::new(&self.models()))
    }

    fn memory(&self) -> Arc<dyn PlanMemory> {
        let (backend, bases) = (Arc::clone(&self.backend), self.bases.clone());
        Arc::new(Planner { backend, bases, plan: self.budget.plan })
    }

    fn start(&mut self, id: RequestId, share: TenantShare, operation: Operation) {
        let started = match operation {
            Operation::ForwardBackward(request) => self.start_training(id.clone(), share, request),
            Operation::Sample(operation) => self.start_sample(id.clone(), share, *operation),
            other => {
                self.control.push(&share, id.clone(), other);
                Ok(())
            }
        };
        if let Err(error) = started {
            self.finish(id, Err(error));
        }
    }

    fn step(&mut self) -> Vec<Completion> {
        if self.failure().is_some() {
            return Vec::new();
        }
        self.advance_background(Duration::ZERO);
        if self.done.is_empty() {
            let others = self.trainer.shares().chain(self.images.shares());
            self.sampler.note_shares(others.chain(self.control.shares()));
            let waiting = self.waiting();
            let turns = &mut self.turns;
            match agreed_turn(&self.ranks, || turns.next(waiting)) {
                Some(turn) => self.take_turn(turn, waiting.sampling),
                None => self.advance_background(BACKGROUND_WAIT),
            }
            self.snapshots.free_unused();
            self.images.evict_unused();
            self.limit_kv(0);
        }
        self.steps += 1;
        let done = std::mem::take(&mut self.done);
        let digests = [self.sampler.digest(), self.trainer.stats().digest].map(Digest::extent);
        self.ranks.meet(&[self.steps, done.len(), digests[0], digests[1]]);
        // What was computed with a collective that failed is not to be used.
        if self.failure().is_some() { Vec::new() } else { done }
    }

    fn is_idle(&self) -> bool {
        let control_idle = self.control.is_empty() && self.save_thread.is_idle();
        control_idle
            && self.checkpoints.is_idle()
            && self.schemas.is_idle()
            && self.images.is_idle()
            && self.done.is_empty()
            && self.trainer.is_idle()
            && self.sampler.is_idle()
            && self.watch.is_idle()
    }

    fn take_admitted(&mut self) -> Vec<RequestId> {
        self.sampler.take_admitted()
    }

    fn sampled_since(&self, id: &RequestId, known: &[usize]) -> Vec<SampleProgress> {
        self.sampler.sampled_since(id, known)
    }

    fn cancel(&mut self, ids: &BTreeSet<RequestId>) {
        self.control.cancel(ids);
        self.save_thread.cancel_if(|id| ids.contains(id));
        self.checkpoints.cancel(ids);
        self.schemas.cancel(ids);
        self.images.cancel(ids);
        self.watch.cancel(ids);
        self.sampler.cancel(ids);
        self.trainer.cancel(ids);
    }

    fn ask_when_abandoned(&mut self, is_abandoned: IsAbandoned) {
        self.trainer.ask_when_abandoned(is_abandoned);
    }

    fn unload_run(&mut self, run: &RunId) {
        self.control.drop_operations(run);
        self.images.drop_requests(run);
        self.trainer.drop_requests(run);
        self.drop_run(run);
    }

    fn drop_snapshot(&mut self, key: &str) {
        self.snapshots.remove(key);
        self.sampler.evict_unused();
    }

    fn failure(&self) -> Option<OpError> {
        self.backend.failure().or_else(|| self.ranks.check().err().map(|e| e.to_string())).map(OpError::server)
    }

    fn stats(&self) -> EngineStats {
        let (training, sampling, exchanges) = (self.trainer.stats(), self.sampler.stats(), self.ranks.used());
        let watch = self.watch.stats();
        EngineStats {
            microbatches: training.passes,
            microbatch_tokens: training.tokens,
            microbatch_capacity: training.capacity,
            loaded_runs: self.runs.len() as u64,
            memory: self.memory_use(sampling.kv_bytes),
            memory_budget: self.budget.plan.budget.unwrap_or(0),
            ranks: self.ranks.world() as u64,
            tensor_ranks: self.parallel.tp() as u64,
            expert_ranks: self.parallel.ep() as u64,
            replicas: self.parallel.dp() as u64,
            collective_nanoseconds: exchanges.nanoseconds,
            collective_bytes: exchanges.bytes_sent,
            verified_samples: watch.verified,
            differing_samples: watch.differing,
            skipped_verifications: watch.skipped,
            ..sampling
        }
    }
}

#[cfg(test)]
#[path = "fault_tests.rs"]
pub(in crate::engine) mod fault_tests;

#[cfg(test)]
#[path = "finite_tests.rs"]
mod finite_tests;
