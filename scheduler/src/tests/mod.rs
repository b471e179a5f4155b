#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod clocks;
mod contention;
mod database;
mod failover;
mod fleet;
mod full_disk;
mod handover;
mod interleavings;
mod lost_connections;
mod memory;
mod numerics;
mod plans;
mod poolers;
mod row_level_security;
mod sample_claims;
mod signals;
mod slow_storage;
mod streams;

/// The suite, on each database.
macro_rules! suite {
    ($backend:ident: $($name:ident $file:literal),+) => {
        use super::*;

        pub(super) async fn bench() -> Bench {
            Bench::on(Backend::$backend).await
        }

        pub(super) async fn granted(policy: TenantPolicy) -> Bench {
            Bench::granted(Backend::$backend, policy).await
        }

        #[allow(dead_code, reason = "for tests that need more than a bench")]
        pub(super) const BACKEND: Backend = Backend::$backend;

        $(#[path = $file] mod $name;)+
    };
}

#[path = "."]
#[expect(clippy::duplicate_mod, reason = "one suite for both databases")]
mod sqlite {
    suite!(Sqlite: agents "agents.rs", backup "backup.rs", bounded_objects "bounded_objects.rs", cancelled_sessions "cancelled_sessions.rs", catalogue "catalogue.rs", collected_snapshots "collected_snapshots.rs", concurrency "concurrency.rs", copies "copies.rs", custom_losses "custom_losses.rs", ended_requests "ended_requests.rs", ended_sessions "ended_sessions.rs", former_schema "former_schema.rs", joining "joining.rs", leases "leases.rs", limits "limits.rs", ordering "ordering.rs", queue_bounds "queue_bounds.rs", quotas "quotas.rs", records "records.rs", recovery "recovery.rs", refused_records "refused_records.rs", results "results.rs", run_metrics "run_metrics.rs", run_samples "run_samples.rs", retention "retention.rs", rolling_upgrades "rolling_upgrades.rs", sampling "sampling.rs", session_search "session_search.rs", sessions "sessions.rs", tenants "tenants.rs", transitions "transitions.rs", uploads "uploads.rs", usage_history "usage_history.rs");
}

#[path = "."]
#[expect(clippy::duplicate_mod, reason = "one suite for both databases")]
mod postgres {
    suite!(Postgres: agents "agents.rs", backup "backup.rs", bounded_objects "bounded_objects.rs", cancelled_sessions "cancelled_sessions.rs", catalogue "catalogue.rs", collected_snapshots "collected_snapshots.rs", concurrency "concurrency.rs", copies "copies.rs", custom_losses "custom_losses.rs", ended_requests "ended_requests.rs", ended_sessions "ended_sessions.rs", former_schema "former_schema.rs", joining "joining.rs", leases "leases.rs", limits "limits.rs", ordering "ordering.rs", queue_bounds "queue_bounds.rs", quotas "quotas.rs", records "records.rs", recovery "recovery.rs", refused_records "refused_records.rs", results "results.rs", run_metrics "run_metrics.rs", run_samples "run_samples.rs", retention "retention.rs", rolling_upgrades "rolling_upgrades.rs", sampling "sampling.rs", session_search "session_search.rs", sessions "sessions.rs", tenants "tenants.rs", transitions "transitions.rs", uploads "uploads.rs", usage_history "usage_history.rs");
}

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use database::{Backend, TestDatabase};
use tempfile::TempDir;
use trainyard_protocol::{
    LoraSpec, ModelHead, OpError, Optimizer, RequestId, RunId, RunSpec, SamplingSessionId, SessionId, TenantId,
};
use trainyard_storage::Storage;

use crate::{
    Clock, Decoded, Effect, Encoding, Error, NewCustomLoss, NewRun, NewSamplingSession, NewSession, Options, Outcome,
    Policies, Poll, RequestKind, RunSubmission, SampleSubmission, Scheduler, Submitted, TenantPolicy, Timestamp, Work,
    WorkItem, WorkerOptions,
};

/// A clock that tests move.
#[derive(Default)]
pub(super) struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

/// A scheduler on a folder of its own, with one session of the tenant `me`.
pub(super) struct Bench {
    pub(super) dir: TempDir,
    database: TestDatabase,
    clock: Arc<TestClock>,
    pub(super) scheduler: Scheduler,
    pub(super) me: TenantId,
    pub(super) session: SessionId,
}

pub(super) const NO_WAIT: Duration = Duration::ZERO;
pub(super) const LONG: Duration = Duration::from_secs(10);

impl Bench {
    pub(super) async fn on(backend: Backend) -> Self {
        Self::granted(backend, TenantPolicy::default()).await
    }

    /// Opens a bench that grants every tenant this policy.
    pub(super) async fn granted(backend: Backend, policy: TenantPolicy) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = TestDatabase::new(backend, dir.path()).await;
        let clock = Arc::new(TestClock(AtomicI64::new(1_700_000_000_000)));
        let policies = Policies::new(policy, BTreeMap::new());
        let options = Options { policies, ..options(&dir, &database, &clock) };
        let scheduler = Scheduler::open(options).await.unwrap();
        let me = TenantId::new("me");
        let session = scheduler.create_session(&me, new_session(None)).await.unwrap();
        Self { dir, database, clock, scheduler, me, session }
    }

    /// Advances the clock of the tests.
    pub(super) fn pass(&self, time: Duration) {
        self.clock.0.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    /// Ends the process and starts a new one. With `kill`, uncommitted changes are lost.
    pub(super) async fn restart(self, kill: bool) -> Self {
        let Self { dir, database, clock, scheduler, me, session } = self;
        if kill {
            scheduler.core.kill();
        }
        drop(scheduler);
        let scheduler = Scheduler::open(options(&dir, &database, &clock)).await.unwrap();
        Self { dir, database, clock, scheduler, me, session }
    }

    /// Kills the process, and starts a new one that finds evidence that the machine ran out of memory.
    pub(super) async fn restart_out_of_memory(self) -> Self {
        let Self { dir, database, clock, scheduler, me, session } = self;
        scheduler.core.kill();
        drop(scheduler);
        let mut options = options(&dir, &database, &clock);
        options.worker.as_mut().unwrap().former_out_of_memory = true;
        let scheduler = Scheduler::open(options).await.unwrap();
        Self { dir, database, clock, scheduler, me, session }
    }

    /// Ends the process and starts a new one that saves a run after so many tokens.
    pub(super) async fn restart_saving(self, snapshot_tokens: u64) -> Self {
        let Self { dir, database, clock, scheduler, me, session } = self;
        drop(scheduler);
        let options = Options { snapshot_tokens, ..options(&dir, &database, &clock) };
        let scheduler = Scheduler::open(options).await.unwrap();
        Self { dir, database, clock, scheduler, me, session }
    }

    /// Ends the process and starts a new one that keeps the metrics of so many requests of a run.
    pub(super) async fn restart_with_metrics(self, metrics_rows: u64) -> Self {
        let Self { dir, database, clock, scheduler, me, session } = self;
        drop(scheduler);
        let options = Options { metrics_rows, ..options(&dir, &database, &clock) };
        let scheduler = Scheduler::open(options).await.unwrap();
        Self { dir, database, clock, scheduler, me, session }
    }

    /// Ends the process orderly and starts a new one that grants these policies.
    pub(super) async fn restart_granted(self, policies: Policies) -> Self {
        let Self { dir, database, clock, scheduler, me, session } = self;
        scheduler.close().await;
        drop(scheduler);
        let scheduler = Scheduler::open(Options { policies, ..options(&dir, &database, &clock) }).await.unwrap();
        Self { dir, database, clock, scheduler, me, session }
    }

    pub(super) async fn create(&self, model_seq_id: i64) -> (RunId, RequestId) {
        let (run, submitted) =
            self.scheduler.submit_create(&self.me, new_run(&self.session, model_seq_id)).await.unwrap();
        (run, submitted.request_id)
    }

    /// Creates a run whose creation has succeeded.
    pub(super) async fn ready_run(&self, model_seq_id: i64) -> RunId {
        let (run, request) = self.create(model_seq_id).await;
        self.succeed(&self.start().await);
        assert!(matches!(self.poll(&request).await, Poll::Succeeded { .. }));
        run
    }

    pub(super) async fn submit(&self, run: &RunId, seq_id: i64, kind: RequestKind) -> RequestId {
        self.scheduler.submit_run(&self.me, submission(run, seq_id, kind)).await.unwrap().request_id
    }

    pub(super) async fn submit_sample(&self, sampling_session: &SamplingSessionId, seq_id: i64) -> Submitted {
        self.scheduler.submit_sample(&self.me, sample(sampling_session, seq_id)).await.unwrap()
    }

    /// Returns the items that become ready soon, off the runtime's threads as the worker does.
    pub(super) async fn items(&self) -> Vec<WorkItem> {
        let scheduler = self.scheduler.clone();
        tokio::task::spawn_blocking(move || scheduler.wait_work(Duration::from_secs(5))).await.unwrap()
    }

    /// Returns the only piece of work that is ready.
    pub(super) async fn start(&self) -> Work {
        let items = self.items().await;
        match <[WorkItem; 1]>::try_from(items) {
            Ok([WorkItem::Start(work)]) => work,
            other => panic!("expected one piece of work, got {other:?}"),
        }
    }

    pub(super) fn nothing_ready(&self) {
        assert_eq!(self.scheduler.take_work(), Vec::new());
    }

    pub(super) fn succeed(&self, work: &Work) {
        self.scheduler.complete(work.request.clone(), result(work.seq_id), Vec::new());
    }

    pub(super) fn succeed_with(&self, work: &Work, effects: Vec<Effect>) {
        self.scheduler.complete(work.request.clone(), result(work.seq_id), effects);
    }

    pub(super) fn fail(&self, work: &Work, message: &str) {
        self.scheduler.complete(work.request.clone(), Outcome::Failed(OpError::user(message)), Vec::new());
    }

    pub(super) async fn poll(&self, request: &RequestId) -> Poll {
        self.scheduler.poll(&self.me, request, LONG).await.unwrap()
    }

    pub(super) async fn sampling_session(&self, seq_id: i64) -> SamplingSessionId {
        self.scheduler.create_sampling_session(&self.me, new_sampling(&self.session, seq_id, None)).await.unwrap()
    }

    /// Lets a run be saved and its lease be released.
    pub(super) async fn saved_and_released(&self, run: &RunId) {
        self.scheduler.core.lease_round(false).await.unwrap();
        let save = self.start().await;
        assert_eq!((save.kind, save.run.as_ref()), (RequestKind::SaveRun, Some(run)));
        self.succeed_with(&save, vec![Effect::RunSaved("snapshots/a/b".into())]);
        assert_eq!(self.items().await, vec![WorkItem::UnloadRun(run.clone())]);
    }

    /// Runs garbage collection of the storage.
    pub(super) async fn collect_garbage(&self) {
        self.pass(Duration::from_secs(600));
        // The session may have ended.
        let _ = self.scheduler.heartbeat(&self.me, &self.session).await;
        self.scheduler.maintain().await.unwrap();
    }

    pub(super) fn blobs(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.dir.path().join("blobs")).unwrap();
        files.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// Makes a file or folder look as if it was last changed long before the tests' clock.
pub(super) fn age(path: &std::path::Path) {
    let long_ago = std::time::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            age(&entry.unwrap().path());
        }
    }
    std::fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
}

pub(super) fn options(dir: &TempDir, database: &TestDatabase, clock: &Arc<TestClock>) -> Options {
    let clock: Arc<dyn Clock> = Arc::<TestClock>::clone(clock);
    let worker = Some(WorkerOptions::new("worker", vec!["base".to_owned()]));
    let database_clock = Some(Arc::clone(&clock));
    Options { clock, database_clock, worker, ..Options::new(database.database.clone(), Storage::folder(dir.path())) }
}

pub(super) fn result(seq_id: i64) -> Outcome {
    Outcome::Succeeded { encoding: Encoding::Json, payload: Bytes::from(format!("result {seq_id}")) }
}

pub(super) fn new_session(key: Option<&str>) -> NewSession {
    NewSession {
        tags: vec!["a".into()],
        user_metadata: serde_json::json!({"k": 1}),
        sdk_version: "0.38.0".into(),
        project_id: None,
        display_name: Some("name".into()),
        idempotency_key: key.map(str::to_owned),
    }
}

pub(super) fn spec() -> RunSpec {
    let lora = LoraSpec::on_all(8, 1);
    RunSpec { base_model: "base".into(), lora: Some(lora), optimizer: Optimizer::AdamW, head: ModelHead::Unembedding }
}

pub(super) fn new_run(session: &SessionId, model_seq_id: i64) -> NewRun {
    NewRun {
        session: session.clone(),
        model_seq_id,
        spec: spec(),
        user_metadata: BTreeMap::from([("k".to_owned(), "v".to_owned())]),
        kind: RequestKind::CreateModel,
        payload: Bytes::from_static(b"create"),
        identity: Bytes::from_static(b"create"),
        rejected: None,
    }
}

pub(super) fn submission(run: &RunId, seq_id: i64, kind: RequestKind) -> RunSubmission {
    let payload = Bytes::from(format!("payload {seq_id}"));
    RunSubmission {
        run: run.clone(),
        seq_id,
        kind,
        payload: payload.clone(),
        decoded: Decoded::default(),
        identity: payload,
        tokens: 10,
        stores: None,
        rejected: None,
    }
}

pub(super) fn sample(sampling_session: &SamplingSessionId, seq_id: i64) -> SampleSubmission {
    let payload = Bytes::from(format!("sample {seq_id}"));
    SampleSubmission {
        sampling_session: sampling_session.clone(),
        seq_id,
        num_samples: 2,
        payload: payload.clone(),
        decoded: Decoded::default(),
        identity: payload,
        tokens: 10,
        recorded: false,
    }
}

pub(super) fn new_sampling(session: &SessionId, seq_id: i64, snapshot: Option<&str>) -> NewSamplingSession {
    NewSamplingSession {
        session: session.clone(),
        seq_id,
        base_model: "base".into(),
        model_path: None,
        snapshot: snapshot.map(str::to_owned),
    }
}

pub(super) fn new_custom_loss(session: &SessionId) -> NewCustomLoss {
    NewCustomLoss { session: session.clone(), seq_id: 100, definition: Bytes::from_static(b"{}") }
}

pub(super) fn is_not_found<T: std::fmt::Debug>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::NotFound { .. }))
}

#[test]
fn futures_can_cross_threads() {
    fn send<T: Send>(_: T) {}
    fn check(scheduler: &Scheduler, tenant: &TenantId, request: &RequestId, run: RunSubmission) {
        send(scheduler.poll(tenant, request, LONG));
        send(scheduler.submit_run(tenant, run));
        send(scheduler.maintain());
        send(scheduler.close());
    }
    let _ = check;
}
