//! A connection to a PostgreSQL server, on which every operation has a deadline.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use tokio::sync::OwnedSemaphorePermit;

use super::deadline::{CONNECT, PROBE, within};
use super::reader_shares::ReaderShare;
use super::row_scope::{Entered, RowScope};
use crate::context::error::ends_connection;
use crate::context::lock::lock;

/// Idle connections of a pool.
#[derive(Clone, Default)]
pub(super) struct Idle(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    /// Connections with the scopes that they have entered, the last used one at the end.
    conns: Vec<(PgConnection, Entered)>,
    /// Number of times that all connections were forgotten.
    generation: u64,
}

impl Idle {
    pub(super) fn pop(&self) -> Option<Remote> {
        lock(&self.0).conns.pop().map(|(conn, entered)| Remote::of(conn, entered))
    }

    /// Closes the idle connections, and those in use when they come back: they may lead to a server that was replaced.
    pub(super) fn forget(&self) {
        let forgotten = {
            let mut kept = lock(&self.0);
            kept.generation += 1;
            std::mem::take(&mut kept.conns)
        };
        drop(forgotten);
    }

    pub(super) fn take_all(&self) -> Vec<Remote> {
        let conns = std::mem::take(&mut lock(&self.0).conns);
        conns.into_iter().map(|(conn, entered)| Remote::of(conn, entered)).collect()
    }

    fn generation(&self) -> u64 {
        lock(&self.0).generation
    }

    fn put_back(&self, conn: PgConnection, entered: Entered, generation: u64) {
        let mut kept = lock(&self.0);
        if kept.generation == generation {
            kept.conns.push((conn, entered));
        }
    }
}

/// Pool that receives a connection on drop.
struct Lender {
    idle: Idle,
    /// [`Kept::generation`] at the time of lending.
    generation: u64,
    slot: OwnedSemaphorePermit,
    /// Ends with the connection's use.
    _share: ReaderShare,
}

/// A connection that is closed after an incomplete statement: because of its deadline, a broken network, or a caller
/// that went away. Otherwise the rest of that answer would be taken for the answer to the next statement.
pub(crate) struct Remote {
    /// Connection of the driver; `None` only while the value is dropped.
    conn: Option<PgConnection>,
    intact: bool,
    /// Scope of the visible rows.
    pub(super) entered: Entered,
    /// Pool that receives an intact connection on drop.
    pool: Option<Lender>,
}

impl Remote {
    /// Connects to a server that can be written.
    pub(super) async fn connect(options: &PgConnectOptions) -> Result<Self, sqlx::Error> {
        let mut remote = Self::of(within(CONNECT, PgConnection::connect_with(options)).await?, Entered::default());
        match remote.run(PROBE, is_read_only).await? {
            true => Err(read_only()),
            false => Ok(remote),
        }
    }

    pub(super) fn of(conn: PgConnection, entered: Entered) -> Self {
        Self { conn: Some(conn), intact: true, entered, pool: None }
    }

    /// Returns the connection to a pool on drop.
    pub(super) fn lent_by(self, idle: Idle, slot: OwnedSemaphorePermit, share: ReaderShare) -> Self {
        let mut lent = self;
        lent.pool = Some(Lender { generation: idle.generation(), idle, slot, _share: share });
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
        let Self { conn, intact, pool, .. } = self;
        let (true, Some(conn)) = (std::mem::replace(intact, false), conn) else { return Err(not_connected()) };
        let done = within(limit, statement(conn)).await;
        *intact = !matches!(&done, Err(error) if is_lost(error));
        if let (false, Some(pool)) = (*intact, pool) {
            pool.idle.forget();
        }
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

/// Returns whether a connection is of no further use after an error.
fn is_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(refusal) => refusal.code().is_some_and(|code| ends_connection(&code)),
        _ => false,
    }
}

async fn is_read_only(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    const SQL: &str = "-- is_read_only
        SELECT current_setting('transaction_read_only')::boolean";
    sqlx::query_scalar(SQL).fetch_one(conn).await
}

/// Error for a server that can't be written.
pub(super) fn read_only() -> sqlx::Error {
    let text = "the server is read-only, as a standby or a former primary is; the address must lead to the primary";
    sqlx::Error::Io(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, text))
}

fn not_connected() -> sqlx::Error {
    sqlx::Error::Io(io::ErrorKind::NotConnected.into())
}

impl Drop for Remote {
    fn drop(&mut self) {
        if let (Some(conn), true, Some(pool)) = (self.conn.take(), self.intact, self.pool.take())
            && !pool.slot.semaphore().is_closed()
        {
            pool.idle.put_back(conn, std::mem::take(&mut self.entered), pool.generation);
        }
    }
}
