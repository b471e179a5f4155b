//! The table `write_probes`: whether the store can be written.

use super::db::{Conn, sql};
use super::failed;
use crate::Error;

/// Inserts a row and deletes it again, in the open transaction.
pub(crate) async fn probe_write(conn: &mut Conn, process: &str) -> Result<(), Error> {
    const INSERT: &str = "-- probe_write: insert
        INSERT INTO write_probes (process) VALUES ($1)";
    const DELETE: &str = "-- probe_write: delete
        DELETE FROM write_probes WHERE process = $1";
    for text in [INSERT, DELETE] {
        sql(text).bind(process).execute(conn).await.map_err(failed("probe the store"))?;
    }
    Ok(())
}
