//! How to open a scheduler.

use std::sync::Arc;
use std::time::Duration;

use crate::context::clock::{Clock, SystemClock};
use crate::execution::crashes::WorkerEnd;
use crate::quotas::Policies;
use crate::storage::Storage;
use crate::store::db::Database;

/// How to open a scheduler.
#[derive(Clone)]
pub struct Options {
    /// The store; a SQLite file is created when missing.
    pub database: Database,
    /// For payloads and results that are too large for a row, and for checkpoints. Garbage collection removes what
    /// no row names once it is old enough.
    pub storage: Storage,
    /// The present time.
    pub clock: Arc<dyn Clock>,
    /// A session expires when its heartbeats stop for so long.
    pub session_timeout: Duration,
    /// Results are kept for so long after a request finished.
    pub retention: Duration,
    /// A run is saved after so many tokens of executed work: a recovery replays no more.
    pub snapshot_tokens: u64,
    /// So many of a run's snapshots for sampling stay in the storage: those that were taken or sampled from last.
    pub kept_snapshots: usize,
    /// Others stay there for so long after they were taken or last sampled from.
    pub snapshot_retention: Duration,
    /// A run without requests for so long is saved and unloaded until its next request.
    pub idle_unload: Duration,
    /// The worker of this process; `None` when others execute the requests.
    pub worker: Option<WorkerOptions>,
    /// The worker takes part only from [`Scheduler::start_worker`](crate::Scheduler::start_worker) on, as when it has
    /// still to load its models.
    pub worker_waits: bool,
    /// Clients talk to this process: when it starts, all sessions' heartbeats are extended, since none could be sent
    /// while it was down.
    pub serves_clients: bool,
    /// Connections that read a PostgreSQL database, at least 1. Polls of clients share them with the worker.
    pub database_readers: usize,
    /// Quotas, rate limits and weights of tenants.
    pub policies: Policies,
    /// Whether metrics have a label for the tenant.
    pub metrics_per_tenant: bool,
}

impl Options {
    /// The defaults: the machine's clock, sessions expire after 5 minutes, results after 24 hours, no worker.
    pub fn new(database: impl Into<Database>, storage: Storage) -> Self {
        Self {
            database: database.into(),
            storage,
            clock: Arc::new(SystemClock),
            session_timeout: Duration::from_secs(300),
            retention: Duration::from_secs(24 * 3600),
            snapshot_tokens: 200_000,
            kept_snapshots: 8,
            snapshot_retention: Duration::from_secs(600),
            idle_unload: Duration::from_secs(900),
            worker: None,
            worker_waits: false,
            serves_clients: true,
            database_readers: 8,
            policies: Policies::default(),
            metrics_per_tenant: false,
        }
    }
}

/// The part of a process that executes requests.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Names it over restarts.
    pub id: String,
    /// Names of the base models that it serves.
    pub models: Vec<String>,
    /// Descriptions of its devices.
    pub devices: Vec<String>,
    /// Without a heartbeat for so long its leases expire, and other workers get its runs.
    pub lease: Duration,
    /// The machine ran out of memory while the former process of this worker was there, which is evidence against
    /// the requests that it had.
    pub former_out_of_memory: bool,
    /// Sequences that its engine decodes together: it claims samples for these, and a quarter more that wait for them.
    pub decode_slots: usize,
    /// What becomes of runs that were computed in another way.
    pub numerics_mismatch: NumericsMismatch,
}

/// What becomes of a run whose results were computed with the same weights, and with other kernels, another type or another
/// layout than a worker's, while no other worker computes like that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NumericsMismatch {
    /// It waits for a worker that does.
    #[default]
    Wait,
    /// The worker continues it, and the run says so from then on.
    Continue,
}

impl WorkerOptions {
    /// The worker of a process that serves these base models, with a lease of 15 seconds.
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

    /// How the former process of this worker ended, should it still have leases.
    pub(crate) fn former_end(&self) -> WorkerEnd {
        if self.former_out_of_memory { WorkerEnd::OutOfMemory } else { WorkerEnd::Crashed }
    }
}
