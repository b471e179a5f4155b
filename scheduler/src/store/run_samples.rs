//! Access to the table `run_samples`.

use trainyard_protocol::{RequestId, RunId, SamplingSessionId, TenantId};

use super::db::{Conn, Row, column, sql, sql_by};
use super::{as_i64, as_u64, failed};
use crate::{Error, NewRunSample, RunSample, Timestamp};

/// Maximum number of rows that one statement deletes for garbage collection: each may take some hundred KiB.
const ROWS: i64 = 100;

/// Stores a sample, unless its run was deleted in the meantime.
pub(crate) async fn insert_sample(
    conn: &mut Conn,
    tenant: &TenantId,
    request: &RequestId,
    session: &SamplingSessionId,
    new: &NewRunSample,
    now: Timestamp,
) -> Result<(), Error> {
    macro_rules! insert {
        ($lock:literal) => {
            concat!(
                "-- insert_sample
        INSERT INTO run_samples (run_id, at, request_id, tenant, sampling_session_id, size_bytes, content)
        SELECT id, $3, $4, tenant, $5, $6, $7 FROM runs WHERE id = $1 AND tenant = $2",
                $lock
            )
        };
    }
    // The lock keeps the run from being deleted before the commit.
    let statement = sql_by(insert!(""), insert!(" FOR KEY SHARE"));
    statement
        .bind(new.storage.run.as_str())
        .bind(tenant.as_str())
        .bind(now.0)
        .bind(request.as_str())
        .bind(session.as_str())
        .bind(as_i64(new.content.len() as u64))
        .bind(&new.content[..])
        .execute(conn)
        .await
        .map(drop)
        .map_err(failed("store a sample"))
}

/// Deletes the samples of a run behind its newest ones. Samples that another transaction deletes are left to it.
pub(crate) async fn keep_newest(conn: &mut Conn, run: &RunId, newest: u32) -> Result<(), Error> {
    const SQLITE: &str = "-- keep_newest
        DELETE FROM run_samples WHERE (run_id, at, request_id) IN (
            SELECT run_id, at, request_id FROM run_samples WHERE run_id = $1
            ORDER BY at DESC, request_id DESC LIMIT -1 OFFSET $2)";
    const POSTGRES: &str = "-- keep_newest
        DELETE FROM run_samples WHERE (run_id, at, request_id) IN (
            SELECT run_id, at, request_id FROM run_samples WHERE run_id = $1
            ORDER BY at DESC, request_id DESC OFFSET $2 FOR UPDATE SKIP LOCKED)";
    let deleted = sql_by(SQLITE, POSTGRES).bind(run.as_str()).bind(i64::from(newest)).execute(conn).await;
    deleted.map(drop).map_err(failed("delete samples"))
}

/// Returns the newest samples of a run, in descending order of time.
pub(crate) async fn newest_samples(
    conn: &mut Conn,
    tenant: &TenantId,
    run: &RunId,
    limit: i64,
) -> Result<Vec<RunSample>, Error> {
    const SQL: &str = "-- newest_samples
        SELECT request_id, sampling_session_id, at, content FROM run_samples
        WHERE run_id = $1 AND tenant = $2 ORDER BY at DESC, request_id DESC LIMIT $3";
    let rows = sql(SQL).bind(run.as_str()).bind(tenant.as_str()).bind(limit).fetch_all(conn).await;
    let read = |row: &Row| {
        Ok(RunSample {
            request: RequestId::new(column::<String>(row, "request_id")?),
            sampling_session: SamplingSessionId::new(column::<String>(row, "sampling_session_id")?),
            at: Timestamp(column(row, "at")?),
            content: column::<Vec<u8>>(row, "content")?.into(),
        })
    };
    rows.map_err(failed("read samples"))?.iter().map(read).collect()
}

/// Returns the number of a run's stored samples, and their size in bytes.
pub(crate) async fn count_samples(conn: &mut Conn, tenant: &TenantId, run: &RunId) -> Result<(u64, u64), Error> {
    const SQL: &str = "-- count_samples
        SELECT count(*) AS stored, CAST(coalesce(sum(size_bytes), 0) AS BIGINT) AS bytes FROM run_samples
        WHERE run_id = (SELECT id FROM runs WHERE id = $1 AND tenant = $2)";
    let row = sql(SQL).bind(run.as_str()).bind(tenant.as_str()).fetch_optional(conn).await;
    let row = row.map_err(failed("count samples"))?.ok_or(Error::Store("count samples"))?;
    Ok((as_u64(column(&row, "stored")?), as_u64(column(&row, "bytes")?)))
}

/// Deletes all samples of a run and returns their number.
pub(crate) async fn delete_samples_of_run(conn: &mut Conn, tenant: &TenantId, run: &RunId) -> Result<u64, Error> {
    const SQL: &str = "-- delete_samples_of_run
        DELETE FROM run_samples WHERE run_id = (SELECT id FROM runs WHERE id = $1 AND tenant = $2)";
    sql(SQL).bind(run.as_str()).bind(tenant.as_str()).execute(conn).await.map_err(failed("delete samples"))
}

/// Deletes samples of the runs of some sessions, except sessions with a run that owns a checkpoint. Returns whether
/// there may be more.
pub(crate) async fn delete_samples(conn: &mut Conn, sessions: &[String]) -> Result<bool, Error> {
    const SQLITE: &str = "-- delete_samples
        DELETE FROM run_samples WHERE (run_id, at, request_id) IN (
            SELECT run_samples.run_id, run_samples.at, run_samples.request_id
            FROM runs CROSS JOIN run_samples ON run_samples.run_id = runs.id
            WHERE runs.session_id IN (SELECT value FROM json_each($1)) AND NOT EXISTS (
                SELECT 1 FROM runs AS others CROSS JOIN checkpoints ON checkpoints.run_id = others.id
                WHERE others.session_id = runs.session_id)
            LIMIT $2)";
    const POSTGRES: &str = "-- delete_samples
        DELETE FROM run_samples WHERE (run_id, at, request_id) IN (
            SELECT found.run_id, found.at, found.request_id
            FROM unnest($1) AS ended (id) JOIN runs ON runs.session_id = ended.id
            CROSS JOIN LATERAL (
                SELECT run_id, at, request_id FROM run_samples WHERE run_id = runs.id LIMIT $2) AS found
            WHERE NOT EXISTS (
                SELECT 1 FROM runs AS others JOIN checkpoints ON checkpoints.run_id = others.id
                WHERE others.session_id = ended.id)
            LIMIT $2)";
    let deleted = sql_by(SQLITE, POSTGRES).bind(sessions.to_vec()).bind(ROWS).execute(conn).await;
    Ok(deleted.map_err(failed("delete samples"))? >= as_u64(ROWS))
}
