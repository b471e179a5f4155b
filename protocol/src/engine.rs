//! The boundary between scheduling and computing.

use std::num::NonZeroU32;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{OpError, OpResult, Operation, RequestId, RunId};

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

/// Whom work counts for. Flows share a busy engine in proportion to their weights; what one of them has queued
/// does not make another one wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Identifies it.
    pub name: Arc<str>,
    /// Its share beside other flows. Where operations of a flow differ in it, the last started one counts.
    pub weight: NonZeroU32,
}

impl Flow {
    /// A flow of weight 1.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), weight: NonZeroU32::MIN }
    }
}

/// What an engine has done since it was made, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Training passes.
    pub microbatches: u64,
    /// Tokens of these passes.
    pub microbatch_tokens: u64,
    /// Tokens that these passes could have held, so that the ratio tells how full they were.
    pub microbatch_capacity: u64,
    /// Sampling passes.
    pub sampling_passes: u64,
    /// Tokens of prompts that these passes computed.
    pub prompt_tokens: u64,
    /// Tokens that they drew.
    pub sampled_tokens: u64,
    /// Samples that are being drawn.
    pub active_samples: u64,
    /// Runs in memory.
    pub loaded_runs: u64,
    /// Bytes of keys and values, cached ones included.
    pub kv_bytes: u64,
    /// Bytes that these may be.
    pub kv_limit: u64,
}

/// A finished operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The request that [`Engine::start`] named.
    pub id: RequestId,
    /// What came of it.
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
/// panic in a batch fails the operation at fault alone: the others are executed again and give the same bits.
pub trait Engine: Send {
    /// The models it serves.
    fn models(&self) -> Vec<BaseModel>;

    /// Takes an operation on behalf of a flow; its completion comes from a later [`Engine::step`].
    fn start(&mut self, id: RequestId, flow: Flow, operation: Operation);

    /// Does a bounded piece of work (one microbatch, one decoding step, one control operation) and returns what
    /// finished. Returns at once when idle, and after a moment when all that is left is a save in the background.
    fn step(&mut self) -> Vec<Completion>;

    /// Whether nothing is started and unfinished, saves in the background included.
    fn is_idle(&self) -> bool;

    /// Gives up an unfinished sample and frees what it holds; it gets no completion. False when
    /// there is no such sample.
    fn cancel(&mut self, id: &RequestId) -> bool;

    /// Forgets a run and frees its memory.
    fn unload_run(&mut self, run: &RunId);

    /// Forgets an in-memory sampler snapshot. Samples that use it finish.
    fn drop_snapshot(&mut self, key: &str);

    /// What it has done and holds; cheap enough to be asked after every step.
    fn stats(&self) -> EngineStats {
        EngineStats::default()
    }
}
