//! Opening the database and bringing its schema up to date.

use std::path::Path;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, SqlSafeStr, SqliteConnection, SqlitePool};

use super::failed;
use crate::Error;

const READERS: u32 = 4;
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Versions, names and texts of the migrations; append only.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "sessions", include_str!("../../../migrations/sqlite/0001_sessions.sql")),
    (2, "runs", include_str!("../../../migrations/sqlite/0002_runs.sql")),
    (3, "sampling sessions", include_str!("../../../migrations/sqlite/0003_sampling_sessions.sql")),
    (4, "requests", include_str!("../../../migrations/sqlite/0004_requests.sql")),
    (5, "checkpoints", include_str!("../../../migrations/sqlite/0005_checkpoints.sql")),
];

/// Opens the one connection that writes, and migrates.
pub(crate) async fn open_writer(database: &Path) -> Result<SqliteConnection, Error> {
    let mut conn = options(database).connect().await.map_err(failed("open the database"))?;
    migrate(&mut conn, database).await?;
    Ok(conn)
}

/// Opens the connections that read.
pub(crate) async fn open_readers(database: &Path) -> Result<SqlitePool, Error> {
    SqlitePoolOptions::new()
        .max_connections(READERS)
        .connect_with(options(database).pragma("query_only", "on"))
        .await
        .map_err(failed("open the database"))
}

fn options(database: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(database)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .disable_statement_logging()
}

async fn migrate(conn: &mut SqliteConnection, database: &Path) -> Result<(), Error> {
    let migrations = MIGRATIONS
        .iter()
        .map(|(version, name, sql)| {
            Migration::new(*version, (*name).into(), MigrationType::Simple, sql.into_sql_str(), false)
        })
        .collect();
    match Migrator::with_migrations(migrations).run(conn).await {
        Ok(()) => Ok(()),
        Err(MigrateError::VersionMissing(version)) => Err(Error::Invalid(format!(
            "database {} has schema version {version}, and this program knows versions up to {}: use a newer program",
            database.display(),
            MIGRATIONS.len()
        ))),
        Err(error) => Err(Error::store("migrate the database", error)),
    }
}
