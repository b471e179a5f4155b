//! Garbage collection of results, requests, and other rows of sessions that ended long ago.

use std::collections::BTreeSet;

use trainyard_protocol::{RequestId, RunId};

use super::db::{Conn, Row, column, sql, sql_by};
use super::{as_u64, failed};
use super::{custom_losses, run_metrics, run_samples};
use crate::{Error, Timestamp};

/// Most rows that one statement changes, so that garbage collection never holds up the writer for long.
const ROWS: i64 = 500;
/// Most sessions that one call of [`collect_sessions`] examines.
const SESSIONS: i64 = 50;

/// Drops the payloads of a run's requests up to a position in its order, because their effects were saved. Returns
/// their files.
pub(crate) async fn truncate_log(conn: &mut Conn, run: &RunId, seq_id: i64) -> Result<Vec<String>, Error> {
    const FILES: &str = "-- truncate_log: files
        SELECT payload_file FROM requests
        WHERE run_id = $1 AND seq_id <= $2 AND replays AND payload_file IS NOT NULL";
    const SQL: &str = "-- truncate_log
        UPDATE requests SET replays = FALSE, payload = NULL, payload_file = NULL
        WHERE run_id = $1 AND seq_id <= $2 AND replays";
    let files = sql(FILES).bind(run.as_str()).bind(seq_id).scalars(conn).await.map_err(failed("truncate a log"))?;
    sql(SQL).bind(run.as_str()).bind(seq_id).execute(conn).await.map_err(failed("truncate a log"))?;
    Ok(files)
}

/// Reason for which a result is dropped.
#[derive(Clone, Copy)]
enum DropReason {
    /// It was kept for as long as results are.
    Finished,
    /// The client has it.
    Acknowledged,
    /// Training requests have not named its sample for long.
    Recorded,
}

#[derive(Default)]
pub(crate) struct DroppedRows {
    /// Requests that were changed or deleted.
    pub(crate) requests: Vec<RequestId>,
    /// Files that rows have ceased to name.
    pub(crate) files: Vec<String>,
    /// Folders of snapshots that deleted rows named.
    pub(crate) folders: Vec<String>,
    /// Whether there may be more to drop.
    pub(crate) is_full: bool,
}

/// Drops results of requests that finished, or were acknowledged, before the given times, and those of recorded samples
/// that were last used before the first time. Each condition has its own statement: with all conditions in one, SQLite
/// would read all results that are kept. Acknowledged samples are deleted with their results ([`delete_acknowledged`]).
pub(crate) async fn drop_results(
    conn: &mut Conn,
    finished_before: Timestamp,
    acknowledged_before: Timestamp,
) -> Result<DroppedRows, Error> {
    const FINISHED: (&str, &str) = (
        "-- drop_results: finished
        SELECT id, result_file FROM requests WHERE finished_at < $1 AND recorded_at IS NULL AND NOT dropped LIMIT $2",
        "-- drop_results: finished
        SELECT id, result_file FROM requests WHERE finished_at < $1 AND recorded_at IS NULL AND NOT dropped LIMIT $2
        FOR NO KEY UPDATE SKIP LOCKED",
    );
    const ACKNOWLEDGED: (&str, &str) = (
        "-- drop_results: acknowledged
        SELECT id, result_file FROM requests WHERE acknowledged_at < $1 AND recorded_at IS NULL AND NOT dropped LIMIT $2",
        "-- drop_results: acknowledged
        SELECT id, result_file FROM requests WHERE acknowledged_at < $1 AND recorded_at IS NULL AND NOT dropped LIMIT $2
        FOR NO KEY UPDATE SKIP LOCKED",
    );
    // Their last use counts, not their acknowledgement.
    const RECORDED: (&str, &str) = (
        "-- drop_results: recorded
        SELECT id, result_file FROM requests WHERE recorded_at < $1 AND finished_at < $1 AND NOT dropped LIMIT $2",
        "-- drop_results: recorded
        SELECT id, result_file FROM requests WHERE recorded_at < $1 AND finished_at < $1 AND NOT dropped LIMIT $2
        FOR NO KEY UPDATE SKIP LOCKED",
    );
    const SQL: &str = "-- drop_results
        UPDATE requests SET dropped = TRUE, encoding = NULL, result = NULL, result_file = NULL WHERE id = $1";
    let mut dropped = DroppedRows::default();
    let kinds = [
        (DropReason::Finished, FINISHED, finished_before),
        (DropReason::Acknowledged, ACKNOWLEDGED, acknowledged_before),
        (DropReason::Recorded, RECORDED, finished_before),
    ];
    for (kind, (sqlite, postgres), before) in kinds {
        let found = sql_by(sqlite, postgres).bind(before.0).bind(ROWS).fetch_all(&mut *conn).await;
        let rows = found.map_err(failed("drop results"))?;
        let ids = ids_of(&rows)?;
        let deleted = match kind {
            DropReason::Acknowledged => delete_acknowledged(conn, &ids).await?,
            DropReason::Finished | DropReason::Recorded => BTreeSet::new(),
        };
        for id in ids.iter().filter(|id| !deleted.contains(*id)) {
            sql(SQL).bind(id.as_str()).execute(&mut *conn).await.map_err(failed("drop results"))?;
        }
        dropped.requests.extend(ids);
        dropped.files.extend(files_of(&rows, &["result_file"])?);
        dropped.is_full |= rows.len() as u64 >= as_u64(ROWS);
    }
    Ok(dropped)
}

/// Deletes those of these samples that succeeded, however long their sessions last: their clients have the results and ask
/// for nothing else of them. The last event of a clone stays, behind which the next one is numbered. Returns the deleted
/// ones.
async fn delete_acknowledged(conn: &mut Conn, ids: &[RequestId]) -> Result<BTreeSet<RequestId>, Error> {
    const SQLITE: &str = "-- delete_acknowledged
        DELETE FROM requests WHERE id IN (SELECT value FROM json_each($1)) AND state = 'succeeded' AND event < (
            SELECT max(later.event) FROM requests AS later WHERE later.sampling_session_id = requests.sampling_session_id
                AND later.clone = requests.clone AND later.event IS NOT NULL)
        RETURNING id";
    const POSTGRES: &str = "-- delete_acknowledged
        DELETE FROM requests WHERE id = ANY($1) AND state = 'succeeded' AND event < (
            SELECT max(later.event) FROM requests AS later WHERE later.sampling_session_id = requests.sampling_session_id
                AND later.clone = requests.clone AND later.event IS NOT NULL)
        RETURNING id";
    if ids.is_empty() {
        return Ok(BTreeSet::new());
    }
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let rows = sql_by(SQLITE, POSTGRES).bind(ids).fetch_all(conn).await.map_err(failed("delete samples"))?;
    Ok(ids_of(&rows)?.into_iter().collect())
}

/// Deletes rows of sessions that ended, with all their requests, before `before`: requests first, then sampling
/// sessions, custom losses, metrics and stored samples, then the session with its runs. A session whose runs own
/// checkpoints stays with all its runs. It is not examined again until one of these checkpoints is deleted
/// ([`revisit_session`]).
pub(crate) async fn collect_sessions(conn: &mut Conn, before: Timestamp) -> Result<DroppedRows, Error> {
    // Unfinished requests of ended sessions are few.
    const SQLITE: &str = "-- collect_sessions
        SELECT id FROM sessions WHERE ended_at < $1 AND NOT collected
            AND NOT EXISTS (SELECT 1 FROM requests WHERE session_id = sessions.id AND finished_at IS NULL)
            AND NOT EXISTS (SELECT 1 FROM requests WHERE session_id = sessions.id AND finished_at >= $1)
        ORDER BY ended_at LIMIT $2";
    const POSTGRES: &str = "-- collect_sessions
        SELECT id FROM sessions WHERE ended_at < $1 AND NOT collected
            AND NOT EXISTS (SELECT 1 FROM requests WHERE session_id = sessions.id AND finished_at IS NULL)
            AND NOT EXISTS (SELECT 1 FROM requests WHERE session_id = sessions.id AND finished_at >= $1)
        ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED";
    let doing = "delete ended sessions";
    let selected = sql_by(SQLITE, POSTGRES).bind(before.0).bind(SESSIONS).scalars(conn).await;
    let sessions: Vec<String> = selected.map_err(failed(doing))?;
    if sessions.is_empty() {
        return Ok(DroppedRows::default());
    }
    let mut dropped = delete_requests(conn, &sessions).await?;
    if dropped.is_full {
        return Ok(dropped);
    }
    (dropped.folders, dropped.is_full) = delete_sampling_sessions(conn, &sessions).await?;
    if dropped.is_full {
        return Ok(dropped);
    }
    custom_losses::delete_custom_losses(conn, &sessions).await?;
    dropped.is_full =
        run_metrics::delete_metrics(conn, &sessions).await? || run_samples::delete_samples(conn, &sessions).await?;
    if dropped.is_full {
        return Ok(dropped);
    }
    dropped.is_full = sessions.len() as u64 >= as_u64(SESSIONS);
    dropped.folders.extend(delete_sessions(conn, sessions).await?);
    Ok(dropped)
}

/// Deletes some of the requests of some sessions.
async fn delete_requests(conn: &mut Conn, sessions: &[String]) -> Result<DroppedRows, Error> {
    const SQLITE: &str = "-- delete_requests
        DELETE FROM requests WHERE arrival IN (
            SELECT arrival FROM requests WHERE session_id IN (SELECT value FROM json_each($1)) LIMIT $2)
        RETURNING id, payload_file, result_file";
    // With `ANY` and a limit, PostgreSQL would scan the table, expecting to find enough rows soon.
    const POSTGRES: &str = "-- delete_requests
        DELETE FROM requests WHERE arrival IN (
            SELECT found.arrival FROM unnest($1) AS ended (id)
            CROSS JOIN LATERAL (SELECT arrival FROM requests WHERE session_id = ended.id LIMIT $2) AS found LIMIT $2)
        RETURNING id, payload_file, result_file";
    let deleted = sql_by(SQLITE, POSTGRES).bind(sessions.to_vec()).bind(ROWS).fetch_all(conn).await;
    let rows = deleted.map_err(failed("delete requests"))?;
    Ok(DroppedRows {
        requests: ids_of(&rows)?,
        files: files_of(&rows, &["payload_file", "result_file"])?,
        folders: Vec::new(),
        is_full: rows.len() as u64 >= as_u64(ROWS),
    })
}

/// Deletes some of the sampling sessions of some sessions. Returns the folders of their snapshots, and whether there
/// may be more.
async fn delete_sampling_sessions(conn: &mut Conn, sessions: &[String]) -> Result<(Vec<String>, bool), Error> {
    const SQLITE: &str = "-- delete_sampling_sessions
        DELETE FROM sampling_sessions WHERE id IN (
            SELECT id FROM sampling_sessions WHERE session_id IN (SELECT value FROM json_each($1)) LIMIT $2)
        RETURNING snapshot_dir";
    const POSTGRES: &str = "-- delete_sampling_sessions
        DELETE FROM sampling_sessions WHERE id IN (
            SELECT id FROM sampling_sessions WHERE session_id = ANY($1) LIMIT $2)
        RETURNING snapshot_dir";
    let deleted = sql_by(SQLITE, POSTGRES).bind(sessions.to_vec()).bind(ROWS).fetch_all(conn).await;
    let rows = deleted.map_err(failed("delete sampling sessions"))?;
    Ok((files_of(&rows, &["snapshot_dir"])?, rows.len() as u64 >= as_u64(ROWS)))
}

/// Deletes sessions with their runs, unless these own checkpoints. Returns the folders of the runs' snapshots.
async fn delete_sessions(conn: &mut Conn, sessions: Vec<String>) -> Result<Vec<String>, Error> {
    const KEEP_SQLITE: &str = "-- delete_sessions: keep
        UPDATE sessions SET collected = TRUE WHERE id IN (
            SELECT runs.session_id FROM runs WHERE runs.session_id IN (SELECT value FROM json_each($1))
                AND EXISTS (SELECT 1 FROM checkpoints WHERE checkpoints.run_id = runs.id))";
    const KEEP_POSTGRES: &str = "-- delete_sessions: keep
        UPDATE sessions SET collected = TRUE WHERE id IN (
            SELECT runs.session_id FROM runs WHERE runs.session_id = ANY($1)
                AND EXISTS (SELECT 1 FROM checkpoints WHERE checkpoints.run_id = runs.id))";
    const RUNS_SQLITE: &str = "-- delete_sessions: runs
        DELETE FROM runs WHERE session_id IN (
            SELECT id FROM sessions WHERE id IN (SELECT value FROM json_each($1)) AND NOT collected)
        RETURNING snapshot_dir";
    const RUNS_POSTGRES: &str = "-- delete_sessions: runs
        DELETE FROM runs WHERE session_id IN (SELECT id FROM sessions WHERE id = ANY($1) AND NOT collected)
        RETURNING snapshot_dir";
    const SQLITE: &str = "-- delete_sessions
        DELETE FROM sessions WHERE id IN (SELECT value FROM json_each($1)) AND NOT collected";
    const POSTGRES: &str = "-- delete_sessions
        DELETE FROM sessions WHERE id = ANY($1) AND NOT collected";
    let doing = || failed("delete ended sessions");
    sql_by(KEEP_SQLITE, KEEP_POSTGRES).bind(sessions.clone()).execute(conn).await.map_err(doing())?;
    let runs = sql_by(RUNS_SQLITE, RUNS_POSTGRES).bind(sessions.clone()).fetch_all(conn).await.map_err(doing())?;
    sql_by(SQLITE, POSTGRES).bind(sessions).execute(conn).await.map_err(doing())?;
    files_of(&runs, &["snapshot_dir"])
}

/// Makes garbage collection examine the session of a run again, after the run has lost a checkpoint.
pub(crate) async fn revisit_session(conn: &mut Conn, run: &RunId) -> Result<(), Error> {
    const SQL: &str = "-- revisit_session
        UPDATE sessions SET collected = FALSE WHERE id = (SELECT session_id FROM runs WHERE id = $1) AND collected";
    sql(SQL).bind(run.as_str()).execute(conn).await.map(drop).map_err(failed("delete a checkpoint"))
}

/// Returns whether a row names a file. Files have names of the form `<request>.<what>`.
pub(crate) async fn is_named(conn: &mut Conn, file: &str) -> Result<bool, Error> {
    const SQL: &str = "-- is_named
        SELECT EXISTS (SELECT 1 FROM requests WHERE id = $1 AND (payload_file = $2 OR result_file = $2))";
    let request = file.rsplit_once('.').map_or(file, |(request, _)| request);
    let named = sql(SQL).bind(request).bind(file).scalar(conn).await.map_err(failed("find a blob's request"))?;
    Ok(named.unwrap_or(false))
}

pub(super) fn ids_of(rows: &[Row]) -> Result<Vec<RequestId>, Error> {
    rows.iter().map(|row| Ok(RequestId::new(column::<String>(row, "id")?))).collect()
}

pub(super) fn files_of(rows: &[Row], columns: &[&'static str]) -> Result<Vec<String>, Error> {
    let mut files = Vec::new();
    for row in rows {
        for name in columns {
            files.extend(column::<Option<String>>(row, name)?);
        }
    }
    Ok(files)
}
