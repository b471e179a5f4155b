//! What a year of use leaves in the store: the size of the tables, by the bytes that a row takes, and listings, which read as
//! little as in the first week.
//!
//! 50 tenants, each with 10 samples per second in four sessions at a time, a checkpoint every hour of which one a day is
//! kept with its session, and 100 entries of the audit log a day. The test has a tenth of the tenants. The usage of single
//! requests has a bound, `--usage-rows`. Samples themselves, with results of 1 kB, are deleted ten minutes after clients
//! have acknowledged them. Results that nobody acknowledges are kept for `--retention-hours` and not counted here.

use trainyard_protocol::TenantId;

use super::super::spec;
use super::*;
use crate::budgets::USAGE_ROWS;
use crate::store::checkpoints::Listed;
use crate::store::db::Value;
use crate::store::{audit, checkpoints, gc, overview, run_listing, sessions, usage};
use crate::{AccessScope, AuditCategory, Page, RunFilter, Timestamp};

const HOUR: i64 = 3_600_000;
/// Hours of a year.
const HOURS: i64 = 8_760;
/// Tenants in all, and those that the test fills.
const TENANTS: i64 = 50;
const FILLED: i64 = 5;
const SAMPLES_PER_SECOND: i64 = 10;
/// Most bytes of the year's rows of all tenants.
const MOST_BYTES: i64 = 5_000_000_000;
/// Most that a listing reads: instructions of SQLite's virtual machine and rows of PostgreSQL. Both take about 10 ms.
const STEPS: (u64, u64) = (500_000, 1_000);
const ROWS: (u64, u64) = (20_000, 20);

/// A statement whose rows are numbered by `i` from 0 to below `$1`, for each tenant.
macro_rules! numbered {
    ($insert:literal, $select:literal) => {
        concat!(
            $insert,
            " WITH RECURSIVE n(i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $1),
            tenants(t) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT t + 1 FROM tenants WHERE t < $2) ",
            $select,
            " FROM n CROSS JOIN tenants"
        )
    };
}

/// The tables with the rows of a year, in the order in which they are filled: rows of a tenant, and the statement. Its
/// third parameter is the time of the year's begin.
const TABLES: [(&str, i64, &str); 8] = [
    (
        "usage_by_hour",
        HOURS * 4,
        numbered!(
            "INSERT INTO usage_by_hour (tenant, hour, base_model, session_id, project_id, user_id, trained, prefill, cached,
                sampled)",
            "SELECT 't' || t, $3 / 3600000 + i / 4, 'meta-llama/Llama-3.1-8B', '0199d8a4-7c1e-7000-8000-' || (i / 96 * 4 + i % 4),
                '0199d8a4-7c1e-7000-8000-000000000001', '0199d8a4-7c1e-7000-8000-000000000002', 123456789, 123456789,
                123456789, 1234567"
        ),
    ),
    (
        "stored_checkpoints",
        HOURS,
        numbered!(
            "INSERT INTO stored_checkpoints (run_id, kind, name, from_at, to_at, tenant, base_model, session_id, project_id,
                user_id, size_bytes)",
            "SELECT 't' || t || '-' || (i / 24) || ':train:0', 'weights', 'step-' || i, $3 + i * 3600000,
                CASE WHEN i % 24 <> 0 THEN $3 + (i + 24) * 3600000 END, 't' || t, 'meta-llama/Llama-3.1-8B',
                't' || t || '-' || (i / 24), '0199d8a4-7c1e-7000-8000-000000000001',
                '0199d8a4-7c1e-7000-8000-000000000002', 123456789"
        ),
    ),
    (
        "sessions",
        HOURS / 24,
        numbered!(
            "INSERT INTO sessions (id, tenant, tags, user_metadata, sdk_version, status, finish_reason, created_at, ended_at,
                last_seen_at, collected)",
            "SELECT 't' || t || '-' || i, 't' || t, '[\"a\"]', '{\"name\": \"a run of some kind\"}', '0.38.0', 'finished',
                'success', $3 + i * 86400000, $3 + i * 86400000, $3 + i * 86400000, TRUE"
        ),
    ),
    (
        "runs",
        HOURS / 24,
        numbered!(
            "INSERT INTO runs (id, tenant, session_id, model_seq_id, spec, state, user_metadata, created_at, last_request_at,
                base_model, epoch)",
            "SELECT 't' || t || '-' || i || ':train:0', 't' || t, 't' || t || '-' || i, 0, $4, 'ready', '{}',
                $3 + i * 86400000, $3 + i * 86400000, 'meta-llama/Llama-3.1-8B', 1"
        ),
    ),
    (
        "checkpoints",
        HOURS / 24,
        numbered!(
            "INSERT INTO checkpoints (run_id, kind, name, tenant, spec, dir, size_bytes, user_metadata, created_at)",
            "SELECT 't' || t || '-' || i || ':train:0', 'weights', 'step-' || (i * 24), 't' || t, $4,
                'checkpoints/t' || t || '-' || i, 123456789, '{}', $3 + i * 86400000"
        ),
    ),
    (
        "usage",
        USAGE_ROWS as i64 / TENANTS,
        numbered!(
            "INSERT INTO usage (request_id, tenant, at, kind, base_model, session_id, project_id, user_id, trained, prefill,
                cached, sampled)",
            "SELECT '0199d8a4-7c1e-7000-' || t || '-' || (1000000000 + i), 't' || t, $3 + i * 100, 'sample',
                'meta-llama/Llama-3.1-8B', '0199d8a4-7c1e-7000-8000-' || (i % 4), '0199d8a4-7c1e-7000-8000-000000000001',
                '0199d8a4-7c1e-7000-8000-000000000002', 0, 1234, 567, 890"
        ),
    ),
    (
        "requests",
        // Those of ten minutes, and of one more until they are deleted.
        SAMPLES_PER_SECOND * 660,
        numbered!(
            "INSERT INTO requests (id, tenant, session_id, sampling_session_id, seq_id, kind, num_samples, fingerprint,
                state, encoding, result, result_size, event, clone, acknowledged_at, created_at, finished_at, worker_id,
                claim, tokens)",
            "SELECT '0199d8a4-7c1e-7000-' || t || '-' || (1000000000 + i), 't' || t, 't' || t || '-' || (i % 4),
                't' || t || '-' || (i % 4) || ':sample:0', i, 'sample', 1, substr($4, 1, 32), 'succeeded', 'protobuf', $4, 1000, i, 0,
                $3 + i * 100, $3 + i * 100, $3 + i * 100, '0199d8a4-7c1e-7000-8000-000000000004', 1, 1000"
        ),
    ),
    (
        "audit_log",
        HOURS / 24 * 100,
        numbered!(
            "INSERT INTO audit_log (id, at, organisation, category, event, subject, details, actor, key_id, request_id, address)",
            "SELECT '0199d8a4-7c1e-7000-' || t || '-' || (1000000000 + i), $3 + i * 864000, 't' || t, 'checkpoints',
                'checkpoint_delete', 'tinker://t' || t || '-' || i || ':train:0/weights/step-' || i, '{\"size_bytes\": 123456789}',
                'key 17 of somebody', 17, '0199d8a4-7c1e-7000-8000-000000000003', '2001:db8::1'"
        ),
    ),
];

#[tokio::test]
async fn a_year_of_fifty_tenants_is_small_and_quick_to_list_on_sqlite() {
    check_year(Backend::Sqlite).await;
}

#[tokio::test]
async fn a_year_of_fifty_tenants_is_small_and_quick_to_list_on_postgres() {
    check_year(Backend::Postgres).await;
}

async fn check_year(backend: Backend) {
    let dir = tempfile::tempdir().unwrap();
    let database = TestDatabase::new(backend, dir.path()).await;
    migrate(&database.database).await.unwrap();
    let mut conn = connect_as_system(&database.database).await.unwrap();
    let (sizes, bytes) = fill_year(&mut conn).await;
    assert!(bytes < MOST_BYTES, "{bytes} bytes: {sizes:?}");
    // Less would mean that the measure is wrong.
    assert!(sizes.iter().all(|(_, row)| (50..2_000).contains(row)), "{sizes:?}");
    delete_acknowledged_samples(&mut conn).await;
    sql("ANALYZE").execute(&mut conn).await.unwrap();
    if conn.dialect() == Dialect::Postgres {
        // Tables that are small beside those of other tests may be read completely.
        sql("SET enable_seqscan = off").execute(&mut conn).await.unwrap();
    }
    let mut plans = Plans { conn, findings: BTreeSet::new(), seen: BTreeSet::new(), bounds: (STEPS, ROWS) };
    list(&mut plans).await;
    let Plans { conn, findings, .. } = plans;
    conn.close().await.unwrap();
    assert!(findings.is_empty(), "{}", findings.into_iter().collect::<Vec<_>>().join("\n"));
}

/// Inserts the rows. Returns the bytes of a row of each table with its indices, and those of all tenants' rows.
async fn fill_year(conn: &mut Conn) -> (Vec<(&'static str, i64)>, i64) {
    let spec = serde_json::to_string(&spec()).unwrap();
    let (mut sizes, mut bytes) = (Vec::new(), 0);
    if conn.dialect() == Dialect::Sqlite {
        // The tables are filled without those that they refer to.
        sql("PRAGMA foreign_keys = OFF").execute(conn).await.unwrap();
    }
    for (table, rows, text) in TABLES {
        let before = size(conn, table).await;
        conn.begin().await.unwrap();
        if conn.dialect() == Dialect::Postgres {
            sql("SET LOCAL session_replication_role = replica").execute(conn).await.unwrap();
        }
        let values: Vec<Value<'_>> = vec![rows.into(), FILLED.into(), (NOW - HOURS * HOUR).into()];
        let mut statement = values.into_iter().fold(sql(text), |statement, value| statement.bind(value));
        if text.contains("$4") {
            statement =
                if table == "requests" { statement.bind(&[7; 1_000][..]) } else { statement.bind(spec.as_str()) };
        }
        let inserted = statement.execute(conn).await.unwrap_or_else(|error| panic!("{error}: {table}"));
        assert_eq!(inserted, (rows * FILLED).unsigned_abs(), "{table}");
        conn.commit().await.unwrap();
        let taken = size(conn, table).await - before;
        sizes.push((table, taken / (rows * FILLED)));
        bytes += taken / FILLED * TENANTS;
    }
    (sizes, bytes)
}

/// Deletes the samples of the first minute, as after ten minutes. The rows of single samples above are bounded by it.
async fn delete_acknowledged_samples(conn: &mut Conn) {
    const COUNT: &str = "SELECT count(*) FROM requests";
    let before = sql(COUNT).scalar::<i64>(conn).await.unwrap().unwrap();
    let minute = Timestamp(NOW - HOURS * HOUR + 60_000);
    while gc::drop_results(conn, Timestamp(0), minute).await.unwrap().is_full {}
    let after = sql(COUNT).scalar::<i64>(conn).await.unwrap().unwrap();
    assert_eq!(before - after, 60 * SAMPLES_PER_SECOND * FILLED);
}

/// Returns the bytes of a table with its indices; on SQLite those of the whole database, where it is the only one that
/// grows.
async fn size(conn: &mut Conn, table: &'static str) -> i64 {
    if conn.dialect() == Dialect::Sqlite {
        let pages: i64 = sql("PRAGMA page_count").scalar(conn).await.unwrap().unwrap();
        let page: i64 = sql("PRAGMA page_size").scalar(conn).await.unwrap().unwrap();
        return pages * page;
    }
    let size = sql("SELECT pg_total_relation_size($1::regclass)").bind(table);
    size.scalar(conn).await.unwrap().unwrap()
}

/// Lists what the tenant `t1` has, as its clients do.
async fn list(plans: &mut Plans) {
    let tenant = TenantId::new("t1");
    let owned = RunFilter { scope: AccessScope::Owned, project_id: None };
    let page = |offset| Page { limit: 100, offset };
    // The longest period of a report, in the middle of the year.
    let (from, to) = (Timestamp(NOW - 200 * 24 * HOUR), Timestamp(NOW - 186 * 24 * HOUR));
    plans.step(async |conn| usage::hourly_usage(conn, &tenant, from, to).await).await;
    plans.step(async |conn| usage::request_usage(conn, &tenant, from, to, "", 1_000).await).await;
    plans.step(async |conn| usage::stored_checkpoints(conn, &tenant, from, to).await).await;
    plans.step(async |conn| usage::storage_in_use(conn, &tenant).await).await;
    for offset in [0, 300] {
        let listed = Listed::In(AccessScope::Owned);
        plans.step(async |conn| sessions::list_sessions(conn, &tenant, None, page(offset)).await).await;
        plans
            .step(async |conn| run_listing::list_runs(conn, &tenant, &owned, page(offset), Timestamp(NOW)).await)
            .await;
        plans
            .step(async |conn| checkpoints::list_checkpoints(conn, &tenant, listed, page(offset), Timestamp(NOW)).await)
            .await;
        plans.step(async |conn| overview::newest_runs(conn, &tenant, page(offset)).await).await;
    }
    plans.step(async |conn| overview::failed_requests(conn, &tenant, Timestamp(NOW - 24 * HOUR), 20).await).await;
    plans.step(async |conn| overview::token_rates(conn, &tenant, Timestamp(NOW - HOUR), 60_000).await).await;
    let category = Some(AuditCategory::Checkpoints);
    plans.step(async |conn| audit::audit_entries(conn, &tenant, category, from, to).await).await;
    plans.step(async |conn| audit::exported_entries(conn, "", from).await).await;
}
