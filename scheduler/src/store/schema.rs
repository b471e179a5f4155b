//! The schema: bringing it up to date, and refusing one that this program does not know.

use sqlx::SqlSafeStr;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};

use super::db::{Conn, Database, Dialect, Raw, connect, sql};
use super::failed;
use crate::Error;

/// A migration's version, name and texts for SQLite and PostgreSQL.
type Step = (i64, &'static str, &'static str, &'static str);

macro_rules! step {
    ($version:literal, $name:literal, $file:literal) => {
        (
            $version,
            $name,
            include_str!(concat!("../../../migrations/sqlite/", $file)),
            include_str!(concat!("../../../migrations/postgres/", $file)),
        )
    };
}

/// Append only.
const STEPS: &[Step] = &[
    step!(1, "sessions", "0001_sessions.sql"),
    step!(2, "runs", "0002_runs.sql"),
    step!(3, "sampling sessions", "0003_sampling_sessions.sql"),
    step!(4, "requests", "0004_requests.sql"),
    step!(5, "checkpoints", "0005_checkpoints.sql"),
    step!(6, "workers", "0006_workers.sql"),
    step!(7, "leases", "0007_leases.sql"),
    step!(8, "storage", "0008_storage.sql"),
    step!(9, "quotas", "0009_quotas.sql"),
    step!(10, "secrets", "0010_secrets.sql"),
    step!(11, "paces", "0011_paces.sql"),
    step!(12, "suspects", "0012_suspects.sql"),
    step!(13, "rate limits and crash counts", "0013_rate_limits_and_crash_counts.sql"),
    step!(14, "row retention", "0014_row_retention.sql"),
    step!(15, "pending saves", "0015_pending_saves.sql"),
    step!(16, "memory waits", "0016_memory_waits.sql"),
];

/// Brings the schema of a database up to date. Returns its version.
///
/// # Errors
/// [`Error::Invalid`] when it is newer than this program knows.
pub async fn migrate(database: &Database) -> Result<i64, Error> {
    let mut conn = connect(database).await?;
    if conn.dialect() == Dialect::Postgres {
        // A large table takes its time.
        const PATIENT: &str = "-- patient
        SELECT set_config('statement_timeout', '0', false), set_config('lock_timeout', '60s', false)";
        sql(PATIENT).execute(&mut conn).await.map_err(failed("migrate the database"))?;
    }
    let version = migrate_on(&mut conn, database).await?;
    conn.close().await.map_err(failed("close the database"))?;
    Ok(version)
}

/// As [`migrate`], on a connection that is open.
pub(crate) async fn migrate_on(conn: &mut Conn, database: &Database) -> Result<i64, Error> {
    let dialect = conn.dialect();
    let migrations = STEPS
        .iter()
        .map(|&(version, name, sqlite, postgres)| {
            let text = if dialect == Dialect::Sqlite { sqlite } else { postgres };
            Migration::new(version, name.into(), MigrationType::Simple, text.into_sql_str(), false)
        })
        .collect();
    let migrator = Migrator::with_migrations(migrations);
    let done = match conn.raw() {
        Raw::Sqlite(conn) => migrator.run(conn).await,
        Raw::Postgres(conn) => migrator.run(conn.without_deadline().map_err(failed("migrate the database"))?).await,
    };
    match done {
        Ok(()) => Ok(newest()),
        Err(MigrateError::VersionMissing(version)) => Err(too_new(database, version)),
        Err(error) => Err(Error::store("migrate the database", error)),
    }
}

/// Refuses a schema that is not exactly the one that this program knows.
pub(crate) async fn ensure_current(conn: &mut Conn, database: &Database) -> Result<(), Error> {
    const EXISTS: &str = "-- ensure_current: exists
        SELECT count(*) FROM information_schema.tables
        WHERE table_schema = current_schema() AND table_name = '_sqlx_migrations'";
    const SQL: &str = "-- ensure_current
        SELECT coalesce(max(version), 0) FROM _sqlx_migrations WHERE success";
    let exists: Option<i64> = sql(EXISTS).scalar(conn).await.map_err(failed("read the schema's version"))?;
    let version = match exists {
        Some(1) => sql(SQL).scalar(conn).await.map_err(failed("read the schema's version"))?.unwrap_or(0),
        _ => 0,
    };
    match version.cmp(&newest()) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(too_new(database, version)),
        std::cmp::Ordering::Less => Err(Error::Invalid(format!(
            "database {database} has schema version {version}, and this program needs {}: run `trainyard migrate`",
            newest()
        ))),
    }
}

fn newest() -> i64 {
    STEPS.iter().map(|&(version, ..)| version).max().unwrap_or(0)
}

fn too_new(database: &Database, version: i64) -> Error {
    Error::Invalid(format!(
        "database {database} has schema version {version}, and this program knows versions up to {}: use a newer \
         program",
        newest()
    ))
}
