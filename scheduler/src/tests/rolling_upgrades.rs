//! Tests of schemas that are newer than the program.

use super::*;
use crate::store::db::{connect_as_system, sql};
use crate::{Database, migrate};

/// Applies a migration of a later release.
async fn migrate_further(database: &Database) {
    const FUTURE: &str = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
        VALUES (99, 'future', TRUE, '', 0)";
    execute(database, FUTURE).await;
}

/// Applies a migration that does more than add.
async fn break_older_programs(database: &Database) {
    execute(database, "UPDATE schema_compatibility SET oldest_program = 99").await;
}

async fn execute(database: &Database, text: &'static str) {
    let mut conn = connect_as_system(database).await.unwrap();
    sql(text).execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
}

fn refuses<T>(result: Result<T, Error>) {
    let error = result.err().unwrap();
    assert!(matches!(error, Error::Invalid(_)), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("schema version 99") && text.contains("use a newer program"), "{text}");
}

#[tokio::test]
async fn a_newer_schema_is_worked_with_where_it_only_adds() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    migrate_further(&bench.database.database).await;
    let bench = bench.restart(false).await;
    let request = bench.submit(&run, 1, RequestKind::Forward).await;
    // The creation of the run is replayed.
    bench.succeed(&bench.start().await);
    bench.succeed(&bench.start().await);
    assert!(matches!(bench.poll(&request).await, Poll::Succeeded { .. }));
    bench.scheduler.core.lease_round(true).await.unwrap();
    assert!(!bench.scheduler.is_outdated());
    let Bench { database, scheduler, .. } = bench;
    scheduler.close().await;
    assert_eq!(migrate(&database.database).await.unwrap(), 99, "there is nothing to do");
}

#[tokio::test]
async fn a_newer_schema_is_refused_where_it_does_not_only_add() {
    let Bench { dir, database, clock, scheduler, .. } = bench().await;
    scheduler.close().await;
    drop(scheduler);
    migrate_further(&database.database).await;
    break_older_programs(&database.database).await;
    refuses(Scheduler::open(options(&dir, &database, &clock)).await);
    refuses(migrate(&database.database).await);
}

#[tokio::test]
async fn a_process_stops_writing_when_its_database_is_migrated_for_newer_programs() {
    let bench = bench().await;
    let core = &bench.scheduler.core;
    if !core.is_shared() {
        // A SQLite file is used by only one process.
        return;
    }
    let run = bench.ready_run(0).await;
    migrate_further(&bench.database.database).await;
    core.lease_round(true).await.unwrap();
    break_older_programs(&bench.database.database).await;
    refuses(core.lease_round(true).await);
    refuses(Err::<(), _>(bench.scheduler.outdated().await));
    let submission = submission(&run, 1, RequestKind::Forward);
    let refused = tokio::time::timeout(LONG, bench.scheduler.submit_run(&bench.me, submission)).await;
    assert!(!matches!(refused, Ok(Ok(_))), "{refused:?}");
    assert!(matches!(bench.scheduler.run(&bench.me, &run).await, Err(Error::Unavailable(_))));
    let mut conn = connect_as_system(&bench.database.database).await.unwrap();
    let written: Option<i64> = sql("SELECT count(*) FROM requests").scalar(&mut conn).await.unwrap();
    assert_eq!(written, Some(1), "only the creation");
    // The process ends at once.
    bench.scheduler.close().await;
}
