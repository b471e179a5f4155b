//! Searches of the table `sessions`, and the timeline of a session.

use std::collections::BTreeMap;

use trainyard_protocol::{RequestId, RunId, SamplingSessionId, SessionId, TenantId};

use super::db::{Conn, Row, column, sql, sql_by, text_bytes};
use super::sessions::status;
use super::{as_u64, failed, from_json, parsed};
use crate::budgets::PAGE_BYTES;
use crate::{
    Error, FoundSession, RequestKind, RequestState, SearchPosition, SessionTimeline, TimelineRequest, Timestamp,
};

/// Sessions that a search looks at.
pub(crate) struct SessionBatch {
    /// Sessions, each with the bytes of its metadata.
    pub(crate) sessions: Vec<(FoundSession, usize)>,
    /// Whether nothing follows them.
    pub(crate) is_last: bool,
}

/// The next sessions behind a place, newest first, as many as their metadata allows. Their checkpoints are not counted.
pub(crate) async fn sessions_behind(
    conn: &mut Conn,
    tenant: &TenantId,
    after: Option<&SearchPosition>,
    limit: u32,
) -> Result<SessionBatch, Error> {
    const SQL: &str = "-- sessions_behind
        SELECT id, created_at, project_id, display_name, user_metadata, status, finish_reason, finish_detail
        FROM sessions WHERE tenant = $1 AND (created_at, id) < ($2, $3)
        ORDER BY created_at DESC, id DESC LIMIT $4";
    let (at, id) = after.map_or((i64::MAX, ""), |after| (after.created_at.0, after.session.as_str()));
    let query = sql(SQL).bind(tenant.as_str()).bind(at).bind(id).bind(i64::from(limit));
    let found = query.fetch_within(conn, "user_metadata", PAGE_BYTES).await.map_err(failed("search sessions"))?;
    let is_last = !found.is_cut && found.rows.len() < limit as usize;
    let sized = |row| Ok((to_found(row)?, text_bytes(row, "user_metadata")?));
    Ok(SessionBatch { sessions: found.rows.iter().map(sized).collect::<Result<_, Error>>()?, is_last })
}

/// Returns one session of the tenant, in the form of search results.
pub(crate) async fn searched_session(
    conn: &mut Conn,
    tenant: &TenantId,
    id: &SessionId,
) -> Result<Option<FoundSession>, Error> {
    const SQL: &str = "-- searched_session
        SELECT id, created_at, project_id, display_name, user_metadata, status, finish_reason, finish_detail
        FROM sessions WHERE id = $1 AND tenant = $2";
    let found = sql(SQL).bind(id.as_str()).bind(tenant.as_str()).fetch_optional(conn).await;
    found.map_err(failed("search sessions"))?.as_ref().map(to_found).transpose()
}

/// Returns the numbers and bytes of unexpired checkpoints of some sessions' runs.
pub(crate) async fn checkpoints_of_sessions(
    conn: &mut Conn,
    sessions: Vec<String>,
    now: Timestamp,
) -> Result<BTreeMap<String, (u64, u64)>, Error> {
    const SQLITE: &str = "-- checkpoints_of_sessions
        SELECT runs.session_id, count(*) AS found, CAST(sum(checkpoints.size_bytes) AS BIGINT) AS bytes
        FROM runs CROSS JOIN checkpoints ON checkpoints.run_id = runs.id
        WHERE runs.session_id IN (SELECT value FROM json_each($1))
            AND (checkpoints.expires_at IS NULL OR checkpoints.expires_at > $2)
        GROUP BY runs.session_id";
    const POSTGRES: &str = "-- checkpoints_of_sessions
        SELECT runs.session_id, count(*) AS found, CAST(sum(checkpoints.size_bytes) AS BIGINT) AS bytes
        FROM runs JOIN checkpoints ON checkpoints.run_id = runs.id
        WHERE runs.session_id = ANY($1) AND (checkpoints.expires_at IS NULL OR checkpoints.expires_at > $2)
        GROUP BY runs.session_id";
    let rows = sql_by(SQLITE, POSTGRES).bind(sessions).bind(now.0).fetch_all(conn).await;
    let rows = rows.map_err(failed("count checkpoints"))?;
    rows.iter()
        .map(|row| Ok((column(row, "session_id")?, (as_u64(column(row, "found")?), as_u64(column(row, "bytes")?)))))
        .collect()
}

/// Moves a session of the tenant into a project.
pub(crate) async fn set_project(
    conn: &mut Conn,
    tenant: &TenantId,
    id: &SessionId,
    project_id: &str,
) -> Result<(), Error> {
    const SQL: &str = "-- set_project
        UPDATE sessions SET project_id = $3 WHERE id = $1 AND tenant = $2";
    let done = sql(SQL).bind(id.as_str()).bind(tenant.as_str()).bind(project_id).execute(conn).await;
    match done.map_err(failed("update a session"))? {
        0 => Err(Error::not_found("session", id)),
        _ => Ok(()),
    }
}

/// Returns a session of the tenant with the last of its requests, in the order of acceptance.
pub(crate) async fn timeline(
    conn: &mut Conn,
    tenant: &TenantId,
    id: &SessionId,
    most: i64,
) -> Result<SessionTimeline, Error> {
    const SESSION: &str = "-- timeline: session
        SELECT created_at, ended_at FROM sessions WHERE id = $1 AND tenant = $2";
    const REQUESTS: &str = "-- timeline
        SELECT id, run_id, sampling_session_id, seq_id, kind, state, num_samples, tokens, created_at, finished_at
        FROM requests WHERE session_id = $1 ORDER BY arrival DESC LIMIT $2";
    let session = sql(SESSION).bind(id.as_str()).bind(tenant.as_str()).fetch_optional(&mut *conn).await;
    let session = session.map_err(failed("find a session"))?.ok_or_else(|| Error::not_found("session", id))?;
    let rows = sql(REQUESTS).bind(id.as_str()).bind(most).fetch_all(conn).await.map_err(failed("list requests"))?;
    Ok(SessionTimeline {
        created_at: Timestamp(column(&session, "created_at")?),
        ended_at: column::<Option<i64>>(&session, "ended_at")?.map(Timestamp),
        requests: rows.iter().rev().map(to_timeline_request).collect::<Result<_, _>>()?,
    })
}

fn to_found(row: &Row) -> Result<FoundSession, Error> {
    Ok(FoundSession {
        id: SessionId::new(column::<String>(row, "id")?),
        created_at: Timestamp(column(row, "created_at")?),
        project_id: column(row, "project_id")?,
        display_name: column(row, "display_name")?,
        user_metadata: from_json(row, "user_metadata")?,
        status: status(row)?,
        checkpoints: 0,
        checkpoint_bytes: 0,
    })
}

fn to_timeline_request(row: &Row) -> Result<TimelineRequest, Error> {
    Ok(TimelineRequest {
        id: RequestId::new(column::<String>(row, "id")?),
        run: column::<Option<String>>(row, "run_id")?.map(RunId::new),
        sampling_session: column::<Option<String>>(row, "sampling_session_id")?.map(SamplingSessionId::new),
        seq_id: column(row, "seq_id")?,
        kind: parsed(row, "kind", RequestKind::from_text)?,
        state: parsed(row, "state", RequestState::from_text)?,
        num_samples: column(row, "num_samples")?,
        tokens: column(row, "tokens")?,
        accepted: Timestamp(column(row, "created_at")?),
        ended: column::<Option<i64>>(row, "finished_at")?.map(Timestamp),
    })
}
