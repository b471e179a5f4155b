//! Present usage of a tenant across all processes on the database, and the table `rate_limits`.

use std::num::NonZeroU64;

use trainyard_protocol::{RequestId, RunId, TenantId};

use super::db::{Conn, Row, column, sql, sql_by};
use super::{as_i64, as_u64, failed, parsed};
use crate::quotas::{BucketLevel, TokenBucket};
use crate::{Error, RequestKind, RequestState, Timestamp};

/// Returns the number of live runs: those of sessions that are active, or that ended with work left.
pub(crate) async fn live_runs(conn: &mut Conn, tenant: &TenantId) -> Result<u64, Error> {
    const SQL: &str = "-- live_runs
        SELECT count(*) FROM (
            SELECT runs.id FROM sessions CROSS JOIN runs
            WHERE sessions.tenant = $1 AND sessions.status = 'active'
                AND runs.session_id = sessions.id AND runs.state <> 'failed'
            UNION
            SELECT runs.id FROM requests CROSS JOIN runs
            WHERE requests.tenant = $1 AND requests.finished_at IS NULL
                AND runs.id = requests.run_id AND runs.state <> 'failed') AS live";
    count(sql(SQL).bind(tenant.as_str()).scalar(conn).await)
}

/// Returns the number of sessions that are open or ended within the retention time, counted up to `most`.
pub(crate) async fn kept_sessions(conn: &mut Conn, tenant: &TenantId, most: u64) -> Result<u64, Error> {
    const SQL: &str = "-- kept_sessions
        SELECT count(*) FROM (
            SELECT 1 AS found FROM sessions WHERE tenant = $1 AND NOT collected LIMIT $2) AS counted";
    count(sql(SQL).bind(tenant.as_str()).bind(as_i64(most)).scalar(conn).await)
}

/// Returns the tokens of unfinished requests.
pub(crate) async fn queued_tokens(conn: &mut Conn, tenant: &TenantId) -> Result<u64, Error> {
    const SQL: &str = "-- queued_tokens
        SELECT CAST(coalesce(sum(tokens), 0) AS BIGINT) FROM requests WHERE tenant = $1 AND finished_at IS NULL";
    count(sql(SQL).bind(tenant.as_str()).scalar(conn).await)
}

/// Returns the bytes of checkpoints, of samples stored for runs, and of turns of agent sessions.
pub(crate) async fn stored_bytes(conn: &mut Conn, tenant: &TenantId) -> Result<u64, Error> {
    const SQL: &str = "-- stored_bytes
        SELECT CAST(coalesce((SELECT sum(size_bytes) FROM checkpoints WHERE tenant = $1), 0)
            + coalesce((SELECT sum(size_bytes) FROM run_samples WHERE tenant = $1), 0)
            + coalesce((SELECT sum(size_bytes) FROM agent_sessions WHERE tenant = $1), 0) AS BIGINT)";
    count(sql(SQL).bind(tenant.as_str()).scalar(conn).await)
}

/// Returns the bytes of checkpoints that unfinished requests will write, as far as they are predictable: a run's next
/// checkpoint of a kind will be about as large as its largest.
pub(crate) async fn reserved_bytes(conn: &mut Conn, tenant: &TenantId) -> Result<u64, Error> {
    const SQL: &str = "-- reserved_bytes
        SELECT CAST(coalesce(sum((
            SELECT max(size_bytes) FROM checkpoints
            WHERE checkpoints.run_id = requests.run_id AND checkpoints.kind = requests.stores)), 0) AS BIGINT)
        FROM requests WHERE tenant = $1 AND finished_at IS NULL AND stores IS NOT NULL";
    count(sql(SQL).bind(tenant.as_str()).scalar(conn).await)
}

/// Returns the bytes of the run's largest checkpoint of a kind, which predicts its next one. Returns 0 without a
/// checkpoint.
pub(crate) async fn checkpoint_bytes(conn: &mut Conn, run: &RunId, kind: &str) -> Result<u64, Error> {
    const SQL: &str = "-- checkpoint_bytes
        SELECT coalesce(max(size_bytes), 0) FROM checkpoints WHERE run_id = $1 AND kind = $2";
    count(sql(SQL).bind(run.as_str()).bind(kind).scalar(conn).await)
}

/// Returns the level of a tenant's token bucket; `None` if it was never used.
pub(crate) async fn rate_limit_level(conn: &mut Conn, tenant: &TenantId) -> Result<Option<BucketLevel>, Error> {
    const SQL: &str = "-- rate_limit_level
        SELECT units, at FROM rate_limits WHERE tenant = $1";
    let row = sql(SQL).bind(tenant.as_str()).fetch_optional(conn).await.map_err(failed("read a rate limit"))?;
    row.as_ref().map(level).transpose()
}

/// Takes tokens of requests that started from a tenant's token bucket, and returns its level.
pub(crate) async fn spend(
    conn: &mut Conn,
    tenant: &TenantId,
    tokens_per_minute: NonZeroU64,
    tokens: u64,
    now: Timestamp,
) -> Result<BucketLevel, Error> {
    const SQLITE: &str = "-- spend
        INSERT INTO rate_limits (tenant, units, at) VALUES ($1, $3 - $2, $5)
        ON CONFLICT (tenant) DO UPDATE SET
            units = min($3, rate_limits.units + max($5 - rate_limits.at, 0) * $4) - $2, at = max($5, rate_limits.at)
        RETURNING units, at";
    const POSTGRES: &str = "-- spend
        INSERT INTO rate_limits (tenant, units, at) VALUES ($1, $3 - $2, $5)
        ON CONFLICT (tenant) DO UPDATE SET
            units = least($3, rate_limits.units + greatest($5 - rate_limits.at, 0) * $4) - $2, at = greatest($5, rate_limits.at)
        RETURNING units, at";
    let (capacity, rate, spent) = TokenBucket::units_of(tokens_per_minute, tokens);
    let row = sql_by(SQLITE, POSTGRES)
        .bind(tenant.as_str())
        .bind(spent)
        .bind(capacity)
        .bind(rate)
        .bind(now.0)
        .fetch_optional(conn)
        .await
        .map_err(failed("update a rate limit"))?;
    row.as_ref().map(level).transpose()?.ok_or_else(|| Error::store("update a rate limit", "no row came back"))
}

fn level(row: &Row) -> Result<BucketLevel, Error> {
    Ok(BucketLevel { units: column(row, "units")?, at: Timestamp(column(row, "at")?) })
}

/// Returns the cost of a request of a tenant that waits to be started; `None` for other requests.
pub(crate) async fn queued_request(conn: &mut Conn, tenant: &TenantId, id: &RequestId) -> Result<Option<u64>, Error> {
    const SQL: &str = "-- queued_request
        SELECT tokens FROM requests WHERE id = $1 AND tenant = $2 AND state = 'queued'";
    let tokens: Option<i64> =
        sql(SQL).bind(id.as_str()).bind(tenant.as_str()).scalar(conn).await.map_err(failed("find a request"))?;
    Ok(tokens.map(as_u64))
}

/// Returns the numbers of unfinished requests of all tenants, by kind and state.
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

/// Returns the numbers of active sessions of all tenants, and of their usable runs.
pub(crate) async fn active_sessions_and_runs(conn: &mut Conn) -> Result<(u64, u64), Error> {
    const SESSIONS: &str = "-- active_sessions_and_runs: sessions
        SELECT count(*) FROM sessions WHERE status = 'active'";
    const RUNS: &str = "-- active_sessions_and_runs: runs
        SELECT count(*) FROM sessions CROSS JOIN runs
        WHERE sessions.status = 'active' AND runs.session_id = sessions.id AND runs.state <> 'failed'";
    let sessions = count(sql(SESSIONS).scalar(conn).await)?;
    Ok((sessions, count(sql(RUNS).scalar(conn).await)?))
}

fn count(counted: Result<Option<i64>, sqlx::Error>) -> Result<u64, Error> {
    Ok(as_u64(counted.map_err(failed("check a quota"))?.unwrap_or(0)))
}
