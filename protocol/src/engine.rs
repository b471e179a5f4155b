//! The boundary between scheduling and computing.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    MemoryUse, Numerics, OpError, OpResult, Operation, PlanMemory, Prepare, RequestId, RunId, SampleProgress, Unbounded,
};

/// A base model as the engine serves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseModel {
    /// The name that clients use.
    pub name: String,
    /// The family, e.g. `llama`.
    pub arch: String,
    /// Most tokens of prompt and completion together.
    pub max_context_length: usize,
    /// Token ids are below this.
    pub vocab_size: usize,
    /// Parameters of the base model.
    pub parameters: u64,
}

/// The tenant whose fair share of the engine an operation uses. Busy tenants share the engine in proportion to their
/// weights (weighted deficit round-robin); one tenant's backlog does not delay another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantShare {
    /// The tenant's id: operations with the same name are in the same fair-share queue.
    pub name: Arc<str>,
    /// Weight relative to other tenants. The operation that was started last decides where a tenant's differ.
    pub weight: NonZeroU32,
}

impl TenantShare {
    /// A tenant of weight 1.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), weight: NonZeroU32::MIN }
    }
}

/// Counters of an engine since it was created, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Training passes.
    pub microbatches: u64,
    /// Tokens of these passes.
    pub microbatch_tokens: u64,
    /// Tokens that these passes could have held: the ratio is their occupancy.
    pub microbatch_capacity: u64,
    /// Sampling passes.
    pub sampling_passes: u64,
    /// Tokens of prompts that these passes computed.
    pub prompt_tokens: u64,
    /// Tokens that they sampled.
    pub sampled_tokens: u64,
    /// Samples in progress.
    pub active_samples: u64,
    /// Runs in memory.
    pub loaded_runs: u64,
    /// Bytes of keys and values, cached ones included.
    pub kv_bytes: u64,
    /// Bytes that these may be now.
    pub kv_limit: u64,
    /// Bytes that it holds.
    pub memory: MemoryUse,
    /// Bytes that it may hold; 0 is no limit.
    pub memory_budget: u64,
    /// Ranks that share its models; 1 where none do.
    pub ranks: u64,
    /// Of these, those that share each layer's heads and its MLP's width.
    pub tensor_ranks: u64,
    /// Copies of these that share experts alone.
    pub expert_ranks: u64,
    /// Replicas of the models that these ranks make up; 1 where there is one alone.
    pub replicas: u64,
    /// Nanoseconds that its first rank spent in exchanges with the others.
    pub collective_nanoseconds: u64,
    /// Bytes that this rank sent to the others.
    pub collective_bytes: u64,
}

/// A finished operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The request that [`Engine::start`] named.
    pub id: RequestId,
    /// Its result, or why it failed.
    pub result: Result<OpResult, OpError>,
    /// The run that the engine dropped because the operation left it in an unknown state: an internal error.
    pub lost_run: Option<RunId>,
}

impl Completion {
    /// An operation that cost no run.
    pub fn new(id: RequestId, result: Result<OpResult, OpError>) -> Self {
        Self { id, result, lost_run: None }
    }
}

/// An engine: executes operations in bounded steps on the thread that owns it.
///
/// The caller keeps the order of a run's operations: it starts the next one after the last one's
/// completion. A failed operation leaves the run as it was before it, unless its completion says that the run is lost. A
/// panic in a batch fails the operation at fault alone: the others are executed again, with the same bits as without it.
pub trait Engine: Send {
    /// The models it serves.
    fn models(&self) -> Vec<BaseModel>;

    /// What decides the bits of its results, by the name of the model. Runs of a model that is absent are not tied to how
    /// it is computed.
    fn numerics(&self) -> BTreeMap<String, Numerics> {
        BTreeMap::new()
    }

    /// What checks the content of training requests to its models, on any thread.
    fn preparer(&self) -> Arc<dyn Prepare>;

    /// What predicts the memory of runs. The caller starts the creation, restore or load of a run only while all loaded
    /// runs fit together.
    fn memory(&self) -> Arc<dyn PlanMemory> {
        Arc::new(Unbounded)
    }

    /// Takes an operation on behalf of a tenant; its completion comes from a later [`Engine::step`].
    fn start(&mut self, id: RequestId, share: TenantShare, operation: Operation);

    /// Does a bounded piece of work (one microbatch, one decoding step, one control operation) and returns what
    /// finished. Returns at once when idle, and after a moment when all that is left is a save in the background.
    fn step(&mut self) -> Vec<Completion>;

    /// Whether nothing is started and unfinished, saves in the background included.
    fn is_idle(&self) -> bool;

    /// The samples whose first pass was planned since the last call, in the order in which they were admitted. Others wait
    /// in the engine.
    fn take_admitted(&mut self) -> Vec<RequestId> {
        Vec::new()
    }

    /// The tokens that a sample which is being executed has beyond those that are known: a count per sequence, 0 where
    /// absent. Nothing for any other id, and of sequences that have no more.
    fn sampled_since(&self, _id: &RequestId, _known: &[usize]) -> Vec<SampleProgress> {
        Vec::new()
    }

    /// Cancels unfinished samples and frees what they hold; they get no completion. Other ids are ignored.
    fn cancel(&mut self, ids: &BTreeSet<RequestId>);

    /// Unloads a run and frees its memory.
    fn unload_run(&mut self, run: &RunId);

    /// Drops an in-memory sampler snapshot. Samples that use it finish.
    fn drop_snapshot(&mut self, key: &str);

    /// Why it cannot go on: it lost a part of itself, such as one of its ranks. Its steps complete nothing any more, and the
    /// process has to end, so that another one continues its runs.
    fn failure(&self) -> Option<OpError> {
        None
    }

    /// Its counters; cheap enough to be read after every step.
    fn stats(&self) -> EngineStats {
        EngineStats::default()
    }
}
