//! Sessions in the queue: counts their open requests, ends and suspends them.

use trainyard_protocol::{OpError, RequestId, RunId, SessionId};

use super::effects::{Fence, Rejection};
use super::state::{Queue, SessionLoad, StartCandidate};
use crate::{RequestKind, Timestamp, WorkItem};

impl Queue {
    /// Returns whether the queue contains anything of a session.
    pub(crate) fn has_session(&self, session: &SessionId) -> bool {
        self.sessions.contains_key(session)
    }

    /// Returns the sessions of which the queue contains anything.
    pub(crate) fn session_ids(&self) -> Vec<SessionId> {
        self.sessions.keys().cloned().collect()
    }

    /// Returns the runs of a session whose leases this worker has.
    pub(crate) fn runs_of_session(&self, session: &SessionId) -> Vec<RunId> {
        self.sessions.get(session).map(|load| load.runs.iter().cloned().collect()).unwrap_or_default()
    }

    /// Ends a session. With `cancel`, every pending request and every sample is cancelled, and the worker is asked to end
    /// the requests of runs that it executes. Otherwise, executable requests are still executed, and only requests behind a
    /// gap fail, because the gap can no longer close.
    pub(crate) fn end_session(&mut self, session: &SessionId, cancel: bool) {
        let Some(load) = self.sessions.get_mut(session) else { return };
        load.ending = true;
        for run in load.runs.clone() {
            self.end_run(session, &run, cancel);
        }
        if cancel {
            self.abandon_requests_of(session);
            self.cancel_samples_of(session);
        }
        self.unload_if_ended(session);
    }

    /// Asks the worker to end the requests of a session's runs that it executes. Replays go on, because their results are
    /// stored, and so do the scheduler's own requests.
    fn abandon_requests_of(&mut self, session: &SessionId) {
        let is_of_run = |kind: RequestKind| kind != RequestKind::Sample && !kind.is_maintenance();
        let own = self.in_flight.iter().filter(|(_, it)| it.session == *session && !it.replay && is_of_run(it.kind));
        let mut requests: Vec<RequestId> = own.map(|(request, _)| request.clone()).collect();
        requests.sort_unstable();
        requests.into_iter().for_each(|request| self.signal(WorkItem::Abandon(request)));
    }

    /// Returns whether the worker is about to be asked to end a request of a run.
    pub(crate) fn is_abandoned(&self, request: &RequestId) -> bool {
        self.signals.iter().any(|item| matches!(item, WorkItem::Abandon(abandoned) if abandoned == request))
    }

    /// Cancels the pending requests and the samples of a session that expired. Its runs count as idle from now on, so
    /// that they are saved and released. If the session is revived, they are restored.
    pub(crate) fn suspend_session(&mut self, session: &SessionId) {
        let Some(load) = self.sessions.get(session) else { return };
        for id in load.runs.clone() {
            self.end_run(session, &id, true);
            if let Some(run) = self.runs.get_mut(&id) {
                run.idle_since = Some(Timestamp(i64::MIN));
            }
        }
        self.cancel_samples_of(session);
        self.unload_if_ended(session);
    }

    /// Ends a run's pending requests with its session.
    fn end_run(&mut self, session: &SessionId, id: &RunId, cancel: bool) {
        let Some(run) = self.runs.get_mut(id) else { return };
        let gap = run.first_gap();
        let (from, rejection) = if cancel {
            (i64::MIN, Rejection::Cancelled)
        } else {
            let error = OpError::user(format!("the session ended before request {gap} of {id} arrived"));
            (gap, Rejection::Failed(error))
        };
        let taken = run.take_pending(from);
        if cancel {
            run.cancelling.extend(taken.iter().map(|entry| entry.request.clone()));
            run.listed = false;
            self.throttle.forget(&run.tenant, &StartCandidate::Run(id.clone()));
        }
        let fence = Fence::Run(id.clone(), run.epoch());
        self.reject_entries(session, &fence, taken, &rejection);
    }

    /// Handles the store's decision to cancel a request.
    pub(crate) fn cancellation_stands(&mut self, id: &RunId, request: &RequestId) {
        if let Some(run) = self.runs.get_mut(id) {
            run.cancelling.remove(request);
            run.cancelled += 1;
        }
    }

    /// Unloads an ended session from the worker and releases its leases, once it has no open request.
    pub(super) fn unload_if_ended(&mut self, session: &SessionId) {
        let is_over = |load: &SessionLoad| load.ending || (load.runs.is_empty() && load.snapshots.is_empty());
        if !self.sessions.get(session).is_some_and(|load| load.open_requests == 0 && is_over(load)) {
            return;
        }
        let Some(load) = self.sessions.remove(session) else { return };
        for id in load.runs {
            if let Some(run) = self.runs.remove(&id) {
                self.effects.released_runs.push((id.clone(), run.epoch()));
                self.free_replays(run.history);
            }
            self.signal(WorkItem::UnloadRun(id));
        }
        for key in load.snapshots {
            self.snapshots.remove(&key);
            self.signal(WorkItem::DropSnapshot(key));
        }
    }

    pub(super) fn request_opened(&mut self, session: &SessionId) {
        self.sessions.entry(session.clone()).or_default().open_requests += 1;
    }

    pub(super) fn request_closed(&mut self, session: &SessionId) {
        if let Some(load) = self.sessions.get_mut(session) {
            load.open_requests = load.open_requests.saturating_sub(1);
        }
        self.unload_if_ended(session);
    }
}
