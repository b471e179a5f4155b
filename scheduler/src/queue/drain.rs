//! Draining: before a worker stops, its runs are saved and released, so that nobody has to replay them.

use std::collections::BTreeSet;

use trainyard_protocol::{RequestId, RunId};

use super::run_queue::History;
use super::state::Queue;

impl Queue {
    /// Starts nothing new from here on. What is executed is finished; runs are then saved and released, samples that the
    /// engine has not begun are released at once.
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

    /// Whether nothing is here any more that is worth waiting for.
    pub(crate) fn is_drained(&self) -> bool {
        self.runs.is_empty() && self.in_flight.is_empty()
    }

    fn drain_run(&mut self, id: &RunId) {
        let saved = self.unsaved_snapshots(id).is_empty();
        let Some(run) = self.runs.get_mut(id).filter(|run| !run.handing_over) else { return };
        let unchanged = saved && run.replay_cost == 0 && run.executing.is_none();
        if run.failure.is_some() || unchanged || !matches!(run.history, History::Loaded) {
            // What a save would hold is in the storage, or was never here as a whole.
            let epoch = run.epoch();
            return self.release_run(id, epoch);
        }
        run.handing_over = true;
        self.schedule_save(id);
        self.advance(id);
    }
}
