//! Locks on tenants and sessions that transactions of several processes change.

use super::db::{Conn, Dialect, sql};
use super::failed;
use crate::Error;

/// Keeps other transactions from locking the same names until this one ends. Each transaction locks once, before it
/// changes anything and in the order of names, so that transactions never wait for each other in a circle. SQLite has
/// only one writer in any case.
pub(crate) async fn lock_names(conn: &mut Conn, names: Vec<String>) -> Result<(), Error> {
    const SQL: &str = "-- lock_names
        SELECT pg_advisory_xact_lock(hashtextextended(name, 0)) FROM unnest($1) AS name";
    if conn.dialect() == Dialect::Sqlite || names.is_empty() {
        return Ok(());
    }
    sql(SQL).bind(names).fetch_all(conn).await.map(drop).map_err(failed("lock tenants and sessions"))
}
