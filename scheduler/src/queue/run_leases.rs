//! Runs enter the queue with their lease and leave with it.

use trainyard_protocol::{RequestId, RunId};

use super::run_queue::{History, RunQueue};
use super::state::{Queue, StartCandidate};
use crate::WorkItem;

impl Queue {
    /// Adds a run whose lease this worker has.
    pub(crate) fn add_run(&mut self, id: RunId, run: RunQueue) {
        self.sessions.entry(run.session.clone()).or_default().runs.insert(id.clone());
        self.runs.insert(id, run);
    }

    /// Returns the first position in a run's order that has yet to end; `None` without its lease.
    pub(crate) fn next_seq(&self, id: &RunId) -> Option<i64> {
        self.runs.get(id).map(|run| run.next_seq)
    }

    /// Returns the position from which a run's requests must be read, and the number of cancellations that the store
    /// had decided on. Rows that were read before another cancellation may be outdated.
    pub(crate) fn reads_from(&self, id: &RunId) -> Option<(i64, u64)> {
        self.runs.get(id).map(|run| (run.next_seq, run.cancelled))
    }

    /// Returns the runs whose leases this worker has, sorted.
    pub(crate) fn run_ids(&self) -> Vec<RunId> {
        let mut ids: Vec<RunId> = self.runs.keys().cloned().collect();
        ids.sort_unstable();
        ids
    }

    /// Drops a run whose lease has passed to another worker, with its requests in execution. No request ends by that.
    pub(crate) fn revoke_run(&mut self, id: &RunId, epoch: i64) {
        if self.runs.get(id).is_none_or(|run| run.epoch() != epoch) {
            return;
        }
        let Some(mut run) = self.runs.remove(id) else { return };
        self.throttle.forget(&run.tenant, &StartCandidate::Run(id.clone()));
        let pending = run.take_pending(i64::MIN);
        for entry in &pending {
            self.free_payload(&entry.payload);
        }
        self.free_replays(std::mem::replace(&mut run.history, History::Loaded));
        let before = self.in_flight.len();
        self.in_flight.retain(|_, in_flight| in_flight.run.as_ref() != Some(id));
        let gone = pending.len() + before - self.in_flight.len();
        let keys: Vec<String> =
            self.snapshots.iter().filter(|(_, snapshot)| snapshot.run == *id).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.drop_snapshot(&run.session, &key);
        }
        if let Some(load) = self.sessions.get_mut(&run.session) {
            load.runs.remove(id);
            load.open_requests = load.open_requests.saturating_sub(gone);
        }
        self.signal(WorkItem::UnloadRun(id.clone()));
        self.unload_if_ended(&run.session);
    }

    /// Drops the rest of an older lease of a run.
    pub(crate) fn revoke_older_lease(&mut self, id: &RunId, epoch: i64) {
        if let Some(old) = self.runs.get(id).map(RunQueue::epoch).filter(|old| *old < epoch) {
            self.revoke_run(id, old);
        }
    }

    /// Drops all runs and samples: this worker's lease expired, so others have them.
    pub(crate) fn revoke_all(&mut self) {
        for id in self.run_ids() {
            if let Some(epoch) = self.runs.get(&id).map(RunQueue::epoch) {
                self.revoke_run(&id, epoch);
            }
        }
        for arrival in self.samples.keys().copied().collect::<Vec<_>>() {
            self.remove_sample(arrival);
        }
        let samples: Vec<RequestId> =
            self.in_flight.iter().filter(|(_, request)| request.run.is_none()).map(|(id, _)| id.clone()).collect();
        samples.iter().for_each(|request| self.drop_sample(request));
    }
}
