//! State of a service, which the console and `trainyard top` show.

use serde::{Deserialize, Serialize};
use trainyard_protocol::Category;

/// State of a service, as far as the caller may see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overview {
    /// Time of the snapshot, in RFC 3339.
    pub time: String,
    /// Version of the server.
    pub version: String,
    /// Base models that the service serves.
    pub models: Vec<ServedModel>,
    /// Processes that execute requests.
    pub workers: Vec<Worker>,
    /// Engine of the server's own process; absent if it has none, or if the caller is not the operator's admin.
    pub engine: Option<EngineUse>,
    /// Unfinished requests by tenant. An operator's admin sees all tenants, others only their own.
    pub queues: Vec<TenantQueue>,
    /// Complete minutes of the last hour, oldest first, also those in which no request of these tenants ended.
    pub rates: Vec<MinuteRate>,
    /// Last 60 seconds, which the last complete minute overlaps.
    #[serde(default)]
    pub latest: MinuteRate,
    /// Requests of these tenants that failed within the last day, newest first.
    pub failures: Vec<Failure>,
}

/// A base model that the service serves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServedModel {
    /// Name that requests use.
    pub name: String,
    /// Family of the model.
    pub arch: String,
    /// Maximum length of a sequence, in tokens.
    pub context: usize,
    /// Number of the model's parameters.
    pub parameters: u64,
}

/// A process that executes requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    /// Id of the worker.
    pub id: String,
    /// Whether the worker is the server's own process.
    pub own: bool,
    /// Base models, each with data type, kernels, layout and version if these are known.
    pub models: Vec<(String, Option<String>)>,
    /// State of its engine at the last report; absent before the first one, or if the caller is not the operator's admin.
    #[serde(default)]
    pub engine: Option<EngineUse>,
}

/// Load and memory of an engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineUse {
    /// Number of samples in progress.
    pub active_samples: u64,
    /// Number of runs in memory.
    pub loaded_runs: u64,
    /// Memory in use by purpose, in bytes.
    pub memory: Vec<(String, u64)>,
    /// Memory in use, in bytes.
    pub memory_bytes: u64,
    /// Memory that the engine may use, in bytes; 0 means no limit.
    pub memory_budget: u64,
    /// Memory in use by keys and values, in bytes.
    pub kv_bytes: u64,
    /// Memory that keys and values may use, in bytes.
    pub kv_limit: u64,
    /// Tokens of all training passes since the start.
    pub microbatch_tokens: u64,
    /// Capacity of these passes, in tokens.
    pub microbatch_capacity: u64,
}

/// Unfinished requests of a tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TenantQueue {
    /// Name of the tenant.
    pub tenant: String,
    /// Requests that wait for execution.
    pub queued: u64,
    /// Requests that are being executed.
    pub running: u64,
    /// Time that the oldest of the waiting requests has waited, in seconds.
    pub waiting_seconds: f64,
}

/// Tokens of the requests that ended in a minute.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MinuteRate {
    /// Start of the minute, in milliseconds since 1970.
    pub minute: i64,
    /// Tokens of training passes.
    pub trained: u64,
    /// Tokens of prompts that were computed.
    pub prefill: u64,
    /// Tokens that were generated.
    pub sampled: u64,
}

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Id of the request.
    pub request_id: String,
    /// Kind of the request.
    pub kind: String,
    /// Run of the request; absent for a sample.
    pub run_id: Option<String>,
    /// Time of the failure, in RFC 3339.
    pub time: String,
    /// Origin of the error.
    pub category: Category,
    /// Description of the error.
    pub message: String,
}
