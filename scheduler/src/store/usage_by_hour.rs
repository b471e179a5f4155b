//! The tables `usage_by_hour` and `usage_progress`: usage that is added up by hour, and the retention of all usage.

use super::db::{Conn, sql};
use super::failed;
use crate::{Error, Timestamp};

/// Span of usage that is added up in one transaction, in ms: few enough rows that nobody waits for it.
const SPAN: i64 = 5 * 60_000;
/// Most rows of a table that are deleted in one transaction.
const MOST: i64 = 2_000;
/// Duration of an hour in ms.
const HOUR: i64 = 3_600_000;

/// Adds up the next span of usage that is over at `limit`. Returns whether there was one.
pub(crate) async fn add_up_usage(conn: &mut Conn, limit: Timestamp) -> Result<bool, Error> {
    const PROGRESS: &str = "-- add_up_usage: progress
        SELECT until_at FROM usage_progress";
    const OLDEST: &str = "-- add_up_usage: oldest
        SELECT at FROM usage WHERE at >= $1 ORDER BY at LIMIT 1";
    // Only one of several processes changes the row from this value.
    const ADVANCE: &str = "-- add_up_usage: advance
        UPDATE usage_progress SET until_at = $2 WHERE until_at = $1";
    const SQL: &str = "-- add_up_usage
        INSERT INTO usage_by_hour (tenant, hour, base_model, session_id, project_id, user_id, trained, prefill, cached,
            sampled)
        SELECT tenant, at / 3600000, base_model, session_id, coalesce(project_id, ''), coalesce(user_id, ''),
            CAST(sum(trained) AS BIGINT), CAST(sum(prefill) AS BIGINT), CAST(sum(cached) AS BIGINT),
            CAST(sum(sampled) AS BIGINT)
        FROM usage WHERE at >= $1 AND at < $2
        GROUP BY tenant, at / 3600000, base_model, session_id, coalesce(project_id, ''), coalesce(user_id, '')
        ON CONFLICT (tenant, hour, session_id, base_model, project_id, user_id) DO UPDATE SET
            trained = usage_by_hour.trained + excluded.trained, prefill = usage_by_hour.prefill + excluded.prefill,
            cached = usage_by_hour.cached + excluded.cached, sampled = usage_by_hour.sampled + excluded.sampled";
    let doing = || failed("add up usage");
    let from: i64 = sql(PROGRESS).scalar(conn).await.map_err(doing())?.unwrap_or(0);
    let oldest: Option<i64> = sql(OLDEST).bind(from).scalar(conn).await.map_err(doing())?;
    let Some(to) = oldest.map(|at| (at / SPAN + 1) * SPAN).filter(|to| *to <= limit.0) else { return Ok(false) };
    if sql(ADVANCE).bind(from).bind(to).execute(conn).await.map_err(doing())? == 0 {
        return Ok(false);
    }
    sql(SQL).bind(from).bind(to).execute(conn).await.map_err(doing())?;
    Ok(true)
}

/// Deletes usage of single requests from before `requests`, as far as it is added up, and hours and ended storage from
/// before `history`. Returns whether there may be more.
pub(crate) async fn delete_usage(conn: &mut Conn, requests: Timestamp, history: Timestamp) -> Result<bool, Error> {
    const REQUESTS: &str = "-- delete_usage: requests
        DELETE FROM usage WHERE request_id IN (
            SELECT request_id FROM usage WHERE at < $1 AND at < (SELECT until_at FROM usage_progress)
            ORDER BY at LIMIT $2)";
    const HOURS: &str = "-- delete_usage: hours
        DELETE FROM usage_by_hour WHERE (tenant, hour, session_id, base_model, project_id, user_id) IN (
            SELECT tenant, hour, session_id, base_model, project_id, user_id FROM usage_by_hour WHERE hour < $1
            ORDER BY hour LIMIT $2)";
    const STORAGE: &str = "-- delete_usage: storage
        DELETE FROM stored_checkpoints WHERE (run_id, kind, name, from_at) IN (
            SELECT run_id, kind, name, from_at FROM stored_checkpoints WHERE to_at IS NOT NULL AND to_at < $1
            ORDER BY to_at LIMIT $2)";
    let mut is_full = false;
    for (text, before) in [(REQUESTS, requests.0), (HOURS, history.0 / HOUR), (STORAGE, history.0)] {
        let deleted = sql(text).bind(before).bind(MOST).execute(conn).await.map_err(failed("delete usage"))?;
        is_full |= deleted >= MOST.unsigned_abs();
    }
    Ok(is_full)
}
