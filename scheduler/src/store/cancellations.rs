//! The table `requests`: samples that are cancelled because their session ended.

use std::collections::BTreeMap;

use trainyard_protocol::{RequestId, SessionId};

use super::db::{Conn, column, sql};
use super::failed;
use super::results::{CLONE_STRIDE, EndedRequest, to_ended};
use crate::{Error, RequestState, Timestamp};

/// A sample that was cancelled because its session ended.
pub(crate) struct CancelledSample {
    pub(crate) id: RequestId,
    pub(crate) ended: EndedRequest,
    /// Whether a worker had claimed the sample.
    pub(crate) claimed: bool,
}

/// Cancels all samples of a session that have not ended, whoever has claimed them.
pub(crate) async fn cancel_samples_of_session(
    conn: &mut Conn,
    session: &SessionId,
    now: Timestamp,
) -> Result<Vec<CancelledSample>, Error> {
    const FILES: &str = "-- cancel_samples_of_session: files
        SELECT id, payload_file FROM requests
        WHERE session_id = $1 AND finished_at IS NULL AND sampling_session_id IS NOT NULL AND payload_file IS NOT NULL";
    // As in `end_samples`, each gets the number of those of its clone before it.
    const SQL: &str = "-- cancel_samples_of_session
        UPDATE requests SET state = 'cancelled', finished_at = $2, payload = NULL, payload_file = NULL,
            clone = seq_id / $3,
            event = place + (
                SELECT coalesce(max(earlier.event), 0) FROM requests AS earlier
                WHERE earlier.sampling_session_id = requests.sampling_session_id
                    AND earlier.clone = requests.seq_id / $3 AND earlier.event IS NOT NULL)
        FROM (
            SELECT id AS unfinished_id,
                row_number() OVER (PARTITION BY sampling_session_id, seq_id / $3 ORDER BY arrival) AS place
            FROM requests WHERE session_id = $1 AND finished_at IS NULL AND sampling_session_id IS NOT NULL) AS unfinished
        WHERE id = unfinished_id AND finished_at IS NULL
        RETURNING id, run_id, sampling_session_id, seq_id, tenant, kind, tokens, worker_id IS NOT NULL AS claimed";
    let rows = sql(FILES).bind(session.as_str()).fetch_all(conn).await.map_err(failed("cancel samples"))?;
    let mut files: BTreeMap<String, String> =
        rows.iter().map(|row| Ok((column(row, "id")?, column(row, "payload_file")?))).collect::<Result<_, Error>>()?;
    let rows = sql(SQL).bind(session.as_str()).bind(now.0).bind(CLONE_STRIDE).fetch_all(conn).await;
    let rows = rows.map_err(failed("cancel samples"))?;
    let mut cancelled: Vec<CancelledSample> = rows
        .iter()
        .map(|row| {
            let id: String = column(row, "id")?;
            let ended = to_ended(row, RequestState::Cancelled, files.remove(&id))?;
            Ok(CancelledSample { id: RequestId::new(id), ended, claimed: column(row, "claimed")? })
        })
        .collect::<Result<_, Error>>()?;
    cancelled.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    Ok(cancelled)
}
