//! The database's schema: brings it up to date, and refuses one that this program does not support.
//!
//! A program supports a schema that has all of its migrations, and later ones as long as these only add: additions that
//! it does not know have defaults or may be absent. A migration that changes or removes something sets
//! `schema_compatibility.oldest_program` to its own version; older programs then refuse to start, and running ones
//! stop.

use std::collections::BTreeSet;

use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};

use super::db::{Conn, Database, Dialect, Raw, connect_as_system, sql, sql_by};
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

/// Migrations in order; only ever appended to.
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
    step!(17, "training queue", "0017_training_queue.sql"),
    step!(18, "collected snapshots", "0018_collected_snapshots.sql"),
    step!(19, "numerics", "0019_numerics.sql"),
    step!(20, "schema compatibility", "0020_schema_compatibility.sql"),
    step!(21, "backup holds", "0021_backup_holds.sql"),
    step!(22, "tenants", "0022_tenants.sql"),
    step!(23, "usage", "0023_usage.sql"),
    step!(24, "copies and scopes", "0024_copies_and_scopes.sql"),
    step!(25, "recorded samples", "0025_recorded_samples.sql"),
    step!(26, "custom losses", "0026_custom_losses.sql"),
    step!(27, "uploads", "0027_uploads.sql"),
    step!(28, "row-level security", "0028_row_level_security.sql"),
    step!(29, "organisation limits", "0029_organisation_limits.sql"),
    step!(30, "run_metrics", "0030_run_metrics.sql"),
    step!(31, "run samples", "0031_run_samples.sql"),
];

/// Migration since which a database states which programs support it.
const SAYS_COMPATIBILITY: i64 = 20;

/// Brings the schema of a database up to date. Returns its version, which may be a later one that this program supports
/// without knowing it.
///
/// # Errors
/// [`Error::Invalid`] if the schema needs a newer program.
pub async fn migrate(database: &Database) -> Result<i64, Error> {
    let mut conn = connect_as_system(database).await?;
    if conn.dialect() == Dialect::Postgres {
        // The migration of a large table may take long.
        const PATIENT: &str = "-- patient
        SELECT set_config('statement_timeout', '0', false), set_config('lock_timeout', '60s', false)";
        sql(PATIENT).execute(&mut conn).await.map_err(failed("migrate the database"))?;
    }
    let version = migrate_on(&mut conn, database).await?;
    conn.close().await.map_err(failed("close the database"))?;
    Ok(version)
}

/// Migrates as [`migrate`] does, on an open connection.
pub(crate) async fn migrate_on(conn: &mut Conn, database: &Database) -> Result<i64, Error> {
    migrate_to(conn, database, newest()).await
}

/// Migrates as [`migrate`] does, up to a version.
pub(crate) async fn migrate_to(conn: &mut Conn, database: &Database, version: i64) -> Result<i64, Error> {
    let dialect = conn.dialect();
    let migrations = STEPS
        .iter()
        .filter(|step| step.0 <= version)
        .map(|&(version, name, sqlite, postgres)| {
            let text = if dialect == Dialect::Sqlite { sqlite } else { postgres };
            Migration::new(version, name.into(), MigrationType::Simple, text.into_sql_str(), false)
        })
        .collect();
    let applied = ensure_workable(conn, database).await?;
    let mut migrator = Migrator::with_migrations(migrations);
    migrator.set_ignore_missing(true);
    let done = match conn.raw() {
        Raw::Sqlite(conn) => migrator.run(conn).await,
        Raw::Postgres(conn) => migrator.run(conn.without_deadline().map_err(failed("migrate the database"))?).await,
    };
    done.map_err(|error| Error::store("migrate the database", error))?;
    Ok(applied.last().copied().unwrap_or(0).max(version))
}

/// Refuses a schema that this program does not support, including an older one.
pub(crate) async fn ensure_current(conn: &mut Conn, database: &Database) -> Result<(), Error> {
    let applied = ensure_workable(conn, database).await?;
    if STEPS.iter().all(|(version, ..)| applied.contains(version)) {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "database {database} has schema version {}, and this program needs {}: run `trainyard migrate`",
        applied.last().unwrap_or(&0),
        newest()
    )))
}

/// Refuses a schema that needs a newer program. Returns the versions of its migrations.
pub(crate) async fn ensure_workable(conn: &mut Conn, database: &Database) -> Result<BTreeSet<i64>, Error> {
    const OLDEST: &str = "-- ensure_workable
        SELECT oldest_program FROM schema_compatibility";
    let applied = applied(conn).await?;
    let newer = applied.last().copied().filter(|last| *last > newest());
    let Some(version) = newer else { return Ok(applied) };
    let oldest: Option<i64> = match applied.contains(&SAYS_COMPATIBILITY) {
        true => sql(OLDEST).scalar(conn).await.map_err(failed("read the schema's version"))?,
        false => None,
    };
    if oldest.is_some_and(|oldest| oldest <= newest()) {
        return Ok(applied);
    }
    Err(Error::Invalid(format!(
        "database {database} has schema version {version}, which needs a program that knows version {}, and this one knows \
         versions up to {}: use a newer program",
        oldest.unwrap_or(version),
        newest()
    )))
}

/// Returns the versions of a database's migrations.
async fn applied(conn: &mut Conn) -> Result<BTreeSet<i64>, Error> {
    const EXISTS_SQLITE: &str = "-- applied: exists
        SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '_sqlx_migrations'";
    const EXISTS_POSTGRES: &str = "-- applied: exists
        SELECT count(*) FROM information_schema.tables
        WHERE table_schema = current_schema() AND table_name = '_sqlx_migrations'";
    const SQL: &str = "-- applied
        SELECT version FROM _sqlx_migrations WHERE success ORDER BY version";
    let doing = || failed("read the schema's version");
    let exists: Option<i64> = sql_by(EXISTS_SQLITE, EXISTS_POSTGRES).scalar(conn).await.map_err(doing())?;
    if exists != Some(1) {
        return Ok(BTreeSet::new());
    }
    Ok(sql(SQL).scalars(conn).await.map_err(doing())?.into_iter().collect())
}

/// Returns the version of a database's schema; 0 if it has none.
pub(crate) async fn version(conn: &mut Conn) -> Result<i64, Error> {
    Ok(applied(conn).await?.last().copied().unwrap_or(0))
}

/// Opens a connection to a database with a current schema, which sees the rows of all tenants. A SQLite file is
/// migrated first.
pub(crate) async fn connect_current(database: &Database) -> Result<Conn, Error> {
    let mut conn = connect_as_system(database).await?;
    match database {
        Database::Sqlite(_) => drop(migrate_on(&mut conn, database).await?),
        Database::Postgres(_) => ensure_current(&mut conn, database).await?,
    }
    Ok(conn)
}

/// Returns the newest version that this program knows.
pub(crate) fn newest() -> i64 {
    STEPS.iter().map(|&(version, ..)| version).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of statements that remove something on which older programs rely, or that keep them from inserting rows.
    const BREAKING: [&str; 7] =
        ["drop table", "drop column", "rename ", "set not null", " type ", "add constraint", "row level security"];

    #[test]
    fn a_migration_that_does_more_than_add_says_which_programs_can_work_with_it() {
        for &(version, name, sqlite, postgres) in STEPS.iter().filter(|(version, ..)| *version > SAYS_COMPATIBILITY) {
            for text in [sqlite, postgres].map(str::to_lowercase) {
                let says = text.contains(&format!("update schema_compatibility set oldest_program = {version};"));
                let breaks = BREAKING.iter().find(|word| text.contains(*word));
                assert!(breaks.is_none() || says, "{version} {name}: {breaks:?}");
            }
        }
    }
}
