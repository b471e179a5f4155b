//! One interface to SQLite and PostgreSQL.
//!
//! Statements are shared: both databases number their parameters `$1`, and both support the SQL that the tables need.
//! If they differ, a statement has two texts ([`sql_by`]).
//!
//! Every operation on a PostgreSQL server has a deadline here, so that callers need none: [`connect`] and
//! [`Pool::acquire`] make connections, and [`Sql`] executes statements.

mod bulk;
pub(crate) mod cells;
mod deadline;
mod listener;
mod open;
mod pool;
mod query;
mod reader_shares;
#[cfg(test)]
pub(crate) mod recording;
mod remote;
mod row_scope;
mod tls;
mod value;

use sqlx::pool::PoolConnection;
use sqlx::{Sqlite, SqliteConnection};

pub(crate) use bulk::Bulk;
pub(crate) use listener::{Listener, Notification};
pub use open::Database;
pub(crate) use open::{connect, connect_as_system, connect_readers, connect_to_look};
pub(crate) use pool::Pool;
pub(crate) use query::{Row, Sql, column, page_of, sql, sql_by, text_bytes};
use reader_shares::ReaderShare;
pub(crate) use remote::Remote;
pub(crate) use row_scope::{RowScope, bypass};
pub(crate) use value::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

/// A connection to a database.
pub(crate) enum Conn {
    Sqlite(SqliteConnection),
    /// A connection from a pool, with the tenant's share of the pool, which is released with the connection.
    SqlitePooled {
        conn: PoolConnection<Sqlite>,
        _share: ReaderShare,
    },
    Postgres(Remote),
}

/// Connection of the driver for each database.
pub(crate) enum Raw<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut Remote),
}

impl Conn {
    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) | Self::SqlitePooled { .. } => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    pub(crate) fn raw(&mut self) -> Raw<'_> {
        match self {
            Self::Sqlite(conn) => Raw::Sqlite(conn),
            Self::SqlitePooled { conn, .. } => Raw::Sqlite(conn),
            Self::Postgres(conn) => Raw::Postgres(conn),
        }
    }

    /// Opens a transaction that may write. A silently lost connection is detected soon.
    pub(crate) async fn begin(&mut self) -> Result<(), sqlx::Error> {
        // SQLite takes its write lock now, so that no later statement fails for lack of it.
        sql_by("BEGIN IMMEDIATE", "BEGIN").within(deadline::PROBE).execute(self).await?;
        self.began();
        Ok(())
    }

    /// Opens a transaction that reads one state of the database, however long it takes.
    pub(crate) async fn begin_snapshot(&mut self) -> Result<(), sqlx::Error> {
        sql_by("BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").execute(self).await?;
        self.began();
        const PATIENT: &str = "SELECT set_config('idle_in_transaction_session_timeout', '0', true)";
        sql_by("SELECT 1", PATIENT).execute(self).await.map(drop)
    }

    pub(crate) async fn commit(&mut self) -> Result<(), sqlx::Error> {
        sql("COMMIT").execute(self).await?;
        self.ended();
        Ok(())
    }

    pub(crate) async fn rollback(&mut self) -> Result<(), sqlx::Error> {
        sql("ROLLBACK").execute(self).await?;
        self.ended();
        Ok(())
    }

    fn began(&mut self) {
        if let Self::Postgres(remote) = self {
            remote.entered.began();
        }
    }

    fn ended(&mut self) {
        if let Self::Postgres(remote) = self {
            remote.entered.ended();
        }
    }

    pub(crate) async fn close(self) -> Result<(), sqlx::Error> {
        use sqlx::Connection;
        match self {
            Self::Sqlite(conn) => conn.close().await,
            Self::Postgres(conn) => conn.close().await,
            // The pool closes its own connections.
            Self::SqlitePooled { .. } => Ok(()),
        }
    }
}
