//! The tables `usage_by_hour`, `usage_progress`, `usage_rows` and `usage_kept`: usage that is added up by hour, and the
//! retention of all usage.

use trainyard_protocol::TenantId;

use super::db::{Conn, Row, column, sql};
use super::{as_i64, as_u64, failed};
use crate::{Error, Timestamp};

/// Span of usage that is added up in one transaction, in ms: few enough rows that nobody waits for it.
const SPAN: i64 = 5 * 60_000;
/// Maximum number of rows of a table that are deleted in one transaction.
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
    const COUNT: &str = "-- add_up_usage: count
        INSERT INTO usage_rows (tenant, hour, requests)
        SELECT tenant, at / 3600000, count(*) FROM usage WHERE at >= $1 AND at < $2 GROUP BY tenant, at / 3600000
        ON CONFLICT (tenant, hour) DO UPDATE SET requests = usage_rows.requests + excluded.requests";
    let doing = || failed("add up usage");
    let from: i64 = sql(PROGRESS).scalar(conn).await.map_err(doing())?.unwrap_or(0);
    let oldest: Option<i64> = sql(OLDEST).bind(from).scalar(conn).await.map_err(doing())?;
    let Some(to) = oldest.map(|at| (at / SPAN + 1) * SPAN).filter(|to| *to <= limit.0) else { return Ok(false) };
    if sql(ADVANCE).bind(from).bind(to).execute(conn).await.map_err(doing())? == 0 {
        return Ok(false);
    }
    for text in [SQL, COUNT] {
        sql(text).bind(from).bind(to).execute(conn).await.map_err(doing())?;
    }
    Ok(true)
}

/// What is kept of usage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// Time from which the usage of single requests is kept.
    pub(crate) requests: Timestamp,
    /// Maximum number of rows of single requests, of all tenants.
    pub(crate) rows: u64,
    /// Time from which hours and ended storage are kept.
    pub(crate) history: Timestamp,
}

/// Deletes usage of single requests that is too old or too much, as far as it is added up, and hours and ended storage that
/// are too old. Returns whether there may be more.
pub(crate) async fn delete_usage(conn: &mut Conn, kept: Kept) -> Result<bool, Error> {
    const REQUESTS: &str = "-- delete_usage: requests
        DELETE FROM usage WHERE request_id IN (
            SELECT request_id FROM usage WHERE at < $1 AND at < (SELECT until_at FROM usage_progress)
            ORDER BY at LIMIT $2)";
    const COUNTS: &str = "-- delete_usage: counts
        DELETE FROM usage_rows WHERE hour < $1";
    const HOURS: &str = "-- delete_usage: hours
        DELETE FROM usage_by_hour WHERE (tenant, hour, session_id, base_model, project_id, user_id) IN (
            SELECT tenant, hour, session_id, base_model, project_id, user_id FROM usage_by_hour WHERE hour < $1
            ORDER BY hour LIMIT $2)";
    const STORAGE: &str = "-- delete_usage: storage
        DELETE FROM stored_checkpoints WHERE (run_id, kind, name, from_at) IN (
            SELECT run_id, kind, name, from_at FROM stored_checkpoints WHERE to_at IS NOT NULL AND to_at < $1
            ORDER BY to_at LIMIT $2)";
    let doing = || failed("delete usage");
    let mut is_full = false;
    for (text, before) in [(REQUESTS, kept.requests.0), (HOURS, kept.history.0 / HOUR), (STORAGE, kept.history.0)] {
        let deleted = sql(text).bind(before).bind(MOST).execute(conn).await.map_err(doing())?;
        is_full |= deleted >= MOST.unsigned_abs();
    }
    // The hour of the time itself still has rows.
    sql(COUNTS).bind(kept.requests.0 / HOUR).execute(conn).await.map_err(doing())?;
    Ok(delete_excess(conn, kept.rows).await? || is_full)
}

/// Deletes whole hours of single requests, oldest first, until at most `most` rows are left. Tenants with the most rows
/// lose theirs: what one tenant keeps does not depend on another's appetite, as long as it has less than its even part.
/// Returns whether there may be more.
async fn delete_excess(conn: &mut Conn, most: u64) -> Result<bool, Error> {
    const COUNTS: &str = "-- delete_excess: counts
        SELECT tenant, CAST(sum(requests) AS BIGINT) AS requests FROM usage_rows GROUP BY tenant ORDER BY tenant";
    const NEWEST: &str = "-- delete_excess: newest
        SELECT hour FROM (
            SELECT hour, CAST(sum(requests) OVER (ORDER BY hour DESC) AS BIGINT) AS requests FROM usage_rows
            WHERE tenant = $1) AS newest
        WHERE requests > $2 ORDER BY hour DESC LIMIT 1";
    const KEEP: &str = "-- delete_excess: keep
        INSERT INTO usage_kept (tenant, from_at)
        SELECT $1, CASE WHEN until_at < $2 THEN until_at ELSE $2 END FROM usage_progress WHERE true
        ON CONFLICT (tenant) DO UPDATE SET from_at = excluded.from_at WHERE usage_kept.from_at < excluded.from_at";
    // Counts are of what is kept, however long the deletion of the rows takes.
    const FORGET: &str = "-- delete_excess: forget
        DELETE FROM usage_rows WHERE tenant = $1 AND hour <= $2";
    const KEPT: &str = "-- delete_excess: kept
        SELECT tenant FROM usage_kept ORDER BY tenant";
    const DELETE: &str = "-- delete_excess
        DELETE FROM usage WHERE request_id IN (
            SELECT request_id FROM usage WHERE tenant = $1 AND at < (SELECT from_at FROM usage_kept WHERE tenant = $1)
            ORDER BY at LIMIT $2)";
    let doing = || failed("delete usage");
    let rows = sql(COUNTS).fetch_all(conn).await.map_err(doing())?;
    let count = |row: &Row| Ok((column::<String>(row, "tenant")?, as_u64(column(row, "requests")?)));
    let counts = rows.iter().map(count).collect::<Result<Vec<_>, Error>>()?;
    let part = even_part(counts.iter().map(|(_, count)| *count), most);
    for (tenant, _) in counts.iter().filter(|(_, count)| *count > part) {
        let newest = sql(NEWEST).bind(tenant.as_str()).bind(as_i64(part)).scalar(conn).await.map_err(doing())?;
        let Some(hour): Option<i64> = newest else { continue };
        sql(KEEP).bind(tenant.as_str()).bind((hour + 1) * HOUR).execute(conn).await.map_err(doing())?;
        sql(FORGET).bind(tenant.as_str()).bind(hour).execute(conn).await.map_err(doing())?;
    }
    let tenants: Vec<String> = sql(KEPT).scalars(conn).await.map_err(doing())?;
    let mut left = MOST;
    for tenant in &tenants {
        let deleted = sql(DELETE).bind(tenant.as_str()).bind(left).execute(conn).await.map_err(doing())?;
        left -= i64::try_from(deleted).unwrap_or(left);
        if left <= 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The most rows that each tenant may have so that all have at most `most`: whoever has less leaves the rest to others.
fn even_part(counts: impl Iterator<Item = u64>, most: u64) -> u64 {
    let mut counts: Vec<u64> = counts.collect();
    counts.sort_unstable();
    let (mut left, mut tenants) = (most, counts.len() as u64);
    for count in counts {
        let part = left / tenants;
        if count > part {
            return part;
        }
        left -= count;
        tenants -= 1;
    }
    u64::MAX
}

/// The time from which a tenant's rows of single requests were not deleted for their number.
pub(crate) async fn kept_from(conn: &mut Conn, tenant: &TenantId) -> Result<Timestamp, Error> {
    const SQL: &str = "-- kept_from
        SELECT from_at FROM usage_kept WHERE tenant = $1";
    let from: Option<i64> = sql(SQL).bind(tenant.as_str()).scalar(conn).await.map_err(failed("read usage"))?;
    Ok(Timestamp(from.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::even_part;

    #[test]
    fn whoever_has_less_than_an_even_part_loses_nothing() {
        let part = |counts: &[u64], most| even_part(counts.iter().copied(), most);
        assert_eq!(part(&[], 10), u64::MAX);
        assert_eq!(part(&[3, 7], 10), u64::MAX);
        assert_eq!(part(&[3, 8], 10), 7);
        assert_eq!(part(&[8, 3, 8], 10), 3);
        assert_eq!(part(&[1, 100, 50], 31), 15);
        assert_eq!(part(&[5, 5], 0), 0);
    }
}
