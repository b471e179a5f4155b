//! Quarantine of requests with which several workers crashed. Each is executed with no other in-flight request. A
//! poison request, which crashes its worker, fails in the end; requests that were only present at the time do not.
//! After each isolated execution other requests have the worker for as long as it took.

use trainyard_protocol::{OpError, RequestId};

use super::effects::Rejection;
use super::state::{Quarantine, Queue, StartCandidate};
use crate::execution::crashes::CrashRecord;
use crate::{Timestamp, Work};

impl Queue {
    /// Notes that an isolated execution has ended, or that the next one is due.
    pub(super) fn update_quarantine(&mut self, now: Timestamp) {
        if let Some((request, since)) = &self.quarantine.started
            && !self.in_flight.contains_key(request)
        {
            self.quarantine.cooldown_until = Some(now.plus(since.until(now)));
            self.quarantine.started = None;
        }
        self.quarantine.due = self.quarantine_due_at(now) == Some(now);
    }

    /// Returns whether nothing may start now.
    pub(super) fn is_blocked_by_quarantine(&self) -> bool {
        let Quarantine { due, next, started, .. } = &self.quarantine;
        let executing = started.as_ref().is_some_and(|(request, _)| self.in_flight.contains_key(request));
        let being_recorded = next.as_ref().is_some_and(|(_, recorded)| !recorded);
        executing || (*due && (being_recorded || !self.in_flight.is_empty()))
    }

    /// Returns whether a quarantined request may start, or others after one.
    pub(super) fn quarantine_can_proceed(&self) -> bool {
        (self.quarantine.due || self.quarantine.started.is_some()) && !self.is_blocked_by_quarantine()
    }

    /// Returns the time when the next quarantined request may start, if no request is in flight then; `now` or later.
    pub(super) fn quarantine_due_at(&self, now: Timestamp) -> Option<Timestamp> {
        let Quarantine { waiting, cooldown_until, .. } = &self.quarantine;
        (!waiting.is_empty()).then(|| cooldown_until.map_or(now, |until| until.max(now)))
    }

    /// Quarantines a candidate if necessary: it waits until no request is in flight, or fails as a poison request.
    /// Returns whether it did.
    pub(super) fn divert_to_quarantine(&mut self, candidate: &StartCandidate) -> bool {
        let Some((_, crashes)) = self.crash_record(candidate).filter(|(_, crashes)| crashes.is_quarantined()) else {
            return false;
        };
        if crashes.is_poison() {
            self.fail_poison_request(candidate, crashes);
        } else {
            self.quarantine.waiting.push_back(candidate.clone());
            self.effects.ready = true;
        }
        true
    }

    /// Starts the next quarantined request if its isolated start is recorded, or has it recorded. Call this only when
    /// nothing blocks.
    pub(super) fn start_quarantined(&mut self, now: Timestamp) -> Option<Work> {
        if !self.quarantine.due {
            return None;
        }
        while let Some(candidate) = self.quarantine.waiting.front().cloned() {
            let quarantined = self.crash_record(&candidate).filter(|(_, crashes)| crashes.is_quarantined());
            let Some((request, _)) = quarantined else {
                // The request was cancelled, or something comes before it now.
                self.quarantine.waiting.pop_front();
                self.list_again(candidate);
                continue;
            };
            if self.quarantine.next != Some((request.clone(), true)) {
                self.quarantine.next = Some((request.clone(), false));
                self.effects.isolated_start = Some(request);
                return None;
            }
            self.quarantine.waiting.pop_front();
            self.quarantine.next = None;
            if let Some(work) = self.start_now(&candidate, now) {
                self.quarantine.started = Some((request, now));
                return Some(work);
            }
        }
        (self.quarantine.next, self.quarantine.due) = (None, false);
        None
    }

    /// Handles the record of a quarantined request's isolated start.
    pub(crate) fn isolated_start_recorded(&mut self, request: &RequestId) {
        if let Some((next, recorded)) = &mut self.quarantine.next
            && next == request
        {
            *recorded = true;
        }
    }

    fn crash_record(&self, candidate: &StartCandidate) -> Option<(RequestId, CrashRecord)> {
        match candidate {
            StartCandidate::Run(run) => self.head_crashes(run),
            StartCandidate::Sample(arrival) => {
                let sample = self.samples.get(arrival)?;
                Some((sample.request.clone(), sample.cost.crashes))
            }
        }
    }

    fn list_again(&mut self, candidate: StartCandidate) {
        match candidate {
            StartCandidate::Run(run) => self.ready_runs.push_back(run),
            StartCandidate::Sample(arrival) if self.samples.contains_key(&arrival) => {
                self.ready_samples.insert(arrival);
            }
            StartCandidate::Sample(_) => {}
        }
    }

    fn fail_poison_request(&mut self, candidate: &StartCandidate, crashes: CrashRecord) {
        let error = OpError::server(
            "worker processes repeatedly ended while they executed only this request; it will not be retried",
        );
        tracing::warn!(
            ?candidate,
            crash_count = crashes.count,
            isolated_starts = crashes.isolated_starts,
            "poison request failed: it crashed its worker each time"
        );
        match candidate {
            StartCandidate::Run(run) => self.reject_listed_head(run, error),
            StartCandidate::Sample(arrival) => self.reject_sample(*arrival, Rejection::Failed(error)),
        }
    }
}
