//! Notifications through PostgreSQL; a single process does not need any.

use super::db::{Conn, Dialect, sql};
use super::failed;
use crate::Error;

/// Sends notifications on a channel, when the transaction commits if there is one.
pub(crate) async fn notify(conn: &mut Conn, channel: &str, texts: Vec<String>) -> Result<(), Error> {
    const SQL: &str = "-- notify
        SELECT pg_notify($1, notification) FROM unnest($2) WITH ORDINALITY AS texts(notification, at) ORDER BY at";
    if conn.dialect() == Dialect::Sqlite || texts.is_empty() {
        return Ok(());
    }
    sql(SQL).bind(channel).bind(texts).fetch_all(conn).await.map(drop).map_err(failed("notify other processes"))
}
