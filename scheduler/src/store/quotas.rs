//! What a tenant uses at present, across all processes on the database.

use trainyard_protocol::{RunId, TenantId};

use super::db::{Conn, Dialect, column, sql};
use super::{as_u64, failed, parsed};
use crate::{Error, RequestKind, RequestState};

/// Keeps other transactions from changing what these tenants use, until this one ends. Each transaction locks once,
/// and in the order of names, so that none waits for another in a circle. SQLite has one writer anyhow.
pub(crate) async fn lock_tenants(conn: &mut Conn, tenants: Vec<String>) -> Result<(), Error> {
    const SQL: &str = "-- lock_tenants
        SELECT pg_advisory_xact_lock(hashtextextended(tenant, 0)) FROM unnest($1) AS tenant";
    if conn.dialect() == Dialect::Sqlite || tenants.is_empty() {
        return Ok(());
    }
    sql(SQL).bind(tenants).fetch_all(conn).await.map(drop).map_err(failed("check a quota"))
}

/// Runs that can be used, of sessions that are active.
pub(crate) async fn live_runs(conn: &mut Conn, tenant: &TenantId) -> Result<u64, Error> {
    const SQL: &str = "-- live_runs
        SELECT count(*) FROM runs JOIN sessions ON sessions.id = runs.session_id
        WHERE runs.tenant = $1 AND runs.state <> 'failed' AND sessions.status = 'active'";
    count(sql(SQL).bind(tenant.as_str()).scalar(conn).await)
}

/// Tokens of requests that have not ended.
pub(crate) async fn queued_tokens(conn: &mut Conn, tenant: &TenantId) -> Result<u64, Error> {
    const SQL: &str = "-- queued_tokens
        SELECT CAST(coalesce(sum(tokens), 0) AS BIGINT) FROM requests WHERE tenant = $1 AND finished_at IS NULL";
    count(sql(SQL).bind(tenant.as_str()).scalar(conn).await)
}

/// Bytes of checkpoints.
pub(crate) async fn stored_bytes(conn: &mut Conn, tenant: &TenantId) -> Result<u64, Error> {
    const SQL: &str = "-- stored_bytes
        SELECT CAST(coalesce(sum(size_bytes), 0) AS BIGINT) FROM checkpoints WHERE tenant = $1";
    count(sql(SQL).bind(tenant.as_str()).scalar(conn).await)
}

/// Bytes of the run's largest checkpoint of a kind: its next one will be about as large. 0 when there is none.
pub(crate) async fn checkpoint_bytes(conn: &mut Conn, run: &RunId, kind: &str) -> Result<u64, Error> {
    const SQL: &str = "-- checkpoint_bytes
        SELECT coalesce(max(size_bytes), 0) FROM checkpoints WHERE run_id = $1 AND kind = $2";
    count(sql(SQL).bind(run.as_str()).bind(kind).scalar(conn).await)
}

/// Unfinished requests of all tenants by kind and state.
pub(crate) async fn open_requests(conn: &mut Conn) -> Result<Vec<(RequestKind, RequestState, u64)>, Error> {
    const SQL: &str = "-- open_requests
        SELECT kind, state, count(*) AS open FROM requests WHERE finished_at IS NULL
        GROUP BY kind, state ORDER BY kind, state";
    let rows = sql(SQL).fetch_all(conn).await.map_err(failed("count requests"))?;
    rows.iter()
        .map(|row| {
            let kind = parsed(row, "kind", RequestKind::from_text)?;
            let state = parsed(row, "state", RequestState::from_text)?;
            Ok((kind, state, as_u64(column(row, "open")?)))
        })
        .collect()
}

/// Active sessions of all tenants, and their runs that can be used.
pub(crate) async fn active_sessions_and_runs(conn: &mut Conn) -> Result<(u64, u64), Error> {
    const SESSIONS: &str = "-- active_sessions_and_runs: sessions
        SELECT count(*) FROM sessions WHERE status = 'active'";
    const RUNS: &str = "-- active_sessions_and_runs: runs
        SELECT count(*) FROM runs JOIN sessions ON sessions.id = runs.session_id
        WHERE runs.state <> 'failed' AND sessions.status = 'active'";
    let sessions = count(sql(SESSIONS).scalar(conn).await)?;
    Ok((sessions, count(sql(RUNS).scalar(conn).await)?))
}

fn count(counted: Result<Option<i64>, sqlx::Error>) -> Result<u64, Error> {
    Ok(as_u64(counted.map_err(failed("check a quota"))?.unwrap_or(0)))
}
