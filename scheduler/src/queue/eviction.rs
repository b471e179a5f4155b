//! Eviction of runs from the worker: idle ones to free memory, others to share the load. A run is saved before its
//! lease is released; the worker that gets its next request restores it.

use std::collections::BTreeMap;
use std::time::Duration;

use trainyard_protocol::RunId;

use super::run_queue::History;
use super::state::Queue;
use crate::Timestamp;

impl Queue {
    /// Starts to release runs that have been idle for `idle`. Of each base model, `surplus` runs are released at once,
    /// idle ones first.
    pub(crate) fn evict_runs(&mut self, now: Timestamp, idle: Duration, mut surplus: BTreeMap<String, usize>) {
        for id in self.run_ids() {
            let sampled = self.is_sampled(&id);
            let Some(run) = self.runs.get_mut(&id).filter(|run| run.is_idle() && !run.releasing) else { continue };
            if sampled {
                run.idle_since = None;
                continue;
            }
            let since = *run.idle_since.get_or_insert(now);
            match surplus.get_mut(&run.base_model) {
                Some(left) if *left > 0 => *left -= 1,
                _ if now < since.plus(idle) => continue,
                _ => {}
            }
            match run.history {
                // The worker has not loaded the run.
                History::Lost => self.release_idle_run(&id),
                History::Loaded if run.failure.is_some() => self.release_idle_run(&id),
                History::Loaded => {
                    run.releasing = true;
                    self.schedule_save(&id);
                    self.advance(&id);
                }
                History::Reading | History::Replaying(_) => {}
            }
        }
        self.hand_over_busy_runs(surplus);
    }

    /// Moves surplus busy runs of each base model to other workers, each between two of its requests.
    fn hand_over_busy_runs(&mut self, mut surplus: BTreeMap<String, usize>) {
        for run in self.runs.values().filter(|run| run.handing_over) {
            if let Some(left) = surplus.get_mut(&run.base_model) {
                *left = left.saturating_sub(1);
            }
        }
        for id in self.run_ids() {
            if self.is_sampled(&id) {
                continue;
            }
            let Some(run) = self.runs.get_mut(&id) else { continue };
            let loaded = matches!(run.history, History::Loaded) && run.failure.is_none();
            if !loaded || run.is_idle() || run.releasing || run.handing_over || !run.maintenance.is_empty() {
                continue;
            }
            let Some(left) = surplus.get_mut(&run.base_model).filter(|left| **left > 0) else { continue };
            *left -= 1;
            run.handing_over = true;
            self.schedule_save(&id);
            self.advance(&id);
        }
    }

    /// Returns whether samples wait here for snapshots of a run.
    pub(super) fn is_sampled(&self, id: &RunId) -> bool {
        let of_run = |key: &String| self.snapshots.get(key).is_some_and(|snapshot| snapshot.run == *id);
        self.samples.values().any(|sample| sample.sampling.snapshot.as_ref().is_some_and(of_run))
    }

    /// Releases the lease of a run that is still idle.
    pub(super) fn release_idle_run(&mut self, id: &RunId) {
        if self.is_sampled(id) {
            if let Some(run) = self.runs.get_mut(id) {
                run.releasing = false;
            }
            return;
        }
        let Some(epoch) = self.runs.get(id).filter(|run| run.is_idle()).map(|run| run.epoch()) else { return };
        tracing::info!(run = %id, epoch, "releasing lease: run is idle");
        self.release_run(id, epoch);
    }

    /// Releases the lease of a run without requests in execution.
    pub(super) fn release_run(&mut self, id: &RunId, epoch: i64) {
        self.revoke_run(id, epoch);
        self.effects.released_runs.push((id.clone(), epoch));
    }
}
