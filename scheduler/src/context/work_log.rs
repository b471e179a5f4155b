//! Log lines about requests that ended. Each request gets a line, except that the samples of a sampling session, and
//! the requests that a run or a sampling session loses when its session ends, share one line every few seconds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::sleep;
use trainyard_protocol::{Category, OpError, RequestId, TenantId};

use crate::context::lock::lock;
use crate::context::origin::Origin;
use crate::store::results::EndedRequest;
use crate::{RequestKind, RequestState};

/// Time for which requests are gathered for one line.
const PERIOD: Duration = Duration::from_secs(3);

/// Durations of a request's wait and execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) waited: Duration,
    pub(crate) served: Duration,
}

/// Logs requests that ended. Cheap to clone; all clones share the gathered requests.
#[derive(Clone, Default)]
pub(crate) struct WorkLog(Arc<Mutex<BTreeMap<Group, Summary>>>);

/// Key of requests that share a line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    tenant: TenantId,
    kind: RequestKind,
    /// Id of the run or the sampling session.
    of: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Summary {
    succeeded: u64,
    failed: u64,
    cancelled: u64,
    tokens: u64,
    longest: Times,
    /// Error of the last failure.
    error: Option<String>,
}

impl Summary {
    fn add(&mut self, ended: &EndedRequest, times: Times) {
        match ended.state {
            RequestState::Succeeded => self.succeeded += 1,
            RequestState::Failed => self.failed += 1,
            RequestState::Cancelled | RequestState::Queued | RequestState::Running => self.cancelled += 1,
        }
        self.tokens += ended.tokens;
        self.longest.waited = self.longest.waited.max(times.waited);
        self.longest.served = self.longest.served.max(times.served);
        if let Some(error) = &ended.failure {
            self.error = Some(error.redacted());
        }
    }
}

impl WorkLog {
    /// Logs the end of a request; `times` is set if it was executed, `origin` if its call is known.
    pub(crate) fn ended(
        &self,
        runtime: &Handle,
        request: &RequestId,
        ended: &EndedRequest,
        times: Option<Times>,
        origin: Option<&Origin>,
    ) {
        if ended.kind == RequestKind::Sample || ended.state == RequestState::Cancelled {
            self.gather(runtime, ended, times.unwrap_or_default());
        } else {
            line(request, ended, times.unwrap_or_default(), origin);
        }
    }

    fn gather(&self, runtime: &Handle, ended: &EndedRequest, times: Times) {
        let run = || ended.run.as_ref().map(ToString::to_string);
        let of = ended.sample.as_ref().map(|(session, _)| session.to_string()).or_else(run).unwrap_or_default();
        let group = Group { tenant: ended.tenant.clone(), kind: ended.kind, of };
        let mut gathered = lock(&self.0);
        if gathered.is_empty() {
            let log = self.clone();
            runtime.spawn(async move {
                sleep(PERIOD).await;
                log.flush();
            });
        }
        gathered.entry(group).or_default().add(ended, times);
    }

    /// Logs the gathered requests.
    pub(crate) fn flush(&self) {
        let gathered = std::mem::take(&mut *lock(&self.0));
        for (group, summary) in gathered {
            let Group { tenant, kind, of } = group;
            let Summary { succeeded, failed, cancelled, tokens, longest, error } = summary;
            tracing::info!(
                kind = kind.as_str(), %tenant, of, succeeded, failed, cancelled, tokens,
                longest_wait_ms = millis(longest.waited), longest_service_ms = millis(longest.served), error,
                "requests ended"
            );
        }
    }
}

/// Logs the line of one request.
fn line(request: &RequestId, ended: &EndedRequest, Times { waited, served }: Times, origin: Option<&Origin>) {
    let call = origin.map(|origin| &*origin.call);
    let trace_id = origin.map(|origin| origin.trace.trace_id());
    let EndedRequest { tenant, kind, tokens, failure, .. } = ended;
    let (kind, run) = (kind.as_str(), ended.run.as_ref().map(ToString::to_string));
    let (wait_ms, service_ms) = (millis(waited), millis(served));
    match failure {
        None => tracing::info!(
            kind, %tenant, run, %request, x_request_id = call, trace_id, tokens, wait_ms, service_ms, "request succeeded"
        ),
        Some(error @ OpError { category: Category::User, .. }) => tracing::info!(
            kind, %tenant, run, %request, x_request_id = call, trace_id, tokens, wait_ms, service_ms,
            error = error.redacted(), "request failed"
        ),
        Some(error) => tracing::warn!(
            kind, %tenant, run, %request, x_request_id = call, trace_id, tokens, wait_ms, service_ms,
            error = error.redacted(), "request failed"
        ),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use trainyard_protocol::{RunId, SamplingSessionId};

    use super::*;

    fn sample(state: RequestState, failure: Option<OpError>) -> EndedRequest {
        EndedRequest {
            tenant: TenantId::new("t"),
            kind: RequestKind::Sample,
            state,
            tokens: 5,
            unneeded: None,
            sample: Some((SamplingSessionId::new("s:sample:0"), 0)),
            run: None,
            failure,
            creates: None,
        }
    }

    #[tokio::test]
    async fn samples_are_gathered_and_other_requests_are_not() {
        let log = WorkLog::default();
        let (runtime, id) = (Handle::current(), RequestId::new("r"));
        let times = |waited, served| {
            Some(Times { waited: Duration::from_millis(waited), served: Duration::from_millis(served) })
        };
        log.ended(&runtime, &id, &sample(RequestState::Succeeded, None), times(1, 20), None);
        log.ended(&runtime, &id, &sample(RequestState::Cancelled, None), None, None);
        let failure = OpError::user("stop: \"a secret\" is too long");
        log.ended(&runtime, &id, &sample(RequestState::Failed, Some(failure)), times(3, 2), None);
        let step = EndedRequest {
            kind: RequestKind::OptimStep,
            sample: None,
            run: Some(RunId::new("s:train:0")),
            ..sample(RequestState::Succeeded, None)
        };
        log.ended(&runtime, &id, &step, times(1, 1), None);
        let gathered = lock(&log.0).clone();
        assert_eq!(gathered.len(), 1);
        let expected = Summary {
            succeeded: 1,
            failed: 1,
            cancelled: 1,
            tokens: 15,
            longest: times(3, 20).unwrap(),
            error: Some("stop: \"…\" is too long".to_owned()),
        };
        assert_eq!(gathered.values().next(), Some(&expected));
        log.flush();
        assert!(lock(&log.0).is_empty());
    }
}
