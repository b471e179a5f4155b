//! Which call of a client a request came from, as far as this process knows: for the log and for traces.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex};

use trainyard_protocol::{OpError, RequestId, RunId, TenantId};

use crate::context::lock::lock;
use crate::{RequestKind, Timestamp, TraceContext};

/// Origins that are held at most, oldest out first: of requests that end in another process nobody asks.
const MOST: usize = 16_384;

/// The call of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The name of the call, from its client or made for it.
    pub call: Arc<str>,
    /// The span of the call.
    pub trace: TraceContext,
}

tokio::task_local! {
    static CURRENT: Origin;
}

impl Origin {
    /// Runs a future on behalf of this call: requests that it submits come from it.
    pub async fn scope<F: Future>(self, future: F) -> F::Output {
        CURRENT.scope(self, future).await
    }

    /// The call on whose behalf the current task works, if there is one.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }
}

/// When an executed request passed from one stage to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    /// It was accepted.
    pub accepted: Timestamp,
    /// The worker got it; of a sample, the engine admitted it.
    pub started: Timestamp,
    /// The engine was done.
    pub executed: Timestamp,
    /// Its outcome and effects were durable.
    pub committed: Timestamp,
}

/// A request that was executed and ended, of a call that is known here.
#[derive(Clone, Copy, Debug)]
pub struct Executed<'a> {
    /// Its name.
    pub request: &'a RequestId,
    /// What it was.
    pub kind: RequestKind,
    /// Whose it was.
    pub tenant: &'a TenantId,
    /// The run that executed it.
    pub run: Option<&'a RunId>,
    /// Tokens, as quotas count them.
    pub tokens: u64,
    /// Why it failed.
    pub failure: Option<&'a OpError>,
    /// The call that it came from.
    pub origin: &'a Origin,
    /// When it did what.
    pub stages: Stages,
}

/// Learns of requests that were executed; must not block.
pub type ExecutionObserver = Arc<dyn Fn(Executed<'_>) + Send + Sync>;

/// Where requests came from, until they end.
#[derive(Default)]
pub(crate) struct Origins(Mutex<Held>);

#[derive(Default)]
struct Held {
    origins: HashMap<RequestId, Origin>,
    order: VecDeque<RequestId>,
}

impl Origins {
    /// Holds the current call as the origin of a request that is about to be submitted.
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

    /// The origin of a request that ended.
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
