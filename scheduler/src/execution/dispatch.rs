//! Hands requests to the worker and records their start. Called from a plain thread.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use trainyard_protocol::{RequestId, SessionId, TenantId};

use crate::context::core::{Core, Urgency};
use crate::queue::{InFlightRequest, Queue};
use crate::quotas::BucketLevel;
use crate::store::db::{Conn, RowScope};
use crate::store::{quotas, requests};
use crate::writer::write::Write;
use crate::{Error, Scheduler, WorkItem};

impl Scheduler {
    /// Takes the work that is ready: heads of runs in seq order (one in-flight request per run), samples in arrival
    /// order.
    pub fn take_work(&self) -> Vec<WorkItem> {
        self.core.with_queue(|queue| {
            let items = queue.take(self.core.now());
            self.observe_starts(queue, &items);
            self.core.metrics.set_waiting_for_memory(queue.waiting_for_memory());
            let mut requests: Vec<RequestId> = items.iter().filter_map(newly_started).collect();
            let spent = rate_limited_tokens(&self.core, queue, &requests);
            requests.retain(|request| queue.in_flight(request).is_some_and(|in_flight| in_flight.admitted));
            if !requests.is_empty() || !spent.is_empty() {
                let sessions = sessions_of_samples(queue, &requests);
                self.core.record(RecordStarts { requests, sessions, spent });
            }
            items
        })
    }

    /// Records that the engine executes these samples from now on. Until then they count as waiting, although the
    /// worker has them. The completion of a sample implies this.
    pub fn samples_admitted(&self, requests: &[RequestId]) {
        self.core.with_queue(|queue| self.core.admit_samples(queue, requests));
    }

    /// Returns whether the queued work contains an order to abandon this request of a run. Does not take the work.
    pub fn is_abandoned(&self, request: &RequestId) -> bool {
        self.core.with_queue(|queue| queue.is_abandoned(request))
    }

    /// Takes work as [`Self::take_work`] does, but blocks the calling thread until something is ready or the timeout
    /// expires.
    pub fn wait_work(&self, timeout: Duration) -> Vec<WorkItem> {
        let start = Instant::now();
        loop {
            let items = self.take_work();
            let left = timeout.saturating_sub(start.elapsed());
            if !items.is_empty() || left.is_zero() {
                return items;
            }
            self.core.queue.wait(|queue| {
                let now = self.core.now();
                let pause = || queue.wakes_at(now).map_or(left, |at| left.min(now.until(at)));
                (!queue.is_ready(now)).then(pause)
            });
        }
    }

    fn observe_starts(&self, queue: &Queue, items: &[WorkItem]) {
        for item in items {
            let WorkItem::Start(work) = item else { continue };
            let Some(in_flight) = queue.in_flight(&work.request) else { continue };
            if in_flight.replay {
                self.core.metrics.replayed.inc();
            } else if in_flight.admitted && !in_flight.kind.is_maintenance() {
                self.core.observe_wait(in_flight);
            }
            let kind = in_flight.kind;
            tracing::debug!(
                request = %work.request, run = work.run.as_ref().map(tracing::field::display), kind = kind.as_str(),
                seq_id = work.seq_id, replay = work.replay, "request started"
            );
        }
    }
}

impl Core {
    /// Records that the engine executes these samples, except those already recorded.
    pub(crate) fn admit_samples(&self, queue: &mut Queue, requests: &[RequestId]) {
        let requests = queue.admit_samples(requests, self.now());
        requests.iter().filter_map(|request| queue.in_flight(request)).for_each(|sample| self.observe_wait(sample));
        if !requests.is_empty() {
            let sessions = sessions_of_samples(queue, &requests);
            self.record(RecordStarts { requests, sessions, spent: BTreeMap::new() });
        }
    }

    fn observe_wait(&self, in_flight: &InFlightRequest) {
        let waited = in_flight.cost.accepted.until(in_flight.started);
        self.metrics.started(in_flight.kind, &in_flight.tenant, waited);
    }
}

fn newly_started(item: &WorkItem) -> Option<RequestId> {
    match item {
        WorkItem::Start(work) if !work.replay && !work.kind.is_maintenance() => Some(work.request.clone()),
        _ => None,
    }
}

/// Returns the tokens of requests that just started, by tenants that have a rate limit.
fn rate_limited_tokens(core: &Core, queue: &Queue, requests: &[RequestId]) -> BTreeMap<TenantId, u64> {
    let mut spent = BTreeMap::new();
    for InFlightRequest { tenant, cost, .. } in requests.iter().filter_map(|request| queue.in_flight(request)) {
        if cost.tokens > 0 && core.grants.policy(tenant).tokens_per_minute.is_some() {
            *spent.entry(tenant.clone()).or_insert(0) += cost.tokens;
        }
    }
    spent
}

/// Returns the sessions of the samples among requests that just started.
fn sessions_of_samples(queue: &Queue, requests: &[RequestId]) -> BTreeSet<SessionId> {
    let started = requests.iter().filter_map(|request| queue.in_flight(request));
    started.filter(|started| started.sampling_session.is_some()).map(|started| started.session.clone()).collect()
}

/// A write that records the start of requests.
struct RecordStarts {
    requests: Vec<RequestId>,
    /// Sessions of the samples among the requests.
    sessions: BTreeSet<SessionId>,
    /// Tokens to take from their tenants' buckets. If the write is repeated, they are taken twice.
    spent: BTreeMap<TenantId, u64>,
}

impl Write for RecordStarts {
    type Output = BTreeMap<TenantId, BucketLevel>;
    const URGENCY: Urgency = Urgency::Note;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    fn counts(&self, _core: &Core) -> Vec<String> {
        self.spent.keys().map(ToString::to_string).collect()
    }

    fn sessions(&self) -> Vec<SessionId> {
        self.sessions.iter().cloned().collect()
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Self::Output, Error> {
        let Some(worker) = core.worker_id() else { return Ok(BTreeMap::new()) };
        requests::start_requests(conn, worker, &self.requests).await?;
        let now = core.now();
        let mut levels = BTreeMap::new();
        for (tenant, tokens) in &self.spent {
            // The limit may have been lifted in the meantime.
            let Some(rate) = core.grants.policy(tenant).tokens_per_minute else { continue };
            levels.insert(tenant.clone(), quotas::spend(conn, tenant, rate, *tokens, now).await?);
        }
        Ok(levels)
    }

    fn committed(&mut self, levels: &Self::Output, core: &Arc<Core>) {
        let now = core.now();
        core.with_queue(|queue| {
            for (tenant, level) in levels {
                let tokens = self.spent.get(tenant).copied().unwrap_or(0);
                queue.set_rate_limit(tenant, Some(*level), tokens, now);
            }
        });
    }
}
