//! The table `backup_holds`: while a backup is being taken, objects stay in the storage.
//!
//! A backup commits its hold, then reads the database in one snapshot. A process that removes an object first commits
//! that no row names it, then calls [`is_held`], then removes it. If it finds no hold, every later backup reads a
//! database that does not name the object. If it finds one, garbage collection removes the object later.

use std::time::Duration;

use super::db::{Conn, sql_by};
use super::failed;
use crate::Error;
use crate::context::clock::millis;

/// Time beyond its end during which a hold is respected, because a renewal may be committed late.
const GRACE: Duration = Duration::from_secs(60);

/// Places a hold that lasts for `lasting`.
pub(crate) async fn place_hold(conn: &mut Conn, id: &str, lasting: Duration) -> Result<(), Error> {
    macro_rules! text {
        ($database:ident) => {
            concat!(
                "-- place_hold
        INSERT INTO backup_holds (id, expires_at) VALUES ($1, $2 + ",
                now_ms!($database),
                ")"
            )
        };
    }
    let placed = sql_by(text!(sqlite), text!(postgres)).bind(id).bind(millis(lasting)).execute(conn).await;
    placed.map(drop).map_err(failed("place a hold"))
}

/// Extends a hold. Returns false if it has expired, in which case objects may have been removed.
pub(crate) async fn renew_hold(conn: &mut Conn, id: &str, lasting: Duration) -> Result<bool, Error> {
    macro_rules! text {
        ($database:ident) => {
            concat!(
                "-- renew_hold
        UPDATE backup_holds SET expires_at = $2 + ",
                now_ms!($database),
                " WHERE id = $1 AND expires_at >= ",
                now_ms!($database)
            )
        };
    }
    let renewed = sql_by(text!(sqlite), text!(postgres)).bind(id).bind(millis(lasting)).execute(conn).await;
    Ok(renewed.map_err(failed("renew a hold"))? == 1)
}

/// Removes a hold, and holds that expired long ago.
pub(crate) async fn release_hold(conn: &mut Conn, id: &str) -> Result<(), Error> {
    macro_rules! text {
        ($database:ident) => {
            concat!(
                "-- release_hold
        DELETE FROM backup_holds WHERE id = $1 OR expires_at + $2 < ",
                now_ms!($database)
            )
        };
    }
    let released = sql_by(text!(sqlite), text!(postgres)).bind(id).bind(millis(GRACE)).execute(conn).await;
    released.map(drop).map_err(failed("release a hold"))
}

/// Returns whether unnamed objects must stay in the storage.
pub(crate) async fn is_held(conn: &mut Conn) -> Result<bool, Error> {
    macro_rules! text {
        ($database:ident) => {
            concat!(
                "-- is_held
        SELECT EXISTS (SELECT 1 FROM backup_holds WHERE expires_at + $1 >= ",
                now_ms!($database),
                ")"
            )
        };
    }
    let held = sql_by(text!(sqlite), text!(postgres)).bind(millis(GRACE)).scalar(conn).await;
    Ok(held.map_err(failed("look for a hold"))?.unwrap_or(true))
}
