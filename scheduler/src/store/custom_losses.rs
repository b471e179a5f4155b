//! Access to the table `custom_losses`.

use trainyard_protocol::{CustomLossId, SessionId, TenantId};

use super::db::{Conn, column, sql, sql_by};
use super::failed;
use crate::{Error, NewCustomLoss, Timestamp};

/// Inserts a new custom loss.
pub(crate) async fn insert_custom_loss(
    conn: &mut Conn,
    tenant: &TenantId,
    new: &NewCustomLoss,
    now: Timestamp,
) -> Result<CustomLossId, Error> {
    const SQL: &str = "-- insert_custom_loss
        INSERT INTO custom_losses (id, tenant, session_id, seq_id, definition, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)";
    let id = CustomLossId::of_session(&new.session, new.seq_id);
    sql(SQL)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .bind(new.session.as_str())
        .bind(new.seq_id)
        .bind(&new.definition[..])
        .bind(now.0)
        .execute(conn)
        .await
        .map_err(failed("create a custom loss"))?;
    Ok(id)
}

/// Returns the session and the definition of a custom loss.
pub(crate) async fn custom_loss(
    conn: &mut Conn,
    tenant: &TenantId,
    id: &CustomLossId,
) -> Result<Option<(SessionId, Vec<u8>)>, Error> {
    const SQL: &str = "-- custom_loss
        SELECT session_id, definition FROM custom_losses WHERE id = $1 AND tenant = $2";
    let found = sql(SQL).bind(id.as_str()).bind(tenant.as_str()).fetch_optional(conn).await;
    let row = found.map_err(failed("find a custom loss"))?;
    row.map(|row| Ok((SessionId::new(column::<String>(&row, "session_id")?), column(&row, "definition")?))).transpose()
}

/// Deletes the custom losses of some sessions. A session has few: see [`MAX_CUSTOM_LOSSES`](crate::MAX_CUSTOM_LOSSES).
pub(crate) async fn delete_custom_losses(conn: &mut Conn, sessions: &[String]) -> Result<(), Error> {
    const SQLITE: &str = "-- delete_custom_losses
        DELETE FROM custom_losses WHERE session_id IN (SELECT value FROM json_each($1))";
    const POSTGRES: &str = "-- delete_custom_losses
        DELETE FROM custom_losses WHERE session_id = ANY($1)";
    let deleted = sql_by(SQLITE, POSTGRES).bind(sessions.to_vec()).execute(conn).await;
    deleted.map(drop).map_err(failed("delete custom losses"))
}
