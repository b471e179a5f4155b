//! The engine: runs, training microbatches and continuous batching over one backend.

mod background;
mod base;
mod checkpoint_loads;
mod checkpoint_reader;
mod checkpoint_writer;
mod control_ops;
mod control_queue;
mod fair_share;
mod fingerprint;
mod memory;
mod optimizer;
mod run;
mod sampler;
mod snapshots;
mod tenant_queues;
mod train;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use trainyard_protocol::{
    BaseModel, Completion, EngineStats, MemoryPlan, MemoryUse, Numerics, OpError, OpResult, Operation, PlanMemory,
    Prepare, RequestId, RunId, SampleOperation, SampleProgress, SamplerSource, TenantShare,
};

use crate::backend::{Backend, Dtype, HostBackend};
use crate::config::{LoadError, ModelSource};
use crate::loss::Preparer;
use background::Background;
use base::Base;
use checkpoint_loads::{CheckpointLoads, CheckpointSample};
use control_queue::ControlQueue;
use memory::{Budget, Planner, bytes};
use run::TrainingRun;
pub use sampler::MAX_SEQUENCES;
use sampler::{Sampler, SamplerWeights};
use snapshots::Snapshots;
use train::Trainer;

/// Decoding steps between two training microbatches when both are waiting.
const DECODES_PER_MICROBATCH: usize = 16;
/// How long a step waits for a save or a checkpoint when there is nothing else to do.
const BACKGROUND_WAIT: Duration = Duration::from_millis(2);
/// To be increased by each release that changes the bits of any result on any kernel class, as the recorded checksums tell
/// (`tests/engine/checksums.rs`): runs of other versions are not silently continued.
const NUMERICS_VERSION: u32 = 1;
/// How models are divided over devices: they are not.
const LAYOUT: &str = "single";

/// How an engine computes.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Type of base weights and of the inputs of their GEMMs.
    pub dtype: Dtype,
    /// Threads; 0 is one per core.
    pub threads: usize,
    /// Budget in bytes of all that the engine holds; `None` is no limit. The budgets below are parts of it.
    pub memory_bytes: Option<usize>,
    /// Budget in bytes of keys and values, for samples and the prefix cache together. Runs may leave less of it.
    pub kv_bytes: usize,
    /// Rows of a training microbatch; a longer example is a microbatch of its own.
    pub microbatch_tokens: usize,
    /// Budget in bytes of a training pass. Microbatches shrink to fit; an example that alone exceeds it saves fewer
    /// activations and recomputes the others, which changes no bit. One that exceeds it even so is computed nevertheless.
    pub activation_bytes: usize,
    /// Limit in bytes of cached sampler checkpoints; the one used last is always cached.
    pub checkpoint_bytes: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            dtype: Dtype::Bf16,
            threads: 0,
            memory_bytes: None,
            kv_bytes: 2 << 30,
            microbatch_tokens: 256,
            activation_bytes: 1 << 30,
            checkpoint_bytes: 1 << 30,
        }
    }
}

/// A snapshot to register: its key, its weights and their bytes.
type NewSnapshot<B> = (String, SamplerWeights<B>, usize);

/// Trains runs and samples from them on one backend.
pub struct Engine<B: Backend> {
    backend: Arc<B>,
    bases: Vec<Arc<Base<B>>>,
    runs: BTreeMap<RunId, TrainingRun<B>>,
    trainer: Trainer<B>,
    sampler: Sampler<B>,
    budget: Budget,
    /// In-memory sampler snapshots by key.
    snapshots: Snapshots<B>,
    checkpoints: CheckpointLoads<B>,
    control: ControlQueue,
    /// Whether the last step executed control operations: a batch waits for one such step at most.
    last_step_was_control: bool,
    save_thread: Background<RequestId, OpResult>,
    /// The snapshot to register when the current save is complete.
    snapshot_after_save: Option<NewSnapshot<B>>,
    done: Vec<Completion>,
    /// Decoding steps since the last training microbatch.
    decodes: usize,
}

/// An engine on the host backend.
pub type CpuEngine = Engine<HostBackend>;

impl CpuEngine {
    /// An engine on the host backend with the threads and the type of weights that `options` name.
    ///
    /// # Errors
    /// The first model that cannot be loaded.
    pub fn new(models: Vec<(String, ModelSource)>, options: EngineOptions) -> Result<Self, LoadError> {
        Self::on(HostBackend::new(options.threads).with_dtype(options.dtype), models, options)
    }

    /// How the memory of an engine for these models would be divided, without loading them.
    ///
    /// # Errors
    /// [`LoadError::Memory`] when the budget leaves nothing for runs.
    pub fn memory_plan(models: &[ModelSource], options: &EngineOptions) -> Result<MemoryPlan, LoadError> {
        let backend = HostBackend::new(options.threads).with_dtype(options.dtype);
        let is_new = |at: usize| !models[..at].iter().any(|other| other.is_same_model(&models[at]));
        let distinct = (0..models.len()).filter(|at| is_new(*at)).map(|at| &models[at].config);
        Budget::new(&backend, distinct, options).map(|budget| budget.plan)
    }
}

impl<B: Backend> Engine<B> {
    /// Loads and packs `models`: the name that clients use, and the source. Names of the same files share their weights. The type of weights is the backend's;
    /// `options.dtype` and `options.threads` are ignored.
    ///
    /// # Errors
    /// The first model that cannot be loaded, or a memory budget that leaves nothing for runs.
    pub fn on(backend: B, models: Vec<(String, ModelSource)>, options: EngineOptions) -> Result<Self, LoadError> {
        let is_new = |at: usize| !models[..at].iter().any(|(_, other)| other.is_same_model(&models[at].1));
        let distinct = (0..models.len()).filter(|at| is_new(*at)).map(|at| &models[at].1.config);
        let budget = Budget::new(&backend, distinct, &options)?;
        let mut bases = Vec::with_capacity(models.len());
        for (name, source) in models {
            bases.push(Arc::new(Base::new(&backend, name, source, &bases)?));
        }
        backend.limit_unused(options.activation_bytes);
        Ok(Self {
            trainer: Trainer::new(options.microbatch_tokens, options.activation_bytes),
            sampler: Sampler::new(options.kv_bytes),
            backend: Arc::new(backend),
            bases,
            budget,
            runs: BTreeMap::new(),
            snapshots: Snapshots::default(),
            checkpoints: CheckpointLoads::new(budget.checkpoint_limit(), options.memory_bytes.is_some()),
            control: ControlQueue::new(),
            last_step_was_control: false,
            save_thread: Background::new("save"),
            snapshot_after_save: None,
            done: Vec::new(),
            decodes: 0,
        })
    }

    /// For the description of its device and its counters.
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

    fn start_sample(&mut self, id: RequestId, share: TenantShare, operation: SampleOperation) -> Result<(), OpError> {
        let weights = match &operation.source {
            SamplerSource::Base { model } => SamplerWeights::of_base(self.base(model)?),
            SamplerSource::Snapshot { key } => {
                let gone = || OpError::user("the sampling session's weights are gone; save them for sampling again");
                self.snapshots.get(key).ok_or_else(gone)?
            }
            SamplerSource::Checkpoint { base_model, dir } => {
                let (base, dir) = (self.base(base_model)?, dir.clone());
                self.checkpoints.push(base, dir, CheckpointSample { id, share, operation });
                self.start_loaded(Duration::ZERO);
                return Ok(());
            }
        };
        self.sampler.start(id, share, weights, operation)
    }

    /// Starts the samples whose checkpoint is in memory now, waiting for one for up to `wait`.
    fn start_loaded(&mut self, wait: Duration) {
        for (CheckpointSample { id, share, operation }, weights) in self.checkpoints.advance(&self.backend, wait) {
            let started = weights.and_then(|weights| self.sampler.start(id.clone(), share, weights, operation));
            if let Err(error) = started {
                self.finish(id, Err(error));
            }
        }
    }

    fn drop_run(&mut self, run: &RunId) {
        self.runs.remove(run);
        self.sampler.evict_unused();
        if self.runs.is_empty() {
            self.backend.trim();
        }
    }

    /// Limits keys and values to what runs leave, `incoming` bytes for another one included.
    fn limit_kv(&mut self, incoming: u64) {
        let runs: u64 = self.runs.values().map(|run| run.planned.bytes).sum();
        let checkpoints = bytes(self.checkpoints.bytes()).saturating_sub(self.budget.plan.checkpoints);
        let held = runs + bytes(self.snapshots.bytes()) + checkpoints;
        self.sampler.set_kv_limit(self.budget.kv_limit(held.saturating_add(incoming)));
        self.bases.iter().for_each(|base| base.model.reclaim_kv(&*self.backend));
    }

    /// Bytes that are held now.
    fn memory_use(&self, kv: u64) -> MemoryUse {
        let runs = self.runs.values().map(|run| run.bytes(&*self.backend)).sum::<usize>();
        let buffers = self.backend.buffer_bytes();
        MemoryUse {
            weights: self.budget.plan.weights,
            runs: bytes(runs + self.trainer.gradient_bytes(&self.runs)),
            snapshots: bytes(self.snapshots.bytes()),
            checkpoints: bytes(self.checkpoints.bytes()),
            kv,
            activations: bytes(buffers.used + buffers.unused),
        }
    }

    /// Runs a sampling pass or a training microbatch.
    fn batch_step(&mut self) {
        let (train, sample) = (!self.trainer.is_idle(), !self.sampler.is_idle());
        if sample && (!train || self.decodes < DECODES_PER_MICROBATCH) {
            self.decodes += 1;
            self.sample_step();
            // Not after every pass: buffers of microbatches must stay in the pool between two of them.
            if self.decodes.is_multiple_of(DECODES_PER_MICROBATCH) {
                self.backend.end_pass();
            }
        } else if train {
            self.decodes = 0;
            self.train_step();
            self.backend.end_pass();
        }
    }

    fn train_step(&mut self) {
        let finished = self.trainer.step(&*self.backend, &mut self.runs);
        self.done.extend(finished);
    }

    fn sample_step(&mut self) {
        let finished = self.sampler.step(&*self.backend);
        self.done.extend(finished);
    }
}

fn unknown_run(id: &RunId) -> OpError {
    OpError::server(format!("model {id} is not loaded"))
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
            layout: LAYOUT.to_owned(),
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
            Operation::ForwardBackward(request) => match self.runs.get(&request.run) {
                Some(run) => self.trainer.start(id.clone(), share, run, request),
                None => Err(unknown_run(&request.run)),
            },
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
        self.collect_save(Duration::ZERO);
        self.start_loaded(Duration::ZERO);
        if self.done.is_empty() {
            let batched = !self.trainer.is_idle() || !self.sampler.is_idle();
            let ready = self.control.has(|operation| self.is_ready(operation));
            self.last_step_was_control = ready && !(self.last_step_was_control && batched);
            if self.last_step_was_control {
                self.control_step();
            } else if batched {
                self.batch_step();
            } else {
                self.collect_save(BACKGROUND_WAIT);
                self.start_loaded(BACKGROUND_WAIT);
            }
            self.snapshots.free_unused();
            self.limit_kv(0);
        }
        std::mem::take(&mut self.done)
    }

    fn is_idle(&self) -> bool {
        let control_idle = self.control.is_empty() && self.save_thread.is_idle();
        control_idle
            && self.checkpoints.is_idle()
            && self.done.is_empty()
            && self.trainer.is_idle()
            && self.sampler.is_idle()
    }

    fn take_admitted(&mut self) -> Vec<RequestId> {
        self.sampler.take_admitted()
    }

    fn sampled_since(&self, id: &RequestId, known: &[usize]) -> Vec<SampleProgress> {
        self.sampler.sampled_since(id, known)
    }

    fn cancel(&mut self, ids: &BTreeSet<RequestId>) {
        self.checkpoints.cancel(ids);
        self.sampler.cancel(ids);
    }

    fn unload_run(&mut self, run: &RunId) {
        self.control.drop_operations(run);
        self.trainer.drop_requests(run);
        self.drop_run(run);
    }

    fn drop_snapshot(&mut self, key: &str) {
        self.snapshots.remove(key);
        self.sampler.evict_unused();
    }

    fn stats(&self) -> EngineStats {
        let (training, sampling) = (self.trainer.stats(), self.sampler.stats());
        EngineStats {
            microbatches: training.passes,
            microbatch_tokens: training.tokens,
            microbatch_capacity: training.capacity,
            loaded_runs: self.runs.len() as u64,
            memory: self.memory_use(sampling.kv_bytes),
            memory_budget: self.budget.plan.budget.unwrap_or(0),
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
