//! Tests of the second wall between tenants: on PostgreSQL, a statement that forgets its tenant reaches no rows of
//! other tenants.
//!
//! The tables come from the catalogue, so that none is forgotten. Each is behind the wall or in [`SHARED`], and each
//! table behind the wall has rows of two tenants in [`ROWS`].

use futures::future::join_all;
use trainyard_protocol::TinkerPath;

use super::database::{Backend, TestDatabase};
use super::*;
use crate::Database;
use crate::store::copies::table_names;
use crate::store::db::cells::{execute_text, fetch_text};
use crate::store::db::{Conn, Raw, Row, RowScope, bypass, column, connect, connect_as_system, sql};
use crate::store::{checkpoints, runs};

/// Tables without data of tenants, with the reason.
const SHARED: &[(&str, &str)] = &[
    ("_sqlx_migrations", "says which migrations were made"),
    ("schema_compatibility", "says which programs can work with the schema"),
    ("secrets", "of the service"),
    ("workers", "processes that work for all tenants"),
    ("worker_numerics", "of workers"),
    ("base_models", "all tenants may use them"),
    ("base_model_files", "of base models"),
    ("backup_holds", "of the storage as a whole"),
    ("write_probes", "empty outside of transactions"),
    ("audit_prunes", "empty outside of transactions"),
    ("usage_progress", "a time"),
    ("ended_browser_sessions", "ids of tokens, which name nobody"),
];

/// A row of each table for a tenant called `{t}`, whose name is part of the row's identity.
const ROWS: &[(&str, &str)] = &[
    ("organisations", "INSERT INTO organisations (name, created_at) VALUES ('{t}', 1)"),
    ("projects", "INSERT INTO projects (organisation, id, name, created_at) VALUES ('{t}', 'p-{t}', '', 1)"),
    (
        "users",
        "INSERT INTO users (id, organisation, email, name, role, created_at)
        VALUES ('u-{t}', '{t}', '{t}@example.org', '', 'member', 1)",
    ),
    (
        "api_keys",
        "INSERT INTO api_keys (id, digest, organisation, name, note, hint, role, created_at)
        VALUES (hashtext('{t}'), 'k-{t}', '{t}', '', '', '', 'member', 1)",
    ),
    (
        "audit_log",
        "INSERT INTO audit_log (id, at, organisation, category, event, subject, details, actor)
        VALUES ('a-{t}', 1, '{t}', 'teams', 'key_create', '', '{}', '')",
    ),
    (
        "sessions",
        "INSERT INTO sessions (id, tenant, tags, user_metadata, sdk_version, status, created_at)
        VALUES ('s-{t}', '{t}', '[]', '{}', '0', 'active', 1)",
    ),
    (
        "runs",
        "INSERT INTO runs (id, tenant, session_id, model_seq_id, spec, state, user_metadata, created_at, last_request_at)
        VALUES ('s-{t}:train:0', '{t}', 's-{t}', 0, '{spec}', 'ready', '{}', 1, 1)",
    ),
    (
        "sampling_sessions",
        "INSERT INTO sampling_sessions (id, tenant, session_id, seq_id, base_model, created_at)
        VALUES ('s-{t}:sample:0', '{t}', 's-{t}', 0, 'base', 1)",
    ),
    (
        "custom_losses",
        "INSERT INTO custom_losses (id, tenant, session_id, seq_id, definition, created_at)
        VALUES ('s-{t}:loss:0', '{t}', 's-{t}', 0, '', 1)",
    ),
    (
        "requests",
        "INSERT INTO requests (id, tenant, session_id, run_id, seq_id, kind, fingerprint, state, created_at)
        VALUES ('r-{t}', '{t}', 's-{t}', 's-{t}:train:0', 0, 'create_model', '', 'queued', 1)",
    ),
    ("loads", "INSERT INTO loads (request_id, dir) VALUES ('r-{t}', 'checkpoints/{t}')"),
    (
        "checkpoints",
        "INSERT INTO checkpoints (run_id, kind, name, tenant, spec, dir, size_bytes, user_metadata, created_at)
        VALUES ('s-{t}:train:0', 'weights', 'c', '{t}', '{spec}', 'checkpoints/{t}', 1, '{}', 1)",
    ),
    (
        "uploads",
        "INSERT INTO uploads (id, tenant, spec, dir, totals, bytes, created_at, expires_at)
        VALUES ('up-{t}', '{t}', '{spec}', 'uploads/{t}', '{}', 1, 1, 9)",
    ),
    (
        "upload_pieces",
        "INSERT INTO upload_pieces (upload_id, file, start, length, name) VALUES ('up-{t}', 'f', 0, 1, 'f')",
    ),
    (
        "usage",
        "INSERT INTO usage (request_id, tenant, at, kind, base_model, session_id, trained, prefill, cached, sampled)
        VALUES ('r-{t}', '{t}', 1, 'forward', 'base', 's-{t}', 0, 0, 0, 0)",
    ),
    (
        "usage_by_hour",
        "INSERT INTO usage_by_hour (tenant, hour, base_model, session_id, project_id, user_id, trained, prefill, cached,
            sampled)
        VALUES ('{t}', 1, 'base', 's-{t}', '', '', 0, 0, 0, 0)",
    ),
    ("usage_rows", "INSERT INTO usage_rows (tenant, hour, requests) VALUES ('{t}', 1, 1)"),
    ("usage_kept", "INSERT INTO usage_kept (tenant, from_at) VALUES ('{t}', 1)"),
    (
        "stored_checkpoints",
        "INSERT INTO stored_checkpoints (run_id, kind, name, from_at, tenant, base_model, session_id, size_bytes)
        VALUES ('s-{t}:train:0', 'weights', 'c', 1, '{t}', 'base', 's-{t}', 1)",
    ),
    (
        "agent_sessions",
        "INSERT INTO agent_sessions (id, tenant, key_digest, base_model, max_tokens, max_turns, seconds, created_at,
            expires_at)
        VALUES ('as-{t}', '{t}', '{t}', 'base', 1, 1, 1, 1, 9)",
    ),
    (
        "agent_turns",
        "INSERT INTO agent_turns (session_id, number, tenant, request_id, choice, digest, messages, weights, finish_reason,
            content, prompt, sampled, logprobs, created_at)
        VALUES ('as-{t}', 1, '{t}', 'r-{t}', 0, '', 2, 'base', 'stop', '{}', '', '', '', 1)",
    ),
    ("rate_limits", "INSERT INTO rate_limits (tenant, units, at) VALUES ('{t}', 0, 1)"),
    (
        "run_metrics",
        "INSERT INTO run_metrics (run_id, step, seq_id, tenant, kind, at, metrics)
        VALUES ('s-{t}:train:0', 0, 1, '{t}', 'forward', 1, '{}')",
    ),
    (
        "run_samples",
        "INSERT INTO run_samples (run_id, at, request_id, tenant, sampling_session_id, size_bytes, content)
        VALUES ('s-{t}:train:0', 1, 'q-{t}', '{t}', 's-{t}:sample:0', 1, 'x')",
    ),
];

/// PostgreSQL's code for a row that a policy refuses.
const REFUSED: &str = "42501";
/// Code of the error of a statement without a scope.
const NO_SCOPE: &str = "58000";

/// Two tenants with a row in each table.
struct Wall {
    _database: TestDatabase,
    database: Database,
    /// Connection without a scope.
    conn: Conn,
    a: RowScope,
    protected: Vec<String>,
}

async fn wall() -> Wall {
    let dir = tempfile::tempdir().unwrap();
    let database = TestDatabase::new(Backend::Postgres, dir.path()).await;
    let mut conn = connect_as_system(&database.database).await.unwrap();
    for tenant in ["wall-a", "wall-b"] {
        for (_, insert) in ROWS {
            run(&mut conn, row_of(insert, tenant)).await.unwrap();
        }
    }
    let protected = table_names(&mut conn).await.unwrap();
    let protected = protected.into_iter().filter(|name| !SHARED.iter().any(|(shared, _)| shared == name)).collect();
    let conn = connect(&database.database).await.unwrap();
    let url = database.database.clone();
    Wall { _database: database, database: url, conn, a: RowScope::of(&TenantId::new("wall-a")), protected }
}

fn row_of(insert: &str, tenant: &str) -> String {
    insert.replace("{t}", tenant).replace("{spec}", &serde_json::to_string(&spec()).unwrap())
}

async fn run(conn: &mut Conn, text: String) -> Result<u64, sqlx::Error> {
    execute_text(conn, text, Vec::new()).await
}

async fn rows(conn: &mut Conn, table: &str) -> Result<Vec<String>, sqlx::Error> {
    let rows =
        fetch_text(conn, format!("SELECT CAST(row_to_json(t) AS TEXT) AS row FROM \"{table}\" AS t"), Vec::new())
            .await?;
    Ok(rows.iter().map(|row: &Row| column(row, "row").unwrap()).collect())
}

fn refused_with(result: Result<u64, sqlx::Error>, code: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.as_database_error().and_then(|error| error.code()).as_deref(), Some(code), "{error}");
}

/// Executes a statement in a transaction that is undone, in the scope of the tenant A.
async fn tried(wall: &mut Wall, text: String) -> Result<u64, sqlx::Error> {
    wall.conn.begin_in(&wall.a).await.unwrap();
    let done = run(&mut wall.conn, text).await;
    wall.conn.rollback().await.unwrap();
    done
}

#[tokio::test]
async fn every_table_is_behind_the_wall_or_shared_for_a_reason() {
    const COLUMNS: &str = "SELECT DISTINCT table_name::text AS name FROM information_schema.columns
        WHERE table_schema = current_schema() AND column_name IN ('tenant', 'organisation')";
    const FORCED: &str = "SELECT relname::text AS name FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relrowsecurity AND relforcerowsecurity
            AND oid IN (SELECT polrelid FROM pg_policy WHERE polcmd = '*')";
    let mut wall = wall().await;
    let forced: Vec<String> = sql(FORCED).scalars(&mut wall.conn).await.unwrap();
    let owned: Vec<String> = sql(COLUMNS).scalars(&mut wall.conn).await.unwrap();
    for table in &wall.protected {
        assert!(
            forced.contains(table),
            "{table}: give it a policy in its migration, or add it to SHARED with a reason"
        );
        assert!(ROWS.iter().any(|(name, _)| name == table), "{table}: add a row of a tenant to ROWS");
    }
    for (name, reason) in SHARED {
        assert!(!owned.iter().any(|owned| owned == name), "{name} has rows of tenants: {reason}");
        assert!(!forced.iter().any(|forced| forced == name), "{name} is behind the wall");
    }
    assert_eq!(wall.protected.len(), ROWS.len());
}

#[tokio::test]
async fn a_statement_without_a_condition_sees_only_its_tenants_rows() {
    let mut wall = wall().await;
    wall.conn.enter(&wall.a).await.unwrap();
    for table in &wall.protected {
        let seen = rows(&mut wall.conn, table).await.unwrap();
        assert!(!seen.is_empty() && seen.iter().all(|row| row.contains("wall-a")), "{table}: {seen:?}");
        assert!(!seen.iter().any(|row| row.contains("wall-b")), "{table}: {seen:?}");
    }
    let mut system = connect_as_system(&wall.database).await.unwrap();
    for table in &wall.protected {
        let seen = rows(&mut system, table).await.unwrap();
        assert!(
            ["wall-a", "wall-b"].iter().all(|tenant| seen.iter().any(|row| row.contains(tenant))),
            "{table}: {seen:?}"
        );
    }
}

#[tokio::test]
async fn a_statement_without_a_condition_changes_only_its_tenants_rows() {
    let mut wall = wall().await;
    for table in wall.protected.clone() {
        let others = format!("CAST(row_to_json(\"{table}\") AS TEXT) LIKE '%wall-b%'");
        // The table is append-only, by a trigger that applies to every statement.
        let appended_only = table == "audit_log";
        let insert = ROWS.iter().find(|(name, _)| *name == table).unwrap().1;
        let own = match table.as_str() {
            "organisations" => "name",
            "projects" | "users" | "api_keys" | "audit_log" => "organisation",
            "loads" => "request_id",
            "upload_pieces" => "upload_id",
            _ => "tenant",
        };
        if !appended_only {
            let updated = tried(&mut wall, format!("UPDATE \"{table}\" SET {own} = {own}")).await.unwrap();
            assert_eq!(updated, 1, "{table}");
            let deleted = tried(&mut wall, format!("DELETE FROM \"{table}\" WHERE {others}")).await.unwrap();
            assert_eq!(deleted, 0, "{table}");
            // The same statement finds the row without the wall.
            let mut system = connect_as_system(&wall.database).await.unwrap();
            let found = run(&mut system, format!("UPDATE \"{table}\" SET {own} = {own} WHERE {others}")).await.unwrap();
            assert_eq!(found, 1, "{table}");
            let given = match table.as_str() {
                "loads" => "r-wall-b",
                "upload_pieces" => "up-wall-b",
                _ => "wall-b",
            };
            refused_with(tried(&mut wall, format!("UPDATE \"{table}\" SET {own} = '{given}'")).await, REFUSED);
        }
        refused_with(tried(&mut wall, row_of(insert, "wall-b")).await, REFUSED);
    }
}

#[tokio::test]
async fn nothing_is_accessible_without_a_scope() {
    let mut wall = wall().await;
    for entered_before in [false, true] {
        if entered_before {
            // A scope entered for a transaction ends with it.
            wall.conn.begin_in(&RowScope::System).await.unwrap();
            assert_eq!(rows(&mut wall.conn, "sessions").await.unwrap().len(), 2);
            wall.conn.commit().await.unwrap();
        }
        for table in &wall.protected {
            refused_with(rows(&mut wall.conn, table).await.map(|_| 0), NO_SCOPE);
            refused_with(
                run(&mut wall.conn, format!("DELETE FROM \"{table}\"")).await,
                match table.as_str() {
                    "audit_log" => "P0001",
                    _ => NO_SCOPE,
                },
            );
        }
        for (_, insert) in ROWS {
            refused_with(run(&mut wall.conn, row_of(insert, "wall-c")).await, NO_SCOPE);
        }
    }
}

#[tokio::test]
async fn what_a_statement_of_the_system_finds_by_id_alone_a_tenant_does_not() {
    let mut wall = wall().await;
    let id = RunId::new("s-wall-b:train:0");
    wall.conn.enter(&RowScope::System).await.unwrap();
    assert_eq!(runs::run_row(&mut wall.conn, &id).await.unwrap().tenant, TenantId::new("wall-b"));
    wall.conn.enter(&wall.a).await.unwrap();
    assert!(matches!(runs::run_row(&mut wall.conn, &id).await, Err(Error::NotFound { .. })));
    assert!(!runs::ready_run(&mut wall.conn, &id).await.unwrap());
    wall.conn.leave().await.unwrap();
    assert!(matches!(runs::run_row(&mut wall.conn, &id).await, Err(Error::Unavailable(_))));
}

#[tokio::test]
async fn public_checkpoints_are_read_and_not_changed_by_others() {
    const PUBLISH: &str = "UPDATE checkpoints SET public = TRUE WHERE tenant = 'wall-b'";
    const HIDDEN: &str =
        "INSERT INTO checkpoints (run_id, kind, name, tenant, spec, dir, size_bytes, user_metadata, created_at)
        SELECT run_id, kind, 'hidden', tenant, spec, dir, size_bytes, user_metadata, created_at FROM checkpoints
        WHERE tenant = 'wall-b'";
    let mut wall = wall().await;
    let mut system = connect_as_system(&wall.database).await.unwrap();
    run(&mut system, HIDDEN.into()).await.unwrap();
    run(&mut system, PUBLISH.to_owned() + " AND name = 'c'").await.unwrap();
    let (a, now) = (TenantId::new("wall-a"), Timestamp(2));
    wall.conn.enter(&wall.a).await.unwrap();
    let read = |name: &str| -> TinkerPath { format!("tinker://s-wall-b:train:0/weights/{name}").parse().unwrap() };
    let found = checkpoints::readable_checkpoint(&mut wall.conn, &a, &read("c"), now).await.unwrap();
    assert!(found.public);
    assert!(checkpoints::readable_checkpoint(&mut wall.conn, &a, &read("hidden"), now).await.is_err());
    assert!(runs::readable_run(&mut wall.conn, &a, &found.path.run, now).await.is_ok());
    let seen = |rows: Vec<String>| rows.iter().filter(|row| row.contains("wall-b")).count();
    assert_eq!(seen(rows(&mut wall.conn, "checkpoints").await.unwrap()), 1);
    for (table, count) in [("runs", 1), ("sessions", 0), ("requests", 0), ("stored_checkpoints", 0)] {
        assert_eq!(seen(rows(&mut wall.conn, table).await.unwrap()), count, "{table}");
    }
    for change in ["SET public = FALSE", "SET tenant = 'wall-a'", "SET dir = ''"] {
        let text = format!("UPDATE checkpoints {change} WHERE run_id = 's-wall-b:train:0'");
        assert_eq!(tried(&mut wall, text).await.unwrap(), 0, "{change}");
    }
    assert_eq!(tried(&mut wall, "DELETE FROM checkpoints WHERE public".into()).await.unwrap(), 0);
    assert_eq!(tried(&mut wall, "UPDATE runs SET tenant = 'wall-a'".into()).await.unwrap(), 1, "its own");
    // The checkpoint is held even if another tenant copies or loads it.
    wall.conn.begin_in(&wall.a).await.unwrap();
    checkpoints::hold_checkpoint(&mut wall.conn, &read("c"), &wall.a).await.unwrap();
    assert_eq!(seen(rows(&mut wall.conn, "sessions").await.unwrap()), 0, "back in its scope");
    system.begin().await.unwrap();
    run(&mut system, "SET LOCAL lock_timeout = '100ms'".into()).await.unwrap();
    refused_with(run(&mut system, "DELETE FROM checkpoints WHERE public".into()).await, "55P03");
}

#[tokio::test]
async fn a_scope_ends_with_its_transaction_and_is_known_after_a_savepoint() {
    let mut wall = wall().await;
    let (a, b) = (wall.a.clone(), RowScope::of(&TenantId::new("wall-b")));
    let conn = &mut wall.conn;
    conn.begin_in(&a).await.unwrap();
    conn.savepoint_in(&b).await.unwrap();
    conn.enter(&RowScope::System).await.unwrap();
    assert_eq!(rows(conn, "sessions").await.unwrap().len(), 2);
    conn.undo_to_savepoint().await.unwrap();
    conn.release_savepoint().await.unwrap();
    conn.enter(&RowScope::System).await.unwrap();
    assert_eq!(rows(conn, "sessions").await.unwrap().len(), 2, "entered again, for it was undone");
    conn.enter(&b).await.unwrap();
    assert_eq!(rows(conn, "sessions").await.unwrap().len(), 1);
    conn.commit().await.unwrap();
    refused_with(rows(conn, "sessions").await.map(|_| 0), NO_SCOPE);
    // Outside of a transaction the scope stays.
    conn.enter(&a).await.unwrap();
    conn.begin().await.unwrap();
    assert_eq!(rows(conn, "sessions").await.unwrap().len(), 1);
    conn.enter(&RowScope::System).await.unwrap();
    conn.rollback().await.unwrap();
    assert_eq!(rows(conn, "sessions").await.unwrap().len(), 1);
}

/// Statements that make the database refuse requests unless they are accepted in the scope of only their tenant.
const ALONE: [&str; 2] = [
    "CREATE FUNCTION alone() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF current_setting('trainyard.scope')::text[] <> ARRAY[NEW.tenant] THEN
            RAISE EXCEPTION 'in the scope %', current_setting('trainyard.scope');
        END IF;
        RETURN NEW;
    END
    $$",
    "CREATE TRIGGER alone BEFORE INSERT ON requests FOR EACH ROW EXECUTE FUNCTION alone()",
];

#[tokio::test]
async fn samples_of_several_tenants_that_are_accepted_together_are_in_a_scope_each() {
    let bench = Bench::on(Backend::Postgres).await;
    let mut conn = connect_as_system(&bench.database.database).await.unwrap();
    for text in ALONE {
        run(&mut conn, text.to_owned()).await.unwrap();
    }
    let scheduler = &bench.scheduler;
    let mut samplers = Vec::new();
    for tenant in ["a", "b", "c"].map(TenantId::new) {
        let session = scheduler.create_session(&tenant, new_session(None)).await.unwrap();
        let sampler = scheduler.create_sampling_session(&tenant, new_sampling(&session, 0, None)).await.unwrap();
        samplers.push((tenant, sampler));
    }
    let before = scheduler.stats().transactions;
    // The tenants take turns, and the last sample of each names an object of the other.
    let mut calls: Vec<(&TenantId, SampleSubmission)> = (0..40)
        .flat_map(|seq_id| samplers.iter().map(move |(tenant, sampler)| (tenant, sample(sampler, seq_id))))
        .collect();
    for (place, (tenant, _)) in samplers.iter().enumerate() {
        calls.push((tenant, sample(&samplers[(place + 1) % 3].1, 40)));
    }
    let accepted = join_all(calls.into_iter().map(|(tenant, one)| scheduler.submit_sample(tenant, one))).await;
    let (own, others) = accepted.split_at(120);
    let own: Vec<&RequestId> = own.iter().map(|accepted| &accepted.as_ref().unwrap().request_id).collect();
    for refused in others {
        assert!(matches!(refused, Err(Error::NotFound { .. })), "{refused:?}");
    }
    assert!(scheduler.stats().transactions - before <= 6, "they are accepted together");
    let started: Vec<(TenantId, i64)> = scheduler
        .take_work()
        .into_iter()
        .map(|item| match item {
            WorkItem::Start(work) => (work.tenant, work.seq_id),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(started.len(), own.len());
    for (tenant, _) in &samplers {
        let of_tenant: Vec<i64> = started.iter().filter(|(of, _)| of == tenant).map(|(_, seq_id)| *seq_id).collect();
        assert!(of_tenant.is_sorted(), "{tenant}: {of_tenant:?}");
    }
}

#[tokio::test]
async fn any_name_is_a_scope_of_its_own() {
    let mut wall = wall().await;
    for name in ["it's", "\"", "\\", "{wall-a}", "wall-a,wall-b", "system", "NULL", ""] {
        let scope = RowScope::of(&TenantId::new(name));
        wall.conn.begin_in(&scope).await.unwrap();
        let insert = sqlx::query("INSERT INTO rate_limits (tenant, units, at) VALUES ($1, 0, 1)").bind(name);
        let Raw::Postgres(raw) = wall.conn.raw() else { panic!("a PostgreSQL database") };
        insert.execute(raw.without_deadline().unwrap()).await.unwrap();
        assert_eq!(rows(&mut wall.conn, "rate_limits").await.unwrap().len(), 1, "{name:?}");
        wall.conn.commit().await.unwrap();
        wall.conn.enter(&scope).await.unwrap();
        assert_eq!(rows(&mut wall.conn, "rate_limits").await.unwrap().len(), 1, "{name:?}");
        wall.conn.leave().await.unwrap();
    }
}

#[tokio::test]
async fn a_wall_that_is_down_is_noticed() {
    let mut wall = wall().await;
    assert_eq!(bypass(&mut wall.conn).await.unwrap(), None, "tests run as a role that the wall holds");
    run(&mut wall.conn, "ALTER TABLE usage NO FORCE ROW LEVEL SECURITY".into()).await.unwrap();
    let found = bypass(&mut wall.conn).await.unwrap();
    assert!(found.is_some_and(|found| found.ends_with("the table usage")));
}
