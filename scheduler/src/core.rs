//! What all parts of a scheduler share.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::sync::mpsc::WeakUnboundedSender;
use trainyard_protocol::{RequestId, RunId, SamplingSessionId, SessionId, TenantId};
use uuid::{NoContext, Uuid};

use crate::leases::{Release, ReleaseSamples, StartAlone};
use crate::queue::{Fetch, Queue};
use crate::scheduler::Options;
use crate::sessions::TouchSession;
use crate::store::blobs::Blobs;
use crate::store::db::{Conn, Database, Pool};
use crate::store::failed;
use crate::tidying::Tidying;
use crate::waiters::{Cache, Samplers, Waiters, lock};
use crate::work::EndUnstarted;
use crate::writer::{Message, Write};
use crate::{Error, Metrics, ReadAhead, Timestamp};

/// How old the note of a session's last sign of life may be.
const SEEN_WITHIN: Duration = Duration::from_secs(10);
/// Most sessions whose notes are remembered.
const SEEN_SESSIONS: usize = 65_536;

/// Shared by the handle, the writer and the tasks that read payloads.
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) readers: Pool,
    pub(crate) blobs: Blobs,
    pub(crate) tidying: Tidying,
    pub(crate) queue: Mutex<Queue>,
    /// Signalled when the queue has something for the worker.
    pub(crate) ready: Condvar,
    pub(crate) waiters: Waiters<RequestId>,
    /// Who waits for samples of (sampling session, clone) to finish.
    pub(crate) events: Waiters<(SamplingSessionId, i64)>,
    /// Wakes the task that takes work from the store.
    pub(crate) wake: Arc<Notify>,
    /// Runs of which new requests were told.
    pub(crate) hints: Mutex<BTreeSet<RunId>>,
    /// Leases and claims that the store knew of and the queue did not, when both were last compared.
    pub(crate) strays: Mutex<BTreeSet<String>>,
    /// Reads payloads before their turn.
    pub(crate) reader_ahead: OnceLock<ReadAhead>,
    /// Held while one is read.
    pub(crate) reading_ahead: tokio::sync::Mutex<()>,
    /// Requests that were accepted or ended here.
    pub(crate) activity: AtomicU64,
    /// When a sign of life of a session was last noted.
    pub(crate) seen: Mutex<HashMap<SessionId, Timestamp>>,
    /// Of this process's worker.
    pub(crate) incarnation: AtomicI64,
    /// Since when the store has been within reach, in ms since the epoch.
    pub(crate) reached_since: AtomicI64,
    /// Held while the worker's lease is prolonged, or while it registers anew.
    pub(crate) renewing: tokio::sync::Mutex<()>,
    /// Samples of all processes that had not ended when they were last counted.
    pub(crate) open_samples: Mutex<BTreeMap<TenantId, u64>>,
    pub(crate) cache: Cache,
    pub(crate) samplers: Samplers,
    pub(crate) runtime: Handle,
    /// Names this process to the others on the database, as long as it lives.
    pub(crate) process: String,
    /// Weak, because the writer holds this and stops when the last handle is gone.
    pub(crate) messages: WeakUnboundedSender<Message>,
    pub(crate) metrics: Metrics,
    /// Tests: the writer drops what it has not written, as a killed process does.
    #[cfg(test)]
    pub(crate) killed: std::sync::atomic::AtomicBool,
}

impl Core {
    pub(crate) fn now(&self) -> Timestamp {
        self.options.clock.now()
    }

    /// A session that expired later may come back: the results of its requests are kept.
    pub(crate) fn revivable_after(&self) -> Timestamp {
        self.now().minus(self.options.retention)
    }

    /// A time-ordered UUID of the present moment.
    pub(crate) fn new_uuid(&self) -> Uuid {
        let millis = u64::try_from(self.now().as_millis()).unwrap_or(0);
        let nanos = u32::try_from(millis % 1000).unwrap_or(0) * 1_000_000;
        Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, millis / 1000, nanos))
    }

    /// A random part of a period, so that processes do not march in step.
    pub(crate) fn jitter(&self, most: Duration) -> Duration {
        most.mul_f64(RandomState::new().hash_one(0_u8) as f64 / u64::MAX as f64)
    }

    pub(crate) async fn reader(&self) -> Result<Conn, Error> {
        self.readers.acquire().await.map_err(failed("read"))
    }

    /// The id of this process's worker.
    pub(crate) fn worker_id(&self) -> Option<&str> {
        self.options.worker.as_ref().map(|worker| worker.id.as_str())
    }

    /// The id of this process's worker, if it serves a base model.
    pub(crate) fn worker_for(&self, base_model: &str) -> Option<&str> {
        let worker = self.options.worker.as_ref()?;
        worker.models.iter().any(|model| model == base_model).then_some(worker.id.as_str())
    }

    /// Whether other processes may be at work on the same store.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.options.database, Database::Postgres(_))
    }

    /// Whether nothing can be written any more.
    pub(crate) fn messages_closed(&self) -> bool {
        self.messages.upgrade().is_none_or(|messages| messages.is_closed())
    }

    /// Makes a change durable.
    pub(crate) async fn call<W: Write>(&self, write: W) -> Result<W::Output, Error> {
        const CLOSED: Error = Error::Store("write after it was closed");
        let messages = self.messages.upgrade().ok_or(CLOSED)?;
        let (message, answer) = Message::call(write);
        messages.send(message).map_err(|_| CLOSED)?;
        drop(messages);
        answer.await.unwrap_or(Err(CLOSED))
    }

    /// Something was asked for in a session: notes a sign of its life, now and then.
    pub(crate) fn touch(&self, session: &SessionId) {
        self.activity.fetch_add(1, Ordering::Relaxed);
        if let Some(touch) = self.due_touch(session) {
            self.record(touch);
        }
    }

    /// The note of a sign of life, unless the last one is recent.
    pub(crate) fn due_touch(&self, session: &SessionId) -> Option<TouchSession> {
        let now = self.now();
        let mut seen = lock(&self.seen);
        if seen.get(session).is_some_and(|last| now < last.plus(SEEN_WITHIN)) {
            return None;
        }
        if seen.len() >= SEEN_SESSIONS {
            seen.clear();
        }
        seen.insert(session.clone(), now);
        Some(TouchSession { session: session.clone(), at: now })
    }

    /// Sends a record to the writer. When the scheduler has closed, a restart finds the same again.
    pub(crate) fn record<W: Write>(&self, write: W) {
        if let Some(messages) = self.messages.upgrade() {
            let _ = messages.send(Message::record(write));
        }
    }

    /// Changes the queue, then does what follows. Records are sent under the lock, so that they reach
    /// the writer in the order of the changes.
    pub(crate) fn with_queue<T>(self: &Arc<Self>, change: impl FnOnce(&mut Queue) -> T) -> T {
        let mut queue = lock(&self.queue);
        let value = change(&mut queue);
        let out = queue.take_out();
        if !out.lost.is_empty() || !out.doomed.is_empty() {
            self.record(EndUnstarted::new(out.lost, out.doomed));
        }
        for (run, epoch) in out.released {
            self.record(Release { run, epoch });
        }
        if let Some(request) = out.alone {
            self.record(StartAlone(request));
        }
        if !out.unclaimed.is_empty() {
            self.record(ReleaseSamples { samples: out.unclaimed, quiet: false });
        }
        drop(queue);
        if out.ready {
            self.ready.notify_all();
        }
        if out.room {
            self.wake.notify_one();
        }
        for fetch in out.fetches {
            self.spawn_fetch(fetch);
        }
        value
    }

    fn spawn_fetch(self: &Arc<Self>, fetch: Fetch) {
        let core = Arc::clone(self);
        self.runtime.spawn(async move { core.fetch(fetch).await });
    }
}
