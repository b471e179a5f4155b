//! The table `secrets`, known only to the processes of the service.

use super::db::{Conn, column, sql};
use super::failed;
use crate::Error;

/// Returns a secret that all processes share: the first one that was stored.
pub(crate) async fn shared_secret(conn: &mut Conn, name: &str, candidate: &[u8]) -> Result<Vec<u8>, Error> {
    const PUT: &str = "-- shared_secret: put
        INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    const GET: &str = "-- shared_secret: get
        SELECT value FROM secrets WHERE name = $1";
    sql(PUT).bind(name).bind(candidate).execute(conn).await.map_err(failed("share a secret"))?;
    let value = sql(GET).bind(name).scalar(conn).await.map_err(failed("share a secret"))?;
    value.ok_or_else(|| Error::store("share a secret", "the secret was deleted"))
}

/// Returns all secrets whose name begins with `prefix`, by name.
pub(crate) async fn secrets(conn: &mut Conn, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, Error> {
    const SQL: &str = "-- secrets
        SELECT name, value FROM secrets WHERE substr(name, 1, length($1)) = $1";
    let rows = sql(SQL).bind(prefix).fetch_all(conn).await.map_err(failed("read secrets"))?;
    let secret = |row| Ok((column(row, "name")?, column(row, "value")?));
    let mut found: Vec<(String, Vec<u8>)> = rows.iter().map(secret).collect::<Result<_, Error>>()?;
    // Sort here, because the database would sort by its collation.
    found.sort_unstable();
    Ok(found)
}

/// Deletes a secret if it exists.
pub(crate) async fn delete_secret(conn: &mut Conn, name: &str) -> Result<(), Error> {
    const SQL: &str = "-- delete_secret
        DELETE FROM secrets WHERE name = $1";
    sql(SQL).bind(name).execute(conn).await.map(drop).map_err(failed("delete a secret"))
}
