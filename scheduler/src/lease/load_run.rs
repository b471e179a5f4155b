//! Reads a run's requests into the queue: all of them when its lease was claimed, new ones later.

use std::sync::Arc;

use trainyard_protocol::{OpError, RunId, RunMemory};

use super::session_end::apply_session_end;
use crate::context::core::Core;
use crate::queue::{AcceptedRequest, History, Queue, RunQueue, creation_failed, session_ended};
use crate::store::requests::RequestRow;
use crate::store::runs::RunRow;
use crate::store::sampling::SnapshotRow;
use crate::store::{requests, runs, sampling, sessions};
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
            let rows = requests::requests_of_run(&mut self.system_reader().await?, run, from).await?;
            let current = self.with_queue(|queue| {
                // A request cancelled in the meantime must not be added as pending.
                let current = queue.reads_from(run).is_some_and(|(_, now)| now == cancelled);
                if current {
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
        let conn = &mut self.system_reader().await?;
        let run = runs::run_row(conn, &id).await?;
        // Read the status before the requests: a session that has ended accepts no more of them.
        let status = sessions::session_status(conn, &run.session).await?;
        let done = run.snapshot.as_ref().map_or(0, |(seq, _)| seq + 1);
        let rows = requests::requests_of_run(conn, &id, done).await?;
        let snapshots = sampling::snapshots_of_run(conn, &id).await?;
        let session = run.session.clone();
        let memory = self.run_memory(&run.spec);
        self.with_queue(|queue| {
            // Requests in the queue under an older lease do not count for this one.
            queue.revoke_older_lease(&id, epoch);
            add_run(queue, &id, epoch, RunRows { run, done, rows, snapshots }, memory);
            apply_session_end(queue, &session, &status);
        });
        // A process that ended the session in the meantime did not find the run here.
        let status = sessions::session_status(conn, &session).await?;
        self.end_session_here(&session, &status).await
    }
}

/// Rows of a run in the store.
struct RunRows {
    run: RunRow,
    /// First position in the run's order that its newest save does not contain.
    done: i64,
    /// Requests of the run from that position on.
    rows: Vec<RequestRow>,
    snapshots: Vec<SnapshotRow>,
}

fn add_run(queue: &mut Queue, id: &RunId, epoch: i64, read: RunRows, memory: RunMemory) {
    let RunRows { run, done, rows, snapshots } = read;
    let next_seq = first_unfinished(&rows, done);
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

/// Returns the first position in a run's order, from `done` on, whose request is unfinished or missing.
fn first_unfinished(rows: &[RequestRow], done: i64) -> i64 {
    let mut next = done;
    for row in rows {
        if row.seq_id != next || !row.state.is_terminal() {
            break;
        }
        next += 1;
    }
    next
}
