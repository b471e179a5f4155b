//! Calls of clients from which requests came, as far as this process knows, for the log and for traces.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex};

use trainyard_protocol::{OpError, RequestId, RunId, TenantId};

use crate::context::lock::lock;
use crate::{RequestKind, Timestamp, TraceContext};

/// Maximum number of origins in memory; the oldest are evicted first. Those of requests that end in another process are
/// never taken.
const MOST: usize = 16_384;

/// A call of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Id of the call, from its client or generated.
    pub call: Arc<str>,
    /// Span of the call.
    pub trace: TraceContext,
}

tokio::task_local! {
    static CURRENT: Origin;
}

impl Origin {
    /// Runs a future on behalf of this call: requests that it submits get the call as their origin.
    pub async fn scope<F: Future>(self, future: F) -> F::Output {
        CURRENT.scope(self, future).await
    }

    /// Returns the call on whose behalf the current task works, if there is one.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }
}

/// Times at which an executed request passed from one stage to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    /// Time when the request was accepted.
    pub accepted: Timestamp,
    /// Time when the worker got the request or, for a sample, when the engine admitted it.
    pub started: Timestamp,
    /// Time when the engine finished.
    pub executed: Timestamp,
    /// Time when outcome and effects became durable.
    pub committed: Timestamp,
}

/// A request that was executed and has ended, with a known call.
#[derive(Clone, Copy, Debug)]
pub struct Executed<'a> {
    /// Id of the request.
    pub request: &'a RequestId,
    /// Kind of the request.
    pub kind: RequestKind,
    /// Tenant that owns the request.
    pub tenant: &'a TenantId,
    /// Run that executed the request.
    pub run: Option<&'a RunId>,
    /// Number of tokens that count against quotas.
    pub tokens: u64,
    /// Reason if the request failed.
    pub failure: Option<&'a OpError>,
    /// Call that submitted the request.
    pub origin: &'a Origin,
    /// Times of the request's stages.
    pub stages: Stages,
}

/// Function that is called for executed requests; must not block.
pub type ExecutionObserver = Arc<dyn Fn(Executed<'_>) + Send + Sync>;

/// Origins of requests, until they end.
#[derive(Default)]
pub(crate) struct Origins(Mutex<Held>);

#[derive(Default)]
struct Held {
    origins: HashMap<RequestId, Origin>,
    order: VecDeque<RequestId>,
}

impl Origins {
    /// Stores the current call as the origin of a request that is about to be submitted.
    pub(crate) fn note(&self, request: &RequestId) {
        let Some(origin) = Origin::current() else { return };
        let mut held = lock(&self.0);
        held.origins.insert(request.clone(), origin);
        held.order.push_back(request.clone());
        while held.order.len() > MOST {
            let Some(oldest) = held.order.pop_front() else { break };
            held.origins.remove(&oldest);
        }
    }

    /// Returns and removes the origin of a request that ended.
    pub(crate) fn take(&self, request: &RequestId) -> Option<Origin> {
        lock(&self.0).origins.remove(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn origins_are_known_until_they_are_taken_or_many_others_came() {
        let origins = Origins::default();
        let trace = TraceContext { trace_id: 1, span_id: 2, sampled: true };
        let origin = Origin { call: "a".into(), trace };
        let note = |id: String| origin.clone().scope(async { origins.note(&RequestId::new(id)) });
        note("first".to_owned()).await;
        note("second".to_owned()).await;
        origins.note(&RequestId::new("of nobody"));
        assert_eq!(origins.take(&RequestId::new("of nobody")), None);
        assert_eq!(origins.take(&RequestId::new("second")), Some(origin.clone()));
        assert_eq!(origins.take(&RequestId::new("second")), None);
        for number in 0..MOST {
            note(number.to_string()).await;
        }
        assert_eq!(origins.take(&RequestId::new("first")), None);
        assert_eq!(lock(&origins.0).order.len(), MOST);
    }
}
