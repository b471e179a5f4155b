//! Access to the table `sessions`.

use trainyard_protocol::{RunId, SamplingSessionId, SessionId, TenantId};

use super::db::{Conn, Row, column, sql, sql_by};
use super::{as_i64, failed, from_json, parsed, to_json};
use crate::{Error, FinishReason, NewSession, Page, Session, SessionStatus, Timestamp};

/// A session's own row.
pub(crate) struct SessionRow {
    pub(crate) id: SessionId,
    pub(crate) status: SessionStatus,
}

pub(crate) async fn insert_session(
    conn: &mut Conn,
    tenant: &TenantId,
    id: &SessionId,
    new: &NewSession,
    now: Timestamp,
) -> Result<(), Error> {
    const SQL: &str = "-- insert_session
        INSERT INTO sessions (id, tenant, idempotency_key, tags, user_metadata, sdk_version, project_id, display_name,
            status, created_at, last_seen_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'active', $9, $9)
        ON CONFLICT (id) DO NOTHING";
    sql(SQL)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .bind(new.idempotency_key.as_deref())
        .bind(to_json(&new.tags)?)
        .bind(to_json(&new.user_metadata)?)
        .bind(new.sdk_version.as_str())
        .bind(new.project_id.as_deref())
        .bind(new.display_name.as_deref())
        .bind(now.0)
        .execute(conn)
        .await
        .map_err(failed("create a session"))?;
    Ok(())
}

/// Records the user whose key created a session.
pub(crate) async fn set_session_user(conn: &mut Conn, id: &SessionId, user: &str) -> Result<(), Error> {
    const SQL: &str = "-- set_session_user
        UPDATE sessions SET user_id = $2 WHERE id = $1";
    sql(SQL).bind(id.as_str()).bind(user).execute(conn).await.map(drop).map_err(failed("create a session"))
}

/// Returns the session that was created with this key.
pub(crate) async fn session_by_idempotency_key(
    conn: &mut Conn,
    tenant: &TenantId,
    key: &str,
) -> Result<Option<SessionId>, Error> {
    const SQL: &str = "-- session_by_idempotency_key
        SELECT id FROM sessions WHERE tenant = $1 AND idempotency_key = $2";
    let id: Option<String> =
        sql(SQL).bind(tenant.as_str()).bind(key).scalar(conn).await.map_err(failed("find a session"))?;
    Ok(id.map(SessionId::new))
}

/// Returns a session without its runs and sampling sessions.
pub(crate) async fn session_row(conn: &mut Conn, tenant: &TenantId, id: &SessionId) -> Result<SessionRow, Error> {
    const SQL: &str = "-- session_row
        SELECT id, status, finish_reason, finish_detail FROM sessions WHERE id = $1 AND tenant = $2";
    let row = sql(SQL)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .fetch_optional(conn)
        .await
        .map_err(failed("find a session"))?
        .ok_or_else(|| Error::not_found("session", id))?;
    to_session_row(&row)
}

/// Returns the status of a session, found only by its id.
pub(crate) async fn session_status(conn: &mut Conn, id: &SessionId) -> Result<SessionStatus, Error> {
    const SQL: &str = "-- session_status
        SELECT status, finish_reason, finish_detail FROM sessions WHERE id = $1";
    let row = sql(SQL).bind(id.as_str()).fetch_optional(conn).await.map_err(failed("find a session"))?;
    status(&row.ok_or_else(|| Error::not_found("session", id))?)
}

/// Returns those of the given sessions that have ended.
pub(crate) async fn ended_sessions(
    conn: &mut Conn,
    ids: Vec<SessionId>,
) -> Result<Vec<(SessionId, SessionStatus)>, Error> {
    const SQLITE: &str = "-- ended_sessions
        SELECT id, status, finish_reason, finish_detail FROM sessions
        WHERE id IN (SELECT value FROM json_each($1)) AND status <> 'active' ORDER BY id";
    const POSTGRES: &str = "-- ended_sessions
        SELECT id, status, finish_reason, finish_detail FROM sessions
        WHERE id = ANY($1) AND status <> 'active' ORDER BY id";
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let rows = sql_by(SQLITE, POSTGRES).bind(ids).fetch_all(conn).await.map_err(failed("list ended sessions"))?;
    rows.iter().map(|row| Ok((SessionId::new(column::<String>(row, "id")?), status(row)?))).collect()
}

/// Makes an expired session active again, if it expired after a given time. Returns false if it expired before, or was
/// finished. One that another process has revived meanwhile is active.
pub(crate) async fn revive_session(
    conn: &mut Conn,
    id: &SessionId,
    expired_after: Timestamp,
    now: Timestamp,
) -> Result<bool, Error> {
    const SQL: &str = "-- revive_session
        UPDATE sessions SET status = 'active', ended_at = NULL, last_seen_at = $2
        WHERE id = $1 AND (status = 'active' OR status = 'expired' AND ended_at > $3)";
    let done = sql(SQL).bind(id.as_str()).bind(now.0).bind(expired_after.0).execute(conn).await;
    Ok(done.map_err(failed("revive a session"))? == 1)
}

/// Records a heartbeat of an active session.
pub(crate) async fn touch_session(conn: &mut Conn, id: &SessionId, now: Timestamp) -> Result<(), Error> {
    const SQLITE: &str = "-- touch_session
        UPDATE sessions SET last_seen_at = $2 WHERE id = $1 AND last_seen_at < $2 AND status = 'active'";
    // A transaction that has the row records a heartbeat too, or the session's end.
    const POSTGRES: &str = "-- touch_session
        UPDATE sessions SET last_seen_at = $2 WHERE id = (
            SELECT id FROM sessions WHERE id = $1 AND last_seen_at < $2 AND status = 'active'
            FOR NO KEY UPDATE SKIP LOCKED)";
    sql_by(SQLITE, POSTGRES)
        .bind(id.as_str())
        .bind(now.0)
        .execute(conn)
        .await
        .map(drop)
        .map_err(failed("update a session"))
}

/// Extends the heartbeats of all active sessions to now, after a time in which none could be received.
pub(crate) async fn extend_heartbeats(conn: &mut Conn, now: Timestamp) -> Result<(), Error> {
    const SQL: &str = "-- extend_heartbeats
        UPDATE sessions SET last_seen_at = $1 WHERE last_seen_at < $1 AND status = 'active'";
    sql(SQL).bind(now.0).execute(conn).await.map(drop).map_err(failed("update sessions"))
}

/// Returns the active sessions without a heartbeat since `deadline`.
pub(crate) async fn sessions_without_heartbeat(conn: &mut Conn, deadline: Timestamp) -> Result<Vec<SessionId>, Error> {
    const SQL: &str = "-- sessions_without_heartbeat
        SELECT id FROM sessions WHERE status = 'active' AND last_seen_at < $1 ORDER BY last_seen_at LIMIT 1000";
    let ids: Vec<String> = sql(SQL).bind(deadline.0).scalars(conn).await.map_err(failed("list sessions"))?;
    Ok(ids.into_iter().map(SessionId::new).collect())
}

/// Returns a session with its runs and sampling sessions.
pub(crate) async fn session(conn: &mut Conn, tenant: &TenantId, id: &SessionId) -> Result<Session, Error> {
    const SQL: &str = "-- session
        SELECT tags, user_metadata, sdk_version, project_id, display_name, status, finish_reason, finish_detail,
            created_at
        FROM sessions WHERE id = $1 AND tenant = $2";
    let row = sql(SQL)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .fetch_optional(&mut *conn)
        .await
        .map_err(failed("find a session"))?
        .ok_or_else(|| Error::not_found("session", id))?;
    Ok(Session {
        id: id.clone(),
        tags: from_json(&row, "tags")?,
        user_metadata: from_json(&row, "user_metadata")?,
        sdk_version: column(&row, "sdk_version")?,
        project_id: column(&row, "project_id")?,
        display_name: column(&row, "display_name")?,
        created_at: Timestamp(column(&row, "created_at")?),
        status: status(&row)?,
        training_run_ids: run_ids_of_session(conn, id).await?,
        sampler_ids: sampler_ids_of_session(conn, id).await?,
    })
}

async fn run_ids_of_session(conn: &mut Conn, id: &SessionId) -> Result<Vec<RunId>, Error> {
    const SQL: &str = "-- run_ids_of_session
        SELECT id FROM runs WHERE session_id = $1 ORDER BY model_seq_id";
    let ids: Vec<String> = sql(SQL).bind(id.as_str()).scalars(conn).await.map_err(failed("list runs"))?;
    Ok(ids.into_iter().map(RunId::new).collect())
}

async fn sampler_ids_of_session(conn: &mut Conn, id: &SessionId) -> Result<Vec<SamplingSessionId>, Error> {
    const SQL: &str = "-- sampler_ids_of_session
        SELECT id FROM sampling_sessions WHERE session_id = $1 ORDER BY seq_id";
    let ids: Vec<String> = sql(SQL).bind(id.as_str()).scalars(conn).await.map_err(failed("list sampling sessions"))?;
    Ok(ids.into_iter().map(SamplingSessionId::new).collect())
}

pub(crate) async fn list_sessions(
    conn: &mut Conn,
    tenant: &TenantId,
    project_id: Option<&str>,
    page: Page,
) -> Result<Vec<SessionId>, Error> {
    const SQL: &str = "-- list_sessions
        SELECT id FROM sessions WHERE tenant = $1 ORDER BY created_at DESC, id DESC LIMIT $2 OFFSET $3";
    const OF_PROJECT: &str = "-- list_sessions: of a project
        SELECT id FROM sessions WHERE tenant = $1 AND project_id = $4
        ORDER BY created_at DESC, id DESC LIMIT $2 OFFSET $3";
    let mut list = sql(if project_id.is_some() { OF_PROJECT } else { SQL });
    list = list.bind(tenant.as_str()).bind(i64::from(page.limit)).bind(as_i64(page.offset));
    if let Some(project_id) = project_id {
        list = list.bind(project_id);
    }
    let ids: Vec<String> = list.scalars(conn).await.map_err(failed("list sessions"))?;
    Ok(ids.into_iter().map(SessionId::new).collect())
}

/// Ends an active session; with `without_heartbeat_since` only if there was no heartbeat since then. Returns false if
/// it had already ended, or remains active.
pub(crate) async fn end_session(
    conn: &mut Conn,
    id: &SessionId,
    status: &SessionStatus,
    without_heartbeat_since: Option<Timestamp>,
    now: Timestamp,
) -> Result<bool, Error> {
    const SQL: &str = "-- end_session
        UPDATE sessions SET status = $2, finish_reason = $3, finish_detail = $4, ended_at = $5
        WHERE id = $1 AND status = 'active' AND ($6 IS NULL OR last_seen_at < $6)";
    let (name, reason, detail) = match status {
        SessionStatus::Active => return Ok(false),
        SessionStatus::Finished { reason, detail } => ("finished", Some(reason.as_str()), detail.as_deref()),
        SessionStatus::Expired => ("expired", None, None),
    };
    let done = sql(SQL)
        .bind(id.as_str())
        .bind(name)
        .bind(reason)
        .bind(detail)
        .bind(now.0)
        .bind(without_heartbeat_since.map(Timestamp::as_millis))
        .execute(conn)
        .await
        .map_err(failed("end a session"))?;
    Ok(done == 1)
}

fn to_session_row(row: &Row) -> Result<SessionRow, Error> {
    Ok(SessionRow { id: SessionId::new(column::<String>(row, "id")?), status: status(row)? })
}

pub(super) fn status(row: &Row) -> Result<SessionStatus, Error> {
    match column::<String>(row, "status")?.as_str() {
        "active" => Ok(SessionStatus::Active),
        "finished" => Ok(SessionStatus::Finished {
            reason: parsed(row, "finish_reason", FinishReason::from_text)?,
            detail: column(row, "finish_detail")?,
        }),
        "expired" => Ok(SessionStatus::Expired),
        other => Err(Error::store("read a row", format!("sessions.status holds {other:?}"))),
    }
}
