//! The table `requests`: requests that are cancelled because their session ended.

use std::collections::BTreeMap;

use trainyard_protocol::{RequestId, SessionId};

use super::db::{Conn, column, sql, sql_by};
use super::results::{CLONE_STRIDE, EndedRequest, to_ended};
use super::{as_i64, failed};
use crate::{Error, RequestState, Timestamp};

/// Whether a row of `sessions` has ended so that its requests are cancelled instead of executed.
macro_rules! cancels_requests {
    () => {
        "(sessions.status = 'expired' OR (sessions.status = 'finished' AND sessions.finish_reason <> 'success'))"
    };
}

/// Whether the session of a row of `requests` has ended so that its requests are cancelled.
macro_rules! is_cancelled {
    ($requests:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM sessions WHERE sessions.id = ",
            $requests,
            ".session_id AND ",
            $crate::store::cancellations::cancels_requests!(),
            ")"
        )
    };
}

pub(crate) use {cancels_requests, is_cancelled};

/// A request that was cancelled because its session ended.
pub(crate) struct CancelledRequest {
    pub(crate) id: RequestId,
    pub(crate) ended: EndedRequest,
    /// Whether a worker had claimed the sample.
    pub(crate) claimed: bool,
}

/// Cancels the next `limit` requests of a session that has ended, in the order of their arrival: samples, whoever has
/// claimed them, and requests of runs that no worker has. If it returns fewer than `limit`, none is left, or the session
/// is active again.
pub(crate) async fn cancel_next(
    conn: &mut Conn,
    session: &SessionId,
    limit: usize,
    now: Timestamp,
) -> Result<Vec<CancelledRequest>, Error> {
    const NEXT: &str = concat!(
        "-- cancel_next: find
        SELECT request.id, request.payload_file FROM requests AS request
        LEFT JOIN runs ON runs.id = request.run_id
        WHERE request.session_id = $1 AND request.finished_at IS NULL
            AND (request.run_id IS NULL OR runs.worker_id IS NULL) AND ",
        is_cancelled!("request"),
        " ORDER BY request.arrival LIMIT $2"
    );
    // As in `end_samples`, each sample gets the number of those of its clone before it.
    macro_rules! update {
        ($given:literal) => {
            concat!(
                "-- cancel_next
        UPDATE requests SET state = 'cancelled', finished_at = $2, payload = NULL, payload_file = NULL,
            clone = CASE WHEN sampling_session_id IS NOT NULL THEN seq_id / $3 END,
            event = CASE WHEN sampling_session_id IS NOT NULL THEN place + (
                SELECT coalesce(max(earlier.event), 0) FROM requests AS earlier
                WHERE earlier.sampling_session_id = requests.sampling_session_id
                    AND earlier.clone = requests.seq_id / $3 AND earlier.event IS NOT NULL) END
        FROM (
            SELECT id AS next_id,
                row_number() OVER (PARTITION BY sampling_session_id, seq_id / $3 ORDER BY arrival) AS place
            FROM requests WHERE ",
                $given,
                " AND finished_at IS NULL) AS next
        WHERE id = next_id AND finished_at IS NULL
        RETURNING id, run_id, sampling_session_id, seq_id, tenant, kind, tokens, worker_id IS NOT NULL AS claimed"
            )
        };
    }
    const SQLITE: &str = update!("id IN (SELECT value FROM json_each($1))");
    const POSTGRES: &str = update!("id = ANY($1)");
    let next = sql(NEXT).bind(session.as_str()).bind(as_i64(limit as u64)).fetch_all(conn).await;
    let next = next.map_err(failed("cancel requests"))?;
    if next.is_empty() {
        return Ok(Vec::new());
    }
    let (mut places, mut files, mut ids) = (BTreeMap::new(), BTreeMap::new(), Vec::with_capacity(next.len()));
    for row in &next {
        let id: String = column(row, "id")?;
        if let Some(file) = column::<Option<String>>(row, "payload_file")? {
            files.insert(id.clone(), file);
        }
        places.insert(id.clone(), places.len());
        ids.push(id);
    }
    let rows = sql_by(SQLITE, POSTGRES).bind(ids).bind(now.0).bind(CLONE_STRIDE).fetch_all(conn).await;
    let rows = rows.map_err(failed("cancel requests"))?;
    let mut cancelled: Vec<CancelledRequest> = rows
        .iter()
        .map(|row| {
            let id: String = column(row, "id")?;
            let ended = to_ended(row, RequestState::Cancelled, files.remove(&id))?;
            Ok(CancelledRequest { id: RequestId::new(id), ended, claimed: column(row, "claimed")? })
        })
        .collect::<Result<_, Error>>()?;
    cancelled.sort_unstable_by_key(|request| places.get(request.id.as_str()).copied());
    Ok(cancelled)
}

/// Returns sessions that have ended and of which requests are still to be cancelled by [`cancel_next`].
pub(crate) async fn sessions_to_cancel(conn: &mut Conn, limit: usize) -> Result<Vec<SessionId>, Error> {
    macro_rules! select {
        ($requests:literal) => {
            concat!(
                "-- sessions_to_cancel
        SELECT DISTINCT request.session_id FROM ",
                $requests,
                " LEFT JOIN runs ON runs.id = request.run_id
        WHERE request.finished_at IS NULL AND (request.run_id IS NULL OR runs.worker_id IS NULL) AND ",
                is_cancelled!("request"),
                " LIMIT $1"
            )
        };
    }
    // Otherwise SQLite might read all retained requests.
    const SQLITE: &str = select!("requests AS request INDEXED BY requests_unfinished");
    const POSTGRES: &str = select!("requests AS request");
    let ids: Vec<String> = sql_by(SQLITE, POSTGRES)
        .bind(as_i64(limit as u64))
        .scalars(conn)
        .await
        .map_err(failed("list cancelled sessions"))?;
    Ok(ids.into_iter().map(SessionId::new).collect())
}
