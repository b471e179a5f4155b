//! Tests that runs are executed by workers that compute as their results were computed.

use trainyard_protocol::Numerics;

use super::fleet::{Fleet, Site, compute, kill, next, outcome, report, round, succeeded};
use super::*;
use crate::store::db::sql;
use crate::{NumericsChange, NumericsMismatch, WorkerWait};

fn waiting(id: &str) -> WorkerOptions {
    WorkerOptions::new(id, vec!["base".to_owned()])
}

/// Options of a worker that continues runs that were computed differently.
fn continuing(id: &str) -> WorkerOptions {
    WorkerOptions { numerics_mismatch: NumericsMismatch::Continue, ..waiting(id) }
}

/// Numerics with the same weights but other kernels.
fn other_kernels() -> Numerics {
    Numerics { kernels: "avx2".to_owned(), ..compute() }
}

fn other_weights() -> Numerics {
    Numerics { weights: "beef".to_owned(), ..compute() }
}

/// Returns a run that a worker was computing when it was killed, with the worker's request.
async fn interrupted(fleet: &Fleet) -> (RunId, RequestId) {
    let a = fleet.site.computing(waiting("a"), compute()).await;
    let run = fleet.run_of(&a, 0).await;
    let request = fleet.submit(&fleet.api, &run, 1).await;
    assert_eq!(next(&a).await.request, request);
    kill(a);
    fleet.pass_lease().await;
    (run, request)
}

/// Checks that a worker replays a run's creation and executes the request after it.
async fn continues(fleet: &Fleet, worker: &Scheduler, request: &RequestId) {
    round(worker).await;
    let replay = next(worker).await;
    assert_eq!((replay.seq_id, replay.replay), (0, true));
    report(worker, &replay, "ignored");
    let work = next(worker).await;
    assert_eq!((&work.request, work.replay), (request, false));
    report(worker, &work, "trained");
    assert_eq!(fleet.poll(request).await, succeeded("trained"));
}

async fn changes(scheduler: &Scheduler, run: &RunId) -> Vec<NumericsChange> {
    scheduler.run(&TenantId::new("me"), run).await.unwrap().numerics_changes
}

fn other_arithmetic() -> WorkerWait {
    WorkerWait::OtherArithmetic {
        model: "base".to_owned(),
        recorded: "bf16 avx512-bf16 single v1".to_owned(),
        served: vec!["bf16 avx2 single v1".to_owned()],
    }
}

#[tokio::test]
async fn a_run_waits_for_a_worker_that_computes_alike() {
    let fleet = Fleet::new().await;
    let (run, request) = interrupted(&fleet).await;
    let b = fleet.site.computing(waiting("b"), other_kernels()).await;
    round(&b).await;
    assert_eq!(b.take_work(), Vec::new());
    assert_eq!(fleet.api.worker_wait(&fleet.me, &request).await.unwrap(), Some(other_arithmetic()));
    assert!(metrics(&b).contains("runs_waiting_for_numerics 1"));
    let c = fleet.site.computing(waiting("c"), compute()).await;
    continues(&fleet, &c, &request).await;
    round(&b).await;
    assert!(metrics(&b).contains("runs_waiting_for_numerics 0"));
    assert_eq!(changes(&c, &run).await, Vec::new());
}

#[tokio::test]
async fn a_run_is_continued_in_another_way_where_that_is_allowed_and_says_so() {
    let fleet = Fleet::new().await;
    let (run, request) = interrupted(&fleet).await;
    let b = fleet.site.computing(continuing("b"), other_kernels()).await;
    continues(&fleet, &b, &request).await;
    let at = b.core.now().as_millis();
    let [from, to] = ["bf16 avx512-bf16 single v1", "bf16 avx2 single v1"].map(str::to_owned);
    assert_eq!(changes(&fleet.api, &run).await, vec![NumericsChange { at, from, to }]);
    assert!(metrics(&b).contains("numerics_changes_total 1"));
    // From then on the run is tied to its new numerics.
    kill(b);
    fleet.pass_lease().await;
    let request = fleet.submit(&fleet.api, &run, 2).await;
    let a = fleet.site.computing(waiting("a"), compute()).await;
    round(&a).await;
    assert_eq!(a.take_work(), Vec::new());
    assert!(fleet.api.worker_wait(&fleet.me, &request).await.unwrap().is_some());
}

#[tokio::test]
async fn a_run_is_never_continued_with_other_weights() {
    let fleet = Fleet::new().await;
    let (_, request) = interrupted(&fleet).await;
    let b = fleet.site.computing(continuing("b"), other_weights()).await;
    round(&b).await;
    assert_eq!(b.take_work(), Vec::new());
    let wait = WorkerWait::OtherWeights { model: "base".to_owned() };
    assert_eq!(fleet.api.worker_wait(&fleet.me, &request).await.unwrap(), Some(wait));
    let c = fleet.site.computing(waiting("c"), compute()).await;
    continues(&fleet, &c, &request).await;
}

#[tokio::test]
async fn a_worker_that_may_continue_a_run_leaves_it_to_one_that_computes_alike() {
    let fleet = Fleet::new().await;
    let c = fleet.site.computing(waiting("c"), compute()).await;
    let a = fleet.site.computing(waiting("a"), compute()).await;
    let runs = [fleet.run_of(&a, 0).await, fleet.run_of(&a, 1).await];
    kill(a);
    let b = fleet.site.computing(continuing("b"), other_kernels()).await;
    // The first of them is still registered.
    fleet.pass_lease().await;
    round(&c).await;
    round(&b).await;
    fleet.submit(&fleet.api, &runs[0], 1).await;
    fleet.submit(&fleet.api, &runs[1], 1).await;
    round(&b).await;
    assert_eq!(b.take_work(), Vec::new());
}

#[tokio::test]
async fn runs_are_shared_among_workers_that_compute_alike() {
    let fleet = Fleet::new().await;
    let a = fleet.site.computing(waiting("a"), compute()).await;
    fleet.run_of(&a, 0).await;
    fleet.run_of(&a, 1).await;
    let b = fleet.site.computing(waiting("b"), other_kernels()).await;
    round(&a).await;
    round(&b).await;
    assert_eq!(a.take_work(), Vec::new(), "b could not continue one");
    assert_eq!(b.take_work(), Vec::new());
    let c = fleet.site.computing(waiting("c"), compute()).await;
    round(&a).await;
    assert_eq!(next(&a).await.kind, RequestKind::SaveRun, "c can");
    drop(c);
}

#[tokio::test]
async fn a_run_that_was_not_created_yet_is_free() {
    let fleet = Fleet::new().await;
    let a = fleet.site.computing(waiting("a"), compute()).await;
    let (run, submitted) = a.submit_create(&fleet.me, new_run(&fleet.session, 0)).await.unwrap();
    next(&a).await;
    kill(a);
    fleet.pass_lease().await;
    let b = fleet.site.computing(waiting("b"), other_kernels()).await;
    round(&b).await;
    report(&b, &next(&b).await, "created");
    assert_eq!(fleet.poll(&submitted.request_id).await, succeeded("created"));
    assert_eq!(changes(&b, &run).await, Vec::new());
}

#[tokio::test]
async fn samples_of_a_runs_snapshot_need_a_worker_that_computes_alike() {
    const STORED: &str = "UPDATE sampling_sessions SET run_id = $1, snapshot = 'k', snapshot_dir = 'snapshots/a/b'";
    let fleet = Fleet::new().await;
    let a = fleet.site.computing(waiting("a"), compute()).await;
    let run = fleet.run_of(&a, 0).await;
    kill(a);
    fleet.pass_lease().await;
    let sampler = fleet.api.create_sampling_session(&fleet.me, new_sampling(&fleet.session, 0, None)).await.unwrap();
    let mut conn = fleet.api.core.system_reader().await.unwrap();
    sql(STORED).bind(run.as_str()).execute(&mut conn).await.unwrap();
    let request = fleet.api.submit_sample(&fleet.me, sample(&sampler, 0)).await.unwrap().request_id;
    let b = fleet.site.computing(waiting("b"), other_kernels()).await;
    round(&b).await;
    assert_eq!(b.take_work(), Vec::new());
    assert_eq!(fleet.api.worker_wait(&fleet.me, &request).await.unwrap(), Some(other_arithmetic()));
    let c = fleet.site.computing(continuing("c"), other_kernels()).await;
    round(&c).await;
    assert_eq!(next(&c).await.request, request);
}

fn metrics(scheduler: &Scheduler) -> String {
    crate::metrics::tests::text(scheduler.metrics())
}

/// A single process, restarted with other numerics.
struct Restarts {
    site: Site,
    run: RunId,
    /// Last request of the run.
    seq_id: i64,
}

impl Restarts {
    /// Starts a process that creates the run.
    async fn new(backend: Backend, numerics: Option<Numerics>) -> Self {
        let site = Site::new(backend).await;
        let process = match numerics {
            Some(numerics) => site.computing(waiting("w"), numerics).await,
            None => site.process(Some("w")).await,
        };
        let session = process.create_session(&site.me, new_session(None)).await.unwrap();
        let (run, created) = process.submit_create(&site.me, new_run(&session, 0)).await.unwrap();
        report(&process, &next(&process).await, "created");
        process.poll(&site.me, &created.request_id, LONG).await.unwrap();
        process.close().await;
        Self { site, run, seq_id: 0 }
    }

    /// Returns whether a new process with these options continues the run.
    async fn continues(&mut self, worker: WorkerOptions, numerics: Numerics) -> bool {
        let process = self.site.computing(worker, numerics).await;
        self.seq_id += 1;
        let submission = submission(&self.run, self.seq_id, RequestKind::ForwardBackward);
        let request = process.submit_run(&self.site.me, submission).await.unwrap().request_id;
        round(&process).await;
        let wait = process.worker_wait(&self.site.me, &request).await.unwrap();
        if wait.is_none() {
            let mut work = next(&process).await;
            while work.seq_id < self.seq_id {
                process.complete(work.request.clone(), outcome("replayed"), Vec::new());
                work = next(&process).await;
            }
            report(&process, &work, "trained");
            process.poll(&self.site.me, &request, LONG).await.unwrap();
        } else {
            assert_eq!(process.take_work(), Vec::new());
        }
        process.close().await;
        wait.is_none()
    }

    async fn changes(&self) -> usize {
        let process = self.site.process(None).await;
        let changes = changes(&process, &self.run).await.len();
        process.close().await;
        changes
    }
}

async fn a_server_that_is_restarted_with_other_numerics_behaves_as_another_worker(backend: Backend) {
    let mut restarts = Restarts::new(backend, Some(compute())).await;
    assert!(!restarts.continues(waiting("w"), other_kernels()).await);
    assert!(!restarts.continues(continuing("w"), other_weights()).await);
    assert!(restarts.continues(waiting("w"), compute()).await);
    assert_eq!(restarts.changes().await, 0);
    assert!(restarts.continues(continuing("w"), other_kernels()).await);
    assert!(restarts.continues(waiting("w"), other_kernels()).await);
    assert_eq!(restarts.changes().await, 1);
}

async fn a_run_of_an_older_release_is_adopted(backend: Backend) {
    let mut restarts = Restarts::new(backend, None).await;
    assert!(restarts.continues(waiting("w"), compute()).await);
    assert!(!restarts.continues(waiting("w"), other_kernels()).await);
    assert_eq!(restarts.changes().await, 0);
}

#[tokio::test]
async fn a_server_on_sqlite_that_is_restarted_with_other_numerics_behaves_as_another_worker() {
    a_server_that_is_restarted_with_other_numerics_behaves_as_another_worker(Backend::Sqlite).await;
}

#[tokio::test]
async fn a_server_on_postgres_that_is_restarted_with_other_numerics_behaves_as_another_worker() {
    a_server_that_is_restarted_with_other_numerics_behaves_as_another_worker(Backend::Postgres).await;
}

#[tokio::test]
async fn a_run_of_an_older_release_is_adopted_on_sqlite() {
    a_run_of_an_older_release_is_adopted(Backend::Sqlite).await;
}

#[tokio::test]
async fn a_run_of_an_older_release_is_adopted_on_postgres() {
    a_run_of_an_older_release_is_adopted(Backend::Postgres).await;
}
