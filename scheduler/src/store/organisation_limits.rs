//! Limits in the table `organisations`, and disabled organisations.

use std::num::NonZeroU64;

use trainyard_protocol::{SessionId, TenantId};

use super::db::{Conn, Row, column, sql};
use super::failed;
use crate::quotas::StoredGrant;
use crate::{Error, Limit, TenantLimits};

/// Returns the organisations that have limits or are disabled.
pub(crate) async fn granted(conn: &mut Conn) -> Result<Vec<StoredGrant>, Error> {
    const SQL: &str = "-- granted
        SELECT name, disabled_at, weight, max_runs, max_queued_tokens, tokens_per_minute, max_storage_bytes,
            max_queued_requests, max_queued_bytes, max_queued_samples, pixels_per_minute, max_sessions
        FROM organisations
        WHERE disabled_at IS NOT NULL OR weight IS NOT NULL OR max_runs IS NOT NULL OR max_queued_tokens IS NOT NULL
            OR tokens_per_minute IS NOT NULL OR max_storage_bytes IS NOT NULL OR max_queued_requests IS NOT NULL
            OR max_queued_bytes IS NOT NULL OR max_queued_samples IS NOT NULL
            OR pixels_per_minute IS NOT NULL OR max_sessions IS NOT NULL";
    let rows = sql(SQL).fetch_all(conn).await.map_err(failed("read the limits of organisations"))?;
    let granted = |row: &Row| {
        Ok(StoredGrant {
            tenant: TenantId::new(column::<String>(row, "name")?),
            limits: to_limits(row)?,
            disabled: column::<Option<i64>>(row, "disabled_at")?.is_some(),
        })
    };
    rows.iter().map(granted).collect()
}

/// Returns the limits of an organisation.
pub(crate) async fn limits(conn: &mut Conn, organisation: &TenantId) -> Result<TenantLimits, Error> {
    const SQL: &str = "-- organisation_limits
        SELECT weight, max_runs, max_queued_tokens, tokens_per_minute, max_storage_bytes, max_queued_requests,
            max_queued_bytes, max_queued_samples, pixels_per_minute, max_sessions
        FROM organisations WHERE name = $1";
    let row = sql(SQL).bind(organisation.as_str()).fetch_optional(conn).await;
    let row = row.map_err(failed("read the limits of an organisation"))?;
    to_limits(&row.ok_or_else(|| Error::not_found("organisation", organisation))?)
}

/// Keeps others from changing an organisation until the end of the transaction.
pub(crate) async fn lock_organisation(conn: &mut Conn, organisation: &TenantId) -> Result<(), Error> {
    const SQL: &str = "-- lock_organisation
        UPDATE organisations SET operator = operator WHERE name = $1";
    match sql(SQL).bind(organisation.as_str()).execute(conn).await.map_err(failed("lock an organisation"))? {
        0 => Err(Error::not_found("organisation", organisation)),
        _ => Ok(()),
    }
}

/// Replaces the limits of an organisation.
pub(crate) async fn set_limits(conn: &mut Conn, organisation: &TenantId, limits: &TenantLimits) -> Result<(), Error> {
    const SQL: &str = "-- set_organisation_limits
        UPDATE organisations SET weight = $2, max_runs = $3, max_queued_tokens = $4, tokens_per_minute = $5,
            max_storage_bytes = $6, max_queued_requests = $7, max_queued_bytes = $8,
            max_queued_samples = $9, pixels_per_minute = $10, max_sessions = $11
        WHERE name = $1";
    let value = |limit| limits.get(limit).map(|value| i64::try_from(value.get()).unwrap_or(i64::MAX));
    let done = sql(SQL)
        .bind(organisation.as_str())
        .bind(value(Limit::Weight))
        .bind(value(Limit::MaxRuns))
        .bind(value(Limit::MaxQueuedTokens))
        .bind(value(Limit::TokensPerMinute))
        .bind(value(Limit::MaxStorageBytes))
        .bind(value(Limit::MaxQueuedRequests))
        .bind(value(Limit::MaxQueuedBytes))
        .bind(value(Limit::MaxQueuedSamples))
        .bind(value(Limit::PixelsPerMinute))
        .bind(value(Limit::MaxSessions))
        .execute(conn)
        .await;
    done.map(drop).map_err(failed("set the limits of an organisation"))
}

/// Returns the active sessions of disabled organisations.
pub(crate) async fn sessions_of_disabled(conn: &mut Conn) -> Result<Vec<SessionId>, Error> {
    const SQL: &str = "-- sessions_of_disabled_organisations
        SELECT sessions.id FROM organisations CROSS JOIN sessions
        WHERE organisations.disabled_at IS NOT NULL AND sessions.tenant = organisations.name
            AND sessions.status = 'active' LIMIT 1000";
    let ids: Vec<String> = sql(SQL).scalars(conn).await.map_err(failed("list sessions of disabled organisations"))?;
    Ok(ids.into_iter().map(SessionId::new).collect())
}

fn to_limits(row: &Row) -> Result<TenantLimits, Error> {
    let value = |limit: Limit| -> Result<Option<(Limit, NonZeroU64)>, Error> {
        let Some(value) = column::<Option<i64>>(row, limit.as_str())? else { return Ok(None) };
        let damaged = |error: &dyn std::fmt::Display| Error::store("read the limits of an organisation", error);
        let given = u64::try_from(value).map_err(|error| damaged(&error))?;
        Ok(Some((limit, limit.value(given).map_err(|error| damaged(&error))?)))
    };
    Limit::ALL.iter().filter_map(|limit| value(*limit).transpose()).collect()
}
