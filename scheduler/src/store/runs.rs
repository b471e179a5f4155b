//! Access to the table `runs`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trainyard_protocol::{OpError, RequestId, RunId, RunSpec, SessionId, TenantId};

use super::db::{Conn, Row, column, sql, sql_by};
use super::{failed, from_json, parsed, to_json};
use crate::{Error, MemoryWait, NewRun, Run, RunState, Timestamp};

/// Creates a run, leased to `worker` if given, with epoch 1.
pub(crate) async fn insert_run(
    conn: &mut Conn,
    tenant: &TenantId,
    id: &RunId,
    new: &NewRun,
    worker: Option<&str>,
    now: Timestamp,
) -> Result<(), Error> {
    const SQL: &str = "-- insert_run
        INSERT INTO runs (id, tenant, session_id, model_seq_id, spec, state, user_metadata, created_at, last_request_at,
            base_model, worker_id, epoch, listed, weights, arithmetic)
        VALUES ($1, $2, $3, $4, $5, 'creating', $6, $7, $7, $8, $9, $10, $11,
            (SELECT mine.weights FROM worker_numerics AS mine WHERE mine.worker_id = $9 AND mine.model = $8),
            (SELECT mine.arithmetic FROM worker_numerics AS mine WHERE mine.worker_id = $9 AND mine.model = $8))";
    sql(SQL)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .bind(new.session.as_str())
        .bind(new.model_seq_id)
        .bind(to_json(&new.spec)?)
        .bind(to_json(&new.user_metadata)?)
        .bind(now.0)
        .bind(new.spec.base_model.as_str())
        .bind(worker)
        .bind(i64::from(worker.is_some()))
        .bind(!is_for_download(&new.user_metadata))
        .execute(conn)
        .await
        .map_err(failed("create a run"))?;
    Ok(())
}

/// Returns whether a run exists only for a download: the SDK's `checkpoint download` loads a training checkpoint into a
/// new run to export it, and marks the run so.
fn is_for_download(user_metadata: &BTreeMap<String, String>) -> bool {
    user_metadata.get("created_by").is_some_and(|by| by == "tinker checkpoint download")
}

pub(crate) async fn run(conn: &mut Conn, tenant: &TenantId, id: &RunId) -> Result<Run, Error> {
    const SQL: &str = "-- run
        SELECT id, tenant, session_id, spec, state, user_metadata, created_at, last_request_at, corrupted,
            coalesce(numerics_changes, '[]') AS numerics_changes
        FROM runs WHERE id = $1 AND tenant = $2";
    let row = sql(SQL)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .fetch_optional(conn)
        .await
        .map_err(failed("find a run"))?
        .ok_or_else(|| Error::not_found("training run", id))?;
    to_run(&row)
}

/// Returns a run that the tenant may read: its own, or one with a public checkpoint.
pub(crate) async fn readable_run(conn: &mut Conn, tenant: &TenantId, id: &RunId, now: Timestamp) -> Result<Run, Error> {
    const SQL: &str = "-- readable_run
        SELECT id, tenant, session_id, spec, state, user_metadata, created_at, last_request_at, corrupted,
            coalesce(numerics_changes, '[]') AS numerics_changes
        FROM runs WHERE id = $1 AND (tenant = $2 OR EXISTS (
            SELECT 1 FROM checkpoints WHERE run_id = $1 AND public AND (expires_at IS NULL OR expires_at > $3)))";
    let row = sql(SQL)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .bind(now.0)
        .fetch_optional(conn)
        .await
        .map_err(failed("find a run"))?
        .ok_or_else(|| Error::not_found("training run", id))?;
    to_run(&row)
}

/// A run with an imported checkpoint, which is never trained.
pub(crate) struct ImportRun<'a> {
    pub(crate) id: &'a RunId,
    pub(crate) session: &'a SessionId,
    pub(crate) model_seq_id: i64,
    pub(crate) spec: &'a RunSpec,
    pub(crate) user_metadata: &'a BTreeMap<String, String>,
    /// Source that the checkpoint was copied or uploaded from.
    pub(crate) source: &'a str,
}

/// Creates a run for an imported checkpoint.
pub(crate) async fn insert_import(
    conn: &mut Conn,
    tenant: &TenantId,
    new: &ImportRun<'_>,
    now: Timestamp,
) -> Result<(), Error> {
    const SQL: &str = "-- insert_import
        INSERT INTO runs (id, tenant, session_id, model_seq_id, spec, state, failure, user_metadata, created_at,
            last_request_at, base_model, imported_from)
        VALUES ($1, $2, $3, $4, $5, 'failed', $6, $7, $8, $8, $9, $10)";
    sql(SQL)
        .bind(new.id.as_str())
        .bind(tenant.as_str())
        .bind(new.session.as_str())
        .bind(new.model_seq_id)
        .bind(to_json(new.spec)?)
        .bind(to_json(&OpError::user(not_trainable(new.id)))?)
        .bind(to_json(new.user_metadata)?)
        .bind(now.0)
        .bind(new.spec.base_model.as_str())
        .bind(new.source)
        .execute(conn)
        .await
        .map_err(failed("create a run"))?;
    Ok(())
}

/// Records that a run has checked an import and is not trained from now on.
pub(crate) async fn set_imported(conn: &mut Conn, id: &RunId, source: &str) -> Result<(), Error> {
    const SQL: &str = "-- set_imported
        UPDATE runs SET imported_from = $2 WHERE id = $1";
    sql(SQL).bind(id.as_str()).bind(source).execute(conn).await.map(drop).map_err(failed("update a run"))
}

/// Returns the source from which the checkpoint of a tenant's run was imported; `None` for an unknown run.
///
/// # Errors
/// [`Error::Mismatch`] if the run is one that trains.
pub(crate) async fn import_source(conn: &mut Conn, tenant: &TenantId, id: &RunId) -> Result<Option<String>, Error> {
    const SQL: &str = "-- import_source
        SELECT imported_from FROM runs WHERE id = $1 AND tenant = $2";
    let found = sql(SQL).bind(id.as_str()).bind(tenant.as_str()).fetch_optional(conn).await;
    let Some(row) = found.map_err(failed("find a run"))? else { return Ok(None) };
    let source: Option<String> = column(&row, "imported_from")?;
    source
        .map(Some)
        .ok_or_else(|| Error::Mismatch(format!("training run {id} was created before, as a run that trains")))
}

/// Returns why a run with an imported checkpoint accepts no requests.
fn not_trainable(id: &RunId) -> String {
    format!(
        "model_id: {id} holds an imported checkpoint and can't be trained: create a training client from the checkpoint"
    )
}

/// Largest age of the recorded time of a run's last request: recording it changes a row that others use too.
const LAST_REQUEST_RESOLUTION_MS: i64 = 1_000;

/// Returns the session of a run to which a request is submitted, and the worker that has its lease.
///
/// # Errors
/// [`Error::Invalid`] if the run contains an imported checkpoint.
pub(crate) async fn session_of_run(
    conn: &mut Conn,
    tenant: &TenantId,
    id: &RunId,
) -> Result<(SessionId, Option<String>), Error> {
    const SQL: &str = "-- session_of_run
        SELECT session_id, worker_id, imported_from FROM runs WHERE id = $1 AND tenant = $2";
    let found = sql(SQL).bind(id.as_str()).bind(tenant.as_str()).fetch_optional(conn).await;
    let row = found.map_err(failed("find a run"))?.ok_or_else(|| Error::not_found("training run", id))?;
    if column::<Option<String>>(&row, "imported_from")?.is_some() {
        return Err(Error::Invalid(not_trainable(id)));
    }
    Ok((SessionId::new(column::<String>(&row, "session_id")?), column(&row, "worker_id")?))
}

/// Records that a request of the run was submitted.
pub(crate) async fn touch_run(conn: &mut Conn, id: &RunId, now: Timestamp) -> Result<(), Error> {
    const SQLITE: &str = "-- touch_run
        UPDATE runs SET last_request_at = $2 WHERE id = $1 AND last_request_at < $3";
    // A transaction with the row records the same or executes the run; submissions do not wait for it.
    const POSTGRES: &str = "-- touch_run
        UPDATE runs SET last_request_at = $2 WHERE id = (
            SELECT id FROM runs WHERE id = $1 AND last_request_at < $3 FOR NO KEY UPDATE SKIP LOCKED)";
    let touched = sql_by(SQLITE, POSTGRES)
        .bind(id.as_str())
        .bind(now.0)
        .bind(now.0 - LAST_REQUEST_RESOLUTION_MS)
        .execute(conn)
        .await;
    touched.map(drop).map_err(failed("update a run"))
}

/// Marks a run as created. Returns false if it was not being created.
pub(crate) async fn ready_run(conn: &mut Conn, id: &RunId) -> Result<bool, Error> {
    const SQL: &str = "-- ready_run
        UPDATE runs SET state = 'ready' WHERE id = $1 AND state = 'creating'";
    let done = sql(SQL).bind(id.as_str()).execute(conn).await.map_err(failed("update a run"))?;
    Ok(done == 1)
}

/// Marks a run as unusable; later requests fail with `failure`. Returns false if it had already failed.
pub(crate) async fn fail_run(conn: &mut Conn, id: &RunId, failure: &OpError, corrupted: bool) -> Result<bool, Error> {
    const SQL: &str = "-- fail_run
        UPDATE runs SET state = 'failed', failure = $2, corrupted = $3 WHERE id = $1 AND state <> 'failed'";
    let done = sql(SQL)
        .bind(id.as_str())
        .bind(to_json(failure)?)
        .bind(corrupted)
        .execute(conn)
        .await
        .map_err(failed("update a run"))?;
    Ok(done == 1)
}

/// Records the folder to which everything of a run up to a position in its order was saved. Returns the folder of an
/// older save.
pub(crate) async fn save_run(conn: &mut Conn, id: &RunId, seq_id: i64, dir: &Path) -> Result<Option<PathBuf>, Error> {
    const OLD: &str = "-- save_run: older
        SELECT coalesce(snapshot_dir, '') FROM runs WHERE id = $1";
    const SQL: &str = "-- save_run
        UPDATE runs SET snapshot_seq = $2, snapshot_dir = $3 WHERE id = $1";
    let old: Option<String> = sql(OLD).bind(id.as_str()).scalar(conn).await.map_err(failed("save a run"))?;
    let dir = dir.to_string_lossy().into_owned();
    let same = old.as_ref() == Some(&dir);
    sql(SQL).bind(id.as_str()).bind(seq_id).bind(dir).execute(conn).await.map_err(failed("save a run"))?;
    Ok(old.filter(|old| !old.is_empty() && !same).map(PathBuf::from))
}

/// Memory that a run waits for, and the epoch of the lease under which it does.
#[derive(Serialize, Deserialize)]
struct StoredWait {
    epoch: i64,
    wait: MemoryWait,
}

/// Records that a run waits for its worker's memory under a lease, or that it does not.
pub(crate) async fn set_memory_wait(
    conn: &mut Conn,
    id: &RunId,
    epoch: i64,
    wait: Option<&MemoryWait>,
) -> Result<(), Error> {
    const SQL: &str = "-- set_memory_wait
        UPDATE runs SET memory_wait = $3 WHERE id = $1 AND epoch = $2";
    let wait = wait.map(|wait| to_json(&StoredWait { epoch, wait: wait.clone() })).transpose()?;
    let update = sql(SQL).bind(id.as_str()).bind(epoch).bind(wait);
    update.execute(conn).await.map_err(failed("record a wait for memory"))?;
    Ok(())
}

/// Returns the memory that the run of a queued request waits for, if it waits for its worker's memory.
pub(crate) async fn memory_wait(
    conn: &mut Conn,
    tenant: &TenantId,
    request: &RequestId,
) -> Result<Option<MemoryWait>, Error> {
    const SQL: &str = "-- memory_wait
        SELECT r.memory_wait, r.epoch FROM requests q JOIN runs r ON r.id = q.run_id
        WHERE q.id = $1 AND q.tenant = $2 AND q.state = 'queued' AND r.memory_wait IS NOT NULL";
    let query = sql(SQL).bind(request.as_str()).bind(tenant.as_str());
    let Some(row) = query.fetch_optional(conn).await.map_err(failed("find a run"))? else { return Ok(None) };
    let StoredWait { epoch, wait } = from_json(&row, "memory_wait")?;
    // A wait under an older lease has ended: the lease has passed to another worker.
    Ok((epoch == column::<i64>(&row, "epoch")?).then_some(wait))
}

/// A run as its worker needs it.
pub(crate) struct RunRow {
    pub(crate) tenant: TenantId,
    pub(crate) session: SessionId,
    pub(crate) spec: RunSpec,
    pub(crate) state: RunState,
    pub(crate) failure: Option<OpError>,
    /// Last seq_id whose effects the newest snapshot contains, and the snapshot's folder.
    pub(crate) snapshot: Option<(i64, String)>,
}

/// Returns a run, found only by its id.
pub(crate) async fn run_row(conn: &mut Conn, id: &RunId) -> Result<RunRow, Error> {
    const SQL: &str = "-- run_row
        SELECT tenant, session_id, spec, state, coalesce(failure, 'null') AS failure, snapshot_seq, snapshot_dir
        FROM runs WHERE id = $1";
    let row = sql(SQL).bind(id.as_str()).fetch_optional(conn).await.map_err(failed("find a run"))?;
    let row = row.ok_or_else(|| Error::not_found("training run", id))?;
    let snapshot: (Option<i64>, Option<String>) = (column(&row, "snapshot_seq")?, column(&row, "snapshot_dir")?);
    Ok(RunRow {
        tenant: TenantId::new(column::<String>(&row, "tenant")?),
        session: SessionId::new(column::<String>(&row, "session_id")?),
        spec: from_json(&row, "spec")?,
        state: parsed(&row, "state", RunState::from_text)?,
        failure: from_json(&row, "failure")?,
        snapshot: snapshot.0.zip(snapshot.1),
    })
}

pub(super) fn to_run(row: &Row) -> Result<Run, Error> {
    Ok(Run {
        id: RunId::new(column::<String>(row, "id")?),
        owner: TenantId::new(column::<String>(row, "tenant")?),
        session: SessionId::new(column::<String>(row, "session_id")?),
        spec: from_json(row, "spec")?,
        state: parsed(row, "state", RunState::from_text)?,
        user_metadata: from_json(row, "user_metadata")?,
        created_at: Timestamp(column(row, "created_at")?),
        last_request_at: Timestamp(column(row, "last_request_at")?),
        corrupted: column(row, "corrupted")?,
        numerics_changes: from_json(row, "numerics_changes")?,
    })
}
