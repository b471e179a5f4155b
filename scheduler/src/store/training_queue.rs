//! Unfinished requests to runs, in the table `requests`: their number, and the positions in a run's order that have
//! arrived.

use trainyard_protocol::{RunId, TenantId};

use super::db::{Conn, column, sql};
use super::{as_u64, failed};
use crate::Error;
use crate::quotas::QueuedTraining;

/// Returns the waiting training requests of a tenant, and of one of its runs.
pub(crate) async fn queued_training(conn: &mut Conn, tenant: &TenantId, run: &RunId) -> Result<QueuedTraining, Error> {
    const SQL: &str = "-- queued_training
        SELECT count(*) AS requests, CAST(coalesce(sum(payload_bytes), 0) AS BIGINT) AS bytes,
            count(CASE WHEN run_id = $2 THEN 1 END) AS run_requests,
            CAST(coalesce(sum(CASE WHEN run_id = $2 THEN payload_bytes END), 0) AS BIGINT) AS run_bytes,
            min(CASE WHEN run_id = $2 THEN seq_id END) AS first_of_run
        FROM requests WHERE tenant = $1 AND finished_at IS NULL AND run_id IS NOT NULL";
    let row = sql(SQL).bind(tenant.as_str()).bind(run.as_str()).fetch_optional(conn).await;
    let Some(row) = row.map_err(failed("check a quota"))? else { return Ok(QueuedTraining::default()) };
    Ok(QueuedTraining {
        run_requests: as_u64(column(&row, "run_requests")?),
        run_bytes: as_u64(column(&row, "run_bytes")?),
        requests: as_u64(column(&row, "requests")?),
        bytes: as_u64(column(&row, "bytes")?),
        first: column(&row, "first_of_run")?,
    })
}

/// What has arrived of a run's order.
#[derive(Clone, Copy)]
pub(crate) struct Arrived {
    /// Highest position that has arrived.
    pub(crate) last: i64,
    /// All positions before it have ended. Rows may be missing here, but not from here on (`ended_requests`).
    pub(crate) ended_before: i64,
}

/// Returns what has arrived of a run's order; `None` if the tenant has no such run.
pub(crate) async fn arrived(conn: &mut Conn, tenant: &TenantId, run: &RunId) -> Result<Option<Arrived>, Error> {
    const SQL: &str = "-- arrived
        SELECT requests.seq_id, runs.ended_before FROM requests CROSS JOIN runs
        WHERE requests.run_id = $1 AND requests.tenant = $2 AND runs.id = $1 ORDER BY requests.seq_id DESC LIMIT 1";
    let found = sql(SQL).bind(run.as_str()).bind(tenant.as_str()).fetch_optional(conn).await;
    let Some(row) = found.map_err(failed("find a run's requests"))? else { return Ok(None) };
    let ended_before: i64 = column(&row, "ended_before")?;
    Ok(Some(Arrived { last: column::<i64>(&row, "seq_id")?.max(ended_before - 1), ended_before }))
}

/// Returns how many positions in a run's order from `from` to before `to` have arrived.
pub(crate) async fn count_arrived(
    conn: &mut Conn,
    run: &RunId,
    arrived: Arrived,
    from: i64,
    to: i64,
) -> Result<i64, Error> {
    const SQL: &str = "-- count_arrived
        SELECT count(*) FROM requests WHERE run_id = $1 AND seq_id >= $2 AND seq_id < $3";
    let ended = to.min(arrived.ended_before).saturating_sub(from).max(0);
    let from = from.max(arrived.ended_before);
    let counted = sql(SQL).bind(run.as_str()).bind(from).bind(to).scalar::<i64>(conn).await;
    Ok(ended + counted.map_err(failed("find a run's requests"))?.unwrap_or(0))
}

/// Returns the first missing position in a run's order, from `from` on, which has to be at least `ended_before`.
pub(crate) async fn first_missing(conn: &mut Conn, run: &RunId, from: i64, limit: i64) -> Result<i64, Error> {
    const SQL: &str = "-- first_missing
        SELECT seq_id FROM requests WHERE run_id = $1 AND seq_id >= $2 ORDER BY seq_id LIMIT $3";
    let arrived = sql(SQL).bind(run.as_str()).bind(from).bind(limit).scalars(conn).await;
    let arrived: Vec<i64> = arrived.map_err(failed("find a run's requests"))?;
    let contiguous = (from..).zip(&arrived).take_while(|(place, arrived)| place == *arrived).count();
    Ok(from.saturating_add(i64::try_from(contiguous).unwrap_or(i64::MAX)))
}
