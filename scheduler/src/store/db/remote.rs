//! A connection to a PostgreSQL server, on which every operation has a deadline.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use tokio::sync::OwnedSemaphorePermit;

use super::deadline::{CONNECT, PROBE, within};
use super::row_scope::{Entered, RowScope};
use crate::context::lock::lock;

/// Idle connections, and the scopes that they have entered.
pub(super) type Idle = Arc<Mutex<Vec<(PgConnection, Entered)>>>;

/// A connection that is closed after an incomplete statement: because of its deadline, a broken network, or a caller
/// that went away. Otherwise the rest of that answer would be taken for the answer to the next statement.
pub(crate) struct Remote {
    /// Connection of the driver; `None` only while the value is dropped.
    conn: Option<PgConnection>,
    intact: bool,
    /// Scope of the visible rows.
    pub(super) entered: Entered,
    /// Pool that receives an intact connection on drop, and the slot that it occupies.
    pool: Option<(Idle, OwnedSemaphorePermit)>,
}

impl Remote {
    pub(super) async fn connect(options: &PgConnectOptions) -> Result<Self, sqlx::Error> {
        Ok(Self::of(within(CONNECT, PgConnection::connect_with(options)).await?, Entered::default()))
    }

    pub(super) fn of(conn: PgConnection, entered: Entered) -> Self {
        Self { conn: Some(conn), intact: true, entered, pool: None }
    }

    /// Returns the connection to a pool on drop.
    pub(super) fn lent_by(self, idle: Idle, slot: OwnedSemaphorePermit) -> Self {
        let mut lent = self;
        lent.pool = Some((idle, slot));
        lent
    }

    /// Executes a statement within its deadline.
    pub(super) async fn run<'c, T, F>(
        &'c mut self,
        limit: Duration,
        statement: impl FnOnce(&'c mut PgConnection) -> F,
    ) -> Result<T, sqlx::Error>
    where
        F: Future<Output = Result<T, sqlx::Error>>,
    {
        let Self { conn, intact, .. } = self;
        let (true, Some(conn)) = (std::mem::replace(intact, false), conn) else { return Err(not_connected()) };
        let done = within(limit, statement(conn)).await;
        *intact = !matches!(&done, Err(sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_)));
        done
    }

    /// Returns whether the server answers; the connection then is in the scope.
    pub(super) async fn answers_in(&mut self, scope: &RowScope) -> bool {
        match self.entered.is_in(scope) {
            true => self.run(PROBE, PgConnection::ping).await.is_ok(),
            false => self.enter(scope).await.is_ok(),
        }
    }

    /// Returns the driver's connection, for operations without a deadline.
    pub(crate) fn without_deadline(&mut self) -> Result<&mut PgConnection, sqlx::Error> {
        self.conn.as_mut().filter(|_| self.intact).ok_or_else(not_connected)
    }

    pub(super) async fn close(mut self) -> Result<(), sqlx::Error> {
        match self.conn.take() {
            Some(conn) if self.intact => within(PROBE, conn.close()).await,
            _ => Ok(()),
        }
    }
}

fn not_connected() -> sqlx::Error {
    sqlx::Error::Io(io::ErrorKind::NotConnected.into())
}

impl Drop for Remote {
    fn drop(&mut self) {
        if let (Some(conn), true, Some((idle, slot))) = (self.conn.take(), self.intact, self.pool.take())
            && !slot.semaphore().is_closed()
        {
            lock(&idle).push((conn, std::mem::take(&mut self.entered)));
        }
    }
}
