//! The table `requests`: garbage collection.

use trainyard_protocol::{RequestId, RunId};

use super::db::{Conn, Row, column, sql};
use super::{as_u64, failed};
use crate::{Error, Timestamp};

/// Most rows that one statement touches, so that garbage collection never holds up the writer for long.
const ROWS: i64 = 500;

/// Drops the payloads of a run's requests up to a place of its order, whose effects were saved. Returns their files.
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

#[derive(Default)]
pub(crate) struct DroppedRows {
    /// The requests that it touched.
    pub(crate) requests: Vec<RequestId>,
    /// Files that no row names any more.
    pub(crate) files: Vec<String>,
}

impl DroppedRows {
    /// Whether there may be more to drop.
    pub(crate) fn is_full(&self) -> bool {
        self.requests.len() as u64 >= as_u64(ROWS)
    }
}

/// Drops results of requests that finished, or were acknowledged, before the given moments.
pub(crate) async fn drop_results(
    conn: &mut Conn,
    finished_before: Timestamp,
    acknowledged_before: Timestamp,
) -> Result<DroppedRows, Error> {
    const FILES: &str = "-- drop_results: files
        SELECT id, result_file FROM requests
        WHERE NOT dropped AND finished_at IS NOT NULL
            AND (finished_at < $1 OR (acknowledged_at IS NOT NULL AND acknowledged_at < $2)) LIMIT $3";
    const SQL: &str = "-- drop_results
        UPDATE requests SET dropped = TRUE, encoding = NULL, result = NULL, result_file = NULL WHERE id = $1";
    let rows = sql(FILES)
        .bind(finished_before.0)
        .bind(acknowledged_before.0)
        .bind(ROWS)
        .fetch_all(&mut *conn)
        .await
        .map_err(failed("drop results"))?;
    for row in &rows {
        let id: String = column(row, "id")?;
        sql(SQL).bind(id).execute(&mut *conn).await.map_err(failed("drop results"))?;
    }
    Ok(DroppedRows { requests: ids_of(&rows)?, files: files_of(&rows, &["result_file"])? })
}

/// Deletes the requests of sessions that ended before `ended_before`. Runs and checkpoints stay.
pub(crate) async fn delete_requests(conn: &mut Conn, ended_before: Timestamp) -> Result<DroppedRows, Error> {
    const SQL: &str = "-- delete_requests
        DELETE FROM requests WHERE arrival IN (
            SELECT requests.arrival FROM requests JOIN sessions ON sessions.id = requests.session_id
            WHERE sessions.ended_at < $1 AND requests.finished_at < $1 LIMIT $2)
        RETURNING id, payload_file, result_file";
    let rows = sql(SQL).bind(ended_before.0).bind(ROWS).fetch_all(conn).await.map_err(failed("delete requests"))?;
    Ok(DroppedRows { requests: ids_of(&rows)?, files: files_of(&rows, &["payload_file", "result_file"])? })
}

/// Whether a row names a file. Files are called `<request>.<what>`.
pub(crate) async fn is_named(conn: &mut Conn, file: &str) -> Result<bool, Error> {
    const SQL: &str = "-- is_named
        SELECT EXISTS (SELECT 1 FROM requests WHERE id = $1 AND (payload_file = $2 OR result_file = $2))";
    let request = file.rsplit_once('.').map_or(file, |(request, _)| request);
    let named = sql(SQL).bind(request).bind(file).scalar(conn).await.map_err(failed("find a blob's request"))?;
    Ok(named.unwrap_or(false))
}

fn ids_of(rows: &[Row]) -> Result<Vec<RequestId>, Error> {
    rows.iter().map(|row| Ok(RequestId::new(column::<String>(row, "id")?))).collect()
}

fn files_of(rows: &[Row], columns: &[&'static str]) -> Result<Vec<String>, Error> {
    let mut files = Vec::new();
    for row in rows {
        for name in columns {
            files.extend(column::<Option<String>>(row, name)?);
        }
    }
    Ok(files)
}
