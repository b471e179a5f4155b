//! The scheduler's handle: opening, closing and counters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use trainyard_protocol::{PlanMemory, TenantId};

use crate::calls::tenants;
use crate::context::core::{Core, Message};
use crate::context::database_clock::DatabaseClock;
use crate::metrics::PresentCounts;
use crate::processes::clock::read_clock;
use crate::processes::database_lock::lock_database;
use crate::processes::{notifications, progress_exchange};
use crate::store::blobs::Blobs;
use crate::store::db::{Conn, Database, RowScope, connect_readers};
use crate::store::{failed, quotas, schema, sessions, workers};
use crate::writer::Writer;
use crate::writer::write::Write;
use crate::{Clock, Error, ExecutionObserver, Metrics, Options, PrefetchDecoder, RequestState, lease};

/// Counters since the scheduler was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of committed transactions.
    pub transactions: u64,
    /// Number of writes in these transactions.
    pub writes: u64,
    /// Number of requests that wait to be started.
    pub queued: u64,
    /// Number of requests that the worker has.
    pub in_flight: u64,
    /// Number of requests that this process accepted or ended. While it stays the same, there is nothing to do.
    pub activity: u64,
}

/// Unfinished samples of this process, or of all processes with the same database a few seconds ago, whichever are
/// more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenSamples {
    /// Number of samples of all tenants.
    pub all: u64,
    /// Number of samples of the tenant who asks.
    pub own: u64,
    /// Number of tenants with samples, including the one who asks.
    pub tenants: u64,
}

/// The durable request log. Cheap to clone; all clones are one scheduler.
#[derive(Clone)]
pub struct Scheduler {
    pub(crate) core: Arc<Core>,
    messages: mpsc::UnboundedSender<Message>,
}

impl Scheduler {
    /// Opens the store, migrates a SQLite file, and claims waiting work for the worker, if there is one. All sessions'
    /// heartbeats are extended. Must be called within a tokio runtime, which then reads and writes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if this program does not support the schema, or if another process uses the database file;
    /// [`Error::Store`] if files can't be opened or read.
    pub async fn open(options: Options) -> Result<Self, Error> {
        let guard = match &options.database {
            Database::Sqlite(path) => Some(lock_database(path).await?),
            Database::Postgres(_) => None,
        };
        let mut conn = schema::connect_current(&options.database).await?;
        let readers = connect_readers(&options.database, options.database_readers).await?;
        let blobs = Blobs::open(options.storage.clone(), readers.clone()).await?;
        let (messages, received) = mpsc::unbounded_channel();
        let clock = DatabaseClock::new(&options);
        read_clock(&mut conn, &clock).await?;
        let core = Arc::new(Core::new(options, clock, readers, blobs, &messages));
        if core.options.serves_clients {
            sessions::extend_heartbeats(&mut conn, core.now()).await?;
        }
        // The writer enters the scope of each write.
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

    /// Lets the worker of a scheduler that was opened with [`Options::worker_waits`] take part: it registers and claims
    /// waiting work.
    ///
    /// # Errors
    /// Fails if the store can't be written or read.
    pub async fn start_worker(&self) -> Result<(), Error> {
        self.core.start_worker().await
    }

    /// Performs at once the work on leases that a process does every few seconds: it sends a heartbeat, frees expired
    /// leases, and claims and reads work for its worker. For measurements.
    ///
    /// # Errors
    /// Fails if the store can't be written or read.
    pub async fn lease_round(&self) -> Result<(), Error> {
        self.core.lease_round(true).await
    }

    /// Sets the decoder of payloads that are prefetched from the store: those that another process accepted, and those
    /// from before a restart. The first decoder stays.
    pub fn prefetch_with(&self, decoder: PrefetchDecoder) {
        self.core.prefetch.decode_with(decoder);
    }

    /// Sets the observer of requests that this process accepted and executed. The first observer stays.
    pub fn observe_executions_with(&self, observer: ExecutionObserver) {
        self.core.observe_executions_with(observer);
    }

    /// Sets the predictor of the memory of runs. From then on this process's worker gets a run only while it fits into
    /// memory together with the loaded ones. Call this before the worker takes part; the first predictor stays.
    pub fn plan_memory_with(&self, memory: Arc<dyn PlanMemory>) {
        let plan = memory.plan();
        if self.core.set_memory(memory) {
            self.core.with_queue(|queue| queue.set_memory_plan(plan));
        }
    }

    /// Finishes pending writes, releases leases and closes the store. Every later call fails.
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
        self.core.queue.notify_worker();
    }

    /// Returns whether the worker of this process, if there is one, serves a base model.
    pub fn serves_here(&self, base_model: &str) -> bool {
        self.core.worker_for(base_model).is_some()
    }

    /// Returns counters for metrics and tests.
    pub fn stats(&self) -> Stats {
        let (queued, in_flight) = self.core.queue.read().counts();
        Stats {
            transactions: self.core.metrics.transactions.get(),
            writes: self.core.metrics.writes.get(),
            queued,
            in_flight,
            activity: self.core.sessions.activity(),
        }
    }

    /// Returns the number of unfinished samples, for a tenant who submits another.
    pub fn open_samples(&self, tenant: &TenantId) -> OpenSamples {
        let count = |open: &BTreeMap<TenantId, u64>| {
            let own = open.get(tenant).copied().unwrap_or(0);
            (open.values().sum::<u64>(), own, open.len() as u64 + u64::from(own == 0))
        };
        let here = count(self.core.queue.read().open_samples());
        let everywhere = self.core.open_samples.read(count);
        OpenSamples { all: here.0.max(everywhere.0), own: here.1.max(everywhere.1), tenants: here.2.max(everywhere.2) }
    }

    /// Checks whether a tenant with this many unfinished samples may submit another, by its own limit.
    ///
    /// # Errors
    /// [`Error::Quota`] if it has as many as the limit allows.
    pub fn admit_queued_sample(&self, tenant: &TenantId, open: u64) -> Result<(), Error> {
        let admitted = self.policy(tenant).admit_queued(open).map_err(Error::Quota);
        self.core.count_refusal(tenant, &admitted);
        admitted
    }

    /// Returns counters and gauges for Prometheus.
    pub fn metrics(&self) -> &Metrics {
        &self.core.metrics
    }

    /// Updates the gauges of queued and running requests, sessions, runs and leases of all processes on the database,
    /// and those of this process's connections.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn observe(&self) -> Result<(), Error> {
        let measured = &self.core.metrics.store;
        let (used, limit) = self.core.readers.usage();
        measured.set_readers(used, limit);
        measured.set_heartbeat_age(self.core.heartbeats.age(self.core.now()));
        // Pending starts are otherwise written only with the next write.
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

    /// Returns the clock by which everything expires: the database's, or the machine's for a SQLite file.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.core.clock.clone()
    }

    /// Returns the lead of this machine's clock over the database's, in ms, when that was last read.
    pub fn own_clock_ahead_ms(&self) -> i64 {
        self.core.clock.own_ahead_ms()
    }

    /// Makes a change durable.
    pub(crate) async fn write<W: Write>(&self, write: W) -> Result<W::Output, Error> {
        self.core.call(write).await
    }
}

/// Longest time that the present counts wait for a busy writer.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// A write without content, with which pending notes are written.
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
