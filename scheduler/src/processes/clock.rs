//! Reads the database's clock, which processes share.

use std::time::Instant;

use crate::Error;
use crate::context::core::Core;
use crate::context::database_clock::DatabaseClock;
use crate::store::clock::database_now;
use crate::store::db::{Conn, Dialect};

/// Reads the clock of a PostgreSQL server.
pub(crate) async fn read_clock(conn: &mut Conn, clock: &DatabaseClock) -> Result<(), Error> {
    if conn.dialect() == Dialect::Postgres && !clock.is_fixed() {
        let asked = Instant::now();
        clock.set(database_now(conn).await?, asked);
    }
    Ok(())
}

impl Core {
    /// Reads the database's clock, before something is deleted by it.
    pub(crate) async fn read_clock(&self) -> Result<(), Error> {
        if !self.is_shared() {
            return Ok(());
        }
        read_clock(&mut self.system_reader().await?, &self.clock).await
    }
}
