//! One interface to SQLite and PostgreSQL.
//!
//! Statements are shared: both number their parameters `$1`, and both know the SQL that the tables need. Where they
//! differ, a statement has two texts ([`sql_by`]).

mod bulk;
mod open;
mod query;
#[cfg(test)]
pub(crate) mod recording;
mod value;

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgPool, Postgres, Sqlite, SqliteConnection, SqlitePool};

pub(crate) use bulk::Bulk;
pub use open::Database;
pub(crate) use open::{connect, connect_readers};
pub(crate) use query::{Row, Sql, column, sql, sql_by};
pub(crate) use value::Value;

/// Which database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

/// A connection.
pub(crate) enum Conn {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
    SqlitePooled(PoolConnection<Sqlite>),
    PostgresPooled(PoolConnection<Postgres>),
}

/// The driver's connection.
pub(crate) enum Raw<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
}

impl Conn {
    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) | Self::SqlitePooled(_) => Dialect::Sqlite,
            Self::Postgres(_) | Self::PostgresPooled(_) => Dialect::Postgres,
        }
    }

    pub(crate) fn raw(&mut self) -> Raw<'_> {
        match self {
            Self::Sqlite(conn) => Raw::Sqlite(conn),
            Self::SqlitePooled(conn) => Raw::Sqlite(conn),
            Self::Postgres(conn) => Raw::Postgres(conn),
            Self::PostgresPooled(conn) => Raw::Postgres(conn),
        }
    }

    /// Opens a transaction that may write.
    pub(crate) async fn begin(&mut self) -> Result<(), sqlx::Error> {
        // SQLite takes its write lock now, so that nothing fails half way for want of it.
        sql_by("BEGIN IMMEDIATE", "BEGIN").execute(self).await.map(drop)
    }

    pub(crate) async fn commit(&mut self) -> Result<(), sqlx::Error> {
        sql("COMMIT").execute(self).await.map(drop)
    }

    pub(crate) async fn rollback(&mut self) -> Result<(), sqlx::Error> {
        sql("ROLLBACK").execute(self).await.map(drop)
    }

    pub(crate) async fn close(self) -> Result<(), sqlx::Error> {
        use sqlx::Connection;
        match self {
            Self::Sqlite(conn) => conn.close().await,
            Self::Postgres(conn) => conn.close().await,
            // The pool closes its own.
            Self::SqlitePooled(_) | Self::PostgresPooled(_) => Ok(()),
        }
    }
}

/// Connections that read.
#[derive(Clone)]
pub(crate) enum Pool {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

impl Pool {
    pub(crate) async fn acquire(&self) -> Result<Conn, sqlx::Error> {
        match self {
            Self::Sqlite(pool) => pool.acquire().await.map(Conn::SqlitePooled),
            Self::Postgres(pool) => pool.acquire().await.map(Conn::PostgresPooled),
        }
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }
}
