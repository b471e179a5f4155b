//! Building the queue again from the log.

use std::sync::Arc;

use trainyard_protocol::{OpError, SessionId};

use crate::core::Core;
use crate::queue::{History, Queue, RunQueue, creation_failed};
use crate::store::db::Conn;
use crate::store::requests::RequestRow;
use crate::store::runs::RunRow;
use crate::store::sessions::SessionRow;
use crate::store::{requests, runs, sampling, sessions};
use crate::{Error, FinishReason, RunState, SessionStatus};

/// Queues what had not finished and marks the runs whose memory the last process took with it.
pub(crate) async fn recover(core: &Arc<Core>, conn: &mut Conn) -> Result<(), Error> {
    let interrupted = requests::requeue_running(conn).await?;
    let mut queue = Queue::default();
    let live = sessions::unfinished_sessions(conn).await?;
    for session in &live {
        queue.add_session(session.id.clone(), session.tenant.clone(), core.now());
        for run in runs::runs_of_session(conn, &session.id).await? {
            add_run(&mut queue, conn, run).await?;
        }
        for snapshot in sampling::snapshots_of_session(conn, &session.id).await? {
            queue.add_snapshot(&session.id, snapshot.key, snapshot.run, false);
        }
        add_samples(&mut queue, conn, &session.id).await?;
    }
    let (queued, ..) = queue.counts();
    tracing::info!(sessions = live.len(), queued, interrupted, "the request log was read");
    core.with_queue(|shared| {
        *shared = queue;
        for session in &live {
            end_if_ended(shared, session);
        }
    });
    Ok(())
}

async fn add_run(queue: &mut Queue, conn: &mut Conn, run: RunRow) -> Result<(), Error> {
    let rows = requests::requests_of_run(conn, &run.id).await?;
    let next_seq = first_unfinished(&rows);
    let lost = rows.iter().any(|row| row.replays);
    let history = if lost { History::Lost } else { History::Loaded };
    queue.add_run(run.id.clone(), RunQueue::new(run.tenant, run.session, next_seq, history));
    if run.state == RunState::Failed {
        let failure = run.failure.unwrap_or_else(|| creation_failed(&run.id, &OpError::server("unknown cause")));
        queue.fail_run(&run.id, failure);
    }
    for row in rows.into_iter().filter(|row| row.seq_id >= next_seq) {
        if row.state.is_terminal() {
            queue.consume(&run.id, row.seq_id);
        } else {
            queue.park(&run.id, row.seq_id, row.id, row.kind, None);
        }
    }
    Ok(())
}

/// The first place in a run's order whose request has not ended or not arrived.
fn first_unfinished(rows: &[RequestRow]) -> i64 {
    let mut next = 0;
    for row in rows {
        if row.seq_id != next || !row.state.is_terminal() {
            break;
        }
        next += 1;
    }
    next
}

async fn add_samples(queue: &mut Queue, conn: &mut Conn, session: &SessionId) -> Result<(), Error> {
    for sample in requests::queued_samples(conn, session).await? {
        let sampling = sampling::sampling_session(conn, &sample.tenant, &sample.sampling_session).await?;
        let row = sample.request;
        queue.add_sample(row.arrival, row.id, sample.tenant, row.seq_id, Arc::new(sampling), None);
    }
    Ok(())
}

/// A session that had ended with work left goes on ending.
fn end_if_ended(queue: &mut Queue, session: &SessionRow) {
    match session.status {
        SessionStatus::Active => {}
        SessionStatus::Finished { reason: FinishReason::Success, .. } => queue.end_session(&session.id, false),
        SessionStatus::Finished { .. } | SessionStatus::Expired => queue.end_session(&session.id, true),
    }
}
