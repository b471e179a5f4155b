//! Deletes rows of the table `requests` whose results were dropped long ago, while their sessions are open.
//!
//! Every position of a run's order before `runs.ended_before` has ended, and a row may be missing only there. So
//!
//! - a missing row before it means that the request is gone: a submission of its position is refused, not executed,
//! - a missing row from it on means that the request has not arrived.
//!
//! The position only rises, over rows of ended requests, which stay ended; and a transaction that raises it or deletes rows
//! holds the lock on the tenant that submissions to runs hold ([`super::locks`]). So no submission that finds the row missing
//! misses the position. Rows that a recovery reads stay: those of requests to replay, and of those that create runs.

use std::collections::BTreeMap;

use trainyard_protocol::{RequestId, RunId, TenantId};

use super::db::{Conn, column, sql, sql_by};
use super::failed;
use super::gc::{DroppedRows, files_of, ids_of};
use crate::{Error, Timestamp};

/// Most rows that one call of [`next_ended`] returns.
pub(crate) const ROWS: i64 = 500;
/// Most positions by which one call of [`advance_ended`] raises `ended_before`.
const POSITIONS: i64 = 4_096;

/// Position in the order in which requests ended: that time, and `arrival`.
pub(crate) type Place = (i64, i64);

/// A request whose row may be deletable.
pub(crate) struct EndedRow {
    pub(crate) id: RequestId,
    pub(crate) tenant: TenantId,
    /// Run and position in its order; `None` for a sample.
    pub(crate) of_run: Option<(RunId, i64)>,
    pub(crate) place: Place,
}

/// Returns the next requests, behind a place, that ended before a time and whose results were dropped.
pub(crate) async fn next_ended(conn: &mut Conn, before: Timestamp, after: Place) -> Result<Vec<EndedRow>, Error> {
    const SQL: &str = "-- next_ended
        SELECT id, tenant, run_id, seq_id, finished_at, arrival FROM requests
        WHERE dropped AND NOT replays AND finished_at < $1 AND (finished_at, arrival) > ($2, $3)
        ORDER BY finished_at, arrival LIMIT $4";
    let (at, arrival) = after;
    let found = sql(SQL).bind(before.0).bind(at).bind(arrival).bind(ROWS).fetch_all(conn).await;
    let rows = found.map_err(failed("find ended requests"))?;
    let mut ended = Vec::with_capacity(rows.len());
    for row in &rows {
        let run: Option<String> = column(row, "run_id")?;
        let seq_id = column(row, "seq_id")?;
        ended.push(EndedRow {
            id: RequestId::new(column::<String>(row, "id")?),
            tenant: TenantId::new(column::<String>(row, "tenant")?),
            of_run: run.map(|run| (RunId::new(run), seq_id)),
            place: (column(row, "finished_at")?, column(row, "arrival")?),
        });
    }
    Ok(ended)
}

/// Deletes those of these requests whose rows are not needed: of a run, those at positions behind which all has ended,
/// except the first; of a sampling session, all but the last event of a clone, behind which the next one is numbered.
pub(crate) async fn delete_ended(conn: &mut Conn, ended: &[EndedRow]) -> Result<DroppedRows, Error> {
    // With these conditions beside each other, PostgreSQL would read the index of all ended requests.
    const SQLITE: &str = "-- delete_ended
        DELETE FROM requests WHERE id IN (SELECT value FROM json_each($1)) AND CASE
            WHEN replays OR NOT dropped THEN FALSE
            WHEN run_id IS NULL THEN event < (
                SELECT max(later.event) FROM requests AS later
                WHERE later.sampling_session_id = requests.sampling_session_id AND later.clone = requests.clone
                    AND later.event IS NOT NULL)
            ELSE seq_id > 0 AND seq_id < (SELECT ended_before FROM runs WHERE runs.id = requests.run_id) END
        RETURNING id, payload_file, result_file";
    const POSTGRES: &str = "-- delete_ended
        DELETE FROM requests WHERE id = ANY($1) AND CASE
            WHEN replays OR NOT dropped THEN FALSE
            WHEN run_id IS NULL THEN event < (
                SELECT max(later.event) FROM requests AS later
                WHERE later.sampling_session_id = requests.sampling_session_id AND later.clone = requests.clone
                    AND later.event IS NOT NULL)
            ELSE seq_id > 0 AND seq_id < (SELECT ended_before FROM runs WHERE runs.id = requests.run_id) END
        RETURNING id, payload_file, result_file";
    let mut last: BTreeMap<&RunId, i64> = BTreeMap::new();
    for (run, seq_id) in ended.iter().filter_map(|row| row.of_run.as_ref()) {
        let last = last.entry(run).or_insert(*seq_id);
        *last = (*last).max(*seq_id);
    }
    for (run, seq_id) in last {
        advance_ended(conn, run, seq_id.saturating_add(1)).await?;
    }
    let ids: Vec<String> = ended.iter().map(|row| row.id.to_string()).collect();
    let deleted = sql_by(SQLITE, POSTGRES).bind(ids).fetch_all(conn).await;
    let rows = deleted.map_err(failed("delete ended requests"))?;
    Ok(DroppedRows {
        requests: ids_of(&rows)?,
        files: files_of(&rows, &["payload_file", "result_file"])?,
        ..DroppedRows::default()
    })
}

/// Raises a run's `ended_before`, over positions that have ended, up to `most`.
async fn advance_ended(conn: &mut Conn, run: &RunId, most: i64) -> Result<(), Error> {
    const ENDED: &str = "-- advance_ended: positions
        SELECT seq_id FROM requests WHERE run_id = $1 AND seq_id >= $2 AND seq_id < $3 AND finished_at IS NOT NULL
        ORDER BY seq_id LIMIT $4";
    const SQLITE: &str = "-- advance_ended
        UPDATE runs SET ended_before = $2 WHERE id = $1 AND ended_before < $2";
    // A transaction with the row may wait for another one: the next collection tries again.
    const POSTGRES: &str = "-- advance_ended
        UPDATE runs SET ended_before = $2 WHERE id = (
            SELECT id FROM runs WHERE id = $1 AND ended_before < $2 FOR NO KEY UPDATE SKIP LOCKED)";
    let doing = || failed("find ended requests");
    let from = ended_before(conn, run).await?;
    let ended = sql(ENDED).bind(run.as_str()).bind(from).bind(most).bind(POSITIONS).scalars(conn).await;
    let ended: Vec<i64> = ended.map_err(doing())?;
    let Some((last, _)) = ended.into_iter().zip(from..).take_while(|(ended, place)| ended == place).last() else {
        return Ok(());
    };
    let update = sql_by(SQLITE, POSTGRES).bind(run.as_str()).bind(last.saturating_add(1));
    update.execute(conn).await.map(drop).map_err(doing())
}

/// Returns the position in a run's order before which all have ended; 0 for an unknown run.
pub(crate) async fn ended_before(conn: &mut Conn, run: &RunId) -> Result<i64, Error> {
    const SQL: &str = "-- ended_before
        SELECT ended_before FROM runs WHERE id = $1";
    let found = sql(SQL).bind(run.as_str()).scalar(conn).await;
    Ok(found.map_err(failed("find a run"))?.unwrap_or(0))
}
