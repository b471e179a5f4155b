//! What people look at to see how a service is doing.

use serde::{Deserialize, Serialize};
use trainyard_protocol::{EngineStats, OpError, RequestId, RunId, TenantId};

use super::{Run, Tokens};
use crate::{RequestKind, RequestState, Timestamp};

/// Unfinished requests of a tenant, of one kind and in one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedRequests {
    /// Whose.
    pub tenant: TenantId,
    /// What they do.
    pub kind: RequestKind,
    /// `Queued` or `Running`.
    pub state: RequestState,
    /// How many.
    pub count: u64,
    /// When the oldest of them was accepted.
    pub oldest: Timestamp,
}

/// A worker whose leases have not expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerStatus {
    /// Its id.
    pub id: String,
    /// By base model: type, kernels, layout and version that it computes with, where it has said so.
    pub models: Vec<(String, Option<String>)>,
    /// What its engine held at the last heartbeat; `None` before the first.
    pub engine: Option<EngineReport>,
}

/// What an engine holds and does, as its worker's heartbeats report it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineReport {
    /// Samples in progress.
    pub active_samples: u64,
    /// Runs in memory.
    pub loaded_runs: u64,
    /// Bytes by what they hold.
    pub memory: Vec<(String, u64)>,
    /// Bytes that it may hold; 0 is no limit.
    pub memory_budget: u64,
    /// Bytes of keys and values.
    pub kv_bytes: u64,
    /// Bytes that these may be.
    pub kv_limit: u64,
    /// Tokens of training passes since the start.
    pub microbatch_tokens: u64,
    /// Tokens that these passes could have held.
    pub microbatch_capacity: u64,
}

impl EngineReport {
    /// Bytes of all kinds together.
    pub fn memory_bytes(&self) -> u64 {
        self.memory.iter().map(|(_, bytes)| bytes).sum()
    }
}

impl From<&EngineStats> for EngineReport {
    fn from(stats: &EngineStats) -> Self {
        Self {
            active_samples: stats.active_samples,
            loaded_runs: stats.loaded_runs,
            memory: stats.memory.kinds().iter().map(|(kind, bytes)| ((*kind).to_owned(), *bytes)).collect(),
            memory_budget: stats.memory_budget,
            kv_bytes: stats.kv_bytes,
            kv_limit: stats.kv_limit,
            microbatch_tokens: stats.microbatch_tokens,
            microbatch_capacity: stats.microbatch_capacity,
        }
    }
}

/// A request that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedRequest {
    /// The request.
    pub id: RequestId,
    /// What it was to do.
    pub kind: RequestKind,
    /// Its run, unless it is a sample.
    pub run: Option<RunId>,
    /// When it failed.
    pub at: Timestamp,
    /// Why.
    pub error: OpError,
}

/// A run with what its session says of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedRun {
    /// The run.
    pub run: Run,
    /// The session's project.
    pub project: Option<String>,
    /// The session's tags.
    pub tags: Vec<String>,
    /// Whether the session is active.
    pub active: bool,
}

/// What a run's newest metrics say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunProgress {
    /// Optimizer steps.
    pub steps: u64,
    /// `loss:sum` of the newest backward pass, if it is finite.
    pub loss: Option<f64>,
}

/// A request of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRequest {
    /// The request.
    pub id: RequestId,
    /// Place in the run's order.
    pub seq_id: i64,
    /// What it does.
    pub kind: RequestKind,
    /// How far it is.
    pub state: RequestState,
    /// Tokens that it was accepted with.
    pub tokens: u64,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Why it failed.
    pub error: Option<OpError>,
}

/// Tokens that were used in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenRate {
    /// Where the stretch begins.
    pub from: Timestamp,
    /// Sum over the requests that ended in it.
    pub tokens: Tokens,
}
