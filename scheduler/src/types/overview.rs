//! Values that show how a service is doing.

use serde::{Deserialize, Serialize};
use trainyard_protocol::{EngineStats, OpError, RequestId, RunId, TenantId};

use super::{Run, Tokens};
use crate::{RequestKind, RequestState, Timestamp};

/// Unfinished requests of a tenant that have the same kind and state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedRequests {
    /// Tenant that owns the requests.
    pub tenant: TenantId,
    /// Kind of the requests.
    pub kind: RequestKind,
    /// State, either `Queued` or `Running`.
    pub state: RequestState,
    /// Number of the requests.
    pub count: u64,
    /// Time when the oldest of them was accepted.
    pub oldest: Timestamp,
}

/// A worker with unexpired leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerStatus {
    /// Id of the worker.
    pub id: String,
    /// Base models, each with the type, kernels, layout and version of its computation, if the worker reported them.
    pub models: Vec<(String, Option<String>)>,
    /// Engine's report with the last heartbeat; `None` before the first.
    pub engine: Option<EngineReport>,
}

/// Load of an engine, as its worker's heartbeats report it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineReport {
    /// Number of samples in progress.
    pub active_samples: u64,
    /// Number of runs in memory.
    pub loaded_runs: u64,
    /// Bytes in use, by kind.
    pub memory: Vec<(String, u64)>,
    /// Maximum number of bytes that the engine may use; 0 means unlimited.
    pub memory_budget: u64,
    /// Bytes of keys and values.
    pub kv_bytes: u64,
    /// Maximum number of bytes of keys and values.
    pub kv_limit: u64,
    /// Number of tokens of training passes since the engine started.
    pub microbatch_tokens: u64,
    /// Number of tokens that these passes could have held.
    pub microbatch_capacity: u64,
}

impl EngineReport {
    /// Returns the bytes of all kinds together.
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

/// A request that has failed.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedRequest {
    /// Id of the request.
    pub id: RequestId,
    /// Kind of the request.
    pub kind: RequestKind,
    /// Run of the request, unless it is a sample.
    pub run: Option<RunId>,
    /// Time of the failure.
    pub at: Timestamp,
    /// Reason for the failure.
    pub error: OpError,
}

/// A run with facts about its session.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedRun {
    /// Run that is listed.
    pub run: Run,
    /// Project of the session.
    pub project: Option<String>,
    /// Tags of the session.
    pub tags: Vec<String>,
    /// Whether the session is active.
    pub active: bool,
}

/// Progress of a run according to its newest metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunProgress {
    /// Number of optimizer steps.
    pub steps: u64,
    /// Metric `loss:sum` of the newest backward pass, if it is finite.
    pub loss: Option<f64>,
    /// Metric [`LOSS_PER_TOKEN`](crate::LOSS_PER_TOKEN) of that pass, if it has one that is finite.
    pub loss_per_token: Option<f64>,
}

/// A request of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRequest {
    /// Id of the request.
    pub id: RequestId,
    /// Position in the run's order.
    pub seq_id: i64,
    /// Kind of the request.
    pub kind: RequestKind,
    /// State of the request.
    pub state: RequestState,
    /// Number of tokens that the request was accepted with.
    pub tokens: u64,
    /// Time when the request was accepted.
    pub created_at: Timestamp,
    /// Time when the request ended.
    pub finished_at: Option<Timestamp>,
    /// Reason if the request failed.
    pub error: Option<OpError>,
}

/// Tokens that were used in an interval of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenRate {
    /// Start of the interval.
    pub from: Timestamp,
    /// Sum over the requests that ended in the interval.
    pub tokens: Tokens,
}
