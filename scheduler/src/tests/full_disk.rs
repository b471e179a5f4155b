//! Tests of a full disk: no acknowledged request is lost, and callers learn why they must wait.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::Database;
use crate::context::core::{Core, Urgency};
use crate::store::db::{Conn, RowScope, connect_as_system, sql};
use crate::store::failed;
use crate::writer::write::Write;

/// A change that fails this many times because of a full disk.
struct Call(Arc<AtomicU32>);
struct Record(Arc<AtomicU32>);

fn attempt(left: &AtomicU32) -> Result<(), Error> {
    let found = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    found.map_or(Ok(()), |_| Err(Error::NoSpace("write")))
}

impl Write for Call {
    type Output = ();

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, _conn: &mut Conn, _core: &Core) -> Result<(), Error> {
        attempt(&self.0)
    }
}

impl Write for Record {
    type Output = ();
    const URGENCY: Urgency = Urgency::Record;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, _conn: &mut Conn, _core: &Core) -> Result<(), Error> {
        attempt(&self.0)
    }
}

#[tokio::test]
async fn calls_are_answered_with_the_cause_and_records_are_repeated() {
    let site = fleet::Site::new(Backend::Sqlite).await;
    let scheduler = Scheduler::open(options(&site.dir, &site.database, &site.clock)).await.unwrap();
    let full = Arc::new(AtomicU32::new(1));
    assert_eq!(scheduler.write(Call(Arc::clone(&full))).await, Err(Error::NoSpace("write")));
    assert_eq!(scheduler.write(Call(full)).await, Ok(()));
    let full = Arc::new(AtomicU32::new(2));
    scheduler.core.record(Record(Arc::clone(&full)));
    while full.load(Ordering::SeqCst) > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // This call is behind the record, and is committed with it or after it.
    assert_eq!(scheduler.write(Call(full)).await, Ok(()));
    scheduler.observe().await.unwrap();
    let (mut registry, mut text) = (prometheus_client::registry::Registry::default(), String::new());
    scheduler.metrics().register(&mut registry);
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let value = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap()
    };
    assert_eq!(value("store_failures_total{reason=\"no_space\"}"), 3.0);
    assert_eq!(value("store_failures_total{reason=\"unavailable\"}"), 0.0);
    assert_eq!(value("store_commit_seconds_count"), value("store_transactions_total"));
    assert_eq!(value("store_transaction_writes_sum"), value("store_writes_total"));
    assert_eq!(value("writer_wait_seconds_count"), value("store_writes_total"));
    assert!(value("store_reader_wait_seconds_count") >= 1.0);
    assert!(value("store_readers_limit") >= 1.0 && value("shortest_lease_seconds") > 0.0);
    assert_eq!(value("heartbeat_age_seconds"), 0.0);
}

#[tokio::test]
async fn a_full_database_file_is_told_from_other_failures() {
    let dir = tempfile::tempdir().unwrap();
    let mut conn = connect_as_system(&Database::from(dir.path().join("t.db"))).await.unwrap();
    sql("CREATE TABLE t (bytes BLOB)").execute(&mut conn).await.unwrap();
    sql("PRAGMA max_page_count = 8").execute(&mut conn).await.unwrap();
    let large = vec![0_u8; 1 << 20];
    let refused = sql("INSERT INTO t VALUES ($1)").bind(large.as_slice()).execute(&mut conn).await;
    assert_eq!(refused.map_err(failed("write")), Err(Error::NoSpace("write")));
    let refused = sql("INSERT INTO nothing VALUES (1)").execute(&mut conn).await;
    assert_eq!(refused.map_err(failed("write")), Err(Error::Store("write")));
}
