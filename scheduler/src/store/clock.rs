//! The clock of the database.

use super::db::{Conn, sql_by};
use super::failed;
use crate::{Error, Timestamp};

/// Returns the present time of the database.
pub(crate) async fn database_now(conn: &mut Conn) -> Result<Timestamp, Error> {
    macro_rules! text {
        ($database:ident) => {
            concat!(
                "-- database_now
        SELECT ",
                now_ms!($database)
            )
        };
    }
    let now = sql_by(text!(sqlite), text!(postgres)).scalar(conn).await.map_err(failed("read the database's clock"))?;
    now.map(Timestamp).ok_or_else(|| Error::store("read the database's clock", "no row came back"))
}
