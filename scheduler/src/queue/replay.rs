//! Restores a run whose memory was lost: its history is read, then replayed before its next request.

use std::collections::VecDeque;

use bytes::Bytes;
use trainyard_protocol::{OpError, RequestId, RunId};

use super::effects::Fetch;
use super::request::{PayloadSlot, QueuedRequest};
use super::run_queue::{History, Replayed, RunQueue};
use super::state::Queue;
use crate::Decoded;

impl Queue {
    /// Restores a run because a sample needs a snapshot that its replay makes.
    pub(super) fn request_restore(&mut self, id: &RunId) {
        let error = match self.runs.get_mut(id) {
            None => snapshot_lost(),
            Some(RunQueue { failure: Some(failure), .. }) => failure.clone(),
            Some(run) => match run.history {
                History::Loaded => snapshot_lost(),
                History::Reading | History::Replaying(_) => return,
                History::Lost => {
                    run.history = History::Reading;
                    return self.effects.fetches.push(Fetch::History { run: id.clone(), epoch: run.epoch() });
                }
            },
        };
        self.reject_samples_of_run(id, &error);
    }

    /// Handles the list of operations to replay, or the failure to read it. A list for an older lease may be incomplete
    /// and is ignored.
    pub(crate) fn history_read(&mut self, id: &RunId, epoch: i64, history: Option<VecDeque<Replayed>>) {
        let Some(run) = self.runs.get_mut(id).filter(|run| run.epoch() == epoch) else { return };
        if !matches!(run.history, History::Reading) {
            return;
        }
        match history {
            Some(replays) => {
                tracing::info!(run = %id, operations = replays.len(), "restoring run from its snapshot and log");
                run.history = History::Replaying(replays);
                self.end_replay_when_done(id);
                self.advance(id);
            }
            None => self.fail_restore(id, "its requests could not be read"),
        }
    }

    /// Handles the payload of a run's request, or the failure to read it.
    pub(crate) fn payload_read(&mut self, id: &RunId, request: &RequestId, payload: Option<(Bytes, Decoded)>) {
        let Some(run) = self.runs.get_mut(id) else { return };
        let replaying = matches!(run.history, History::Replaying(_));
        let due = run.is_due(request);
        let reading =
            |entry: &&mut QueuedRequest| entry.request == *request && matches!(entry.payload, PayloadSlot::Reading);
        let Some(entry) = run.upcoming().find(reading) else { return };
        match payload {
            Some((bytes, decoded)) => entry.payload = PayloadSlot::Held(bytes, decoded),
            // The payload is read again once it is due.
            None => entry.payload = PayloadSlot::Stored,
        }
        match &entry.payload {
            PayloadSlot::Held(bytes, _) => {
                self.held_bytes += bytes.len();
                self.advance(id);
            }
            _ if !due => {}
            _ if replaying => self.fail_restore(id, "a stored request could not be read"),
            _ => self.reject_head(id, OpError::server("the stored request could not be read")),
        }
    }

    pub(super) fn end_replay_when_done(&mut self, id: &RunId) {
        let Some(run) = self.runs.get_mut(id) else { return };
        if !matches!(&run.history, History::Replaying(replays) if replays.is_empty()) {
            return;
        }
        run.history = History::Loaded;
        // Samples that still wait need snapshots that the history does not make.
        self.reject_samples_of_run(id, &snapshot_lost());
    }

    /// Frees the payloads of operations that are not replayed after all.
    pub(super) fn free_replays(&mut self, history: History) {
        if let History::Replaying(replays) = history {
            replays.iter().for_each(|replayed| self.free_payload(&replayed.entry.payload));
        }
    }
}

fn snapshot_lost() -> OpError {
    OpError::server("the snapshot of this sampling session was lost")
}
