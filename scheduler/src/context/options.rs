//! Options for opening a scheduler.

use std::sync::Arc;
use std::time::Duration;

use trainyard_storage::Storage;

use crate::budgets::{DATABASE_READERS, METRICS_ROWS, USAGE_ROWS};
use crate::context::clock::{Clock, SystemClock};
use crate::execution::crashes::WorkerEnd;
use crate::quotas::Policies;
use crate::store::db::Database;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Options for opening a scheduler.
#[derive(Clone)]
pub struct Options {
    /// Database to open; a SQLite file is created if it is missing.
    pub database: Database,
    /// Storage for checkpoints, and for payloads and results that are too large for a row. Garbage collection removes
    /// old objects that no row names.
    pub storage: Storage,
    /// This process's clock. On PostgreSQL, what expires does so by the clock of the server.
    pub clock: Arc<dyn Clock>,
    /// Clock that stands in for that of a PostgreSQL server.
    #[cfg(test)]
    pub(crate) database_clock: Option<Arc<dyn Clock>>,
    /// Time without heartbeats after which a session expires.
    pub session_timeout: Duration,
    /// Time for which results are kept after a request finished.
    pub retention: Duration,
    /// Time for which the usage of single requests is kept. Its sums by hour remain.
    pub usage_retention: Duration,
    /// Maximum number of rows of usage of single requests, over all tenants. When it is exceeded, the oldest rows of
    /// the tenants with most rows are deleted.
    pub usage_rows: u64,
    /// Maximum number of requests of a run whose metrics are kept. Before it is exceeded, older ones are thinned out; the
    /// newest quarter stays complete.
    pub metrics_rows: u64,
    /// Time for which usage by hour, and the storage of deleted checkpoints, are kept.
    pub usage_history: Duration,
    /// Number of tokens of executed work after which a run is saved: a recovery replays at most that many.
    pub snapshot_tokens: u64,
    /// Number of a run's snapshots for sampling that stay in the storage: those that were taken or sampled from last.
    pub kept_snapshots: usize,
    /// Time for which other snapshots stay in the storage after they were taken or last sampled from.
    pub snapshot_retention: Duration,
    /// Time without requests after which a run is saved and unloaded until its next request.
    pub idle_unload: Duration,
    /// Worker of this process; `None` if other processes execute the requests.
    pub worker: Option<WorkerOptions>,
    /// Whether the worker takes part only after [`Scheduler::start_worker`](crate::Scheduler::start_worker), for
    /// example because it must first load its models.
    pub worker_waits: bool,
    /// Whether clients call this process. If so, its start extends all sessions' heartbeats, because none could be sent
    /// while it was down.
    pub serves_clients: bool,
    /// Number of connections that read a PostgreSQL database, at least 1. Polls of clients share them with the worker.
    pub database_readers: usize,
    /// Quotas, rate limits and weights of tenants.
    pub policies: Policies,
    /// Whether metrics have a label for the tenant.
    pub metrics_per_tenant: bool,
}

impl Options {
    /// Returns the defaults: the machine's clock, sessions expire after 5 minutes, results after 24 hours, no worker.
    pub fn new(database: impl Into<Database>, storage: Storage) -> Self {
        Self {
            database: database.into(),
            storage,
            clock: Arc::new(SystemClock),
            #[cfg(test)]
            database_clock: None,
            session_timeout: Duration::from_secs(300),
            retention: Duration::from_secs(24 * 3600),
            usage_retention: 35 * DAY,
            usage_rows: USAGE_ROWS,
            metrics_rows: METRICS_ROWS,
            usage_history: 400 * DAY,
            snapshot_tokens: 200_000,
            kept_snapshots: 8,
            snapshot_retention: Duration::from_secs(600),
            idle_unload: Duration::from_secs(900),
            worker: None,
            worker_waits: false,
            serves_clients: true,
            database_readers: DATABASE_READERS,
            policies: Policies::default(),
            metrics_per_tenant: false,
        }
    }
}

/// Options of a process's worker, which executes requests.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Name of the worker, the same after a restart.
    pub id: String,
    /// Names of the base models that the worker serves.
    pub models: Vec<String>,
    /// Descriptions of the worker's devices.
    pub devices: Vec<String>,
    /// Time without a heartbeat after which the worker's leases expire, and other workers get its runs.
    pub lease: Duration,
    /// Whether the machine ran out of memory during the worker's previous process, which counts against the requests
    /// that it executed.
    pub former_out_of_memory: bool,
    /// Number of sequences that the engine decodes together. The worker claims samples for these, and a quarter more
    /// that wait.
    pub decode_slots: usize,
    /// Treatment of runs with other numerics.
    pub numerics_mismatch: NumericsMismatch,
}

/// Treatment of a run whose results were computed with the same weights, but with other kernels, another type or
/// another layout than a worker's, while no other worker has these numerics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NumericsMismatch {
    /// The run waits for a worker with its numerics.
    #[default]
    Wait,
    /// The worker continues the run, and the change is recorded with the run.
    Continue,
}

impl WorkerOptions {
    /// Returns the options of a worker that serves these base models, with a lease of 15 seconds.
    pub fn new(id: impl Into<String>, models: Vec<String>) -> Self {
        let lease = Duration::from_secs(15);
        Self {
            id: id.into(),
            models,
            devices: Vec::new(),
            lease,
            former_out_of_memory: false,
            decode_slots: 256,
            numerics_mismatch: NumericsMismatch::default(),
        }
    }

    /// Returns how the worker's previous process ended, if that process still has leases.
    pub(crate) fn former_end(&self) -> WorkerEnd {
        if self.former_out_of_memory { WorkerEnd::OutOfMemory } else { WorkerEnd::Crashed }
    }
}
