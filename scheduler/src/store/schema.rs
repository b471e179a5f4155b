//! The database's schema: brings it up to date, and refuses one that this program does not support.
//!
//! A program supports a schema that has all of its migrations, and later ones as long as these only add: additions that
//! it does not know have defaults or may be absent. A migration that changes or removes something sets
//! `schema_compatibility.oldest_program` to its own version; older programs then refuse to start, and running ones
//! stop.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use trainyard_protocol::hex;

use super::db::{Conn, Database, Dialect, Raw, column, connect_as_system, sql, sql_by};
use super::{failed, former_schema};
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

/// The migrations, oldest first. Append only: a released file never changes.
const STEPS: &[Step] = &[
    step!(31, "initial", "0001_initial.sql"),
    step!(32, "write probes", "0032_write_probes.sql"),
    step!(33, "usage by hour", "0033_usage_by_hour.sql"),
    step!(34, "used custom losses", "0034_used_custom_losses.sql"),
    step!(35, "queued samples", "0035_queued_samples.sql"),
    step!(36, "rows of usage", "0036_usage_rows.sql"),
    step!(37, "agent sessions", "0037_agent_sessions.sql"),
    step!(38, "pixels per minute", "0038_pixels_per_minute.sql"),
    step!(39, "sessions of a tenant", "0039_max_sessions.sql"),
    step!(40, "bounded runs", "0040_bounded_runs.sql"),
];

/// The version of the first migration, which creates the whole schema. Versions 1 to 31 were used before the first
/// release ([`former_schema`]); databases, backups and running processes of that time count on with the same numbers.
pub(crate) const INITIAL: i64 = 31;

/// Brings the schema of a database up to date. Returns its version, which may be a later one that this program supports
/// without knowing it.
///
/// # Errors
/// [`Error::Invalid`] if the schema needs a newer release.
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
    let migrations = STEPS.iter().filter(|step| step.0 <= version).map(|step| migration(step, dialect)).collect();
    let history = workable(conn, database).await?;
    if history.get(&INITIAL).is_some_and(|checksum| *checksum == former_schema::checksum(dialect)) {
        former_schema::adopt(conn, &initial(dialect)).await?;
    }
    let mut migrator = Migrator::with_migrations(migrations);
    migrator.set_ignore_missing(true);
    let done = match conn.raw() {
        Raw::Sqlite(conn) => migrator.run(conn).await,
        Raw::Postgres(conn) => migrator.run(conn.without_deadline().map_err(failed("migrate the database"))?).await,
    };
    done.map_err(|error| Error::store("migrate the database", error))?;
    Ok(history.keys().last().copied().unwrap_or(0).max(version))
}

fn migration(step: &Step, dialect: Dialect) -> Migration {
    let &(version, name, sqlite, postgres) = step;
    let text = if dialect == Dialect::Sqlite { sqlite } else { postgres };
    Migration::new(version, name.into(), MigrationType::Simple, text.into_sql_str(), false)
}

/// Returns the first migration for a dialect.
fn initial(dialect: Dialect) -> Migration {
    migration(&STEPS[0], dialect)
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

/// Refuses a schema that needs a newer release, or that no program since the first release made. Returns the versions of
/// its migrations.
pub(crate) async fn ensure_workable(conn: &mut Conn, database: &Database) -> Result<BTreeSet<i64>, Error> {
    Ok(workable(conn, database).await?.into_keys().collect())
}

async fn workable(conn: &mut Conn, database: &Database) -> Result<History, Error> {
    const OLDEST: &str = "-- ensure_workable
        SELECT oldest_program FROM schema_compatibility";
    let history = applied(conn).await?;
    let Some(&version) = history.keys().last() else { return Ok(history) };
    ensure_known(&history, conn.dialect(), database)?;
    if version <= newest() {
        return Ok(history);
    }
    let oldest: Option<i64> = sql(OLDEST).scalar(conn).await.map_err(failed("read the schema's version"))?;
    if oldest.is_some_and(|oldest| oldest <= newest()) {
        return Ok(history);
    }
    Err(Error::Invalid(format!(
        "database {database} has schema version {version}, which needs a program that knows version {}, and this one knows \
         versions up to {}: use a newer program",
        oldest.unwrap_or(version),
        newest()
    )))
}

/// Refuses a history that does not begin with the first migration, as this program or [`former_schema`] has it.
fn ensure_known(history: &History, dialect: Dialect, database: &Database) -> Result<(), Error> {
    let Some(checksum) = history.get(&INITIAL) else {
        let last = history.keys().last().copied().unwrap_or(0);
        return Err(Error::Invalid(format!(
            "database {database} has schema version {last}, expected {INITIAL} or later: a program from before the first \
             release made it; migrate it with the last such program first, or use a new database"
        )));
    };
    if *checksum == *initial(dialect).checksum || *checksum == former_schema::checksum(dialect) {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "migration {INITIAL} of database {database} is unknown: its checksum is {}, expected {}; use the program that made \
         the database, or a new database",
        hex(checksum),
        hex(&initial(dialect).checksum)
    )))
}

/// Versions of a database's migrations, with the checksums of their texts.
type History = BTreeMap<i64, Vec<u8>>;

async fn applied(conn: &mut Conn) -> Result<History, Error> {
    const EXISTS_SQLITE: &str = "-- applied: exists
        SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '_sqlx_migrations'";
    const EXISTS_POSTGRES: &str = "-- applied: exists
        SELECT count(*) FROM information_schema.tables
        WHERE table_schema = current_schema() AND table_name = '_sqlx_migrations'";
    const SQL: &str = "-- applied
        SELECT version, checksum FROM _sqlx_migrations WHERE success ORDER BY version";
    let doing = || failed("read the schema's version");
    let exists: Option<i64> = sql_by(EXISTS_SQLITE, EXISTS_POSTGRES).scalar(conn).await.map_err(doing())?;
    if exists != Some(1) {
        return Ok(History::new());
    }
    let rows = sql(SQL).fetch_all(conn).await.map_err(doing())?;
    rows.iter().map(|row| Ok((column(row, "version")?, column(row, "checksum")?))).collect()
}

/// Returns the version of a database's schema; 0 if it has none.
pub(crate) async fn version(conn: &mut Conn) -> Result<i64, Error> {
    Ok(applied(conn).await?.keys().last().copied().unwrap_or(0))
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

    /// What a migration does that older programs can't work with, unless it says so.
    fn hidden_break(step: &Step) -> Option<&'static str> {
        let &(version, _, sqlite, postgres) = step;
        let texts = [sqlite, postgres].map(|text| without_walls_of_new_tables(&text.to_lowercase()));
        texts.iter().find_map(|text| {
            let says = text.contains(&format!("update schema_compatibility set oldest_program = {version};"));
            BREAKING.into_iter().find(|word| !says && text.contains(word))
        })
    }

    /// Leaves out row-level security of the tables that a text creates: older programs do not use them.
    fn without_walls_of_new_tables(text: &str) -> String {
        let of_new = |line: &str| {
            let altered =
                line.strip_prefix("alter table ").and_then(|rest| rest.split_once(" enable row level security"));
            altered.is_some_and(|(table, _)| text.contains(&format!("create table {table} (")))
        };
        text.lines().filter(|line| !of_new(line)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_migration_that_does_more_than_add_says_which_programs_can_work_with_it() {
        for step in STEPS.iter().skip(1) {
            assert_eq!(hidden_break(step), None, "{} {}", step.0, step.1);
        }
    }

    #[test]
    fn planted_migrations_that_break_older_programs_are_found() {
        const ADDS: &str = "ALTER TABLE runs ADD COLUMN note TEXT;";
        const DROPS: &str = "ALTER TABLE runs DROP COLUMN note;";
        const SAYS: &str = "ALTER TABLE runs DROP COLUMN note; UPDATE schema_compatibility SET oldest_program = 90;";
        assert_eq!(hidden_break(&(90, "", ADDS, ADDS)), None);
        assert_eq!(hidden_break(&(90, "", ADDS, DROPS)), Some("drop column"));
        assert_eq!(hidden_break(&(90, "", SAYS, SAYS)), None);
        assert_eq!(hidden_break(&(91, "", SAYS, SAYS)), Some("drop column"));
        const WALL: &str = "ALTER TABLE runs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;";
        assert_eq!(hidden_break(&(92, "", ADDS, WALL)), Some("row level security"));
        const NEW: &str =
            "CREATE TABLE runs (\n);\nALTER TABLE runs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;";
        assert_eq!(hidden_break(&(92, "", ADDS, NEW)), None);
    }

    /// Tables and columns that a text creates, each with its comment, which may be empty.
    fn comments(text: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let (mut table, mut above) = (None, "");
        for line in text.lines() {
            let comment = line.split_once("-- ").map_or("", |(_, comment)| comment.trim());
            if let Some(name) = line.strip_prefix("CREATE TABLE ") {
                let name = name.trim_end_matches(" (");
                found.push((name.to_owned(), above.to_owned()));
                table = Some(name);
            } else if line.starts_with(')') {
                table = None;
            } else if let Some(table) = table
                && let Some(column) = line.split_whitespace().next().filter(|word| *word == word.to_lowercase())
            {
                found.push((format!("{table}.{column}"), comment.to_owned()));
            }
            above = comment;
        }
        found
    }

    #[test]
    fn each_table_and_column_has_a_comment_which_both_databases_share() {
        for (_, _, sqlite, postgres) in STEPS {
            let same = |text: &str| comments(&text.replace("-- TRUE:", "-- 1:").replace("-- FALSE:", "-- 0:"));
            assert_eq!(same(sqlite), same(postgres));
            let silent: Vec<_> = comments(sqlite).into_iter().filter(|(_, comment)| comment.len() < 5).collect();
            assert!(silent.is_empty(), "{silent:?}");
        }
        assert!(comments(STEPS[0].2).len() > 200, "tables and columns are found");
        let planted = comments("-- Things.\nCREATE TABLE t (\n    a TEXT, -- name\n    b TEXT,\n    UNIQUE (a)\n);");
        let expected = [("t", "Things."), ("t.a", "name"), ("t.b", "")];
        assert_eq!(planted, expected.map(|(name, comment)| (name.to_owned(), comment.to_owned())));
    }

    #[test]
    fn versions_rise_from_that_of_the_first_migration() {
        assert_eq!(STEPS[0].0, INITIAL);
        assert!(STEPS.is_sorted_by(|a, b| a.0 < b.0));
    }
}
