//! Deletes sampling sessions whose weights were deleted long ago, while their sessions are open: samples from them have
//! been refused ever since, and all results have been dropped.

use super::db::{Conn, column, sql, sql_by};
use super::failed;
use super::gc::{DroppedRows, files_of, ids_of};
use crate::{Error, Timestamp};

/// Most sampling sessions that one call deletes.
const SAMPLERS: i64 = 100;
/// Oldest sampling sessions among which they are found. Those that must stay are few: samples of them ended before their
/// weights were deleted.
const EXAMINED: i64 = 1_000;
/// Most requests that one call deletes.
const ROWS: i64 = 500;

/// Deletes some sampling sessions that were made before a time and of which no sample ended since, with the requests that
/// are left of them: the last ones of each clone.
pub(crate) async fn delete_collected(conn: &mut Conn, before: Timestamp) -> Result<DroppedRows, Error> {
    // With `NOT EXISTS`, PostgreSQL would join the sampling sessions with all requests.
    const FIND: &str = "-- delete_collected: find
        SELECT id FROM (
            SELECT id FROM sampling_sessions WHERE collected AND created_at < $1 ORDER BY created_at, id LIMIT $3) AS oldest
        WHERE 0 = (
            SELECT count(*) FROM (
                SELECT 1 AS found FROM requests WHERE requests.sampling_session_id = oldest.id
                    AND (NOT dropped OR finished_at >= $1) LIMIT 1) AS needed)
        LIMIT $2";
    const REQUESTS_SQLITE: &str = "-- delete_collected: requests
        DELETE FROM requests WHERE arrival IN (
            SELECT arrival FROM requests WHERE sampling_session_id IN (SELECT value FROM json_each($1)) LIMIT $2)
        RETURNING id, payload_file, result_file";
    // With `ANY` and a limit, PostgreSQL would scan the table, expecting to find enough rows soon.
    const REQUESTS_POSTGRES: &str = "-- delete_collected: requests
        DELETE FROM requests WHERE arrival IN (
            SELECT found.arrival FROM unnest($1) AS sampler (id)
            CROSS JOIN LATERAL (
                SELECT arrival FROM requests WHERE sampling_session_id = sampler.id LIMIT $2) AS found LIMIT $2)
        RETURNING id, payload_file, result_file";
    const SQLITE: &str = "-- delete_collected
        DELETE FROM sampling_sessions WHERE id IN (SELECT value FROM json_each($1)) AND collected";
    const POSTGRES: &str = "-- delete_collected
        DELETE FROM sampling_sessions WHERE id = ANY($1) AND collected";
    let doing = || failed("delete sampling sessions");
    let found = sql(FIND).bind(before.0).bind(SAMPLERS).bind(EXAMINED).fetch_all(conn).await.map_err(doing())?;
    let mut samplers = Vec::with_capacity(found.len());
    for row in &found {
        samplers.push(column::<String>(row, "id")?);
    }
    if samplers.is_empty() {
        return Ok(DroppedRows::default());
    }
    let requests = sql_by(REQUESTS_SQLITE, REQUESTS_POSTGRES).bind(samplers.clone()).bind(ROWS).fetch_all(conn).await;
    let rows = requests.map_err(doing())?;
    let mut deleted = DroppedRows {
        requests: ids_of(&rows)?,
        files: files_of(&rows, &["payload_file", "result_file"])?,
        is_full: rows.len() as i64 >= ROWS,
        ..DroppedRows::default()
    };
    if !deleted.is_full {
        deleted.is_full = samplers.len() as i64 >= SAMPLERS;
        sql_by(SQLITE, POSTGRES).bind(samplers).execute(conn).await.map_err(doing())?;
    }
    Ok(deleted)
}
