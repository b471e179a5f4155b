//! Access to the table `sampling_sessions`.

use std::path::{Path, PathBuf};

use trainyard_protocol::{RequestId, RunId, SamplingSessionId, SessionId, TenantId};

use super::db::{Conn, Row, column, sql};
use super::{failed, from_json};
use crate::types::stored_samples;
use crate::{Error, NewSamplingSession, SampleStorage, SamplingSession, Timestamp};

/// Source of a sampling session's weights.
#[derive(Default)]
pub(crate) struct SamplingOrigin<'a> {
    /// Folder of the sampler checkpoint.
    pub(crate) checkpoint_dir: Option<&'a Path>,
    /// Run of which the snapshot was taken, and the save that took it.
    pub(crate) save: Option<(&'a RunId, &'a RequestId)>,
}

/// Creates a sampling session, or returns the existing one if it is equal.
///
/// # Errors
/// [`Error::Mismatch`] if one with this identity but other content exists.
pub(crate) async fn insert_sampling_session(
    conn: &mut Conn,
    tenant: &TenantId,
    new: &NewSamplingSession,
    origin: SamplingOrigin<'_>,
    now: Timestamp,
) -> Result<SamplingSessionId, Error> {
    const SQL: &str = "-- insert_sampling_session
        INSERT INTO sampling_sessions (id, tenant, session_id, seq_id, base_model, model_path, checkpoint_dir, snapshot,
            run_id, request_id, created_at, weights_of)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    if let Some(id) = equal_sampling_session(conn, tenant, new).await? {
        return Ok(id);
    }
    let id = SamplingSessionId::of_session(&new.session, new.seq_id);
    let weights_of = new.model_path.as_ref().map(|path| &path.run).or(origin.save.map(|(run, _)| run));
    sql(SQL)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .bind(new.session.as_str())
        .bind(new.seq_id)
        .bind(new.base_model.as_str())
        .bind(new.model_path.as_ref().map(ToString::to_string))
        .bind(origin.checkpoint_dir.map(|dir| dir.to_string_lossy().into_owned()))
        .bind(new.snapshot.as_deref())
        .bind(origin.save.map(|(run, _)| run.as_str()))
        .bind(origin.save.map(|(_, request)| request.as_str()))
        .bind(now.0)
        .bind(weights_of.map(|run| run.as_str()))
        .execute(conn)
        .await
        .map_err(failed("create a sampling session"))?;
    Ok(id)
}

/// Returns the sampling session with the identity of `new`, if it exists.
///
/// # Errors
/// [`Error::Mismatch`] if it has other content.
pub(crate) async fn equal_sampling_session(
    conn: &mut Conn,
    tenant: &TenantId,
    new: &NewSamplingSession,
) -> Result<Option<SamplingSessionId>, Error> {
    let id = SamplingSessionId::of_session(&new.session, new.seq_id);
    let found = match sampling_session(conn, tenant, &id).await {
        Ok(found) => found,
        Err(Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let equal =
        found.base_model == new.base_model && found.model_path == new.model_path && found.snapshot == new.snapshot;
    if !equal {
        return Err(Error::Mismatch(format!("sampling session {id} was created before with other content")));
    }
    Ok(Some(id))
}

pub(crate) async fn sampling_session(
    conn: &mut Conn,
    tenant: &TenantId,
    id: &SamplingSessionId,
) -> Result<SamplingSession, Error> {
    const SQL: &str = "-- sampling_session
        SELECT id, session_id, seq_id, base_model, model_path, checkpoint_dir, snapshot, snapshot_dir, collected, created_at,
            weights_of, (
                SELECT user_metadata FROM runs WHERE runs.id = weights_of AND runs.tenant = sampling_sessions.tenant
            ) AS run_metadata
        FROM sampling_sessions WHERE id = $1 AND tenant = $2";
    let row = sql(SQL)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .fetch_optional(conn)
        .await
        .map_err(failed("find a sampling session"))?
        .ok_or_else(|| Error::not_found("sampling session", id))?;
    to_sampling_session(&row)
}

/// Returns the next number for a clone of a sampling session's client, from 1.
pub(crate) async fn number_clone(conn: &mut Conn, tenant: &TenantId, id: &SamplingSessionId) -> Result<i64, Error> {
    const SQL: &str = "-- number_clone
        UPDATE sampling_sessions SET clones = clones + 1 WHERE id = $1 AND tenant = $2 RETURNING clones";
    let number: Option<i64> =
        sql(SQL).bind(id.as_str()).bind(tenant.as_str()).scalar(conn).await.map_err(failed("number a clone"))?;
    number.ok_or_else(|| Error::not_found("sampling session", id))
}

/// Records the folder to which a snapshot of a run was saved; with `None`, that the newest one of this key is only in
/// memory.
pub(crate) async fn set_snapshot_dir(conn: &mut Conn, run: &RunId, key: &str, dir: Option<&Path>) -> Result<(), Error> {
    // With a plain comparison, SQLite would use the index on runs and read all sampling sessions of the run.
    const SQL: &str = "-- set_snapshot_dir
        UPDATE sampling_sessions SET snapshot_dir = $3, collected = FALSE
        WHERE session_id = (SELECT session_id FROM runs WHERE id = $1) AND snapshot = $2
            AND coalesce(run_id, '') = $1";
    let dir = dir.map(|dir| dir.to_string_lossy().into_owned());
    let done = sql(SQL).bind(run.as_str()).bind(key).bind(dir).execute(conn).await;
    done.map(drop).map_err(failed("record a snapshot"))
}

pub(crate) struct SnapshotRow {
    pub(crate) key: String,
    pub(crate) session: SessionId,
}

/// Returns the in-memory snapshots of a run that its replay restores, with the sessions that own them.
pub(crate) async fn snapshots_of_run(conn: &mut Conn, run: &RunId) -> Result<Vec<SnapshotRow>, Error> {
    const SQL: &str = "-- snapshots_of_run
        SELECT DISTINCT sampler.snapshot, sampler.session_id FROM sampling_sessions AS sampler
        JOIN sessions ON sessions.id = sampler.session_id
        WHERE sampler.run_id = $1 AND sampler.collected = FALSE AND sampler.snapshot_dir IS NULL
            AND sampler.snapshot IS NOT NULL
            AND (sessions.status = 'active' OR EXISTS (
                SELECT 1 FROM requests WHERE requests.session_id = sessions.id AND requests.finished_at IS NULL))
        ORDER BY sampler.snapshot";
    let rows = sql(SQL).bind(run.as_str()).fetch_all(conn).await.map_err(failed("list snapshots"))?;
    rows.iter()
        .map(|row| {
            let session = SessionId::new(column::<String>(row, "session_id")?);
            Ok(SnapshotRow { key: column(row, "snapshot")?, session })
        })
        .collect()
}

/// Returns the run and the save that a snapshot of a session comes from.
pub(crate) async fn save_of_snapshot(
    conn: &mut Conn,
    session: &SessionId,
    key: &str,
) -> Result<Option<(RunId, RequestId)>, Error> {
    const SQL: &str = "-- save_of_snapshot
        SELECT run_id, request_id FROM sampling_sessions
        WHERE session_id = $1 AND snapshot = $2 AND run_id IS NOT NULL AND request_id IS NOT NULL
        ORDER BY seq_id DESC LIMIT 1";
    let found =
        sql(SQL).bind(session.as_str()).bind(key).fetch_optional(conn).await.map_err(failed("find a snapshot"))?;
    found
        .map(|row| {
            let (run, request): (String, String) = (column(&row, "run_id")?, column(&row, "request_id")?);
            Ok((RunId::new(run), RequestId::new(request)))
        })
        .transpose()
}

fn to_sampling_session(row: &Row) -> Result<SamplingSession, Error> {
    let path: Option<String> = column(row, "model_path")?;
    let model_path = path.map(|text| text.parse()).transpose().map_err(|error| Error::store("read a row", error))?;
    let dir: Option<String> = column(row, "checkpoint_dir")?;
    Ok(SamplingSession {
        id: SamplingSessionId::new(column::<String>(row, "id")?),
        session: SessionId::new(column::<String>(row, "session_id")?),
        seq_id: column(row, "seq_id")?,
        base_model: column(row, "base_model")?,
        model_path,
        checkpoint_dir: dir.map(PathBuf::from),
        snapshot: column(row, "snapshot")?,
        snapshot_dir: column::<Option<String>>(row, "snapshot_dir")?.map(PathBuf::from),
        collected: column(row, "collected")?,
        created_at: Timestamp(column(row, "created_at")?),
        stores: sample_storage(row)?,
    })
}

/// Returns where samples are also stored for viewing: with the run that samples, if it belongs to the tenant and asks
/// for that.
fn sample_storage(row: &Row) -> Result<Option<SampleStorage>, Error> {
    if column::<Option<String>>(row, "run_metadata")?.is_none() {
        return Ok(None);
    }
    let newest = stored_samples(&from_json(row, "run_metadata")?).ok().flatten();
    newest.map(|newest| Ok(SampleStorage { run: RunId::new(column::<String>(row, "weights_of")?), newest })).transpose()
}
