//! The scheduler's handle: opening and closing.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use trainyard_protocol::TenantId;
use uuid::Uuid;

use crate::core::Core;
use crate::metrics::Present;
use crate::queue::Queue;
use crate::store::blobs::Blobs;
use crate::store::db::{Database, connect, connect_readers};
use crate::store::{quotas, schema, sessions};
use crate::tidying::Tidying;
use crate::waiters::{Cache, Samplers, Waiters, lock};
use crate::writer::{Message, Write, Writer};
use crate::{
    Clock, Error, Metrics, Policies, ReadAhead, RequestState, Storage, SystemClock, WorkerOptions, leases, listening,
};

/// How long to wait for another scheduler on the same database to go, in steps.
const GUARD_STEPS: u32 = 500;
const GUARD_STEP: Duration = Duration::from_millis(10);

/// How to open a scheduler.
#[derive(Clone)]
pub struct Options {
    /// The store; a SQLite file is created when missing.
    pub database: Database,
    /// For payloads and results that are too large for a row, and for checkpoints. What it holds that no row
    /// names is removed when it is old enough.
    pub storage: Storage,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// A session expires when its heartbeats stop for so long.
    pub session_timeout: Duration,
    /// Results are kept for so long after a request finished.
    pub retention: Duration,
    /// A run is saved after so many tokens of executed work: a recovery replays no more.
    pub snapshot_tokens: u64,
    /// A run of which nothing is asked for so long is saved and leaves memory until it is asked for again.
    pub idle_unload: Duration,
    /// The worker of this process; `None` when others execute the requests.
    pub worker: Option<WorkerOptions>,
    /// The worker takes part only from [`Scheduler::start_worker`] on, as when it has still to load its models.
    pub worker_waits: bool,
    /// Clients talk to this process: after a start, when they could not, sessions get a fresh period.
    pub serves_clients: bool,
    /// What each tenant is granted.
    pub policies: Policies,
    /// Whether metrics tell tenants apart.
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
            idle_unload: Duration::from_secs(900),
            worker: None,
            worker_waits: false,
            serves_clients: true,
            policies: Policies::default(),
            metrics_per_tenant: false,
        }
    }
}

/// Counters since the scheduler was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Committed transactions.
    pub transactions: u64,
    /// Writes that these transactions held.
    pub writes: u64,
    /// Requests that wait for their turn.
    pub queued: u64,
    /// Requests that the worker holds.
    pub in_flight: u64,
    /// Requests that this process accepted or ended: while it does not change, there is nothing to do.
    pub activity: u64,
}

/// Samples that have not ended: those of this process, or all that processes with the same database had a few seconds
/// ago, when these are more.
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
    /// Opens the store, migrates a SQLite file, and takes what waits for the worker, if there is one. Sessions get a
    /// fresh period for their next heartbeat. To be called within a tokio runtime, which then reads and writes.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the schema is not what this program knows or another process uses the
    /// database file; [`Error::Store`] when files can't be opened or read.
    pub async fn open(options: Options) -> Result<Self, Error> {
        let guard = match &options.database {
            Database::Sqlite(path) => Some(exclusive(path).await?),
            Database::Postgres(_) => None,
        };
        let mut conn = connect(&options.database).await?;
        match &options.database {
            Database::Sqlite(_) => drop(schema::migrate_on(&mut conn, &options.database).await?),
            Database::Postgres(_) => schema::ensure_current(&mut conn, &options.database).await?,
        }
        let readers = connect_readers(&options.database).await?;
        let blobs = Blobs::open(options.storage.clone()).await?;
        let (messages, received) = mpsc::unbounded_channel();
        let now = options.clock.now();
        let queue = Queue::new(options.policies.clone(), options.snapshot_tokens);
        let core = Arc::new(Core {
            metrics: Metrics::new(options.metrics_per_tenant),
            options,
            readers,
            blobs,
            tidying: Tidying::default(),
            queue: Mutex::new(queue),
            ready: Condvar::new(),
            waiters: Waiters::default(),
            wake: Arc::default(),
            hints: Mutex::default(),
            seen: Mutex::default(),
            strays: Mutex::default(),
            reader_ahead: OnceLock::new(),
            reading_ahead: tokio::sync::Mutex::default(),
            activity: AtomicU64::new(0),
            incarnation: AtomicI64::new(0),
            reached_since: AtomicI64::new(now.as_millis()),
            events: Waiters::default(),
            renewing: tokio::sync::Mutex::default(),
            open_samples: Mutex::default(),
            cache: Cache::default(),
            samplers: Samplers::default(),
            runtime: Handle::current(),
            process: Uuid::now_v7().to_string(),
            messages: messages.downgrade(),
            #[cfg(test)]
            killed: std::sync::atomic::AtomicBool::new(false),
        });
        if core.options.serves_clients {
            sessions::touch_all_sessions(&mut conn, core.now()).await?;
        }
        tokio::spawn(Writer::new(conn, Arc::clone(&core), received, guard).run());
        if !core.options.worker_waits {
            core.start_worker().await?;
        }
        tokio::spawn(leases::look_after(Arc::downgrade(&core)));
        tokio::spawn(leases::stay_alive(Arc::downgrade(&core)));
        tokio::spawn(listening::listen(Arc::downgrade(&core)));
        Ok(Self { core, messages })
    }

    /// Lets the worker of a scheduler that was opened with [`Options::worker_waits`] take part: it registers and takes
    /// what waits for it.
    ///
    /// # Errors
    /// When the store can't be written or read.
    pub async fn start_worker(&self) -> Result<(), Error> {
        self.core.start_worker().await
    }

    /// Names who reads payloads before their turn, where they come out of the store: those that another process
    /// accepted, and those from before a restart. The first one stays.
    pub fn read_ahead_with(&self, reader: ReadAhead) {
        let _ = self.core.reader_ahead.set(reader);
    }

    /// Writes what is still to be written, gives leases back and closes the store. Every later call fails.
    pub async fn close(&self) {
        if let Err(error) = self.write(leases::Deregister).await {
            tracing::debug!(%error, "leases were not given back; they end by themselves");
        }
        let (closed, done) = oneshot::channel();
        if self.messages.send(Message::Close(closed)).is_ok() {
            let _ = done.await;
        }
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

    /// How many samples have not ended, as a tenant needs to know who submits another.
    pub fn open_samples(&self, tenant: &TenantId) -> OpenSamples {
        let count = |open: &BTreeMap<TenantId, u64>| {
            let own = open.get(tenant).copied().unwrap_or(0);
            (open.values().sum::<u64>(), own, open.len() as u64 + u64::from(own == 0))
        };
        let here = count(lock(&self.core.queue).open_samples());
        let everywhere = count(&lock(&self.core.open_samples));
        OpenSamples { all: here.0.max(everywhere.0), own: here.1.max(everywhere.1), tenants: here.2.max(everywhere.2) }
    }

    /// What is counted, for Prometheus.
    pub fn metrics(&self) -> &Metrics {
        &self.core.metrics
    }

    /// What each tenant is granted.
    pub fn policies(&self) -> &Policies {
        &self.core.options.policies
    }

    /// Brings those metrics up to date that tell the present: what waits and what runs, of all processes on the
    /// database.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn observe(&self) -> Result<(), Error> {
        let mut conn = self.core.reader().await?;
        let open = quotas::open_requests(&mut conn).await?;
        let (sessions, runs) = quotas::active_sessions_and_runs(&mut conn).await?;
        let of = |running: bool| {
            let counts = open.iter().filter(|(_, state, _)| (*state == RequestState::Running) == running);
            counts.map(|&(kind, _, count)| (kind, count)).collect()
        };
        self.core.metrics.show(&Present { queued: of(false), running: of(true), sessions, runs });
        Ok(())
    }

    /// Makes a change durable.
    pub(crate) async fn write<W: Write>(&self, write: W) -> Result<W::Output, Error> {
        self.core.call(write).await
    }
}

/// Locks the database against other processes, which would each believe that the runs are theirs.
async fn exclusive(database: &Path) -> Result<File, Error> {
    const OPENING: &str = "open the database";
    let mut path = database.as_os_str().to_owned();
    path.push(".lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(PathBuf::from(path))
        .map_err(|error| Error::store(OPENING, error))?;
    for _ in 0..GUARD_STEPS {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            // The last process may be about to end.
            Err(TryLockError::WouldBlock) => tokio::time::sleep(GUARD_STEP).await,
            Err(TryLockError::Error(error)) => return Err(Error::store(OPENING, error)),
        }
    }
    Err(Error::Invalid(format!("database {} is in use by another process", database.display())))
}
