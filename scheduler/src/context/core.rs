//! The state that all parts of a scheduler share, and the form in which its writer receives writes. The parts add
//! their methods to [`Core`] in their own files and import this one. Each part's own state is a struct with private
//! fields, in a file of the part that imports neither [`Core`] nor another part.

use std::any::{Any, TypeId};
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
#[cfg(test)]
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, WeakUnboundedSender};
use tokio::sync::oneshot;
use tokio::time::Instant;
use trainyard_protocol::{PlanMemory, RequestId, RunId, RunMemory, RunSpec, SamplingSessionId, TenantId};
use uuid::{NoContext, Uuid};

use crate::context::caches::{OpenSampleCounts, ResultCache, SamplingSessionCache};
use crate::context::client_waiters::ClientWaiters;
use crate::context::database_clock::DatabaseClock;
use crate::context::options::Options;
use crate::context::origin::{ExecutionObserver, Origins};
use crate::context::session_heartbeats::SessionHeartbeats;
use crate::context::work_log::WorkLog;
use crate::execution::cancellations::Cancellations;
use crate::execution::prefetch::Prefetch;
use crate::gc::ended_progress::EndedGc;
use crate::gc::orphan_progress::OrphanGc;
use crate::lease::claims::Claims;
use crate::lease::heartbeats::Heartbeats;
use crate::lease::worker_numerics::WorkerNumerics;
use crate::processes::schema_watch::SchemaWatch;
use crate::processes::signals::Signal;
use crate::progress::Progress;
use crate::queue::{Queue, SharedQueue};
use crate::quotas::Granted;
use crate::store::blobs::Blobs;
use crate::store::db::{Conn, Database, Pool, RowScope};
use crate::store::failed;
use crate::{Clock, Error, Metrics, Timestamp};

/// Longer than it takes to accept a request.
const SECOND_LOOK: Duration = Duration::from_secs(1);

/// Shared by the handle, the writer and the background tasks.
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) clock: Arc<DatabaseClock>,
    pub(crate) readers: Pool,
    pub(crate) blobs: Blobs,
    pub(crate) metrics: Metrics,
    pub(crate) work_log: WorkLog,
    pub(crate) origins: Origins,
    pub(crate) runtime: Handle,
    /// Names this process to the others on the database, as long as it lives.
    pub(crate) process: String,
    /// Weak, because the writer holds this and stops when the last handle is gone.
    messages: WeakUnboundedSender<Message>,
    pub(crate) queue: SharedQueue,
    pub(crate) results: ResultCache,
    pub(crate) sampling_sessions: SamplingSessionCache,
    pub(crate) open_samples: OpenSampleCounts,

    pub(crate) waiters: ClientWaiters,
    pub(crate) claims: Claims,
    pub(crate) grants: Granted,
    pub(crate) heartbeats: Heartbeats,
    pub(crate) sessions: SessionHeartbeats,
    pub(crate) prefetch: Prefetch,
    pub(crate) cancellations: Cancellations,
    pub(crate) numerics: WorkerNumerics,
    pub(crate) progress: Progress,
    pub(crate) schema: SchemaWatch,
    pub(crate) orphan_gc: OrphanGc,
    pub(crate) ended_gc: EndedGc,

    /// Observer of executed requests.
    execution_observer: OnceLock<ExecutionObserver>,
    /// Predictor of the memory of runs.
    memory: OnceLock<Arc<dyn PlanMemory>>,
    /// Makes the writer drop its unwritten messages, as a killed process does.
    #[cfg(test)]
    killed: AtomicBool,
}

impl Core {
    /// The state of a scheduler that has just been opened.
    pub(crate) fn new(
        options: Options,
        clock: DatabaseClock,
        readers: Pool,
        blobs: Blobs,
        messages: &UnboundedSender<Message>,
    ) -> Self {
        let now = clock.now();
        let slots = options.worker.as_ref().map_or(0, |worker| worker.decode_slots);
        Self {
            queue: SharedQueue::new(Queue::new(options.policies.clone(), options.snapshot_tokens, slots)),
            metrics: Metrics::new(options.metrics_per_tenant, options.storage.times().clone()),
            grants: Granted::new(options.policies.clone()),
            options,
            clock: Arc::new(clock),
            readers,
            blobs,
            work_log: WorkLog::default(),
            origins: Origins::default(),
            runtime: Handle::current(),
            process: Uuid::now_v7().to_string(),
            messages: messages.downgrade(),
            results: ResultCache::default(),
            sampling_sessions: SamplingSessionCache::default(),
            open_samples: OpenSampleCounts::default(),
            waiters: ClientWaiters::default(),
            claims: Claims::default(),
            heartbeats: Heartbeats::new(now),
            sessions: SessionHeartbeats::default(),
            prefetch: Prefetch::default(),
            cancellations: Cancellations::default(),
            numerics: WorkerNumerics::default(),
            progress: Progress::default(),
            schema: SchemaWatch::default(),
            orphan_gc: OrphanGc::default(),
            ended_gc: EndedGc::default(),
            execution_observer: OnceLock::new(),
            memory: OnceLock::new(),
            #[cfg(test)]
            killed: AtomicBool::new(false),
        }
    }

    /// The present time of the database.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A session that expired later than this can be revived: the results of its requests are kept.
    pub(crate) fn revivable_after(&self) -> Timestamp {
        self.now().minus(self.options.retention)
    }

    /// A time-ordered UUID of the present moment.
    pub(crate) fn new_uuid(&self) -> Uuid {
        let millis = u64::try_from(self.now().as_millis()).unwrap_or(0);
        let nanos = u32::try_from(millis % 1000).unwrap_or(0) * 1_000_000;
        Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, millis / 1000, nanos))
    }

    /// A random duration between zero and `most`, so that processes don't act in step.
    pub(crate) fn jitter(&self, most: Duration) -> Duration {
        most.mul_f64(RandomState::new().hash_one(0_u8) as f64 / u64::MAX as f64)
    }

    /// Wakes claims after leases were released, and once more a moment later: a request that was being
    /// accepted meanwhile is addressed to the worker that had the lease, and was not visible yet.
    pub(crate) fn wake_claims_of_released(self: &Arc<Self>) {
        self.claims.wake();
        self.wake_claims_after(SECOND_LOOK);
    }

    /// Wakes claims after a delay.
    pub(crate) fn wake_claims_after(self: &Arc<Self>, delay: Duration) {
        let core = Arc::downgrade(self);
        self.runtime.spawn(async move {
            tokio::time::sleep(delay).await;
            if let Some(core) = core.upgrade() {
                core.claims.wake();
            }
        });
    }

    /// A connection that reads on behalf of a tenant.
    pub(crate) async fn reader_of(&self, tenant: &TenantId) -> Result<Conn, Error> {
        self.reader_in(&RowScope::of(tenant)).await
    }

    /// A connection that reads for the service itself, across tenants.
    pub(crate) async fn system_reader(&self) -> Result<Conn, Error> {
        self.reader_in(&RowScope::System).await
    }

    pub(crate) async fn reader_in(&self, scope: &RowScope) -> Result<Conn, Error> {
        if self.is_outdated() {
            return Err(Error::Unavailable("read"));
        }
        let asked = Instant::now();
        let conn = self.readers.acquire(scope).await;
        self.metrics.store.waited_for_reader(asked.elapsed());
        conn.map_err(failed("read"))
    }

    /// The id of this process's worker.
    pub(crate) fn worker_id(&self) -> Option<&str> {
        self.options.worker.as_ref().map(|worker| worker.id.as_str())
    }

    /// The id of this process's worker, if it serves a base model and is not about to stop.
    pub(crate) fn worker_for(&self, base_model: &str) -> Option<&str> {
        let worker = self.options.worker.as_ref().filter(|_| !self.claims.are_stopped())?;
        worker.models.iter().any(|model| model == base_model).then_some(worker.id.as_str())
    }

    /// What a run takes of the worker's memory.
    pub(crate) fn run_memory(&self, spec: &RunSpec) -> RunMemory {
        self.memory.get().and_then(|memory| memory.run(spec)).unwrap_or_default()
    }

    /// Sets the predictor of the memory of runs. Returns false if there is one, which stays.
    pub(crate) fn set_memory(&self, memory: Arc<dyn PlanMemory>) -> bool {
        self.memory.set(memory).is_ok()
    }

    /// Returns the observer of executed requests, if there is one.
    pub(crate) fn execution_observer(&self) -> Option<&ExecutionObserver> {
        self.execution_observer.get()
    }

    /// Sets the observer of executed requests. The first one stays.
    pub(crate) fn observe_executions_with(&self, observer: ExecutionObserver) {
        let _ = self.execution_observer.set(observer);
    }

    /// Returns the sender of messages to the writer, unless the scheduler has closed.
    pub(crate) fn messages(&self) -> Option<UnboundedSender<Message>> {
        self.messages.upgrade()
    }

    /// Whether other processes may be at work on the same store.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.options.database, Database::Postgres(_))
    }

    /// Whether the writer has stopped.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_outdated() || self.messages().is_none_or(|messages| messages.is_closed())
    }

    /// Makes the writer drop its unwritten messages, as a killed process does.
    #[cfg(test)]
    pub(crate) fn kill(&self) {
        self.killed.store(true, Ordering::SeqCst);
    }

    #[cfg(test)]
    pub(crate) fn is_killed(&self) -> bool {
        self.killed.load(Ordering::SeqCst)
    }
}

/// What the writer receives.
pub(crate) enum Message {
    Write(Box<dyn QueuedWrite>),
    /// Write what has been received, then stop.
    Close(oneshot::Sender<()>),
}

/// What a write is to its sender.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// The sender waits for the answer, which may be an error.
    Call,
    /// It records what has already happened: it is tried until it succeeds, in order.
    Record,
    /// A record that nobody waits for: it is written together with the next write that is not a note.
    Note,
}

/// What a write is about. Of writes about the same, none overtakes another that is still being prepared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    Run(RunId),
    /// A sample, by the id of its request.
    Request(RequestId),
    /// The samples of a sampling session, whose completions clients see in order.
    Samples(SamplingSessionId),
    /// It comes after all that was sent before.
    Everything,
}

/// What became of writes, one by one.
pub(crate) type WriteResults = Vec<Result<(), Error>>;

/// A step of a write of any type.
pub(crate) type WriteStep<'a, T = ()> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// A [`Write`](crate::writer::write::Write) of any type, with its sender. Methods with the name of one of its methods
/// forward to it.
pub(crate) trait QueuedWrite: Send {
    fn urgency(&self) -> Urgency;
    fn scope(&self) -> RowScope;
    /// Whether it is undone alone when it fails. What can't fail alone needs no savepoint.
    fn undo(&self) -> bool;
    /// Whether its sender has waited long enough.
    fn is_overdue(&self) -> bool;
    /// Number of rows that it changes, about.
    fn rows(&self) -> usize;
    /// When it was sent.
    fn sent_at(&self) -> Instant;
    /// What is locked for it: tenants ([`Write::counts`](crate::writer::write::Write::counts)) and
    /// [sessions](crate::writer::write::Write::sessions), by name.
    fn locks(&self, core: &Core) -> Vec<String>;
    fn subjects(&self) -> Vec<Subject>;
    /// Counts that the database refused this write alone, and returns the number of refusals.
    fn refused(&mut self) -> u32;
    fn simplify(&mut self) -> bool;
    /// Gives up a record that can't be written.
    fn abandon(self: Box<Self>, core: &Arc<Core>);
    fn is_ready(&mut self) -> bool;
    fn prepare<'a>(&'a mut self, core: &'a Core) -> WriteStep<'a>;
    fn apply<'a>(&'a mut self, conn: &'a mut Conn, core: &'a Core) -> WriteStep<'a>;
    /// The type of the writes that it joins, if it joins any.
    fn joins(&self, core: &Core) -> Option<TypeId>;
    fn as_any(&mut self) -> &mut (dyn Any + Send);
    /// Applies it and `others`, all of the type that it joins.
    fn apply_with<'a>(
        &'a mut self,
        others: &'a mut [Box<dyn QueuedWrite>],
        conn: &'a mut Conn,
        core: &'a Core,
    ) -> WriteStep<'a, WriteResults>;
    /// What other processes have to know, once it was applied.
    fn signals(&self, signals: &mut Vec<Signal>);
    /// The transaction was committed, or failed with this.
    fn settle(self: Box<Self>, failure: Option<Error>, core: &Arc<Core>);
}
