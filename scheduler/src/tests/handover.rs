//! Tests of runs that pass from one worker to another.

use std::collections::BTreeSet;

use trainyard_protocol::BaseModel;

use super::fleet::{Fleet, Site, kill, next, report, round, succeeded};
use super::*;
use crate::store::db::sql;
use crate::{MaintenanceOp, WorkerOptions};

#[tokio::test]
async fn a_completion_under_a_superseded_lease_is_refused() {
    let fleet = Fleet::new().await;
    let a = fleet.worker("a").await;
    let run = fleet.run_of(&a, 0).await;
    let request = fleet.submit(&fleet.api, &run, 1).await;
    let old = next(&a).await;
    assert_eq!(old.request, request);
    fleet.pass_lease().await;
    let b = fleet.worker("b").await;
    round(&b).await;
    report(&a, &old, "late");
    let replay = next(&b).await;
    assert_eq!((replay.seq_id, replay.replay), (0, true));
    // The worker unloads the run once its completion was refused.
    let waiting = a.clone();
    let items = tokio::task::spawn_blocking(move || waiting.wait_work(LONG)).await.unwrap();
    assert_eq!(items, vec![WorkItem::UnloadRun(run.clone())]);
    assert_eq!(fleet.api.poll(&fleet.me, &request, NO_WAIT).await.unwrap(), Poll::Pending);
    report(&b, &replay, "ignored");
    let work = next(&b).await;
    assert_eq!((&work.request, work.replay), (&request, false));
    report(&b, &work, "of b");
    assert_eq!(fleet.poll(&request).await, succeeded("of b"));
    report(&a, &old, "later still");
    round(&a).await;
    assert_eq!(a.poll(&fleet.me, &request, LONG).await.unwrap(), succeeded("of b"));
    let then = fleet.submit(&a, &run, 2).await;
    report(&b, &next(&b).await, "then");
    assert_eq!(fleet.poll(&then).await, succeeded("then"));
}

#[tokio::test]
async fn a_run_beyond_its_workers_share_is_saved_and_restored_by_another() {
    let fleet = Fleet::new().await;
    let a = fleet.worker("a").await;
    fleet.run_of(&a, 0).await;
    fleet.run_of(&a, 1).await;
    round(&a).await;
    assert_eq!(a.take_work(), Vec::new(), "a single worker keeps both");
    let b = fleet.worker("b").await;
    round(&a).await;
    let save = next(&a).await;
    assert_eq!((save.kind, save.seq_id, save.replay), (RequestKind::SaveRun, 0, false));
    a.complete(save.request.clone(), result(0), vec![Effect::RunSaved("snapshots/a/b".into())]);
    let run = save.run.clone().unwrap();
    let waiting = a.clone();
    let items = tokio::task::spawn_blocking(move || waiting.wait_work(LONG)).await.unwrap();
    assert_eq!(items, vec![WorkItem::UnloadRun(run.clone())]);
    let request = fleet.submit(&fleet.api, &run, 1).await;
    let restore = next(&b).await;
    assert_eq!((restore.kind, restore.seq_id, restore.replay), (RequestKind::RestoreRun, 0, true));
    let operation: MaintenanceOp = serde_json::from_slice(&restore.payload).unwrap();
    assert!(
        matches!(&operation, MaintenanceOp::RestoreRun { dir, .. } if dir.ends_with("snapshots/a/b")),
        "{operation:?}"
    );
    report(&b, &restore, "ignored");
    let work = next(&b).await;
    assert_eq!((&work.request, work.replay), (&request, false));
    report(&b, &work, "of b");
    assert_eq!(fleet.poll(&request).await, succeeded("of b"));
    // Each worker's share is one run now.
    round(&a).await;
    assert_eq!(a.take_work(), Vec::new());
}

/// Starts to drain a worker in the background, and returns the task.
fn drain(worker: &Scheduler) -> tokio::task::JoinHandle<bool> {
    let worker = worker.clone();
    tokio::spawn(async move { worker.drain(LONG).await })
}

#[tokio::test]
async fn a_worker_that_drains_finishes_and_saves_what_it_has() {
    let fleet = Fleet::new().await;
    let a = fleet.worker("a").await;
    let run = fleet.run_of(&a, 0).await;
    let sampler = a.create_sampling_session(&fleet.me, new_sampling(&fleet.session, 0, None)).await.unwrap();
    let first = fleet.submit(&a, &run, 1).await;
    let executing = next(&a).await;
    let second = fleet.submit(&a, &run, 2).await;
    let taken = a.submit_sample(&fleet.me, sample(&sampler, 0)).await.unwrap().request_id;
    assert_eq!(next(&a).await.request, taken);
    let pending = a.submit_sample(&fleet.me, sample(&sampler, 1)).await.unwrap().request_id;
    let draining = drain(&a);
    let b = fleet.worker("b").await;
    // Samples that the engine has yet to begin move to the other worker; its request is finished.
    let mut moved = BTreeSet::new();
    while moved.len() < 2 {
        round(&b).await;
        for item in b.take_work() {
            if let WorkItem::Start(work) = item {
                report(&b, &work, "of b");
                moved.insert(work.request);
            }
        }
    }
    assert_eq!(moved, BTreeSet::from([taken, pending]));
    report(&a, &executing, "of a");
    assert_eq!(fleet.poll(&first).await, succeeded("of a"));
    let save = next(&a).await;
    assert_eq!((save.kind, save.seq_id, save.replay), (RequestKind::SaveRun, 1, false));
    // A draining process still accepts requests.
    let third = fleet.submit(&a, &run, 3).await;
    a.complete(save.request.clone(), result(1), vec![Effect::RunSaved("snapshots/a/b".into())]);
    assert!(draining.await.unwrap());
    a.close().await;
    let restore = next(&b).await;
    assert_eq!((restore.kind, restore.seq_id), (RequestKind::RestoreRun, 1));
    report(&b, &restore, "ignored");
    for request in [second, third] {
        let work = next(&b).await;
        assert_eq!((&work.request, work.replay), (&request, false));
        report(&b, &work, "of b");
        assert_eq!(fleet.poll(&request).await, succeeded("of b"));
    }
}

#[tokio::test]
async fn a_run_that_can_not_be_saved_is_released_all_the_same() {
    let fleet = Fleet::new().await;
    let a = fleet.worker("a").await;
    let run = fleet.run_of(&a, 0).await;
    let draining = drain(&a);
    let save = next(&a).await;
    assert_eq!(save.kind, RequestKind::SaveRun);
    a.complete(save.request, Outcome::Failed(OpError::server("disk full")), Vec::new());
    assert!(draining.await.unwrap());
    let b = fleet.worker("b").await;
    fleet.submit(&fleet.api, &run, 1).await;
    round(&b).await;
    let replay = next(&b).await;
    assert_eq!((replay.seq_id, replay.replay), (0, true));
}

#[tokio::test]
async fn the_end_of_a_session_takes_its_samples_from_another_processs_worker() {
    let fleet = Fleet::new().await;
    let a = fleet.worker("a").await;
    let sampler = fleet.api.create_sampling_session(&fleet.me, new_sampling(&fleet.session, 0, None)).await.unwrap();
    let request = fleet.api.submit_sample(&fleet.me, sample(&sampler, 0)).await.unwrap().request_id;
    let work = next(&a).await;
    assert_eq!(work.request, request);
    a.samples_admitted(std::slice::from_ref(&request));
    fleet.api.finish_session(&fleet.me, &fleet.session, crate::FinishReason::Errored, None).await.unwrap();
    assert_eq!(fleet.poll(&request).await, Poll::Cancelled);
    let waiting = a.clone();
    let items = tokio::task::spawn_blocking(move || waiting.wait_work(LONG)).await.unwrap();
    assert_eq!(items, vec![WorkItem::Cancel(request)]);
}

#[tokio::test]
async fn a_busy_run_moves_between_two_of_its_requests() {
    let fleet = Fleet::new().await;
    let a = fleet.worker("a").await;
    let runs = [fleet.run_of(&a, 0).await, fleet.run_of(&a, 1).await];
    let mut works = Vec::new();
    for run in &runs {
        fleet.submit(&a, run, 1).await;
        fleet.submit(&a, run, 2).await;
        works.push(next(&a).await);
    }
    let b = fleet.worker("b").await;
    round(&a).await;
    assert_eq!(a.take_work(), Vec::new(), "what is being executed is finished first");
    let mut moved = None;
    for work in works {
        report(&a, &work, "of a");
        let then = next(&a).await;
        match then.kind {
            RequestKind::SaveRun => moved = Some(then),
            _ => assert_eq!(then.seq_id, 2, "one of them stays"),
        }
    }
    let save = moved.unwrap();
    assert_eq!(save.seq_id, 1);
    a.complete(save.request.clone(), result(1), vec![Effect::RunSaved("snapshots/a/b".into())]);
    let restore = next(&b).await;
    assert_eq!((restore.kind, &restore.run), (RequestKind::RestoreRun, &save.run));
    report(&b, &restore, "ignored");
    let work = next(&b).await;
    assert_eq!((work.seq_id, work.replay, &work.run), (2, false, &save.run));
    report(&b, &work, "of b");
    assert_eq!(fleet.poll(&work.request).await, succeeded("of b"));
    // Each worker's share is one run now.
    round(&a).await;
    assert!(a.take_work().iter().all(|item| matches!(item, WorkItem::UnloadRun(_))));
}

#[tokio::test]
async fn no_lease_expires_because_the_store_was_unreachable() {
    let fleet = Fleet::new().await;
    let a = fleet.worker("a").await;
    let run = fleet.run_of(&a, 0).await;
    let b = fleet.worker("b").await;
    fleet.pass_lease().await;
    // For b the store has only just become reachable.
    b.core.heartbeats.store_reachable_since(b.core.now());
    round(&b).await;
    round(&a).await;
    let request = fleet.submit(&fleet.api, &run, 1).await;
    round(&a).await;
    let work = next(&a).await;
    assert_eq!((&work.request, work.replay), (&request, false), "it has its run still");
    fleet.pass_lease().await;
    round(&b).await;
    let replay = next(&b).await;
    assert_eq!((replay.seq_id, replay.replay), (0, true), "after a lease's time without a heartbeat it has not");
}

#[tokio::test]
async fn a_process_whose_clock_is_ahead_expires_nobody() {
    let fleet = Fleet::new().await;
    // Use the default lease.
    let worker = Some(WorkerOptions::new("a", vec!["base".to_owned()]));
    let a = Scheduler::open(Options { worker, ..fleet.options() }).await.unwrap();
    let run = fleet.run_of(&a, 0).await;
    let ahead = Arc::new(TestClock(AtomicI64::new(a.core.now().0 + 30_000)));
    let clock: Arc<dyn Clock> = ahead;
    let skewed = Scheduler::open(Options { clock, worker: None, ..fleet.options() }).await.unwrap();
    skewed.core.heartbeats.store_reachable_since(Timestamp(0));
    round(&skewed).await;
    let request = fleet.submit(&fleet.api, &run, 1).await;
    round(&a).await;
    let work = next(&a).await;
    assert_eq!((&work.request, work.replay), (&request, false), "it has its run still");
    assert_eq!(fleet.api.worker_wait(&fleet.me, &request).await.unwrap(), None);
}

#[tokio::test]
async fn a_worker_takes_nothing_before_it_is_started() {
    let fleet = Fleet::new().await;
    let worker = WorkerOptions { lease: super::fleet::LEASE, ..WorkerOptions::new("a", vec!["base".to_owned()]) };
    let options = Options { worker: Some(worker), worker_waits: true, ..fleet.options() };
    let a = Scheduler::open(options).await.unwrap();
    let (_, created) = fleet.api.submit_create(&fleet.me, new_run(&fleet.session, 0)).await.unwrap();
    round(&a).await;
    assert_eq!(a.take_work(), Vec::new());
    a.start_worker().await.unwrap();
    assert_eq!(next(&a).await.request, created.request_id);
}

#[tokio::test]
async fn what_a_worker_claims_after_its_lease_expired_does_not_stay_with_it() {
    let fleet = Fleet::new().await;
    let a = fleet.worker("a").await;
    fleet.pass_lease().await;
    let b = fleet.worker("b").await;
    round(&b).await;
    // The worker crashes before it learns that its lease expired.
    let (run, created) = a.submit_create(&fleet.me, new_run(&fleet.session, 0)).await.unwrap();
    kill(a);
    round(&b).await;
    let work = next(&b).await;
    assert_eq!(work.run, Some(run));
    report(&b, &work, "of b");
    assert_eq!(fleet.poll(&created.request_id).await, succeeded("of b"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_woken_all_the_time_runs_lease_rounds_too() {
    let fleet = Fleet::new().await;
    let worker =
        WorkerOptions { lease: Duration::from_millis(400), ..WorkerOptions::new("a", vec!["base".to_owned()]) };
    let options = Options { worker: Some(worker), ..fleet.options() };
    let a = Scheduler::open(options).await.unwrap();
    let crashed = fleet.worker("crashed").await;
    kill(crashed);
    fleet.pass_lease().await;
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    loop {
        a.core.claims.wake();
        tokio::time::sleep(Duration::from_millis(5)).await;
        let all: Vec<String> = sql("SELECT id FROM workers ORDER BY id")
            .scalars(&mut fleet.api.core.system_reader().await.unwrap())
            .await
            .unwrap();
        if all == ["a"] {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{all:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_with_more_models_takes_all_runs_that_nobody_else_can() {
    let fleet = Fleet::new().await;
    let _other = fleet.worker("a").await;
    let models = vec!["base".to_owned(), "rare".to_owned()];
    let worker = WorkerOptions { lease: Duration::from_secs(3600), ..WorkerOptions::new("b", models) };
    let runs: Vec<_> = {
        let mut runs = Vec::new();
        for n in 0..4 {
            let mut new = new_run(&fleet.session, n);
            new.spec.base_model = "rare".to_owned();
            runs.push(fleet.api.submit_create(&fleet.me, new).await.unwrap().0);
        }
        runs
    };
    let options = Options { worker: Some(worker), ..fleet.options() };
    let b = Scheduler::open(options).await.unwrap();
    round(&b).await;
    let mut held = b.core.queue.read().run_ids();
    held.sort_unstable();
    let mut expected = runs;
    expected.sort_unstable();
    assert_eq!(held, expected);
}

#[tokio::test]
async fn base_models_of_a_worker_appear_together() {
    let site = Site::new(Backend::Postgres).await;
    let (worker, api) = (site.process(Some("one")).await, site.process(None).await);
    let model = |at: usize| BaseModel {
        name: format!("model-{at}"),
        arch: "llama".to_owned(),
        max_context_length: 64,
        vocab_size: 100,
        parameters: 1_000,
        vision: None,
    };
    let files = BTreeMap::from([("tokenizer.json".to_owned(), vec![7; 100_000])]);
    let models: Vec<_> = (0..9).rev().map(|at| (model(at), files.clone())).collect();
    let mut seen = Vec::new();
    let watch = async {
        while seen.last() != Some(&9) {
            seen.push(api.base_models().await.unwrap().len());
        }
    };
    let (published, ()) = tokio::join!(worker.put_base_models(models), watch);
    published.unwrap();
    assert!(seen.iter().all(|count| [0, 9].contains(count)), "{seen:?}");
}
