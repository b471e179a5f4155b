//! Handles runs that can't be used, and requests that end without having been executed.

use trainyard_protocol::{OpError, RunId, SessionId};

use super::effects::{Fence, Rejected, Rejection};
use super::request::QueuedRequest;
use super::run_queue::History;
use super::state::{Queue, StartCandidate};

impl Queue {
    /// Fails a run that can't be restored.
    pub(super) fn fail_restore(&mut self, id: &RunId, cause: &str) {
        let error = OpError::server(format!("training run {id} could not be restored after a restart: {cause}"));
        tracing::error!(run = %id, cause, "run could not be restored");
        if let Some(run) = self.runs.get(id) {
            self.effects.unrestorable.push((id.clone(), run.epoch(), error.clone()));
        }
        self.fail_run(id, error);
    }

    /// Fails a run that can't be used: its pending requests fail, and so will later ones.
    pub(crate) fn fail_run(&mut self, id: &RunId, error: OpError) {
        let Some(run) = self.runs.get_mut(id) else { return };
        run.failure = Some(error.clone());
        run.handing_over = false;
        let history = std::mem::replace(&mut run.history, History::Loaded);
        run.listed = false;
        run.maintenance.clear();
        let pending = run.take_pending(i64::MIN);
        self.throttle.forget(&run.tenant, &StartCandidate::Run(id.clone()));
        let (session, fence) = (run.session.clone(), Fence::Run(id.clone(), run.epoch()));
        self.free_replays(history);
        self.reject_entries(&session, &fence, pending, &Rejection::Failed(error.clone()));
        self.reject_samples_of_run(id, &error);
    }

    /// Ends the head of a run before it starts.
    pub(super) fn reject_head(&mut self, id: &RunId, error: OpError) {
        let Some(run) = self.runs.get_mut(id) else { return };
        // Maintenance is scheduled again when it is needed.
        run.maintenance.clear();
        run.handing_over = false;
        // Maintenance in execution continues.
        let executing = run.executing.take();
        let taken = run.take_head();
        run.executing = executing;
        let Some((seq_id, entry)) = taken else { return };
        run.next_seq += 1;
        let session = run.session.clone();
        let fence = Fence::Run(id.clone(), run.epoch());
        self.free_payload(&entry.payload);
        self.effects.rejected.push(Rejected { request: entry.request, fence, error: error.clone() });
        if seq_id == 0 {
            self.fail_run(id, creation_failed(id, &error));
        }
        self.advance(id);
        self.request_closed(&session);
    }

    /// Ends the head of a run that was listed for the worker.
    pub(super) fn reject_listed_head(&mut self, id: &RunId, error: OpError) {
        if let Some(run) = self.runs.get_mut(id) {
            run.listed = false;
        }
        self.reject_head(id, error);
    }

    pub(super) fn reject_entries(
        &mut self,
        session: &SessionId,
        fence: &Fence,
        entries: Vec<QueuedRequest>,
        rejection: &Rejection,
    ) {
        for QueuedRequest { request, payload, .. } in entries {
            self.free_payload(&payload);
            self.effects.reject(session, request, fence.clone(), rejection.clone());
            self.request_closed(session);
        }
    }
}

/// Returns the error for later requests of a run whose creation failed.
pub(crate) fn creation_failed(id: &RunId, cause: &OpError) -> OpError {
    OpError::user(format!("training run {id} could not be created: {cause}"))
}

/// Returns the cause if a run's creation is cancelled with its session.
pub(crate) fn session_ended() -> OpError {
    OpError::user("its session ended")
}
