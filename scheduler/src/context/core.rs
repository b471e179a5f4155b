//! The state that all parts of a scheduler share, and the form in which its writer receives writes. The parts add
//! their methods to [`Core`] in their own files and import this one; it imports none of them.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, RwLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, WeakUnboundedSender};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;
use trainyard_protocol::{
    Numerics, PlanMemory, RequestId, RunId, RunMemory, RunSpec, SamplingSessionId, SessionId, TenantId,
};
use uuid::{NoContext, Uuid};

use crate::context::caches::{ResultCache, SamplingSessionCache};
use crate::context::options::Options;
use crate::context::origin::{ExecutionObserver, Origins};
use crate::context::waiters::Waiters;
use crate::context::work_log::WorkLog;
use crate::processes::signals::Signal;
use crate::progress::{ProgressOutbox, ProgressWatches};
use crate::queue::Queue;
use crate::quotas::Grants;
use crate::store::blobs::Blobs;
use crate::store::db::{Conn, Database, Pool, RowScope};
use crate::store::failed;
use crate::{Error, Metrics, PrefetchDecoder, Timestamp};

/// Longer than it takes to accept a request.
const SECOND_LOOK: Duration = Duration::from_secs(1);

/// Shared by the handle, the writer and the background tasks.
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) readers: Pool,
    pub(crate) blobs: Blobs,
    pub(crate) metrics: Metrics,
    pub(crate) work_log: WorkLog,
    pub(crate) origins: Origins,
    pub(crate) runtime: Handle,
    /// Names this process to the others on the database, as long as it lives.
    pub(crate) process: String,
    /// Weak, because the writer holds this and stops when the last handle is gone.
    pub(crate) messages: WeakUnboundedSender<Message>,

    pub(crate) queue: Mutex<Queue>,
    /// Signalled when the queue has something for the worker.
    pub(crate) ready: Condvar,
    /// Clients that wait for requests to end.
    pub(crate) waiters: Waiters<RequestId>,
    /// Clients that wait for samples of (sampling session, clone) to end.
    pub(crate) sample_waiters: Waiters<(SamplingSessionId, i64)>,
    /// Clients that wait for metrics of runs.
    pub(crate) metrics_waiters: Waiters<RunId>,
    /// Clients that wait for stored samples of runs.
    pub(crate) stored_samples_waiters: Waiters<RunId>,
    /// Who watches which samples while they are executed.
    pub(crate) progress: ProgressWatches,
    /// Tokens for other processes.
    pub(crate) outbox: ProgressOutbox,
    pub(crate) results: ResultCache,
    pub(crate) sampling_sessions: SamplingSessionCache,
    /// Decodes payloads that were prefetched from the store.
    pub(crate) prefetch_decoder: OnceLock<PrefetchDecoder>,
    /// Learns of requests that were executed.
    pub(crate) execution_observer: OnceLock<ExecutionObserver>,
    /// Predicts the memory of runs.
    pub(crate) memory: OnceLock<Arc<dyn PlanMemory>>,
    /// What decides the bits of this process's worker's results, by base model.
    pub(crate) numerics: OnceLock<BTreeMap<String, Numerics>>,
    /// Runs whose wait for a worker with their numerics has been logged.
    pub(crate) numerics_waits: Mutex<BTreeSet<RunId>>,
    /// Held while one is decoded.
    pub(crate) prefetching: tokio::sync::Mutex<()>,
    /// Changes of keys, users and organisations that are known here.
    pub(crate) directory_version: AtomicU64,
    /// What tenants are granted, and which are disabled, as it was last read.
    pub(crate) grants: RwLock<Arc<Grants>>,
    /// Wakes the task that reads that.
    pub(crate) grants_due: Arc<Notify>,
    /// Held while that is read.
    pub(crate) refreshing_grants: tokio::sync::Mutex<()>,
    /// Requests that were accepted or ended here.
    pub(crate) activity: AtomicU64,
    /// When a heartbeat of a session was last recorded.
    pub(crate) recorded_heartbeats: Mutex<HashMap<SessionId, Timestamp>>,

    /// Wakes the task that claims work from the store and reads requests of this worker's runs.
    pub(crate) claim_wakeup: Arc<Notify>,
    /// Whether that task has a reason to claim.
    pub(crate) claims_due: AtomicBool,
    /// Runs with new requests in the store.
    pub(crate) runs_to_read: Mutex<BTreeSet<RunId>>,
    /// Leases and claims that the store knew of and the queue did not, when both were last compared.
    pub(crate) unconfirmed_leases: Mutex<BTreeSet<String>>,
    /// Counts the starts of this process's worker; 0 until it is registered.
    pub(crate) incarnation: AtomicI64,
    /// The worker takes nothing new.
    pub(crate) draining: AtomicBool,
    /// Held while the worker sends a heartbeat or registers.
    pub(crate) heartbeat: tokio::sync::Mutex<()>,
    /// When this worker's last heartbeat was recorded, in ms since the epoch; 0 before the first.
    pub(crate) last_heartbeat: AtomicI64,
    /// Time at which the store became reachable, in ms since the epoch.
    pub(crate) store_reachable_since: AtomicI64,
    /// Whether other workers can execute samples that this one can, as when that was last looked at.
    pub(crate) shares_samples: AtomicBool,
    /// Unfinished samples of all processes, when they were last counted.
    pub(crate) open_samples: Mutex<BTreeMap<TenantId, u64>>,
    /// Reason why this program no longer supports the database, once the schema has changed.
    pub(crate) outdated: watch::Sender<Option<Error>>,
    pub(crate) orphan_gc: tokio::sync::Mutex<OrphanGcProgress>,
    /// Makes the writer drop its unwritten messages, as a killed process does.
    #[cfg(test)]
    pub(crate) killed: AtomicBool,
}

/// How far garbage collection has looked through the storage.
#[derive(Default)]
pub(crate) struct OrphanGcProgress {
    /// When it last looked.
    pub(crate) last: Option<Timestamp>,
    /// Where to go on, by the area's root; absent where an area starts over.
    pub(crate) cursors: BTreeMap<&'static str, String>,
}

impl Core {
    /// The state of a scheduler that has just been opened.
    pub(crate) fn new(options: Options, readers: Pool, blobs: Blobs, messages: &UnboundedSender<Message>) -> Self {
        let now = options.clock.now();
        let grants = Grants { policies: options.policies.clone(), ..Grants::default() };
        Self {
            queue: Mutex::new(Queue::new(
                options.policies.clone(),
                options.snapshot_tokens,
                options.worker.as_ref().map_or(0, |worker| worker.decode_slots),
            )),
            metrics: Metrics::new(options.metrics_per_tenant, options.storage.times().clone()),
            options,
            readers,
            blobs,
            work_log: WorkLog::default(),
            origins: Origins::default(),
            runtime: Handle::current(),
            process: Uuid::now_v7().to_string(),
            messages: messages.downgrade(),
            ready: Condvar::new(),
            waiters: Waiters::default(),
            sample_waiters: Waiters::default(),
            metrics_waiters: Waiters::default(),
            stored_samples_waiters: Waiters::default(),
            progress: ProgressWatches::default(),
            outbox: ProgressOutbox::default(),
            results: ResultCache::default(),
            sampling_sessions: SamplingSessionCache::default(),
            prefetch_decoder: OnceLock::new(),
            execution_observer: OnceLock::new(),
            memory: OnceLock::new(),
            numerics: OnceLock::new(),
            numerics_waits: Mutex::default(),
            prefetching: tokio::sync::Mutex::default(),
            directory_version: AtomicU64::new(0),
            grants: RwLock::new(Arc::new(grants)),
            grants_due: Arc::default(),
            refreshing_grants: tokio::sync::Mutex::default(),
            activity: AtomicU64::new(0),
            recorded_heartbeats: Mutex::default(),
            claim_wakeup: Arc::default(),
            claims_due: AtomicBool::new(false),
            runs_to_read: Mutex::default(),
            unconfirmed_leases: Mutex::default(),
            incarnation: AtomicI64::new(0),
            draining: AtomicBool::new(false),
            heartbeat: tokio::sync::Mutex::default(),
            last_heartbeat: AtomicI64::new(0),
            store_reachable_since: AtomicI64::new(now.as_millis()),
            shares_samples: AtomicBool::new(false),
            open_samples: Mutex::default(),
            outdated: watch::Sender::new(None),
            orphan_gc: tokio::sync::Mutex::default(),
            #[cfg(test)]
            killed: AtomicBool::new(false),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.options.clock.now()
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

    /// Lets this process's worker, if it has one, claim what has become free.
    pub(crate) fn wake_claims(&self) {
        self.claims_due.store(true, Ordering::SeqCst);
        self.claim_wakeup.notify_one();
    }

    /// Makes known that keys, users or organisations were changed.
    pub(crate) fn directory_changed(&self) {
        self.directory_version.fetch_add(1, Ordering::SeqCst);
        self.grants_due.notify_one();
    }

    /// Wakes claims after leases were released, and once more a moment later: a request that was being
    /// accepted meanwhile is addressed to the worker that had the lease, and was not visible yet.
    pub(crate) fn wake_claims_of_released(self: &Arc<Self>) {
        self.wake_claims();
        self.wake_claims_after(SECOND_LOOK);
    }

    /// Wakes claims after a delay.
    pub(crate) fn wake_claims_after(self: &Arc<Self>, delay: Duration) {
        let core = Arc::downgrade(self);
        self.runtime.spawn(async move {
            tokio::time::sleep(delay).await;
            if let Some(core) = core.upgrade() {
                core.wake_claims();
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
        let worker = self.options.worker.as_ref().filter(|_| !self.is_draining())?;
        worker.models.iter().any(|model| model == base_model).then_some(worker.id.as_str())
    }

    /// What a run takes of the worker's memory.
    pub(crate) fn run_memory(&self, spec: &RunSpec) -> RunMemory {
        self.memory.get().and_then(|memory| memory.run(spec)).unwrap_or_default()
    }

    /// Whether other processes may be at work on the same store.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.options.database, Database::Postgres(_))
    }

    /// Whether the writer has stopped.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_outdated() || self.messages.upgrade().is_none_or(|messages| messages.is_closed())
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
    /// When it was sent.
    fn sent_at(&self) -> Instant;
    /// What is locked for it: tenants ([`Write::counts`](crate::writer::write::Write::counts)) and
    /// [sessions](crate::writer::write::Write::sessions), by name.
    fn locks(&self, core: &Core) -> Vec<String>;
    fn subjects(&self) -> Vec<Subject>;
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
