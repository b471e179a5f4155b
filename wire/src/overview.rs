//! What the console and `trainyard top` show of a service.

use serde::{Deserialize, Serialize};
use trainyard_protocol::Category;

/// A service as a caller may see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overview {
    /// When it was looked at, RFC 3339.
    pub time: String,
    /// Of the server.
    pub version: String,
    /// Base models that are served.
    pub models: Vec<ServedModel>,
    /// Processes that execute requests.
    pub workers: Vec<Worker>,
    /// The engine of the server's own process; absent where it has none.
    pub engine: Option<EngineUse>,
    /// Unfinished requests by tenant: of all tenants for an operator's admin, of the caller's own for anybody else.
    pub queues: Vec<TenantQueue>,
    /// The minutes of the last hour in which requests of these tenants ended.
    pub rates: Vec<MinuteRate>,
    /// Of these tenants in the last day, the newest first.
    pub failures: Vec<Failure>,
}

/// A base model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServedModel {
    /// What requests name.
    pub name: String,
    /// Its family.
    pub arch: String,
    /// Most tokens of a sequence.
    pub context: usize,
    /// How many.
    pub parameters: u64,
}

/// A process that executes requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    /// Its id.
    pub id: String,
    /// Whether it is the server's own process.
    pub own: bool,
    /// Base models, each with type, kernels, layout and version where known.
    pub models: Vec<(String, Option<String>)>,
    /// What its engine held when it last reported; absent before that.
    #[serde(default)]
    pub engine: Option<EngineUse>,
}

/// What an engine holds and does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineUse {
    /// Samples in progress.
    pub active_samples: u64,
    /// Runs in memory.
    pub loaded_runs: u64,
    /// Bytes by what they hold.
    pub memory: Vec<(String, u64)>,
    /// Bytes in all.
    pub memory_bytes: u64,
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

/// Unfinished requests of a tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TenantQueue {
    /// Whose.
    pub tenant: String,
    /// Waiting.
    pub queued: u64,
    /// Being executed.
    pub running: u64,
    /// How long the oldest of the waiting ones has waited.
    pub waiting_seconds: f64,
}

/// Tokens of requests that ended in a minute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MinuteRate {
    /// Its start, in ms since the epoch.
    pub minute: i64,
    /// In training passes.
    pub trained: u64,
    /// Of prompts, computed.
    pub prefill: u64,
    /// Generated.
    pub sampled: u64,
}

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The request.
    pub request_id: String,
    /// What it was to do.
    pub kind: String,
    /// Its run; absent for a sample.
    pub run_id: Option<String>,
    /// When, RFC 3339.
    pub time: String,
    /// Whose fault it was.
    pub category: Category,
    /// Why.
    pub message: String,
}
