//! Maintenance of a run: saving it, so that its log can be truncated, and saving its snapshots for sampling, so that
//! they can be evicted from memory.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use trainyard_protocol::{OpError, RequestId, RunId};

use super::request::{InFlightRequest, PayloadSlot, QueuedRequest};
use super::run_queue::History;
use super::state::Queue;
use crate::quotas::Cost;
use crate::{Decoded, MaintenanceOp, RequestKind, Timestamp};

/// Duration from which a replay is saved,
const REPLAY_UNSAVED: Duration = Duration::from_millis(500);
/// provided that it took this many times longer than a save, so that most of the time remains for the replay.
const REPLAY_TIMES_SAVE: u32 = 5;

impl Queue {
    /// Schedules a save of the run once its replay would cost much, or of its snapshots if there are too many. Call
    /// this after the effects of a request are known.
    pub(crate) fn schedule_maintenance(&mut self, id: &RunId) {
        let Some(run) = self.runs.get(id) else { return };
        if !run.maintenance.is_empty() || run.failure.is_some() || !matches!(run.history, History::Loaded) {
            return;
        }
        if run.replay_cost >= self.save_after {
            self.schedule_save(id);
        } else {
            self.schedule_spill(id);
        }
        self.advance(id);
    }

    /// Schedules a save during a replay once the replay has progressed, so that even a process that is killed
    /// repeatedly makes progress. Call this after each replayed operation.
    pub(super) fn schedule_replay_save(&mut self, id: &RunId, replayed: &InFlightRequest, now: Timestamp) {
        let Some(run) = self.runs.get_mut(id) else { return };
        if replayed.kind.is_maintenance() {
            return;
        }
        let since = *run.unsaved_replay.get_or_insert(replayed.started);
        if since.until(now) >= REPLAY_UNSAVED.max(run.save_took * REPLAY_TIMES_SAVE) {
            self.schedule_save(id);
        }
    }

    /// Saves the run and all its snapshots that are only in memory. Then the log up to here is unneeded.
    pub(super) fn schedule_save(&mut self, id: &RunId) {
        let unsaved = self.unsaved_snapshots(id);
        let mut maintenance: VecDeque<QueuedRequest> =
            unsaved.into_iter().map(|key| self.operation(id, &MaintenanceOp::SaveSnapshot { key })).collect();
        maintenance.push_back(self.operation(id, &MaintenanceOp::SaveRun));
        if let Some(run) = self.runs.get_mut(id) {
            run.maintenance = maintenance;
        }
    }

    /// Schedules the save of a snapshot that was taken after a save of its run was scheduled. It must come before that
    /// save, which truncates the log that could make the snapshot again.
    pub(super) fn save_before_run(&mut self, id: &RunId, key: &str) {
        let last = self.runs.get(id).and_then(|run| run.maintenance.back());
        if last.is_none_or(|last| last.kind != RequestKind::SaveRun) {
            return;
        }
        let entry = self.operation(id, &MaintenanceOp::SaveSnapshot { key: key.to_owned() });
        if let Some(run) = self.runs.get_mut(id) {
            run.maintenance.push_front(entry);
        }
    }

    /// Saves the snapshots that exceed the number kept in memory.
    pub(super) fn schedule_spill(&mut self, id: &RunId) {
        let excess = self.excess_snapshots(id);
        for key in self.unsaved_snapshots(id).into_iter().take(excess) {
            let entry = self.operation(id, &MaintenanceOp::SaveSnapshot { key });
            if let Some(run) = self.runs.get_mut(id) {
                run.maintenance.push_back(entry);
            }
        }
    }

    /// Makes a maintenance operation. Its id never leaves this process.
    fn operation(&mut self, run: &RunId, operation: &MaintenanceOp) -> QueuedRequest {
        self.uses += 1;
        let kind = operation.kind();
        let request = RequestId::new(format!("{run}/{}/{}", kind.as_str(), self.uses));
        maintenance_request(request, operation)
    }

    /// Handles the completion of a maintenance operation of a run. After a failure the other operations are dropped.
    pub(super) fn maintained(
        &mut self,
        id: &RunId,
        finished: &InFlightRequest,
        error: Option<&OpError>,
        now: Timestamp,
    ) {
        let Some(run) = self.runs.get_mut(id) else { return };
        if finished.kind == RequestKind::SaveRun {
            (run.replay_cost, run.unsaved_replay) = (0, None);
            run.save_took = finished.started.until(now);
        }
        if let Some(error) = error {
            tracing::warn!(run = %id, %error, "run snapshot failed; retrying later");
            run.maintenance.clear();
            run.unload_started = run.unload_started.max(Some(finished.started));
            if self.draining {
                // The run's log is complete: the next worker replays it.
                let epoch = run.epoch();
                return self.release_run(id, epoch);
            }
            (run.replay_cost, run.unsaved_replay) = (0, None);
            (run.releasing, run.handing_over, run.spilling) = (false, false, false);
        }
    }

    /// Handles the complete save of a run to the storage.
    pub(crate) fn run_saved(&mut self, id: &RunId) {
        let Some(run) = self.runs.get(id) else { return };
        let epoch = run.epoch();
        if run.handing_over {
            tracing::info!(run = %id, epoch, "releasing lease: run moves to another worker");
            self.release_run(id, epoch);
        } else if run.releasing {
            self.release_idle_run(id);
        }
    }
}

/// Makes a request of a maintenance operation.
pub(crate) fn maintenance_request(request: RequestId, operation: &MaintenanceOp) -> QueuedRequest {
    // The operation consists of strings and numbers, which JSON can always represent.
    let payload = serde_json::to_vec(operation).unwrap_or_default();
    QueuedRequest {
        request,
        kind: operation.kind(),
        cost: Cost::new(0, Timestamp(0)),
        payload: PayloadSlot::Held(Bytes::from(payload), Decoded::default()),
    }
}
