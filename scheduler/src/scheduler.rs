//! The scheduler's handle: opening, closing, counters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use trainyard_protocol::{PlanMemory, TenantId};

use crate::calls::tenants;
use crate::context::core::{Core, Message};
use crate::context::lock::lock;
use crate::metrics::PresentCounts;
use crate::processes::database_lock::lock_database;
use crate::processes::{notifications, progress_exchange};
use crate::store::blobs::Blobs;
use crate::store::db::{Conn, Database, RowScope, connect_readers};
use crate::store::{failed, quotas, schema, sessions, workers};
use crate::writer::Writer;
use crate::writer::write::Write;
use crate::{Error, ExecutionObserver, Metrics, Options, PrefetchDecoder, RequestState, lease};

/// Counters since the scheduler was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Committed transactions.
    pub transactions: u64,
    /// Writes that these transactions held.
    pub writes: u64,
    /// Requests that wait to be started.
    pub queued: u64,
    /// Requests that the worker has.
    pub in_flight: u64,
    /// Requests that this process accepted or ended: while it does not change, there is nothing to do.
    pub activity: u64,
}

/// Unfinished samples: those of this process, or all that processes with the same database had a few seconds ago,
/// when these are more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenSamples {
    /// Of all tenants.
    pub all: u64,
    /// Of the tenant who asks.
    pub own: u64,
    /// Tenants that have any, with the one who asks.
    pub tenants: u64,
}

/// The durable request log. Cheap to clone; all clones are one scheduler.
#[derive(Clone)]
pub struct Scheduler {
    pub(crate) core: Arc<Core>,
    messages: mpsc::UnboundedSender<Message>,
}

impl Scheduler {
    /// Opens the store, migrates a SQLite file, and claims what waits for the worker, if there is one. All sessions'
    /// heartbeats are extended. To be called within a tokio runtime, which then reads and writes.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the schema is not what this program knows or another process uses the
    /// database file; [`Error::Store`] when files can't be opened or read.
    pub async fn open(options: Options) -> Result<Self, Error> {
        let guard = match &options.database {
            Database::Sqlite(path) => Some(lock_database(path).await?),
            Database::Postgres(_) => None,
        };
        let mut conn = schema::connect_current(&options.database).await?;
        let readers = connect_readers(&options.database, options.database_readers).await?;
        let blobs = Blobs::open(options.storage.clone(), readers.clone()).await?;
        let (messages, received) = mpsc::unbounded_channel();
        let core = Arc::new(Core::new(options, readers, blobs, &messages));
        if core.options.serves_clients {
            sessions::extend_heartbeats(&mut conn, core.now()).await?;
        }
        // The writer enters that of each write.
        conn.leave().await.map_err(failed("open the database"))?;
        tokio::spawn(Writer::new(conn, Arc::clone(&core), received, guard).run());
        core.refresh_grants().await?;
        if !core.options.worker_waits {
            core.start_worker().await?;
        }
        tokio::spawn(lease::run_rounds(Arc::downgrade(&core)));
        tokio::spawn(lease::send_heartbeats(Arc::downgrade(&core)));
        tokio::spawn(notifications::listen(Arc::downgrade(&core)));
        tokio::spawn(progress_exchange::exchange(Arc::downgrade(&core)));
        tokio::spawn(tenants::refresh::follow(Arc::downgrade(&core)));
        Ok(Self { core, messages })
    }

    /// Lets the worker of a scheduler that was opened with [`Options::worker_waits`] take part: it registers and
    /// claims what waits for it.
    ///
    /// # Errors
    /// When the store can't be written or read.
    pub async fn start_worker(&self) -> Result<(), Error> {
        self.core.start_worker().await
    }

    /// Does now what a process does about leases every few seconds: it sends a heartbeat, frees leases that expired, and
    /// claims and reads what waits for its worker. For measurements.
    ///
    /// # Errors
    /// When the store can't be written or read.
    pub async fn lease_round(&self) -> Result<(), Error> {
        self.core.lease_round(true).await
    }

    /// Sets what decodes payloads that are prefetched from the store: those that another process accepted, and those
    /// from before a restart. The first one stays.
    pub fn prefetch_with(&self, decoder: PrefetchDecoder) {
        let _ = self.core.prefetch_decoder.set(decoder);
    }

    /// Sets what learns of requests that this process accepted and executed. The first one stays.
    pub fn observe_executions_with(&self, observer: ExecutionObserver) {
        let _ = self.core.execution_observer.set(observer);
    }

    /// Sets what predicts the memory of runs: from then on this process's worker gets a run only while it fits beside the
    /// runs that it has. To be called before the worker takes part; the first one stays.
    pub fn plan_memory_with(&self, memory: Arc<dyn PlanMemory>) {
        let plan = memory.plan();
        if self.core.memory.set(memory).is_ok() {
            lock(&self.core.queue).set_memory_plan(plan);
        }
    }

    /// Writes what is still to be written, releases leases and closes the store. Every later call fails.
    pub async fn close(&self) {
        if !self.is_outdated()
            && let Err(error) = self.write(lease::Deregister).await
        {
            tracing::debug!(%error, "leases were not released; they will expire");
        }
        let (closed, done) = oneshot::channel();
        if self.messages.send(Message::Close(closed)).is_ok() {
            let _ = done.await;
        }
        self.core.work_log.flush();
        self.core.ready.notify_all();
    }

    /// Whether the worker of this process, if it has one, serves a base model.
    pub fn serves_here(&self, base_model: &str) -> bool {
        self.core.worker_for(base_model).is_some()
    }

    /// Counters, for metrics and tests.
    pub fn stats(&self) -> Stats {
        let (queued, in_flight) = lock(&self.core.queue).counts();
        Stats {
            transactions: self.core.metrics.transactions.get(),
            writes: self.core.metrics.writes.get(),
            queued,
            in_flight,
            activity: self.core.activity.load(Ordering::Relaxed),
        }
    }

    /// Unfinished samples, for a tenant who submits another.
    pub fn open_samples(&self, tenant: &TenantId) -> OpenSamples {
        let count = |open: &BTreeMap<TenantId, u64>| {
            let own = open.get(tenant).copied().unwrap_or(0);
            (open.values().sum::<u64>(), own, open.len() as u64 + u64::from(own == 0))
        };
        let here = count(lock(&self.core.queue).open_samples());
        let everywhere = count(&lock(&self.core.open_samples));
        OpenSamples { all: here.0.max(everywhere.0), own: here.1.max(everywhere.1), tenants: here.2.max(everywhere.2) }
    }

    /// Counters and gauges, for Prometheus.
    pub fn metrics(&self) -> &Metrics {
        &self.core.metrics
    }

    /// Updates the gauges of queued and running requests, sessions, runs and leases, of all processes on the database,
    /// and those of this process's connections.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn observe(&self) -> Result<(), Error> {
        let measured = &self.core.metrics.store;
        measured.set_readers(self.core.readers.usage());
        measured.set_heartbeat_age(self.core.heartbeat_age());
        // What the store does not show yet: starts are written together with the next write.
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, self.core.call(FlushNotes)).await;
        let mut conn = self.core.system_reader().await?;
        measured.set_shortest_lease(workers::shortest_lease(&mut conn).await?);
        let open = quotas::open_requests(&mut conn).await?;
        let (sessions, runs) = quotas::active_sessions_and_runs(&mut conn).await?;
        let of = |running: bool| {
            let counts = open.iter().filter(|(_, state, _)| (*state == RequestState::Running) == running);
            counts.map(|&(kind, _, count)| (kind, count)).collect()
        };
        self.core.metrics.show(&PresentCounts { queued: of(false), running: of(true), sessions, runs });
        Ok(())
    }

    /// Makes a change durable.
    pub(crate) async fn write<W: Write>(&self, write: W) -> Result<W::Output, Error> {
        self.core.call(write).await
    }
}

/// How long the counts of the present moment wait for a writer that is busy.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Lets what nobody waits for be written.
struct FlushNotes;

impl Write for FlushNotes {
    type Output = ();

    const UNDO: bool = false;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, _conn: &mut Conn, _core: &Core) -> Result<(), Error> {
        Ok(())
    }
}
