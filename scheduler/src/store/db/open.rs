//! The location of the store, and connections to it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use super::deadline::STATEMENT_ON_SERVER_MS;
use super::pool::{LocalPool, RemotePool};
use super::remote::Remote;
use super::row_scope::{RowScope, warn_of_bypass};
use super::tls::{open_failed, warn_of_plaintext};
use super::{Conn, Pool};
use crate::Error;
use crate::store::failed;

const SQLITE_READERS: u32 = 4;
/// Cache of the writer for a SQLite file: in KiB, as the minus sign specifies.
const SQLITE_CACHE: &str = "-32768";
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait of a statement for another process, before its transaction is repeated.
const LOCK_TIMEOUT_MS: &str = "3000";
/// Longest time that a process stopped during a transaction may keep its locks: less than a lease.
const IDLE_TIMEOUT_MS: &str = "10000";

/// Location of the store.
#[derive(Clone, PartialEq, Eq)]
pub enum Database {
    /// A SQLite file, for one process.
    Sqlite(PathBuf),
    /// A PostgreSQL server, for any number of processes: `postgres://user@host/name`.
    Postgres(String),
}

impl Database {
    pub(super) fn postgres_options(url: &str) -> Result<PgConnectOptions, Error> {
        let options = PgConnectOptions::from_str(url)
            .map_err(|error| Error::Invalid(format!("the database URL is not valid: {error}")))?;
        Ok(options
            .application_name("trainyard")
            .options([
                ("statement_timeout", STATEMENT_ON_SERVER_MS),
                ("lock_timeout", LOCK_TIMEOUT_MS),
                ("idle_in_transaction_session_timeout", IDLE_TIMEOUT_MS),
                ("tcp_keepalives_idle", "10"),
                ("tcp_keepalives_interval", "5"),
                ("tcp_keepalives_count", "2"),
                ("tcp_user_timeout", "20000"),
            ])
            .disable_statement_logging())
    }
}

/// Formats the location without a password.
impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "{}", path.display()),
            Self::Postgres(url) => match PgConnectOptions::from_str(url) {
                Ok(options) => {
                    write!(f, "{}:{}/{}", options.get_host(), options.get_port(), options.get_database().unwrap_or(""))
                }
                Err(_) => f.write_str("PostgreSQL"),
            },
        }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<PathBuf> for Database {
    fn from(path: PathBuf) -> Self {
        Self::Sqlite(path)
    }
}

impl From<&std::path::Path> for Database {
    fn from(path: &std::path::Path) -> Self {
        Self::Sqlite(path.to_owned())
    }
}

/// Opens a separate connection that sees the rows of all tenants.
///
/// # Errors
/// The errors of [`connect`].
pub(crate) async fn connect_as_system(database: &Database) -> Result<Conn, Error> {
    let mut conn = connect(database).await?;
    conn.enter(&RowScope::System).await.map_err(failed("open the database"))?;
    Ok(conn)
}

/// Opens a separate connection without a scope.
///
/// # Errors
/// [`Error::Tls`] if TLS fails.
pub(crate) async fn connect(database: &Database) -> Result<Conn, Error> {
    match database {
        Database::Sqlite(path) => {
            writer_options(path.clone()).connect().await.map(Conn::Sqlite).map_err(failed("open the database"))
        }
        Database::Postgres(url) => {
            let remote = Remote::connect(&Database::postgres_options(url)?).await;
            remote.map(Conn::Postgres).map_err(|error| open_failed(&error))
        }
    }
}

/// Opens a connection that changes nothing, not even the files beside a SQLite file. The error contains the reason for
/// a failure.
pub(crate) async fn connect_to_look(database: &Database) -> Result<Conn, sqlx::Error> {
    match database {
        Database::Sqlite(path) => {
            let mut log = path.as_os_str().to_owned();
            log.push("-wal");
            let options = SqliteConnectOptions::new().filename(path).read_only(true).busy_timeout(BUSY_TIMEOUT);
            // Without a log, no process has the file open.
            let unused = !PathBuf::from(log).exists();
            options.immutable(unused).disable_statement_logging().connect().await.map(Conn::Sqlite)
        }
        Database::Postgres(url) => {
            let options = Database::postgres_options(url).map_err(|error| sqlx::Error::Configuration(error.into()))?;
            Remote::connect(&options).await.map(Conn::Postgres)
        }
    }
}

/// Opens the reading connections; to a PostgreSQL server at most `readers`, on demand.
pub(crate) async fn connect_readers(database: &Database, readers: usize) -> Result<Pool, Error> {
    match database {
        Database::Sqlite(path) => SqlitePoolOptions::new()
            .max_connections(SQLITE_READERS)
            .connect_with(sqlite_options(path.clone()).pragma("query_only", "on"))
            .await
            .map(|pool| Pool::Sqlite(LocalPool::new(pool)))
            .map_err(failed("open the database")),
        Database::Postgres(url) => {
            let options = Database::postgres_options(url)?;
            let pool = Pool::Postgres(RemotePool::new(options.clone(), readers));
            let mut conn = pool.acquire(&RowScope::System).await.map_err(|error| open_failed(&error))?;
            warn_of_plaintext(&mut conn, &options).await?;
            warn_of_bypass(&mut conn).await?;
            Ok(pool)
        }
    }
}

/// Returns the options of the writing connection, or of one that does little.
fn writer_options(path: PathBuf) -> SqliteConnectOptions {
    // Random keys make writes touch pages everywhere. Undo data of statements does not need a file.
    sqlite_options(path).pragma("cache_size", SQLITE_CACHE).pragma("temp_store", "memory")
}

fn sqlite_options(path: PathBuf) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .disable_statement_logging()
}
