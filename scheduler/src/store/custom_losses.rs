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
        INSERT INTO custom_losses (id, tenant, session_id, seq_id, definition, created_at, used_at)
        VALUES ($1, $2, $3, $4, $5, $6, $6)";
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

/// A stored custom loss.
pub(crate) struct StoredLoss {
    pub(crate) session: SessionId,
    pub(crate) definition: Vec<u8>,
    /// When it was last created or used, to within a minute.
    pub(crate) used_at: Timestamp,
}

/// Finds a custom loss.
pub(crate) async fn custom_loss(
    conn: &mut Conn,
    tenant: &TenantId,
    id: &CustomLossId,
) -> Result<Option<StoredLoss>, Error> {
    const SQL: &str = "-- custom_loss
        SELECT session_id, definition, used_at FROM custom_losses WHERE id = $1 AND tenant = $2";
    let found = sql(SQL).bind(id.as_str()).bind(tenant.as_str()).fetch_optional(conn).await;
    let row = found.map_err(failed("find a custom loss"))?;
    let stored = |row| {
        Ok(StoredLoss {
            session: SessionId::new(column::<String>(&row, "session_id")?),
            definition: column(&row, "definition")?,
            used_at: Timestamp(column(&row, "used_at")?),
        })
    };
    row.map(stored).transpose()
}

/// Records that a custom loss is used.
pub(crate) async fn use_custom_loss(
    conn: &mut Conn,
    tenant: &TenantId,
    id: &CustomLossId,
    now: Timestamp,
) -> Result<(), Error> {
    const SQL: &str = "-- use_custom_loss
        UPDATE custom_losses SET used_at = $3 WHERE id = $1 AND tenant = $2";
    let used = sql(SQL).bind(id.as_str()).bind(tenant.as_str()).bind(now.0).execute(conn).await;
    used.map(drop).map_err(failed("use a custom loss"))
}

/// Deletes those custom losses of a session that were not used for longest, until it has `most`.
pub(crate) async fn keep_custom_losses(
    conn: &mut Conn,
    tenant: &TenantId,
    session: &SessionId,
    most: i64,
) -> Result<(), Error> {
    const SQLITE: &str = "-- keep_custom_losses
        DELETE FROM custom_losses WHERE id IN (
            SELECT id FROM custom_losses WHERE session_id = $1 AND tenant = $2
            ORDER BY used_at DESC, seq_id DESC LIMIT -1 OFFSET $3)";
    const POSTGRES: &str = "-- keep_custom_losses
        DELETE FROM custom_losses WHERE id IN (
            SELECT id FROM custom_losses WHERE session_id = $1 AND tenant = $2
            ORDER BY used_at DESC, seq_id DESC OFFSET $3)";
    let kept = sql_by(SQLITE, POSTGRES).bind(session.as_str()).bind(tenant.as_str()).bind(most).execute(conn).await;
    kept.map(drop).map_err(failed("delete custom losses"))
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
