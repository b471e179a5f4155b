//! Checks the plan of every statement on a database full of retained rows: none scans a table that grows.

mod agents;
mod claims;
mod fill;
mod growth;
mod workload;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::database::{Backend, TestDatabase};
use crate::store::db::recording;
use crate::store::db::{Conn, Dialect, Raw, Sql, connect_as_system, sql};
use crate::{Error, migrate};

/// The present, in ms since the epoch.
const NOW: i64 = 1_700_000_000_000;

/// Tables that grow as long as the service is used, with their names in statements.
const GROWING: [&str; 18] = [
    "agent_sessions",
    "agent_turns",
    "run_samples",
    "run_metrics",
    "custom_losses",
    "usage",
    "usage_by_hour",
    "stored_checkpoints",
    "audit_log",
    "sessions",
    "runs",
    "sampling_sessions",
    "requests",
    "checkpoints",
    "loads",
    "sampler",
    "request",
    "load",
];
/// Indices of unfinished, leased, active or public rows, which are few: these may be read completely.
const WORKING_SETS: [&str; 7] = [
    "checkpoints_public",
    "requests_unfinished",
    "requests_open_tokens",
    "requests_by_worker",
    "runs_by_worker",
    "sessions_silent",
    "sessions_active",
];

/// Most steps of a statement, plus a number for each row that it returns or changes: instructions of SQLite's virtual
/// machine, rows in PostgreSQL. Reading active rows takes less, reading a growing table takes more.
const STEPS: (u64, u64) = (25_000, 1_000);
const ROWS: (u64, u64) = (4_000, 20);

/// Statements that are executed rarely, or that read as much as their caller asks for, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("list_checkpoints: count", "a client asks how many there are"),
    ("list_checkpoints: count of accessible", "a client asks how many there are"),
    ("list_runs: count", "a client asks how many there are"),
    ("stored_bytes", "sums up what a tenant stores before a save, under a storage quota"),
    ("extend_heartbeats", "changes all active sessions when a process starts"),
    ("put_base_model", "when a worker starts; of few rows"),
    ("put_base_model: clear", "when a worker starts; of few rows"),
    ("put_base_model: file", "when a worker starts; of few rows"),
    ("shared_secret: put", "when a process starts; of few rows"),
    ("shared_secret: get", "when a process starts; of few rows"),
    ("secrets", "of few rows"),
    ("delete_secret", "once in some weeks; of few rows"),
    ("applied", "of only the migrations"),
    ("applied: exists", "of no table of ours"),
    ("adopt: forget", "of the migrations alone"),
    ("adopt: rename", "of the migrations alone"),
    ("adopt: compatibility", "of one row"),
    ("ensure_workable", "of one row"),
    ("table_names", "for a backup; not of a table of ours"),
    ("columns", "for a backup; not of a table of ours"),
    ("continue_arrivals", "when a backup was restored"),
    ("database_now", "of no table"),
    ("patient", "of no table"),
    ("write_end: metrics", "only of PostgreSQL; SQLite does it in insert_metrics"),
    ("notify", "of no table"),
    ("notify_of_directory", "of no table"),
    ("notify_itself", "of no table"),
    ("is_read_only", "of no table"),
    ("warn_of_plaintext", "of no table"),
    ("enter", "of no table"),
    ("audited_organisations", "an operator prunes the audit log"),
    ("delete_entries", "an operator prunes the audit log"),
    ("server_process", "of no table, and only of PostgreSQL"),
    ("add_up_usage: progress", "of one row"),
    ("add_up_usage: advance", "of one row"),
    ("leave", "of no table"),
    ("bypass", "of one row, when a process starts"),
    ("lock_names", "of no table, and only on PostgreSQL"),
];

#[tokio::test]
async fn no_statement_scans_a_growing_table_of_sqlite() {
    check_all(Backend::Sqlite).await;
}

#[tokio::test]
async fn no_statement_scans_a_growing_table_of_postgres() {
    check_all(Backend::Postgres).await;
}

async fn check_all(backend: Backend) {
    let dir = tempfile::tempdir().unwrap();
    let database = TestDatabase::new(backend, dir.path()).await;
    migrate(&database.database).await.unwrap();
    let mut conn = connect_as_system(&database.database).await.unwrap();
    fill::fill(&mut conn).await;
    agents::fill(&mut conn).await;
    let bounds = (STEPS, ROWS);
    let mut plans = Plans { conn, findings: BTreeSet::new(), seen: BTreeSet::new(), bounds };
    if plans.conn.dialect() == Dialect::Sqlite {
        // In service, SQLite files are never analysed.
        workload::run(&mut plans).await;
        agents::work(&mut plans).await;
    }
    sql("ANALYZE").execute(&mut plans.conn).await.unwrap();
    if plans.conn.dialect() == Dialect::Postgres {
        // Check that an index is usable; the planner may avoid it because of how these tables were filled.
        sql("SET enable_seqscan = off").execute(&mut plans.conn).await.unwrap();
    }
    workload::run(&mut plans).await;
    agents::work(&mut plans).await;
    let Plans { conn, mut findings, seen, .. } = plans;
    conn.close().await.unwrap();
    let excepted: BTreeSet<&str> = EXCEPTIONS.iter().map(|(name, _)| *name).collect();
    for name in statements() {
        if !seen.contains(name.as_str()) && !excepted.contains(name.as_str()) {
            findings.insert(format!("{name}: not executed; add it to the workload"));
        }
    }
    assert!(findings.is_empty(), "{}", findings.into_iter().collect::<Vec<_>>().join("\n"));
}

/// Executes statements as the scheduler does, and examines each.
struct Plans {
    conn: Conn,
    findings: BTreeSet<String>,
    seen: BTreeSet<&'static str>,
    /// Most [`STEPS`] and [`ROWS`].
    bounds: ((u64, u64), (u64, u64)),
}

impl Plans {
    /// Calls code that executes statements, and examines each of them on the database as it was. Leaves no traces.
    async fn step<T>(&mut self, call: impl AsyncFnOnce(&mut Conn) -> Result<T, Error>) {
        self.conn.begin().await.unwrap();
        recording::start();
        let done = call(&mut self.conn).await;
        let statements = recording::finish();
        assert!(done.is_ok(), "{:?}: {:?}", done.err(), statements.last().and_then(Sql::name));
        self.conn.rollback().await.unwrap();
        self.conn.begin().await.unwrap();
        for statement in statements {
            let Some(name) = statement.name() else { continue };
            self.seen.insert(name);
            let finding = match self.conn.dialect() {
                Dialect::Sqlite => scan_in_sqlite(&mut self.conn, &statement, self.bounds.0).await,
                Dialect::Postgres => scan_in_postgres(&mut self.conn, &statement, self.bounds.1).await,
            };
            if !EXCEPTIONS.iter().any(|(excepted, _)| *excepted == name) {
                self.findings.extend(finding.map(|finding| format!("{name}: {finding}")));
            }
        }
        self.conn.rollback().await.unwrap();
    }
}

async fn scan_in_sqlite(conn: &mut Conn, statement: &Sql<'static>, most: (u64, u64)) -> Option<String> {
    let rows = statement.prefixed("EXPLAIN QUERY PLAN").fetch_all(conn).await.unwrap();
    let plan: Vec<String> = rows.iter().map(|row| crate::store::db::column(row, "detail").unwrap()).collect();
    let (steps, rows) = counted(conn, statement).await;
    let scans = plan.iter().any(|line| {
        let scanned = line.strip_prefix("SCAN ").and_then(|rest| rest.split(' ').next());
        scanned.is_some_and(|table| GROWING.contains(&table))
            && !WORKING_SETS.iter().any(|index| line.ends_with(&format!("INDEX {index}")))
    });
    let allowed = most.0 + most.1 * rows;
    (scans || steps > allowed).then(|| format!("{steps} steps, {rows} rows: {}", plan.join("; ")))
}

/// Executes a statement. Returns the number of instructions that it took, and its rows.
async fn counted(conn: &mut Conn, statement: &Sql<'static>) -> (u64, u64) {
    let steps = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&steps);
    let Raw::Sqlite(raw) = conn.raw() else { return (0, 0) };
    raw.lock_handle().await.unwrap().set_progress_handler(1, move || {
        counter.fetch_add(1, Ordering::Relaxed);
        true
    });
    let again = statement.prefixed("");
    let rows = match statement.reads() {
        true => again.fetch_all(conn).await.unwrap().len() as u64,
        false => again.execute(conn).await.unwrap(),
    };
    let Raw::Sqlite(raw) = conn.raw() else { return (0, 0) };
    raw.lock_handle().await.unwrap().remove_progress_handler();
    (steps.load(Ordering::Relaxed), rows)
}

async fn scan_in_postgres(conn: &mut Conn, statement: &Sql<'static>, most: (u64, u64)) -> Option<String> {
    let explain = statement.prefixed("EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF)");
    let plan: Vec<String> = explain.scalars(conn).await.unwrap();
    // Parts of a plan that can't have a row are never executed.
    let scans = plan.iter().filter(|line| !line.ends_with("(never executed)")).any(|line| {
        let scanned = line.split_once("Seq Scan on ").and_then(|(_, rest)| rest.split(' ').next());
        scanned.is_some_and(|table| GROWING.contains(&table))
    });
    let (mut read, mut touched, mut loops) = (0, 0, 1);
    for line in &plan {
        if let Some((rows, times)) = number(line, "actual rows=").zip(number(line, "loops=")) {
            loops = times;
            read += if line.contains("Scan") { rows * loops } else { 0 };
            // A change that returns nothing has no rows; its input has. A result without a scan is the scope that
            // row-level security asks for.
            touched = if touched == 0 && !line.contains("->  Result") { rows } else { touched };
        } else if line.contains("Rows Removed by") {
            read += number(line, ": ").unwrap_or(0) * loops;
        }
    }
    (scans || read > most.0 + most.1 * touched).then(|| format!("{read} rows read:\n    {}", plan.join("\n    ")))
}

/// Returns the number behind a text.
fn number(line: &str, text: &str) -> Option<u64> {
    let (_, rest) = line.split_once(text)?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Returns the names of all statements in the sources: each begins with a comment.
fn statements() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut names);
    assert!(names.len() > 100, "{names:?}");
    names
}

fn collect(dir: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("src/tests") {
                collect(&path, names);
            }
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        // The recorder's source mentions names, too.
        if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("recording.rs") {
            let comments = text.lines().filter_map(|line| line.split_once("\"-- "));
            let names_of_statements = comments
                .map(|(_, name)| name.trim_end_matches("\";"))
                .filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_: ".contains(c)));
            names.extend(names_of_statements.map(str::to_owned));
        }
    }
}
