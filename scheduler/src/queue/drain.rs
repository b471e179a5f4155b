//! Drains a worker: before it stops, its runs are saved and released, so that no other worker has to replay them.

use std::collections::BTreeSet;

use trainyard_protocol::{RequestId, RunId};

use super::run_queue::History;
use super::state::Queue;

impl Queue {
    /// Stops starting new work. Requests in execution are finished; then runs are saved and released. Samples that the
    /// engine has yet to begin are released at once.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
        let pending = self.samples.values().map(|sample| &sample.request);
        let in_flight = self.samples_in_flight().filter(|(_, sample)| !sample.admitted);
        let waiting: BTreeSet<RequestId> = pending.chain(in_flight.map(|(request, _)| request)).cloned().collect();
        for request in waiting {
            self.release_claim(request);
        }
        for id in self.run_ids() {
            self.drain_run(&id);
        }
    }

    /// Returns whether nothing worth waiting for is left here.
    pub(crate) fn is_drained(&self) -> bool {
        self.runs.is_empty() && self.in_flight.is_empty()
    }

    fn drain_run(&mut self, id: &RunId) {
        let saved = self.unsaved_snapshots(id).is_empty();
        let Some(run) = self.runs.get_mut(id).filter(|run| !run.handing_over) else { return };
        let unchanged = saved && run.replay_cost == 0 && run.executing.is_none();
        if run.failure.is_some() || unchanged || !matches!(run.history, History::Loaded) {
            // The state is already in the storage, or was never loaded completely.
            let epoch = run.epoch();
            return self.release_run(id, epoch);
        }
        run.handing_over = true;
        self.schedule_save(id);
        self.advance(id);
    }
}
