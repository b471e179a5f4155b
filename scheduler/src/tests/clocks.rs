//! Tests of processes whose own clocks are wrong: everything is deleted and expires by the clock of the database.

use std::path::PathBuf;

use trainyard_protocol::TinkerPath;

use super::fleet::{Site, kill, next, outcome, report, succeeded};
use super::*;
use crate::{NewCheckpoint, SystemClock};

const DAYS: i64 = 3 * 24 * 3_600_000;

/// The machine's clock, wrong by so many ms.
struct Wrong(AtomicI64);

impl Clock for Wrong {
    fn now(&self) -> Timestamp {
        Timestamp(SystemClock.now().as_millis() + self.0.load(Ordering::SeqCst))
    }
}

/// Opens a process whose own clock is wrong; the database's is right.
async fn process(site: &Site, worker: Option<&str>, wrong: &Arc<Wrong>) -> Scheduler {
    let worker = worker.map(|id| WorkerOptions::new(id, vec!["base".to_owned()]));
    let clock: Arc<dyn Clock> = Arc::<Wrong>::clone(wrong);
    let options = Options { clock, database_clock: None, worker, ..options(&site.dir, &site.database, &site.clock) };
    Scheduler::open(options).await.unwrap()
}

fn wrong_by(ms: i64) -> Arc<Wrong> {
    Arc::new(Wrong(AtomicI64::new(ms)))
}

/// What a process with a right clock has stored: a session with a result, and a checkpoint that expires in two hours.
struct Stored {
    session: SessionId,
    result: RequestId,
    path: TinkerPath,
}

async fn stored(site: &Site, process: &Scheduler) -> Stored {
    let me = &site.me;
    let session = process.create_session(me, new_session(None)).await.unwrap();
    let (run, created) = process.submit_create(me, new_run(&session, 0)).await.unwrap();
    report(process, &next(process).await, "created");
    assert_eq!(process.poll(me, &created.request_id, LONG).await.unwrap(), succeeded("created"));
    let path: TinkerPath = format!("tinker://{run}/sampler_weights/a").parse().unwrap();
    let checkpoint = NewCheckpoint {
        path: path.clone(),
        overwrite: true,
        dir: PathBuf::from("checkpoints/a"),
        size_bytes: 42,
        spec: spec(),
        expires_in: Some(2 * 3_600),
        user_metadata: BTreeMap::new(),
    };
    let saved = process.submit_run(me, submission(&run, 1, RequestKind::SaveWeightsForSampler)).await.unwrap();
    let work = next(process).await;
    process.complete(work.request, outcome("saved"), vec![Effect::Checkpoint(checkpoint)]);
    assert_eq!(process.poll(me, &saved.request_id, LONG).await.unwrap(), succeeded("saved"));
    Stored { session, result: saved.request_id, path }
}

/// Lets a process maintain the store, and finds everything still there.
async fn maintains_without_loss(site: &Site, process: &Scheduler, stored: &Stored) {
    let report = process.maintain().await.unwrap();
    assert_eq!((report.sessions, report.checkpoints.len()), (Vec::new(), 0));
    assert_eq!(process.poll(&site.me, &stored.result, NO_WAIT).await.unwrap(), succeeded("saved"));
    assert_eq!(process.checkpoint(&site.me, &stored.path).await.unwrap().path, stored.path);
    let session = process.session(&site.me, &stored.session).await.unwrap();
    assert_eq!(session.status, crate::SessionStatus::Active);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_clock_is_ahead_deletes_nothing() {
    let site = Site::new(Backend::Postgres).await;
    let right = process(&site, Some("a"), &wrong_by(0)).await;
    let stored = stored(&site, &right).await;
    let ahead = process(&site, None, &wrong_by(DAYS)).await;
    maintains_without_loss(&site, &ahead, &stored).await;
    assert!((ahead.own_clock_ahead_ms() - DAYS).abs() < 60_000, "{}", ahead.own_clock_ahead_ms());
    assert!(ahead.clock().now().until(SystemClock.now()) < Duration::from_secs(60));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_set_while_a_process_runs_deletes_nothing() {
    let site = Site::new(Backend::Postgres).await;
    let clock = wrong_by(0);
    let process = process(&site, Some("a"), &clock).await;
    let stored = stored(&site, &process).await;
    clock.0.store(DAYS, Ordering::SeqCst);
    maintains_without_loss(&site, &process, &stored).await;
    assert!(process.own_clock_ahead_ms() > DAYS / 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_process_whose_clock_is_behind_has_stored_is_not_old() {
    let site = Site::new(Backend::Postgres).await;
    let behind = process(&site, Some("a"), &wrong_by(-DAYS)).await;
    let stored = stored(&site, &behind).await;
    let right = process(&site, None, &wrong_by(0)).await;
    maintains_without_loss(&site, &right, &stored).await;
    kill(behind);
}
