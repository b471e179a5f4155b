//! Requests to runs that have not ended, in the table `requests`: how many there are, and which places of a run's order
//! have arrived.

use trainyard_protocol::{RunId, TenantId};

use super::db::{Conn, column, sql};
use super::{as_u64, failed};
use crate::Error;
use crate::quotas::QueuedTraining;

/// What a tenant has queued for training, and one of its runs.
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

/// The highest place of a run's order that has arrived; `None` when the tenant has no such run.
pub(crate) async fn last_arrived(conn: &mut Conn, tenant: &TenantId, run: &RunId) -> Result<Option<i64>, Error> {
    const SQL: &str = "-- last_arrived
        SELECT seq_id FROM requests WHERE run_id = $1 AND tenant = $2 ORDER BY seq_id DESC LIMIT 1";
    sql(SQL).bind(run.as_str()).bind(tenant.as_str()).scalar(conn).await.map_err(failed("find a run's requests"))
}

/// How many places of a run's order from `from` on and below `to` have arrived.
pub(crate) async fn count_arrived(conn: &mut Conn, run: &RunId, from: i64, to: i64) -> Result<i64, Error> {
    const SQL: &str = "-- count_arrived
        SELECT count(*) FROM requests WHERE run_id = $1 AND seq_id >= $2 AND seq_id < $3";
    let counted = sql(SQL).bind(run.as_str()).bind(from).bind(to).scalar(conn).await;
    Ok(counted.map_err(failed("find a run's requests"))?.unwrap_or(0))
}

/// The first place of a run's order, from `from` on, that has not arrived.
pub(crate) async fn first_missing(conn: &mut Conn, run: &RunId, from: i64, limit: i64) -> Result<i64, Error> {
    const SQL: &str = "-- first_missing
        SELECT seq_id FROM requests WHERE run_id = $1 AND seq_id >= $2 ORDER BY seq_id LIMIT $3";
    let arrived = sql(SQL).bind(run.as_str()).bind(from).bind(limit).scalars(conn).await;
    let arrived: Vec<i64> = arrived.map_err(failed("find a run's requests"))?;
    let contiguous = (from..).zip(&arrived).take_while(|(place, arrived)| place == *arrived).count();
    Ok(from.saturating_add(i64::try_from(contiguous).unwrap_or(i64::MAX)))
}
