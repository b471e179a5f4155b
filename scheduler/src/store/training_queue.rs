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

/// Returns the highest position in a run's order that has arrived; `None` if the tenant has no such run.
pub(crate) async fn last_arrived(conn: &mut Conn, tenant: &TenantId, run: &RunId) -> Result<Option<i64>, Error> {
    const SQL: &str = "-- last_arrived
        SELECT seq_id FROM requests WHERE run_id = $1 AND tenant = $2 ORDER BY seq_id DESC LIMIT 1";
    sql(SQL).bind(run.as_str()).bind(tenant.as_str()).scalar(conn).await.map_err(failed("find a run's requests"))
}

/// Returns how many positions in a run's order from `from` to before `to` have arrived.
pub(crate) async fn count_arrived(conn: &mut Conn, run: &RunId, from: i64, to: i64) -> Result<i64, Error> {
    const SQL: &str = "-- count_arrived
        SELECT count(*) FROM requests WHERE run_id = $1 AND seq_id >= $2 AND seq_id < $3";
    let counted = sql(SQL).bind(run.as_str()).bind(from).bind(to).scalar(conn).await;
    Ok(counted.map_err(failed("find a run's requests"))?.unwrap_or(0))
}

/// Returns the first missing position in a run's order, from `from` on.
pub(crate) async fn first_missing(conn: &mut Conn, run: &RunId, from: i64, limit: i64) -> Result<i64, Error> {
    const SQL: &str = "-- first_missing
        SELECT seq_id FROM requests WHERE run_id = $1 AND seq_id >= $2 ORDER BY seq_id LIMIT $3";
    let arrived = sql(SQL).bind(run.as_str()).bind(from).bind(limit).scalars(conn).await;
    let arrived: Vec<i64> = arrived.map_err(failed("find a run's requests"))?;
    let contiguous = (from..).zip(&arrived).take_while(|(place, arrived)| place == *arrived).count();
    Ok(from.saturating_add(i64::try_from(contiguous).unwrap_or(i64::MAX)))
}
