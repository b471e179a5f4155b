//! Draining: before a worker stops, its runs are saved and released, so that nobody has to replay them.

use std::collections::BTreeSet;

use trainyard_protocol::{RequestId, RunId};

use super::effects::Fence;
use super::request::InFlightRequest;
use super::run_queue::History;
use super::state::Queue;

impl Queue {
    /// Starts nothing new from here on. What is executed is finished; runs are then saved and released, samples that the
    /// engine has not begun are released at once.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
        for arrival in self.samples.keys().copied().collect::<Vec<_>>() {
            self.release_sample(arrival);
        }
        self.release_unadmitted_samples();
        for id in self.run_ids() {
            self.drain_run(&id);
        }
    }

    /// Takes samples back from the worker that its engine has not begun.
    fn release_unadmitted_samples(&mut self) {
        let unadmitted = self.samples_in_flight().filter(|(_, sample)| !sample.admitted);
        let unadmitted: BTreeSet<RequestId> = unadmitted.map(|(request, _)| request.clone()).collect();
        for request in unadmitted {
            if let Some(InFlightRequest { fence: Fence::Sample(claim), .. }) = self.stop_sample(&request) {
                self.effects.released_samples.push((request, claim));
            }
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
