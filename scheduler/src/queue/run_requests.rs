//! Requests of a run, from their acceptance until the run's head can start.

use trainyard_protocol::RunId;

use super::effects::{Fence, Fetch, Rejected};
use super::payloads::HELD_BYTES;
use super::request::{AcceptedRequest, PayloadSlot, QueuedRequest};
use super::run_queue::{History, PendingPlace};
use super::state::Queue;

/// Number of a run's requests whose payloads are in memory: a pass, its step, and the same once more.
const PREFETCH_REQUESTS: usize = 4;
/// Maximum number of bytes of payloads in memory with which further ones are prefetched.
const PREFETCH_BYTES: usize = HELD_BYTES / 2;

impl Queue {
    /// Adds a request at its position in a run's order.
    pub(crate) fn enqueue(&mut self, id: &RunId, seq_id: i64, accepted: AcceptedRequest) {
        let AcceptedRequest { request, kind, cost, payload } = accepted;
        // Ignore it without the lease, if it was already read back, or while it is being cancelled.
        if self.runs.get(id).is_none_or(|run| run.knows(seq_id) || run.cancelling.contains(&request)) {
            return;
        }
        let payload = self.hold_payload(payload);
        let Some(run) = self.runs.get_mut(id) else { return };
        if let Some(failure) = &run.failure {
            let (fence, error) = (Fence::Run(id.clone(), run.epoch()), failure.clone());
            self.effects.rejected.push(Rejected { request, fence, error });
            return self.free_payload(&payload);
        }
        run.pending.insert(seq_id, PendingPlace::Work(QueuedRequest { request, kind, cost, payload }));
        (run.idle_since, run.releasing) = (None, false);
        let session = run.session.clone();
        self.request_opened(&session);
        self.advance(id);
    }

    /// Marks a position in a run's order as one that is never executed.
    pub(crate) fn consume(&mut self, id: &RunId, seq_id: i64) {
        if let Some(run) = self.runs.get_mut(id)
            && !run.knows(seq_id)
        {
            run.pending.insert(seq_id, PendingPlace::Consumed);
            self.advance(id);
        }
    }

    /// Lists a run for the worker if its head can start, or reads what the head needs; prefetches further requests.
    pub(super) fn advance(&mut self, id: &RunId) {
        self.advance_head(id);
        self.prefetch(id);
    }

    fn advance_head(&mut self, id: &RunId) {
        let Some(run) = self.runs.get_mut(id) else { return };
        run.skip_consumed();
        if run.executing.is_some() || run.listed {
            return;
        }
        if matches!(run.history, History::Lost) && run.has_next() {
            run.history = History::Reading;
            return self.effects.fetches.push(Fetch::History { run: id.clone(), epoch: run.epoch() });
        }
        let base_model = run.base_model.clone();
        let Some(head) = run.head() else { return };
        match head.payload {
            PayloadSlot::Held(..) => {
                run.listed = true;
                self.ready_runs.push_back(id.clone());
                self.effects.ready = true;
            }
            PayloadSlot::Stored => self.effects.fetches.push(head.fetch(id, base_model)),
            PayloadSlot::Reading => {}
        }
    }

    /// Reads the payloads of a run's next requests while the one before them is executed.
    pub(super) fn prefetch(&mut self, id: &RunId) {
        let Some(run) = self.runs.get_mut(id).filter(|run| !run.handing_over) else { return };
        if self.held_bytes > PREFETCH_BYTES {
            return;
        }
        let base_model = run.base_model.clone();
        let upcoming = run.upcoming().take(PREFETCH_REQUESTS);
        let stored = upcoming.filter(|entry| matches!(entry.payload, PayloadSlot::Stored));
        self.effects.fetches.extend(stored.map(|entry| entry.fetch(id, base_model.clone())));
    }
}
