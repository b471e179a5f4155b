//! Databases from before the first release: `former_schema/` has dumps of one, as the last program of that time left it, with
//! a run, a request that succeeded, one that waits and a sample.

use std::collections::BTreeSet;

use sqlx::{Connection, Executor, PgConnection, SqliteConnection};

use super::*;
use crate::store::db::cells::fetch_text;
use crate::store::db::{Conn, Row, column, connect_as_system, sql};
use crate::store::schema;
use crate::{Database, look_at_store, migrate};

const SESSION: &str = "018bcfe5-6800-";
const SQLITE: &str = include_str!("former_schema/sqlite.sql");
const POSTGRES: &str = include_str!("former_schema/postgres.sql");

/// A database without a schema, and its folder.
async fn empty() -> (TempDir, TestDatabase) {
    let dir = tempfile::tempdir().unwrap();
    let database = TestDatabase::empty(BACKEND, dir.path()).await;
    (dir, database)
}

/// The database of the dump, and its folder.
async fn former() -> (TempDir, TestDatabase) {
    let (dir, database) = empty().await;
    match &database.database {
        Database::Sqlite(path) => {
            let url = format!("sqlite://{}?mode=rwc", path.display());
            let mut conn = SqliteConnection::connect(&url).await.unwrap();
            conn.execute(SQLITE).await.unwrap();
            conn.close().await.unwrap();
        }
        Database::Postgres(url) => {
            let mut conn = PgConnection::connect(url).await.unwrap();
            conn.execute(POSTGRES).await.unwrap();
            conn.close().await.unwrap();
        }
    }
    (dir, database)
}

async fn execute(database: &TestDatabase, text: &'static str) {
    let mut conn = connect_as_system(&database.database).await.unwrap();
    sql(text).execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
}

/// Versions and descriptions of a database's migrations.
async fn history(database: &TestDatabase) -> Vec<(i64, String)> {
    let mut conn = connect_as_system(&database.database).await.unwrap();
    let rows = sql("SELECT version, description FROM _sqlx_migrations ORDER BY version");
    let rows = rows.fetch_all(&mut conn).await.unwrap();
    rows.iter().map(|row| (column(row, "version").unwrap(), column(row, "description").unwrap())).collect()
}

#[tokio::test]
async fn a_database_of_the_former_history_is_opened_and_continued() {
    let (dir, database) = former().await;
    assert_eq!(history(&database).await.len(), 31);
    if matches!(BACKEND, Backend::Postgres) {
        // A process does not change the schema of a server that others use.
        let look = look_at_store(&database.database).await.unwrap().unwrap();
        assert_eq!((look.schema, look.newest, look.is_workable), (schema::INITIAL, schema::newest(), true));
    }
    assert_eq!(migrate(&database.database).await.unwrap(), schema::newest());
    let (_new_dir, new) = empty().await;
    migrate(&new.database).await.unwrap();
    assert_eq!(history(&database).await, history(&new).await);
    assert_eq!(history(&database).await[0], (31, "initial".to_owned()));
    let mut conn = connect_as_system(&database.database).await.unwrap();
    let oldest: Option<i64> = sql("SELECT oldest_program FROM schema_compatibility").scalar(&mut conn).await.unwrap();
    assert_eq!(oldest, Some(40));
    let session: Option<String> = sql("SELECT id FROM sessions").scalar(&mut conn).await.unwrap();
    let finished: Option<String> =
        sql("SELECT id FROM requests WHERE seq_id = 1 AND run_id IS NOT NULL").scalar(&mut conn).await.unwrap();
    let waiting: Option<String> = sql("SELECT id FROM requests WHERE seq_id = 2").scalar(&mut conn).await.unwrap();
    conn.close().await.unwrap();

    let clock = Arc::new(TestClock(AtomicI64::new(1_700_000_000_000)));
    let scheduler = Scheduler::open(options(&dir, &database, &clock)).await.unwrap();
    let session = SessionId::new(session.unwrap());
    assert!(session.as_str().starts_with(SESSION));
    let run = RunId::new(format!("{session}:train:0"));
    let bench = Bench { dir, database, clock, scheduler, me: TenantId::new("me"), session };
    let (finished, waiting) = (RequestId::new(finished.unwrap()), RequestId::new(waiting.unwrap()));
    let Poll::Succeeded { payload, .. } = bench.poll(&finished).await else { panic!("it succeeded before") };
    assert_eq!(payload, Bytes::from("result 1"));

    // The creation is replayed, then the waiting request and the sample run, and new ones are accepted.
    let mut kinds = Vec::new();
    while kinds.len() < 3 {
        for item in bench.items().await {
            let WorkItem::Start(work) = item else { panic!("{item:?}") };
            kinds.push(work.kind);
            bench.succeed(&work);
        }
    }
    kinds.sort_by_key(|kind| kind.as_str());
    assert_eq!(kinds, [RequestKind::CreateModel, RequestKind::ForwardBackward, RequestKind::Sample]);
    assert!(matches!(bench.poll(&waiting).await, Poll::Succeeded { .. }));
    let next = bench.submit(&run, 3, RequestKind::Forward).await;
    bench.succeed(&bench.start().await);
    assert!(matches!(bench.poll(&next).await, Poll::Succeeded { .. }));
    let bench = bench.restart(false).await;
    assert!(matches!(bench.poll(&next).await, Poll::Succeeded { .. }));
}

#[tokio::test]
async fn it_is_migrated_when_a_process_opens_it() {
    let (dir, database) = former().await;
    let clock = Arc::new(TestClock(AtomicI64::new(1_700_000_000_000)));
    let opened = Scheduler::open(options(&dir, &database, &clock)).await;
    if matches!(BACKEND, Backend::Postgres) {
        // A process does not change the schema of a server that others use.
        refused(opened.map(drop), "run `trainyard migrate`");
        assert_eq!(history(&database).await.len(), 31);
        return;
    }
    opened.unwrap().close().await;
    let history = history(&database).await;
    assert_eq!((history[0].0, history[history.len() - 1].0), (31, schema::newest()));
}

#[tokio::test]
async fn its_schema_is_that_of_a_new_database() {
    let (_former_dir, former) = former().await;
    migrate(&former.database).await.unwrap();
    let (_new_dir, new) = empty().await;
    migrate(&new.database).await.unwrap();
    let (old_parts, new_parts) = (parts(&former).await, parts(&new).await);
    assert!(old_parts.len() > 300, "{} parts", old_parts.len());
    assert_eq!(old_parts.symmetric_difference(&new_parts).collect::<Vec<_>>(), Vec::<&String>::new());
    // Differences are found.
    for change in [
        "CREATE INDEX planted ON sessions (sdk_version)",
        "ALTER TABLE users ADD COLUMN planted TEXT",
        "ALTER TABLE users RENAME COLUMN planted TO planted_too",
    ] {
        let before = parts(&new).await;
        execute(&new, change).await;
        assert!(!before.symmetric_difference(&parts(&new).await).collect::<Vec<_>>().is_empty(), "{change}");
    }
}

/// What a schema consists of, one text for each part.
async fn parts(database: &TestDatabase) -> BTreeSet<String> {
    let mut conn = connect_as_system(&database.database).await.unwrap();
    let mut parts = BTreeSet::new();
    for query in if matches!(BACKEND, Backend::Sqlite) { SQLITE_PARTS } else { POSTGRES_PARTS } {
        for row in lines(&mut conn, query).await {
            match row.strip_prefix("definition of ") {
                Some(definition) => parts.extend(definition_parts(definition)),
                None => {
                    parts.insert(row);
                }
            }
        }
    }
    parts
}

async fn lines(conn: &mut Conn, query: &str) -> Vec<String> {
    let rows = fetch_text(conn, format!("SELECT CAST(part AS TEXT) AS part FROM ({query}) AS t"), Vec::new());
    rows.await.unwrap().iter().map(|row: &Row| column(row, "part").unwrap()).collect()
}

/// Queries of the catalogue, without what follows from the time and order of creation.
const SQLITE_PARTS: &[&str] = &[
    "SELECT 'definition of ' || sql AS part FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'",
    "SELECT 'column ' || json_array(m.name, c.cid, c.name, c.type, c.\"notnull\", c.dflt_value, c.pk) AS part
        FROM sqlite_master AS m, pragma_table_xinfo(m.name) AS c WHERE m.type = 'table'",
    "SELECT 'table ' || json_array(name, ncol, wr, strict) AS part FROM pragma_table_list WHERE schema = 'main'",
    "SELECT 'index ' || json_array(m.name, i.\"unique\", i.origin, i.partial, c.seqno, c.name) AS part
        FROM sqlite_master AS m, pragma_index_list(m.name) AS i, pragma_index_info(i.name) AS c WHERE m.type = 'table'",
    "SELECT 'reference ' || json_array(m.name, f.\"table\", f.\"from\", f.\"to\", f.on_delete) AS part
        FROM sqlite_master AS m, pragma_foreign_key_list(m.name) AS f WHERE m.type = 'table'",
];

const POSTGRES_PARTS: &[&str] = &[
    "SELECT 'column ' || row_to_json(t) AS part FROM (SELECT table_name, ordinal_position, column_name, data_type,
        is_nullable, column_default, identity_generation FROM information_schema.columns
        WHERE table_schema = current_schema()) AS t",
    "SELECT 'constraint ' || row_to_json(t) AS part FROM (SELECT conrelid::regclass::text, conname,
        pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = current_schema()::regnamespace) AS t",
    "SELECT 'index ' || indexdef AS part FROM pg_indexes WHERE schemaname = current_schema()",
    "SELECT 'policy ' || row_to_json(t) AS part FROM (SELECT tablename, policyname, permissive, roles, cmd, qual, with_check
        FROM pg_policies WHERE schemaname = current_schema()) AS t",
    "SELECT 'trigger ' || pg_get_triggerdef(oid) AS part FROM pg_trigger WHERE NOT tgisinternal",
    "SELECT 'function ' || pg_get_functiondef(oid) AS part FROM pg_proc WHERE pronamespace = current_schema()::regnamespace",
    "SELECT 'table ' || row_to_json(t) AS part FROM (SELECT relname, relkind, relrowsecurity, relforcerowsecurity
        FROM pg_class WHERE relnamespace = current_schema()::regnamespace) AS t",
];

/// The definition of an object of SQLite without comments and layout, and of a table each column and constraint apart:
/// columns that were added later follow the constraints.
fn definition_parts(text: &str) -> Vec<String> {
    let code: Vec<&str> = text.lines().map(|line| line.split("--").next().unwrap_or_default()).collect();
    let code = code.join(" ").split_whitespace().collect::<Vec<_>>().join(" ").replace('"', "");
    let Some((head, body)) = code.split_once('(').filter(|_| code.starts_with("CREATE TABLE")) else {
        return vec![code];
    };
    let mut depth = 0_i32;
    let items = body.split(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        // The last parenthesis closes the table.
        (c == ',' && depth == 0) || depth < 0
    });
    items.map(|item| format!("{}: {}", head.trim(), item.trim())).collect()
}

fn refused<T>(result: Result<T, Error>, reason: &str) {
    let error = result.err().unwrap();
    assert!(matches!(&error, Error::Invalid(text) if text.contains(reason)), "{error}");
}

#[tokio::test]
async fn an_older_schema_is_refused() {
    const OLDER: &str = "expected 31 or later";
    let (dir, database) = former().await;
    execute(&database, "DELETE FROM _sqlx_migrations WHERE version > 27").await;
    refused(migrate(&database.database).await, "has schema version 27");
    refused(migrate(&database.database).await, OLDER);
    let clock = Arc::new(TestClock::default());
    refused(Scheduler::open(options(&dir, &database, &clock)).await.map(drop), OLDER);
    let look = look_at_store(&database.database).await.unwrap().unwrap();
    assert!(!look.is_workable);
    assert_eq!(history(&database).await.len(), 27, "nothing was changed");
}

#[tokio::test]
async fn an_unknown_schema_is_refused() {
    const UNKNOWN: &str = "migration 31 of database";
    let (dir, database) = former().await;
    execute(&database, "UPDATE _sqlx_migrations SET checksum = '' WHERE version = 31").await;
    refused(migrate(&database.database).await, UNKNOWN);
    let clock = Arc::new(TestClock::default());
    refused(Scheduler::open(options(&dir, &database, &clock)).await.map(drop), UNKNOWN);
    assert_eq!(history(&database).await.len(), 31, "nothing was changed");
}
