//! Tests of leases and saves of one worker.

use super::*;
use crate::MaintenanceOp;
use crate::store::db::{column, sql};
use crate::store::leases;

/// Returns the worker of a run, and how often the lease was taken.
async fn lease(bench: &Bench, run: &RunId) -> (Option<String>, i64) {
    let mut conn = bench.scheduler.core.system_reader().await.unwrap();
    let query = sql("SELECT worker_id, epoch FROM runs WHERE id = $1").bind(run.as_str());
    let row = query.fetch_optional(&mut conn).await.unwrap().unwrap();
    (column(&row, "worker_id").unwrap(), column(&row, "epoch").unwrap())
}

/// Returns the requests of a run that are still kept for a replay.
async fn kept(bench: &Bench, run: &RunId) -> Vec<i64> {
    const SQL: &str = "SELECT seq_id FROM requests WHERE run_id = $1
        AND (replays OR payload IS NOT NULL OR payload_file IS NOT NULL) ORDER BY seq_id";
    let mut conn = bench.scheduler.core.system_reader().await.unwrap();
    sql(SQL).bind(run.as_str()).scalars(&mut conn).await.unwrap()
}

#[tokio::test]
async fn a_worker_that_starts_again_has_its_runs_at_once() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let request = bench.submit(&run, 1, RequestKind::OptimStep).await;
    assert_eq!(lease(&bench, &run).await, (Some("worker".to_owned()), 1));
    let bench = bench.restart(true).await;
    // No time has passed: nobody waited for the old lease to end.
    assert_eq!(lease(&bench, &run).await, (Some("worker".to_owned()), 2));
    let replay = bench.start().await;
    assert_eq!((replay.seq_id, replay.replay), (0, true));
    bench.succeed(&replay);
    bench.succeed(&bench.start().await);
    assert!(matches!(bench.poll(&request).await, Poll::Succeeded { .. }));
}

#[tokio::test]
async fn an_unconfirmed_lease_is_released_and_claimed_again() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let sampler = bench.sampling_session(0).await;
    let request = bench.submit(&run, 1, RequestKind::OptimStep).await;
    let sampled = bench.submit_sample(&sampler, 0).await.request_id;
    let core = Arc::clone(&bench.scheduler.core);
    // Act as if the answers to the claims had been lost.
    core.with_queue(crate::queue::Queue::revoke_all);
    core.reconcile_leases().await.unwrap();
    let mut conn = core.system_reader().await.unwrap();
    assert_eq!(leases::owned_runs(&mut conn, "worker").await.unwrap(), vec![(run.clone(), 1)]);
    assert_eq!(leases::owned_samples(&mut conn, "worker").await.unwrap(), vec![(sampled.clone(), 1)]);
    drop(conn);
    core.reconcile_leases().await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        for item in bench.items().await {
            let WorkItem::Start(work) = item else { continue };
            bench.succeed(&work);
            seen.push((work.run.is_some(), work.seq_id, work.replay));
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, vec![(false, 0, false), (true, 0, true), (true, 1, false)]);
    assert!(matches!(bench.poll(&request).await, Poll::Succeeded { .. }));
    assert!(matches!(bench.poll(&sampled).await, Poll::Succeeded { .. }));
    assert_eq!(lease(&bench, &run).await, (Some("worker".to_owned()), 2));
}

#[tokio::test]
async fn a_run_is_saved_and_its_log_truncated_and_a_restart_restores_it() {
    let bench = bench().await.restart_saving(25).await;
    let run = bench.ready_run(0).await;
    for seq_id in 1..=3 {
        let request = bench.submit(&run, seq_id, RequestKind::ForwardBackward).await;
        bench.succeed(&bench.start().await);
        bench.poll(&request).await;
    }
    assert_eq!(kept(&bench, &run).await, vec![0, 1, 2, 3]);
    let save = bench.start().await;
    assert_eq!((save.kind, save.seq_id, save.replay), (RequestKind::SaveRun, 3, false));
    // Requests that arrive in the meantime wait for the save.
    let fourth = bench.submit(&run, 4, RequestKind::OptimStep).await;
    bench.nothing_ready();
    bench.succeed_with(&save, vec![Effect::RunSaved("snapshots/a/b".into())]);
    bench.succeed(&bench.start().await);
    bench.poll(&fourth).await;
    assert_eq!(kept(&bench, &run).await, vec![4]);
    let last = bench.submit(&run, 5, RequestKind::OptimStep).await;
    let bench = bench.restart(true).await;
    let restore = bench.start().await;
    assert_eq!((restore.kind, restore.seq_id, restore.replay), (RequestKind::RestoreRun, 3, true));
    let operation: MaintenanceOp = serde_json::from_slice(&restore.payload).unwrap();
    assert!(matches!(&operation, MaintenanceOp::RestoreRun { dir, .. } if dir.ends_with("snapshots/a/b")), "{operation:?}");
    bench.succeed(&restore);
    for (seq_id, replay) in [(4, true), (5, false)] {
        let work = bench.start().await;
        assert_eq!((work.seq_id, work.replay), (seq_id, replay));
        bench.succeed(&work);
    }
    assert!(matches!(bench.poll(&last).await, Poll::Succeeded { .. }));
}

#[tokio::test]
async fn a_snapshot_that_is_taken_while_its_run_is_about_to_leave_is_saved_first() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    bench.submit(&run, 1, RequestKind::SaveWeightsForSampler).await;
    let executing = bench.start().await;
    bench.scheduler.core.with_queue(|queue| queue.drain());
    bench.succeed_with(&executing, vec![Effect::SamplingSession(new_sampling(&bench.session, 0, Some("k")))]);
    let save = bench.start().await;
    assert_eq!(save.kind, RequestKind::SaveSnapshot);
    bench.succeed_with(&save, vec![Effect::SnapshotSaved { key: "k".to_owned(), dir: "snapshots/r/k".into() }]);
    assert_eq!(bench.start().await.kind, RequestKind::SaveRun);
}
