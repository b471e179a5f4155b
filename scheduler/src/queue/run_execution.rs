//! Starts the head of a run, and handles its completion.

use trainyard_protocol::{OpError, RequestId, RunId, TenantId};

use super::effects::Fence;
use super::failures::creation_failed;
use super::request::{InFlightRequest, PayloadSlot, QueuedRequest};
use super::run_queue::{History, PendingPlace, RunQueue};
use super::state::Queue;
use crate::execution::crashes::CrashRecord;
use crate::{RequestKind, Timestamp, Work};

impl Queue {
    /// Returns the head of a run with its crash record; `None` if maintenance or a replay comes first.
    pub(super) fn head_crashes(&self, id: &RunId) -> Option<(RequestId, CrashRecord)> {
        let startable = |run: &&RunQueue| run.executing.is_none() && run.maintenance.is_empty() && !run.handing_over;
        let run = self.runs.get(id).filter(startable)?;
        match (&run.history, run.pending.get(&run.next_seq)) {
            (History::Loaded, Some(PendingPlace::Work(entry))) => Some((entry.request.clone(), entry.cost.crashes)),
            _ => None,
        }
    }

    /// Returns the tenant and the tokens of a run's head; a replay costs nothing.
    pub(super) fn head_cost(&mut self, id: &RunId) -> Option<(TenantId, u64)> {
        let run = self.runs.get_mut(id)?;
        let replay = matches!(run.history, History::Replaying(_));
        let tokens = run.head().map_or(0, |head| head.cost.tokens);
        Some((run.tenant.clone(), if replay { 0 } else { tokens }))
    }

    pub(super) fn start_head(&mut self, id: &RunId, now: Timestamp) -> Option<Work> {
        let run = self.runs.get_mut(id)?;
        run.listed = false;
        let is_held = |head: &mut QueuedRequest| matches!(head.payload, PayloadSlot::Held(..));
        if run.executing.is_some() || !run.head().is_some_and(is_held) {
            return None;
        }
        let (seq_id, entry) = run.take_head()?;
        let replay = run.executing.as_ref().is_some_and(|executing| executing.replay);
        let in_flight = InFlightRequest {
            tenant: run.tenant.clone(),
            session: run.session.clone(),
            kind: entry.kind,
            run: Some(id.clone()),
            sampling_session: None,
            fence: Fence::Run(id.clone(), run.epoch()),
            seq_id,
            replay,
            cost: entry.cost,
            sequences: 0,
            movable: false,
            admitted: true,
            started: now,
        };
        if replay || entry.kind.is_maintenance() {
            // Maintenance is not a request of the session, but the session must not be unloaded before it is done.
            self.request_opened(&in_flight.session);
        }
        self.free_payload(&entry.payload);
        let PayloadSlot::Held(payload, decoded) = entry.payload else { return None };
        self.prefetch(id);
        Some(self.launch(entry.request, in_flight, seq_id, None, payload, decoded))
    }

    /// Handles the completion of an operation of a run.
    pub(super) fn finish_of_run(
        &mut self,
        id: &RunId,
        finished: &InFlightRequest,
        error: Option<&OpError>,
        now: Timestamp,
    ) {
        let Some(run) = self.runs.get_mut(id) else { return };
        let Some(executing) = run.executing.take() else { return };
        run.reserved = 0;
        if error.is_none() && finished.kind != RequestKind::RestoreRun {
            run.replay_cost = run.replay_cost.saturating_add(finished.cost.tokens.max(1));
        }
        match (executing.replay, error) {
            _ if finished.kind.is_maintenance() && !executing.replay => self.maintained(id, finished, error, now),
            (true, Some(error)) => self.fail_restore(id, &error.message),
            (true, None) => {
                for key in executing.snapshots {
                    self.add_snapshot(&finished.session, key, id.clone(), true);
                }
                self.end_replay_when_done(id);
                self.schedule_replay_save(id, finished, now);
            }
            (false, error) => {
                let created = run.next_seq == 0;
                run.next_seq += 1;
                if let Some(error) = error.filter(|_| created) {
                    self.fail_run(id, creation_failed(id, error));
                }
            }
        }
        self.advance(id);
    }
}
