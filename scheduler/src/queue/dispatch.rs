//! Hands requests to the worker, and handles their completion.

use std::sync::Arc;

use bytes::Bytes;
use trainyard_protocol::{OpError, RequestId, TenantId};

use super::effects::{Fetch, QueueEffects};
use super::request::InFlightRequest;
use super::state::{Queue, StartCandidate};
use crate::quotas::BucketLevel;
use crate::{Decoded, Pause, Policies, SamplingSession, Timestamp, Work, WorkItem};

impl Queue {
    /// Takes the effects of all changes since the last call.
    pub(crate) fn take_effects(&mut self) -> QueueEffects {
        let mut effects = std::mem::take(&mut self.effects);
        effects.ready |= self.quarantine_can_proceed();
        effects
    }

    /// Takes all work that the worker may do now: signals, then requests that rate limits held back until now, then
    /// heads of runs, then samples by arrival.
    pub(crate) fn take(&mut self, now: Timestamp) -> Vec<WorkItem> {
        self.admit_waiting(now);
        let mut items: Vec<WorkItem> = self.signals.drain(..).collect();
        self.update_quarantine(now);
        if self.is_blocked_by_quarantine() {
            return items;
        }
        if let Some(work) = self.start_quarantined(now) {
            items.push(WorkItem::Start(work));
        }
        if self.is_blocked_by_quarantine() {
            return items;
        }
        while let Some(candidate) = self.throttle.next_due(now) {
            self.effects.has_capacity = true;
            items.extend(self.start(&candidate, now).map(WorkItem::Start));
        }
        while let Some(run) = self.ready_runs.pop_front() {
            if self.admit(&run, now) {
                items.extend(self.start_within_rate_limit(StartCandidate::Run(run), now).map(WorkItem::Start));
            }
        }
        while let Some(arrival) = self.ready_samples.pop_first() {
            items.extend(self.start_within_rate_limit(StartCandidate::Sample(arrival), now).map(WorkItem::Start));
        }
        let unread = self.throttle.take_unread();
        self.effects.fetches.extend(unread.into_iter().map(|tenant| Fetch::RateLimit { tenant }));
        items
    }

    /// Sets the level of a tenant's token bucket, from which `written` tokens of requests that started here were taken.
    pub(crate) fn set_rate_limit(
        &mut self,
        tenant: &TenantId,
        level: Option<BucketLevel>,
        written: u64,
        now: Timestamp,
    ) {
        self.throttle.set_level(tenant, level, written, now);
        self.effects.ready |= self.is_ready(now);
    }

    /// Enforces new rate limits from now on.
    pub(crate) fn set_policies(&mut self, policies: Policies, now: Timestamp) {
        self.throttle.set_policies(policies, now);
        self.effects.ready |= self.is_ready(now);
    }

    /// Starts a candidate unless its tenant's rate limit holds it back.
    fn start_within_rate_limit(&mut self, candidate: StartCandidate, now: Timestamp) -> Option<Work> {
        let (tenant, tokens) = match &candidate {
            StartCandidate::Run(run) => self.head_cost(run)?,
            StartCandidate::Sample(arrival) => {
                let sample = self.samples.get(arrival)?;
                (sample.tenant.clone(), sample.cost.tokens)
            }
        };
        let Some(candidate) = self.throttle.offer(&tenant, candidate, tokens, now) else {
            // Requests that are held back take no slot.
            self.wake_for_claims();
            return None;
        };
        self.start(&candidate, now)
    }

    fn start(&mut self, candidate: &StartCandidate, now: Timestamp) -> Option<Work> {
        if self.divert_to_quarantine(candidate) {
            return None;
        }
        self.start_now(candidate, now)
    }

    pub(super) fn start_now(&mut self, candidate: &StartCandidate, now: Timestamp) -> Option<Work> {
        match candidate {
            StartCandidate::Run(run) => self.start_head(run, now),
            StartCandidate::Sample(arrival) => self.start_sample(*arrival, now),
        }
    }

    pub(super) fn launch(
        &mut self,
        request: RequestId,
        in_flight: InFlightRequest,
        seq_id: i64,
        sampling: Option<&Arc<SamplingSession>>,
        payload: Bytes,
        decoded: Decoded,
    ) -> Work {
        let sampling_session = sampling.map(|session| self.with_source(session));
        let of_run = || in_flight.run.as_ref().and_then(|run| self.runs.get(run)).map(|run| &run.base_model);
        let base_model = sampling.map(|session| &session.base_model).or_else(of_run).cloned().unwrap_or_default();
        let work = Work {
            request: request.clone(),
            tenant: in_flight.tenant.clone(),
            run: in_flight.run.clone(),
            sampling_session,
            base_model,
            kind: in_flight.kind,
            seq_id,
            payload,
            decoded,
            replay: in_flight.replay,
        };
        if !in_flight.replay {
            self.throttle.charge(&in_flight.tenant, in_flight.cost.tokens, in_flight.started);
        }
        self.in_flight.insert(request, in_flight);
        work
    }

    /// Handles the completion of a request by the worker. Returns `None` if the request is not in flight, for example
    /// after a cancellation.
    pub(crate) fn finish(
        &mut self,
        request: &RequestId,
        error: Option<&OpError>,
        now: Timestamp,
    ) -> Option<InFlightRequest> {
        let finished = self.in_flight.remove(request)?;
        match &finished.run {
            Some(run) => self.finish_of_run(run, &finished, error, now),
            None => {
                self.sample_closed(&finished.tenant);
                self.wake_for_claims();
            }
        }
        self.request_closed(&finished.session);
        Some(finished)
    }

    /// Returns the pause that holds back a request of the tenant which could otherwise start.
    pub(crate) fn pause(&self, tenant: &TenantId, request: &RequestId, now: Timestamp) -> Option<Pause> {
        if self.in_flight.contains_key(request) { None } else { self.throttle.pause(tenant, now) }
    }

    /// Returns the time when something that is held back may start.
    pub(crate) fn wakes_at(&self, now: Timestamp) -> Option<Timestamp> {
        if self.is_blocked_by_quarantine() {
            return None;
        }
        [self.throttle.wakes_at(now), self.quarantine_due_at(now), self.memory_wakes_at(now)]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns whether [`Self::take`] may have something to return.
    pub(crate) fn is_ready(&self, now: Timestamp) -> bool {
        if self.is_blocked_by_quarantine() {
            return !self.signals.is_empty();
        }
        let listed = !(self.signals.is_empty() && self.ready_runs.is_empty() && self.ready_samples.is_empty());
        listed || self.memory.unseen || self.quarantine_can_proceed() || self.wakes_at(now).is_some_and(|at| at <= now)
    }
}
