//! Access to the table `run_metrics`.

use trainyard_protocol::{RunId, TenantId};

use super::db::{Conn, Row, column, sql, sql_by};
use super::{as_u64, failed, from_json, parsed};
use crate::{Error, MetricsRange, RequestKind, RunMetrics, Timestamp};

/// Maximum number of rows that one statement deletes.
const ROWS: i64 = 2_000;

/// Inserts the row of a request that ended; its step follows from the run's previous row. `$1` is the run, `$2` the
/// request's position, `$3` the tenant, `$4` the kind, `$5` the time and `$6` the metrics.
///
/// PostgreSQL does the same in the statement that ends the request: see `end_request`.
pub(crate) async fn insert_metrics(
    conn: &mut Conn,
    tenant: &TenantId,
    run: &RunId,
    seq_id: i64,
    kind: RequestKind,
    metrics: &str,
    now: Timestamp,
) -> Result<(), Error> {
    const SQL: &str = "-- insert_metrics
        INSERT INTO run_metrics (run_id, step, seq_id, tenant, kind, at, metrics)
        VALUES ($1, coalesce((
            SELECT step + CASE WHEN kind = 'optim_step' THEN 1 ELSE 0 END FROM run_metrics
            WHERE run_id = $1 ORDER BY step DESC, seq_id DESC LIMIT 1), 0), $2, $3, $4, $5, $6)";
    sql(SQL)
        .bind(run.as_str())
        .bind(seq_id)
        .bind(tenant.as_str())
        .bind(kind.as_str())
        .bind(now.0)
        .bind(metrics)
        .execute(conn)
        .await
        .map(drop)
        .map_err(failed("record metrics"))
}

/// Returns a part of a run's metrics in the order of its requests, behind the position (`step`, `seq_id`), which lies
/// in the range.
pub(crate) async fn metrics_of_run(
    conn: &mut Conn,
    tenant: &TenantId,
    run: &RunId,
    range: &MetricsRange,
    step: i64,
    seq_id: i64,
    limit: i64,
) -> Result<Vec<RunMetrics>, Error> {
    const SQL: &str = "-- metrics_of_run
        SELECT step, seq_id, kind, at, metrics FROM run_metrics
        WHERE run_id = $1 AND tenant = $2 AND (step, seq_id) > ($3, $4) AND step <= $5
            AND at >= $6 AND at <= $7
        ORDER BY step, seq_id LIMIT $8";
    let rows = sql(SQL)
        .bind(run.as_str())
        .bind(tenant.as_str())
        .bind(step)
        .bind(seq_id)
        .bind(range.steps.1)
        .bind(range.times.0.0)
        .bind(range.times.1.0)
        .bind(limit)
        .fetch_all(conn)
        .await
        .map_err(failed("read metrics"))?;
    let read = |row: &Row| {
        Ok(RunMetrics {
            step: column(row, "step")?,
            seq_id: column(row, "seq_id")?,
            kind: parsed(row, "kind", RequestKind::from_text)?,
            at: Timestamp(column(row, "at")?),
            values: from_json(row, "metrics")?,
        })
    };
    rows.iter().map(read).collect()
}

/// Returns metrics in one text, a JSON array of `[step, seq_id, kind, at, metrics]`; `None` at the end. See
/// [`metrics_of_run`]. Some ten thousand rows are read several times faster like this than one by one.
pub(crate) async fn joined_metrics(
    conn: &mut Conn,
    tenant: &TenantId,
    run: &RunId,
    range: &MetricsRange,
    step: i64,
    seq_id: i64,
    limit: i64,
) -> Result<Option<String>, Error> {
    const SQL: &str = "-- joined_metrics
        SELECT '[' || string_agg(
            '[' || step || ',' || seq_id || ',\"' || kind || '\",' || at || ',' || metrics || ']', ',') || ']' AS page
        FROM (
            SELECT step, seq_id, kind, at, metrics FROM run_metrics
            WHERE run_id = $1 AND tenant = $2 AND (step, seq_id) > ($3, $4) AND step <= $5
                AND at >= $6 AND at <= $7
            ORDER BY step, seq_id LIMIT $8) AS part";
    let row = sql(SQL)
        .bind(run.as_str())
        .bind(tenant.as_str())
        .bind(step)
        .bind(seq_id)
        .bind(range.steps.1)
        .bind(range.times.0.0)
        .bind(range.times.1.0)
        .bind(limit)
        .fetch_optional(conn)
        .await
        .map_err(failed("read metrics"))?;
    row.map_or(Ok(None), |row| column(&row, "page"))
}

/// Deletes metrics of the runs of some sessions, except sessions with a run that owns a checkpoint. Returns whether
/// there may be more.
pub(crate) async fn delete_metrics(conn: &mut Conn, sessions: &[String]) -> Result<bool, Error> {
    const SQLITE: &str = "-- delete_metrics
        DELETE FROM run_metrics WHERE (run_id, step, seq_id) IN (
            SELECT run_metrics.run_id, run_metrics.step, run_metrics.seq_id
            FROM runs CROSS JOIN run_metrics ON run_metrics.run_id = runs.id
            WHERE runs.session_id IN (SELECT value FROM json_each($1)) AND NOT EXISTS (
                SELECT 1 FROM runs AS others CROSS JOIN checkpoints ON checkpoints.run_id = others.id
                WHERE others.session_id = runs.session_id)
            LIMIT $2)";
    const POSTGRES: &str = "-- delete_metrics
        DELETE FROM run_metrics WHERE (run_id, step, seq_id) IN (
            SELECT found.run_id, found.step, found.seq_id
            FROM unnest($1) AS ended (id) JOIN runs ON runs.session_id = ended.id
            CROSS JOIN LATERAL (
                SELECT run_id, step, seq_id FROM run_metrics WHERE run_id = runs.id LIMIT $2) AS found
            WHERE NOT EXISTS (
                SELECT 1 FROM runs AS others JOIN checkpoints ON checkpoints.run_id = others.id
                WHERE others.session_id = ended.id)
            LIMIT $2)";
    let deleted = sql_by(SQLITE, POSTGRES).bind(sessions.to_vec()).bind(ROWS).execute(conn).await;
    Ok(deleted.map_err(failed("delete metrics"))? >= as_u64(ROWS))
}
