//! Reads a run's requests into the queue: all of them when its lease was claimed, new ones later.

use std::sync::Arc;

use trainyard_protocol::{OpError, RunId, RunMemory};

use super::session_end::apply_session_end;
use crate::context::core::Core;
use crate::queue::{AcceptedRequest, History, Queue, RunQueue, creation_failed, session_ended};
use crate::store::requests::RequestRow;
use crate::store::runs::RunRow;
use crate::store::sampling::SnapshotRow;
use crate::store::{ended_requests, requests, runs, sampling, sessions};
use crate::{Error, RequestState, RunState};

impl Core {
    /// Reads new requests of all runs of this process's worker, in case notifications were missed.
    pub(crate) async fn read_all_new_requests(self: &Arc<Self>) -> Result<(), Error> {
        let runs = self.queue.read().run_ids();
        for run in runs {
            self.read_new_requests(&run).await?;
        }
        Ok(())
    }

    pub(super) async fn read_new_requests(self: &Arc<Self>, run: &RunId) -> Result<(), Error> {
        loop {
            let Some((from, cancelled)) = self.queue.read().reads_from(run) else { return Ok(()) };
            let conn = &mut self.system_reader().await?;
            let rows = requests::requests_of_run(conn, run, from).await?;
            // Without a row of the next request, it has not arrived, or it ended so long ago that its row was deleted.
            let is_next = rows.first().is_some_and(|row| row.seq_id == from);
            let ended_before = if is_next { from } else { ended_requests::ended_before(conn, run).await? };
            let current = self.with_queue(|queue| {
                // A request cancelled in the meantime must not be added as pending.
                let current = queue.reads_from(run).is_some_and(|(_, now)| now == cancelled);
                if current {
                    (from..ended_before).for_each(|seq_id| queue.consume(run, seq_id));
                    rows.into_iter().for_each(|row| add_request(queue, run, row));
                }
                current
            });
            if current {
                return Ok(());
            }
        }
    }

    /// Reads a run whose lease was claimed with this epoch.
    pub(super) async fn load_run(self: &Arc<Self>, id: RunId, epoch: i64) -> Result<(), Error> {
        let mut conn = self.system_reader().await?;
        let run = runs::run_row(&mut conn, &id).await?;
        // Read the status before the requests: a session that has ended accepts no more of them.
        let status = sessions::session_status(&mut conn, &run.session).await?;
        let done = run.snapshot.as_ref().map_or(0, |(seq, _)| seq + 1);
        let rows = requests::requests_of_run(&mut conn, &id, done).await?;
        // Read after the rows: whatever was deleted before these were read lies before this position.
        let ended_before = ended_requests::ended_before(&mut conn, &id).await?;
        let snapshots = sampling::snapshots_of_run(&mut conn, &id).await?;
        let session = run.session.clone();
        let memory = self.run_memory(&run.spec);
        self.with_queue(|queue| {
            // Requests in the queue under an older lease do not count for this one.
            queue.revoke_older_lease(&id, epoch);
            add_run(queue, &id, epoch, RunRows { run, ended_before: ended_before.max(done), rows, snapshots }, memory);
            apply_session_end(queue, &session, &status);
        });
        // A process that ended the session in the meantime did not find the run here.
        let status = sessions::session_status(&mut conn, &session).await?;
        drop(conn);
        self.end_session_here(&session, &status).await
    }
}

/// Rows of a run in the store.
struct RunRows {
    run: RunRow,
    /// Position in the run's order before which all requests have ended.
    ended_before: i64,
    /// Requests of the run that its newest save does not contain.
    rows: Vec<RequestRow>,
    snapshots: Vec<SnapshotRow>,
}

fn add_run(queue: &mut Queue, id: &RunId, epoch: i64, read: RunRows, memory: RunMemory) {
    let RunRows { run, ended_before, rows, snapshots } = read;
    let next_seq = first_unfinished(&rows, ended_before);
    let lost = run.snapshot.is_some() || rows.iter().any(|row| row.replays);
    let history = if lost { History::Lost } else { History::Loaded };
    let model = run.spec.base_model;
    let run_queue = RunQueue::new(run.tenant, run.session, model, epoch, next_seq, history);
    queue.add_run(id.clone(), run_queue.with_memory(memory));
    for snapshot in snapshots {
        queue.add_snapshot(&snapshot.session, snapshot.key, id.clone(), false);
    }
    if run.state == RunState::Failed {
        let failure = run.failure.unwrap_or_else(|| creation_failed(id, &OpError::server("unknown cause")));
        queue.fail_run(id, failure);
    }
    rows.into_iter().for_each(|row| add_request(queue, id, row));
}

fn add_request(queue: &mut Queue, run: &RunId, row: RequestRow) {
    if row.seq_id == 0 && row.state == RequestState::Cancelled {
        queue.fail_run(run, creation_failed(run, &session_ended()));
    }
    if row.state.is_terminal() {
        queue.consume(run, row.seq_id);
    } else {
        let accepted = AcceptedRequest { request: row.id, kind: row.kind, cost: row.cost, payload: None };
        queue.enqueue(run, row.seq_id, accepted);
    }
}

/// Returns the first position in a run's order, from `ended_before` on, whose request is unfinished or missing.
fn first_unfinished(rows: &[RequestRow], ended_before: i64) -> i64 {
    let mut next = ended_before;
    for row in rows.iter().skip_while(|row| row.seq_id < ended_before) {
        if row.seq_id != next || !row.state.is_terminal() {
            break;
        }
        next += 1;
    }
    next
}
