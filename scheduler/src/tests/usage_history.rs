//! Tests of what is kept of usage and of the audit log.

use serde_json::{Map, Value};

use super::*;
use crate::store::db::{Conn, connect_as_system, sql};
use crate::store::usage_by_hour::{Kept, delete_usage};
use crate::{AuditCategory, HourlyUsage, NewAuditEntry};

const HOUR: i64 = 3_600_000;
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Inserts usage of so many tokens at a time.
async fn used(conn: &mut Conn, number: i64, at: i64, tokens: i64) {
    const SQL: &str = "INSERT INTO usage (request_id, tenant, at, kind, base_model, session_id, user_id, trained, prefill,
            cached, sampled)
        VALUES ($1, 'me', $2, 'forward', 'base', 's', NULL, $3, 0, 0, 1)";
    sql(SQL).bind(format!("r-{number}")).bind(at).bind(tokens).execute(conn).await.unwrap();
}

async fn count(conn: &mut Conn, text: &'static str) -> i64 {
    sql(text).scalar(conn).await.unwrap().unwrap()
}

async fn hours(bench: &Bench, from: i64) -> Vec<(i64, u64, u64)> {
    let to = Timestamp(from + 24 * HOUR);
    let all = bench.scheduler.hourly_usage(&bench.me, Timestamp(from), to).await.unwrap();
    let line = |found: &HourlyUsage| ((found.hour.0 - from) / HOUR, found.tokens.trained, found.tokens.sampled);
    all.iter().map(line).collect()
}

#[tokio::test]
async fn usage_is_added_up_by_hour_and_the_sums_outlive_the_requests() {
    let bench = bench().await;
    let conn = &mut connect_as_system(&bench.database.database).await.unwrap();
    let from = bench.scheduler.core.now().0 / HOUR * HOUR - 3 * HOUR;
    // The second and third are in one hour, of different spans; the last is too recent to be added up.
    let recent = bench.scheduler.core.now().0 - 1_000;
    for (number, at) in [from + 1, from + HOUR, from + 2 * HOUR - 1, recent].into_iter().enumerate() {
        used(conn, number as i64, at, 1 << number).await;
    }
    let last = (recent - from) / HOUR;
    let expected = [(0, 1, 1), (1, 6, 2), (last, 8, 1)];
    assert_eq!(hours(&bench, from).await, expected);
    bench.scheduler.maintain().await.unwrap();
    assert_eq!(count(conn, "SELECT CAST(sum(trained) AS BIGINT) FROM usage_by_hour").await, 7);
    assert_eq!(hours(&bench, from).await, expected, "nothing is counted twice");
    bench.scheduler.maintain().await.unwrap();
    assert_eq!(count(conn, "SELECT count(*) FROM usage").await, 4);
    bench.pass(DAY * 36);
    bench.collect_garbage().await;
    assert_eq!(count(conn, "SELECT count(*) FROM usage").await, 0);
    assert_eq!(hours(&bench, from).await, expected);
    bench.pass(DAY * 400);
    bench.collect_garbage().await;
    assert_eq!(hours(&bench, from).await, []);
}

/// Inserts usage of so many requests of a tenant, one a minute from a time.
async fn used_by(conn: &mut Conn, tenant: &str, from: i64, requests: i64) {
    const SQL: &str = "INSERT INTO usage (request_id, tenant, at, kind, base_model, session_id, user_id, trained, prefill,
            cached, sampled)
        VALUES ($1, $2, $3, 'forward', 'base', 's', NULL, 1, 0, 0, 0)";
    for i in 0..requests {
        let insert = sql(SQL).bind(format!("{tenant}-{i}")).bind(tenant);
        insert.bind(from + i * 60_000).execute(conn).await.unwrap();
    }
}

#[tokio::test]
async fn rows_of_usage_have_a_bound_that_tenants_with_few_do_not_feel() {
    let bench = bench().await;
    let conn = &mut connect_as_system(&bench.database.database).await.unwrap();
    let from = bench.scheduler.core.now().0 / HOUR * HOUR - 5 * HOUR;
    used_by(conn, "me", from, 240).await;
    used_by(conn, "other", from, 30).await;
    // A call adds up 20 spans of five minutes.
    for _ in 0..4 {
        bench.collect_garbage().await;
    }
    assert_eq!(count(conn, "SELECT CAST(sum(requests) AS BIGINT) FROM usage_rows").await, 270);
    let kept = Kept { requests: Timestamp(0), rows: 150, history: Timestamp(0) };
    while delete_usage(conn, kept).await.unwrap() {}
    let rows = "SELECT CAST(count(*) AS BIGINT) FROM usage WHERE tenant = 'other'";
    assert_eq!(count(conn, rows).await, 30);
    // At most 120 of this tenant's are left, in whole hours.
    assert_eq!(count(conn, "SELECT count(*) FROM usage WHERE tenant = 'me'").await, 120);
    assert_eq!(count(conn, "SELECT CAST(sum(requests) AS BIGINT) FROM usage_rows").await, 150);
    let kept = from + 2 * HOUR;
    assert_eq!(count(conn, "SELECT min(at) FROM usage WHERE tenant = 'me'").await, kept);
    let s = &bench.scheduler;
    assert_eq!(s.requests_complete_from(&bench.me).await.unwrap(), Timestamp(kept));
    let retained = s.core.now().minus(DAY * 35);
    assert_eq!(s.requests_complete_from(&TenantId::new("other")).await.unwrap(), retained);
    let sums: Vec<_> = hours(&bench, from).await.into_iter().map(|(hour, trained, _)| (hour, trained)).collect();
    assert_eq!(sums, [(0, 60), (1, 60), (2, 60), (3, 60)]);
    // Rows that are too old are no longer counted.
    bench.pass(DAY * 36);
    bench.collect_garbage().await;
    assert_eq!(count(conn, "SELECT count(*) FROM usage").await, 0);
    assert_eq!(count(conn, "SELECT count(*) FROM usage_rows").await, 0);
}

#[tokio::test]
async fn storage_of_deleted_checkpoints_is_kept_as_long_as_usage_by_hour() {
    const SQL: &str = "INSERT INTO stored_checkpoints (run_id, kind, name, from_at, to_at, tenant, base_model, session_id,
            size_bytes)
        VALUES ('r', 'weights', $1, 1, $2, 'me', 'base', 's', 1)";
    let bench = bench().await;
    let conn = &mut connect_as_system(&bench.database.database).await.unwrap();
    let now = bench.scheduler.core.now().0;
    for (name, to) in [("stored", None), ("recent", Some(now)), ("old", Some(2))] {
        sql(SQL).bind(name).bind(to).execute(conn).await.unwrap();
    }
    bench.collect_garbage().await;
    let names: Vec<String> = sql("SELECT name FROM stored_checkpoints ORDER BY name").scalars(conn).await.unwrap();
    assert_eq!(names, ["recent", "stored"]);
}

fn entry(event: &'static str) -> NewAuditEntry {
    NewAuditEntry {
        organisation: TenantId::new("me"),
        category: AuditCategory::Checkpoints,
        event,
        subject: "tinker://r/weights/a".to_owned(),
        details: Map::from_iter([("file".to_owned(), Value::from("a"))]),
    }
}

async fn events(bench: &Bench) -> Vec<String> {
    let (from, to) = (Timestamp(0), Timestamp(i64::MAX));
    let found = bench.scheduler.audit_log(&bench.me, None, from, to).await.unwrap();
    found.into_iter().map(|entry| entry.event).collect()
}

#[tokio::test]
async fn a_repeated_act_is_audited_once_an_hour() {
    let bench = bench().await;
    let s = &bench.scheduler;
    for _ in 0..3 {
        s.audit_once_an_hour(entry("read"), "url").await.unwrap();
    }
    assert_eq!(events(&bench).await, ["read"]);
    s.audit_once_an_hour(entry("read"), "another url").await.unwrap();
    assert_eq!(events(&bench).await, ["read", "read"]);
    bench.pass(Duration::from_secs(3_600));
    s.audit_once_an_hour(entry("read"), "url").await.unwrap();
    assert_eq!(events(&bench).await, ["read", "read", "read"]);
}

#[tokio::test]
async fn an_audit_log_is_exported_and_pruned_and_says_so() {
    let bench = bench().await;
    let s = &bench.scheduler;
    s.audit(entry("first")).await.unwrap();
    bench.pass(DAY);
    let cut = s.core.now();
    s.audit(entry("second")).await.unwrap();
    let directory = s.directory();
    let exported = directory.export_audit_log("", cut).await.unwrap();
    let found: Vec<_> = exported.iter().map(|found| (found.organisation.as_str(), found.entry.event.as_str())).collect();
    assert_eq!(found, [("me", "first")]);
    assert!(directory.export_audit_log(&exported[0].id, cut).await.unwrap().is_empty());
    let conn = &mut connect_as_system(&bench.database.database).await.unwrap();
    sql("DELETE FROM audit_log").execute(conn).await.unwrap_err();
    let future = directory.prune_audit_log(s.core.now().plus(DAY)).await;
    assert!(matches!(future, Err(Error::Invalid(_))), "{future:?}");
    assert_eq!(events(&bench).await, ["first", "second"]);
    bench.pass(Duration::from_secs(1));
    assert_eq!(directory.prune_audit_log(cut).await.unwrap(), 1);
    assert_eq!(events(&bench).await, ["second", "audit_prune"]);
    assert_eq!(directory.prune_audit_log(cut).await.unwrap(), 0);
    sql("DELETE FROM audit_log").execute(conn).await.unwrap_err();
    assert_eq!(count(conn, "SELECT count(*) FROM audit_prunes").await, 0);
}
