//! The boundary between scheduling and computing.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    BaseModel, MemoryUse, Numerics, OpError, OpResult, Operation, PlanMemory, Prepare, RequestId, RunId,
    SampleProgress, Unbounded,
};

/// The tenant whose fair share of the engine an operation uses. Busy tenants share the engine in proportion to their
/// weights (weighted deficit round-robin); one tenant's backlog does not delay another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantShare {
    /// The tenant's id: operations with the same name are in the same fair-share queue.
    pub name: Arc<str>,
    /// Weight relative to other tenants. If a tenant's operations differ in it, that of the last started one applies.
    pub weight: NonZeroU32,
}

impl TenantShare {
    /// Returns the share of a tenant of weight 1.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), weight: NonZeroU32::MIN }
    }
}

/// Counters of an engine since it was created, and its current contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Number of training passes.
    pub microbatches: u64,
    /// Tokens computed by training passes.
    pub microbatch_tokens: u64,
    /// Number of tokens that training passes could have held; `microbatch_tokens` relative to it is their occupancy.
    pub microbatch_capacity: u64,
    /// Number of sampling passes.
    pub sampling_passes: u64,
    /// Number of tokens of prompts that sampling passes computed.
    pub prompt_tokens: u64,
    /// Number of tokens that sampling passes sampled.
    pub sampled_tokens: u64,
    /// Number of samples in progress.
    pub active_samples: u64,
    /// Number of runs in memory.
    pub loaded_runs: u64,
    /// Bytes of keys and values, cached ones included.
    pub kv_bytes: u64,
    /// Maximum number of bytes that keys and values may use at present.
    pub kv_limit: u64,
    /// Bytes that the engine uses, by kind.
    pub memory: MemoryUse,
    /// Maximum number of bytes that the engine may use; 0 means unlimited.
    pub memory_budget: u64,
    /// Number of ranks that share its models; 1 if they are not shared.
    pub ranks: u64,
    /// Ranks that share each layer's heads and the width of its MLP.
    pub tensor_ranks: u64,
    /// Number of groups of tensor ranks that divide the experts among them.
    pub expert_ranks: u64,
    /// Number of replicas of the models that the ranks form; 1 if the models are not replicated.
    pub replicas: u64,
    /// Nanoseconds that the first rank spent in exchanges with the others.
    pub collective_nanoseconds: u64,
    /// Bytes that the first rank sent to the others.
    pub collective_bytes: u64,
    /// Samples that a training pass computed again.
    pub verified_samples: u64,
    /// Samples of which the training pass computed another log-probability.
    pub differing_samples: u64,
    /// Samples chosen for verification that could not be verified.
    pub skipped_verifications: u64,
}

/// Completion of a finished operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The request that [`Engine::start`] named.
    pub id: RequestId,
    /// Result of the operation, or the reason why it failed.
    pub result: Result<OpResult, OpError>,
    /// The run that the engine dropped because the operation left it in an unknown state: an internal error.
    pub lost_run: Option<RunId>,
}

impl Completion {
    /// Returns the completion of an operation that did not lose a run.
    pub fn new(id: RequestId, result: Result<OpResult, OpError>) -> Self {
        Self { id, result, lost_run: None }
    }
}

/// Returns whether nobody waits for a request any longer; callable on any thread.
pub type IsAbandoned = Arc<dyn Fn(&RequestId) -> bool + Send + Sync>;

/// An engine: executes operations in bounded steps on the thread that owns it.
///
/// The caller keeps the order of a run's operations: it starts the next one after the previous one's completion. A
/// failed operation leaves the run as it was before it, unless its completion names the run as lost. A panic in a batch
/// fails only the operation at fault: the others are executed again, with the same bits as without it.
pub trait Engine: Send {
    /// Returns the models that the engine serves.
    fn models(&self) -> Vec<BaseModel>;

    /// Returns the numerics that decide the bits of results, by model name. Runs of an absent model are not tied to
    /// numerics.
    fn numerics(&self) -> BTreeMap<String, Numerics> {
        BTreeMap::new()
    }

    /// Returns the checker of the content of training requests, usable on any thread.
    fn preparer(&self) -> Arc<dyn Prepare>;

    /// Returns the predictor of the memory of runs. The caller starts the creation, restore or load of a run only while
    /// all loaded runs fit together.
    fn memory(&self) -> Arc<dyn PlanMemory> {
        Arc::new(Unbounded)
    }

    /// Takes an operation on behalf of a tenant; a later [`Engine::step`] returns its completion.
    fn start(&mut self, id: RequestId, share: TenantShare, operation: Operation);

    /// Executes a bounded piece of work (one microbatch, one decoding step, one control operation) and returns the
    /// operations that finished. Returns at once when idle, and after a moment when only a save in the background is
    /// left.
    fn step(&mut self) -> Vec<Completion>;

    /// Returns whether all operations are finished, saves in the background included.
    fn is_idle(&self) -> bool;

    /// Returns the samples whose first pass was planned since the last call, in the order of admission. Others wait in
    /// the engine.
    fn take_admitted(&mut self) -> Vec<RequestId> {
        Vec::new()
    }

    /// Returns the tokens of a sample in progress beyond those that are known. `known` is a count per sequence, 0 where
    /// absent. Returns nothing for other ids and for sequences without new tokens.
    fn sampled_since(&self, _id: &RequestId, _known: &[usize]) -> Vec<SampleProgress> {
        Vec::new()
    }

    /// Cancels unfinished requests, and frees what they hold; they get no completion. They leave their run unchanged,
    /// and no folder behind unless it was already complete. Other ids are ignored.
    fn cancel(&mut self, ids: &BTreeSet<RequestId>);

    /// Installs a function that returns, also during a step, whether a request is about to be cancelled. A long step
    /// may call it, and complete such a request with an error. It is called at most once.
    fn ask_when_abandoned(&mut self, _is_abandoned: IsAbandoned) {}

    /// Unloads a run and frees its memory.
    fn unload_run(&mut self, run: &RunId);

    /// Drops an in-memory sampler snapshot. Samples that use it finish.
    fn drop_snapshot(&mut self, key: &str);

    /// Returns the reason why the engine cannot continue: it lost a part of itself, such as one of its ranks. Its steps
    /// no longer complete anything, and the process must end so that another one continues its runs.
    fn failure(&self) -> Option<OpError> {
        None
    }

    /// Returns the counters; cheap enough to be read after every step.
    fn stats(&self) -> EngineStats {
        EngineStats::default()
    }
}
