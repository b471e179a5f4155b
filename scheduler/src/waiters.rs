//! Who waits for what, and the last results, so that neither waiting nor the read after it costs a query.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use trainyard_protocol::{RequestId, SamplingSessionId, TenantId};

use crate::{Poll, SamplingSession};

/// A lock whose holder never leaves half a change behind.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Channels<K> = Arc<Mutex<HashMap<K, watch::Sender<()>>>>;

/// Waiters by what they wait for. A waiter costs an entry, no thread and no timer of ours.
pub(crate) struct Waiters<K: Eq + Hash + Clone> {
    channels: Channels<K>,
}

impl<K: Eq + Hash + Clone> Default for Waiters<K> {
    fn default() -> Self {
        Self { channels: Channels::default() }
    }
}

impl<K: Eq + Hash + Clone> Waiters<K> {
    /// Registers interest. To be called before the first look, so that nothing is missed in between.
    pub(crate) fn register(&self, key: K) -> Waiter<K> {
        let receiver = lock(&self.channels).entry(key.clone()).or_insert_with(|| watch::channel(()).0).subscribe();
        Waiter { key, receiver: Some(receiver), channels: Arc::clone(&self.channels) }
    }

    /// Wakes all who wait for `key`.
    pub(crate) fn wake(&self, key: &K) {
        // A receiver notices that its sender is gone.
        lock(&self.channels).remove(key);
    }

    /// Wakes everybody.
    pub(crate) fn wake_all(&self) {
        lock(&self.channels).clear();
    }

    /// How many things are waited for.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        lock(&self.channels).len()
    }
}

/// Registered interest.
pub(crate) struct Waiter<K: Eq + Hash + Clone> {
    key: K,
    receiver: Option<watch::Receiver<()>>,
    channels: Channels<K>,
}

impl<K: Eq + Hash + Clone> Waiter<K> {
    /// Returns once `key` was woken after the registration.
    pub(crate) async fn woken(&mut self) {
        if let Some(receiver) = &mut self.receiver {
            let _ = receiver.changed().await;
        }
    }
}

impl<K: Eq + Hash + Clone> Drop for Waiter<K> {
    fn drop(&mut self) {
        let mut channels = lock(&self.channels);
        self.receiver = None;
        if channels.get(&self.key).is_some_and(|sender| sender.receiver_count() == 0) {
            channels.remove(&self.key);
        }
    }
}

/// Most results kept in memory.
const CACHED_RESULTS: usize = 8192;
/// Most bytes of results kept in memory.
const CACHED_BYTES: usize = 64 * 1024 * 1024;

/// The last results, oldest out first.
#[derive(Default)]
pub(crate) struct Cache {
    inner: Mutex<CacheInner>,
}

#[derive(Default)]
struct CacheInner {
    results: HashMap<RequestId, (TenantId, Poll)>,
    order: VecDeque<RequestId>,
    bytes: usize,
}

impl Cache {
    /// What came of a request of the tenant, if it is at hand.
    pub(crate) fn get(&self, tenant: &TenantId, id: &RequestId) -> Option<Poll> {
        let inner = lock(&self.inner);
        inner.results.get(id).filter(|(owner, _)| owner == tenant).map(|(_, poll)| poll.clone())
    }

    pub(crate) fn put(&self, tenant: TenantId, id: RequestId, poll: Poll) {
        let size = size_of(&poll);
        let mut inner = lock(&self.inner);
        if size > CACHED_BYTES / 4 || inner.results.contains_key(&id) {
            return;
        }
        inner.bytes += size;
        inner.order.push_back(id.clone());
        inner.results.insert(id, (tenant, poll));
        while inner.bytes > CACHED_BYTES || inner.order.len() > CACHED_RESULTS {
            let Some(oldest) = inner.order.pop_front() else { break };
            inner.forget(&oldest);
        }
    }

    /// Drops results that the store drops too.
    pub(crate) fn forget(&self, ids: &[RequestId]) {
        let mut inner = lock(&self.inner);
        for id in ids {
            inner.forget(id);
        }
    }
}

impl CacheInner {
    fn forget(&mut self, id: &RequestId) {
        if let Some((_, poll)) = self.results.remove(id) {
            self.bytes = self.bytes.saturating_sub(size_of(&poll));
        }
    }
}

/// Most sampling sessions kept in memory.
const KNOWN_SAMPLERS: usize = 4096;

/// Sampling sessions that were read. They never change once they are committed.
#[derive(Default)]
pub(crate) struct Samplers(Mutex<HashMap<SamplingSessionId, (TenantId, Arc<SamplingSession>)>>);

impl Samplers {
    pub(crate) fn get(&self, tenant: &TenantId, id: &SamplingSessionId) -> Option<Arc<SamplingSession>> {
        lock(&self.0).get(id).filter(|(owner, _)| owner == tenant).map(|(_, session)| Arc::clone(session))
    }

    /// Keeps what is committed.
    pub(crate) fn put(&self, tenant: TenantId, session: Arc<SamplingSession>) {
        let mut known = lock(&self.0);
        if known.len() >= KNOWN_SAMPLERS {
            known.clear();
        }
        known.insert(session.id.clone(), (tenant, session));
    }
}

fn size_of(poll: &Poll) -> usize {
    match poll {
        Poll::Succeeded { payload, .. } => payload.len(),
        Poll::Failed(error) => error.message.len(),
        Poll::Pending | Poll::Cancelled => 0,
    }
}
