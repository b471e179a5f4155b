//! The tables `usage` and `stored_checkpoints`: usage, which is kept when requests and checkpoints are deleted.

use std::sync::LazyLock;

use trainyard_protocol::{RequestId, SessionId, TenantId, TinkerPath};

use super::db::{Bulk, Conn, Row, column, sql, sql_by};
use super::{as_i64, as_u64, failed, from_json, parsed};
use crate::{
    Attribution, Error, HourlyUsage, RequestKind, RequestUsage, StorageInUse, StoredCheckpoint, Timestamp, Tokens,
};

/// Duration of an hour in ms.
const HOUR: i64 = 3_600_000;

/// Records the usage of requests that have just ended. A request counts once.
pub(crate) async fn insert_usage(conn: &mut Conn, used: &[(&RequestId, Tokens)], now: Timestamp) -> Result<(), Error> {
    static SQL: LazyLock<Bulk> = LazyLock::new(|| {
        let text = "-- insert_usage
            INSERT INTO usage (request_id, tenant, at, kind, base_model, session_id, project_id, user_id, trained,
                prefill, cached, sampled)
            SELECT requests.id, requests.tenant, column2, requests.kind,
                coalesce(runs.base_model, sampling_sessions.base_model, ''), requests.session_id, sessions.project_id,
                sessions.user_id, column3, column4, column5, column6
            FROM ({rows}) AS used
                JOIN requests ON requests.id = column1
                JOIN sessions ON sessions.id = requests.session_id
                LEFT JOIN runs ON runs.id = requests.run_id
                LEFT JOIN sampling_sessions ON sampling_sessions.id = requests.sampling_session_id
            WHERE column1 IS NOT NULL
            ON CONFLICT DO NOTHING RETURNING request_id";
        Bulk::new(6, text)
    });
    let row = |(request, tokens): &(&RequestId, Tokens)| {
        let counts = [tokens.trained, tokens.prefill, tokens.cached, tokens.sampled];
        let mut values = vec![request.to_string().into(), now.0.into()];
        values.extend(counts.map(|count| as_i64(count).into()));
        values
    };
    let rows = used.iter().map(row).collect();
    SQL.fetch_all(conn, rows).await.map(drop).map_err(failed("record usage"))
}

/// Records that a checkpoint is stored from now on, and which one it replaces.
pub(crate) async fn begin_storage(
    conn: &mut Conn,
    path: &TinkerPath,
    size_bytes: u64,
    now: Timestamp,
) -> Result<(), Error> {
    const SQL: &str = "-- begin_storage
        INSERT INTO stored_checkpoints (run_id, kind, name, from_at, tenant, base_model, session_id, project_id, user_id,
            size_bytes)
        SELECT runs.id, $2, $3, $4, runs.tenant, runs.base_model, runs.session_id, sessions.project_id,
            sessions.user_id, $5
        FROM runs JOIN sessions ON sessions.id = runs.session_id WHERE runs.id = $1
        ON CONFLICT (run_id, kind, name, from_at) DO UPDATE SET size_bytes = excluded.size_bytes, to_at = NULL";
    end_storage(conn, path, now).await?;
    sql(SQL)
        .bind(path.run.as_str())
        .bind(path.kind.segment())
        .bind(path.name.as_str())
        .bind(now.0)
        .bind(as_i64(size_bytes))
        .execute(conn)
        .await
        .map(drop)
        .map_err(failed("record storage"))
}

/// Records that a checkpoint has ceased to be stored.
pub(crate) async fn end_storage(conn: &mut Conn, path: &TinkerPath, now: Timestamp) -> Result<(), Error> {
    const SQL: &str = "-- end_storage
        UPDATE stored_checkpoints SET to_at = $4 WHERE run_id = $1 AND kind = $2 AND name = $3 AND to_at IS NULL";
    sql(SQL)
        .bind(path.run.as_str())
        .bind(path.kind.segment())
        .bind(path.name.as_str())
        .bind(now.0)
        .execute(conn)
        .await
        .map(drop)
        .map_err(failed("record storage"))
}

/// Returns the usage of a tenant's requests that ended in a period of whole hours, by hour and attribution. The period
/// excludes its end.
pub(crate) async fn hourly_usage(
    conn: &mut Conn,
    tenant: &TenantId,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<HourlyUsage>, Error> {
    const SQL: &str = "-- hourly_usage
        SELECT used.hour AS hour, used.base_model AS base_model, used.session_id AS session_id,
            coalesce(sessions.project_id, nullif(used.project_id, '')) AS project_id, users.email AS user_email,
            CAST(sum(trained) AS BIGINT) AS trained, CAST(sum(prefill) AS BIGINT) AS prefill,
            CAST(sum(cached) AS BIGINT) AS cached, CAST(sum(sampled) AS BIGINT) AS sampled
        FROM (
            SELECT hour, base_model, session_id, project_id, user_id, trained, prefill, cached, sampled
            FROM usage_by_hour WHERE tenant = $1 AND hour >= $4 AND hour < $5
            UNION ALL
            SELECT at / 3600000, base_model, session_id, coalesce(project_id, ''), coalesce(user_id, ''), trained,
                prefill, cached, sampled
            FROM usage
            WHERE tenant = $1 AND at >= $2 AND at < $3 AND at >= (SELECT until_at FROM usage_progress)
        ) AS used LEFT JOIN sessions ON sessions.id = used.session_id LEFT JOIN users ON users.id = used.user_id
        GROUP BY used.hour, used.base_model, used.session_id,
            coalesce(sessions.project_id, nullif(used.project_id, '')), users.email
        ORDER BY 1, 2, 3, 4, 5";
    let hours = sql(SQL).bind(tenant.as_str()).bind(from.0).bind(to.0).bind(from.0 / HOUR).bind(to.0 / HOUR);
    let rows = hours.fetch_all(conn).await;
    let rows = rows.map_err(failed("read usage"))?;
    let usage = |row: &Row| {
        let hour: i64 = column(row, "hour")?;
        Ok(HourlyUsage { hour: Timestamp(hour.saturating_mul(HOUR)), of: attribution(row)?, tokens: tokens(row)? })
    };
    rows.iter().map(usage).collect()
}

/// Returns the usage of a tenant's requests that ended in a period, in the order of their ends, behind a given request.
pub(crate) async fn request_usage(
    conn: &mut Conn,
    tenant: &TenantId,
    from: Timestamp,
    to: Timestamp,
    after: &str,
    limit: u32,
) -> Result<Vec<RequestUsage>, Error> {
    const SQL: &str = "-- request_usage
        SELECT usage.request_id AS request_id, usage.at AS at, usage.kind AS kind, usage.base_model AS base_model,
            usage.session_id AS session_id, coalesce(sessions.project_id, usage.project_id) AS project_id,
            users.email AS user_email, trained, prefill, cached, sampled
        FROM usage LEFT JOIN sessions ON sessions.id = usage.session_id LEFT JOIN users ON users.id = usage.user_id
        WHERE usage.tenant = $1 AND (usage.at, usage.request_id) > ($2, $4) AND usage.at < $3
        ORDER BY usage.at, usage.request_id LIMIT $5";
    let rows = sql(SQL)
        .bind(tenant.as_str())
        .bind(from.0)
        .bind(to.0)
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(conn)
        .await
        .map_err(failed("read usage"))?;
    let usage = |row: &Row| {
        Ok(RequestUsage {
            request: column(row, "request_id")?,
            at: Timestamp(column(row, "at")?),
            kind: parsed(row, "kind", RequestKind::from_text)?,
            of: attribution(row)?,
            tokens: tokens(row)?,
        })
    };
    rows.iter().map(usage).collect()
}

/// Returns a tenant's checkpoints that were stored at some time in a period.
pub(crate) async fn stored_checkpoints(
    conn: &mut Conn,
    tenant: &TenantId,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<StoredCheckpoint>, Error> {
    const SQL: &str = "-- stored_checkpoints
        SELECT from_at, to_at, size_bytes, stored_checkpoints.base_model AS base_model,
            stored_checkpoints.session_id AS session_id,
            coalesce(sessions.project_id, stored_checkpoints.project_id) AS project_id, users.email AS user_email
        FROM stored_checkpoints LEFT JOIN sessions ON sessions.id = stored_checkpoints.session_id
            LEFT JOIN users ON users.id = stored_checkpoints.user_id
        WHERE stored_checkpoints.tenant = $1 AND (to_at IS NULL OR to_at > $2) AND from_at < $3
        ORDER BY from_at, run_id, kind, stored_checkpoints.name";
    let rows = sql(SQL).bind(tenant.as_str()).bind(from.0).bind(to.0).fetch_all(conn).await;
    let rows = rows.map_err(failed("read usage"))?;
    let stored = |row: &Row| {
        Ok(StoredCheckpoint {
            from: Timestamp(column(row, "from_at")?),
            to: column::<Option<i64>>(row, "to_at")?.map(Timestamp),
            size_bytes: as_u64(column(row, "size_bytes")?),
            of: attribution(row)?,
        })
    };
    rows.iter().map(stored).collect()
}

/// Returns the metadata of existing sessions, as JSON.
pub(crate) async fn metadata_of_sessions(
    conn: &mut Conn,
    tenant: &TenantId,
    sessions: &[SessionId],
) -> Result<Vec<(SessionId, serde_json::Value)>, Error> {
    // The sessions are few of the tenant's; `IS TRUE` keeps SQLite from finding them by the tenant.
    const SQLITE: &str = "-- metadata_of_sessions
        SELECT id, user_metadata FROM sessions WHERE id IN (SELECT value FROM json_each($1)) AND (tenant = $2) IS TRUE
        ORDER BY id";
    const POSTGRES: &str = "-- metadata_of_sessions
        SELECT id, user_metadata FROM sessions WHERE id = ANY($1) AND tenant = $2 ORDER BY id";
    let ids: Vec<String> = sessions.iter().map(ToString::to_string).collect();
    let rows = sql_by(SQLITE, POSTGRES).bind(ids).bind(tenant.as_str()).fetch_all(conn).await;
    let rows = rows.map_err(failed("read usage"))?;
    rows.iter()
        .map(|row| Ok((SessionId::new(column::<String>(row, "id")?), from_json(row, "user_metadata")?)))
        .collect()
}

/// Returns a tenant's present storage, by project and user.
pub(crate) async fn storage_in_use(conn: &mut Conn, tenant: &TenantId) -> Result<Vec<StorageInUse>, Error> {
    const SQL: &str = "-- storage_in_use
        SELECT coalesce(sessions.project_id, stored_checkpoints.project_id) AS project_id, users.email AS user_email,
            count(*) AS checkpoints, CAST(sum(size_bytes) AS BIGINT) AS size_bytes
        FROM stored_checkpoints LEFT JOIN sessions ON sessions.id = stored_checkpoints.session_id
            LEFT JOIN users ON users.id = stored_checkpoints.user_id
        WHERE stored_checkpoints.tenant = $1 AND to_at IS NULL
        GROUP BY coalesce(sessions.project_id, stored_checkpoints.project_id), users.email ORDER BY 1, 2";
    let rows = sql(SQL).bind(tenant.as_str()).fetch_all(conn).await.map_err(failed("read usage"))?;
    let in_use = |row: &Row| {
        Ok(StorageInUse {
            project: column(row, "project_id")?,
            user: column(row, "user_email")?,
            checkpoints: as_u64(column(row, "checkpoints")?),
            size_bytes: as_u64(column(row, "size_bytes")?),
        })
    };
    rows.iter().map(in_use).collect()
}

fn attribution(row: &Row) -> Result<Attribution, Error> {
    Ok(Attribution {
        base_model: column(row, "base_model")?,
        session: SessionId::new(column::<String>(row, "session_id")?),
        project: column(row, "project_id")?,
        user: column(row, "user_email")?,
    })
}

fn tokens(row: &Row) -> Result<Tokens, Error> {
    Ok(Tokens {
        trained: as_u64(column(row, "trained")?),
        prefill: as_u64(column(row, "prefill")?),
        cached: as_u64(column(row, "cached")?),
        sampled: as_u64(column(row, "sampled")?),
    })
}
