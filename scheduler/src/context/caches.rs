//! Caches of recent results, sampling sessions and counts, which save queries.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use trainyard_protocol::{RequestId, SamplingSessionId, TenantId};

use crate::context::lock::lock;
use crate::types::{Poll, SamplingSession};

/// Maximum number of results kept in memory.
const RESULTS: usize = 8192;
/// Maximum number of bytes of results kept in memory.
const RESULT_BYTES: usize = 64 * 1024 * 1024;

/// Cache of recent results; the oldest are evicted first.
#[derive(Default)]
pub(crate) struct ResultCache {
    inner: Mutex<CachedResults>,
}

#[derive(Default)]
struct CachedResults {
    results: HashMap<RequestId, (TenantId, Poll)>,
    order: VecDeque<RequestId>,
    bytes: usize,
}

impl ResultCache {
    /// Returns the result of a request of the tenant, if it is cached.
    pub(crate) fn get(&self, tenant: &TenantId, id: &RequestId) -> Option<Poll> {
        let inner = lock(&self.inner);
        inner.results.get(id).filter(|(owner, _)| owner == tenant).map(|(_, poll)| poll.clone())
    }

    pub(crate) fn put(&self, tenant: TenantId, id: RequestId, poll: Poll) {
        let size = size_of(&poll);
        let mut inner = lock(&self.inner);
        if size > RESULT_BYTES / 4 || inner.results.contains_key(&id) {
            return;
        }
        inner.bytes += size;
        inner.order.push_back(id.clone());
        inner.results.insert(id, (tenant, poll));
        while inner.bytes > RESULT_BYTES || inner.order.len() > RESULTS {
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

impl CachedResults {
    fn forget(&mut self, id: &RequestId) {
        if let Some((_, poll)) = self.results.remove(id) {
            self.bytes = self.bytes.saturating_sub(size_of(&poll));
        }
    }
}

/// Maximum number of sampling sessions kept in memory.
const CACHED_SESSIONS: usize = 4096;

/// Cache of sampling sessions that were read.
#[derive(Default)]
pub(crate) struct SamplingSessionCache(Mutex<HashMap<SamplingSessionId, (TenantId, Arc<SamplingSession>)>>);

impl SamplingSessionCache {
    pub(crate) fn get(&self, tenant: &TenantId, id: &SamplingSessionId) -> Option<Arc<SamplingSession>> {
        lock(&self.0).get(id).filter(|(owner, _)| owner == tenant).map(|(_, session)| Arc::clone(session))
    }

    /// Caches a sampling session that is committed.
    pub(crate) fn put(&self, tenant: TenantId, session: Arc<SamplingSession>) {
        let mut known = lock(&self.0);
        if known.len() >= CACHED_SESSIONS {
            known.clear();
        }
        known.insert(session.id.clone(), (tenant, session));
    }
}

/// Unfinished samples of all processes by tenant, when they were last counted.
#[derive(Default)]
pub(crate) struct OpenSampleCounts(Mutex<BTreeMap<TenantId, u64>>);

impl OpenSampleCounts {
    pub(crate) fn replace(&self, counts: BTreeMap<TenantId, u64>) {
        *lock(&self.0) = counts;
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&BTreeMap<TenantId, u64>) -> T) -> T {
        read(&lock(&self.0))
    }
}

fn size_of(poll: &Poll) -> usize {
    match poll {
        Poll::Succeeded { payload, .. } => payload.len(),
        Poll::Failed(error) => error.message.len(),
        Poll::Pending | Poll::Cancelled => 0,
    }
}
