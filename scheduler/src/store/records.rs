//! The table `requests`: results of samples whose sequences training requests may name.

use trainyard_protocol::{RequestId, TenantId};

use super::blobs::StoredBytes;
use super::db::{Conn, column, sql, sql_by};
use super::failed;
use crate::{Error, Timestamp};

/// A result with the time at which its sequences were last used.
pub(crate) struct StoredRecord {
    pub(crate) result: StoredBytes,
    pub(crate) used_at: Timestamp,
}

/// Returns the result of a sample that records its sequences. Returns `None` for an unknown or failed sample, and for a
/// dropped result.
pub(crate) async fn recorded_result(
    conn: &mut Conn,
    tenant: &TenantId,
    id: &RequestId,
) -> Result<Option<StoredRecord>, Error> {
    const SQL: &str = "-- recorded_result
        SELECT result, result_file, recorded_at FROM requests
        WHERE id = $1 AND tenant = $2 AND recorded_at IS NOT NULL AND state = 'succeeded' AND NOT dropped";
    let row = sql(SQL).bind(id.as_str()).bind(tenant.as_str()).fetch_optional(conn).await;
    let Some(row) = row.map_err(failed("read a record"))? else { return Ok(None) };
    let result = StoredBytes::from_columns(column(&row, "result")?, column(&row, "result_file")?);
    let used_at = Timestamp(column(&row, "recorded_at")?);
    Ok(result.map(|result| StoredRecord { result, used_at }))
}

/// Keeps results for another period if their sequences were last used before a given time.
pub(crate) async fn renew_records(
    conn: &mut Conn,
    tenant: &TenantId,
    ids: &[RequestId],
    used_before: Timestamp,
    now: Timestamp,
) -> Result<(), Error> {
    const SQLITE: &str = "-- renew_records
        UPDATE requests SET recorded_at = $4
        WHERE id IN (SELECT value FROM json_each($1)) AND tenant = $2 AND recorded_at < $3";
    const POSTGRES: &str = "-- renew_records
        UPDATE requests SET recorded_at = $4 WHERE id = ANY($1) AND tenant = $2 AND recorded_at < $3";
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let renewal = sql_by(SQLITE, POSTGRES).bind(ids).bind(tenant.as_str()).bind(used_before.0).bind(now.0);
    renewal.execute(conn).await.map(drop).map_err(failed("renew records"))
}
