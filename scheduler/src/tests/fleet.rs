//! Several processes on one database and one storage: an API server, and workers that come and go.

use super::*;

/// Longer than any test takes, so that time passes and rounds happen only when a test says so.
pub(super) const LEASE: Duration = Duration::from_secs(3600);

/// What the processes share, and the API server.
pub(super) struct Fleet {
    pub(super) dir: TempDir,
    // Before the database, which can't be dropped well while it is used.
    pub(super) api: Scheduler,
    pub(super) database: TestDatabase,
    pub(super) clock: Arc<TestClock>,
    pub(super) me: TenantId,
    pub(super) session: SessionId,
}

impl Fleet {
    pub(super) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = TestDatabase::new(Backend::Postgres, dir.path()).await;
        let clock = Arc::new(TestClock(AtomicI64::new(1_700_000_000_000)));
        let api = Scheduler::open(Options { worker: None, ..options(&dir, &database, &clock) }).await.unwrap();
        let me = TenantId::new("me");
        let session = api.create_session(&me, new_session(None)).await.unwrap();
        Self { dir, api, database, clock, me, session }
    }

    /// A process with a worker.
    pub(super) async fn worker(&self, id: &str) -> Scheduler {
        let worker = WorkerOptions { lease: LEASE, ..WorkerOptions::new(id, vec!["base".to_owned()]) };
        let options = Options { worker: Some(worker), ..options(&self.dir, &self.database, &self.clock) };
        let worker = Scheduler::open(options).await.unwrap();
        // As if it had been there for long.
        worker.core.reached_since.store(0, Ordering::Relaxed);
        worker
    }

    /// Lets time pass.
    pub(super) fn pass(&self, time: Duration) {
        self.clock.0.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    /// Lets more time pass than a lease lasts.
    pub(super) fn pass_lease(&self) {
        self.pass(LEASE + Duration::from_secs(1));
    }

    pub(super) async fn submit(&self, through: &Scheduler, run: &RunId, seq_id: i64) -> RequestId {
        let submission = submission(run, seq_id, RequestKind::ForwardBackward);
        through.submit_run(&self.me, submission).await.unwrap().request_id
    }

    pub(super) async fn poll(&self, request: &RequestId) -> Poll {
        self.api.poll(&self.me, request, LONG).await.unwrap()
    }

    /// A run whose creation a worker executed.
    pub(super) async fn run_of(&self, worker: &Scheduler, model_seq_id: i64) -> RunId {
        let (run, submitted) = worker.submit_create(&self.me, new_run(&self.session, model_seq_id)).await.unwrap();
        report(worker, &next(worker).await, "created");
        self.poll(&submitted.request_id).await;
        run
    }
}

/// What a worker does now and then: it renews its leases, ends those of others, and takes what is free.
pub(super) async fn round(worker: &Scheduler) {
    worker.core.look_after(true).await.unwrap();
}

/// Ends a process without a word; what it had not committed is lost.
pub(super) fn kill(process: Scheduler) {
    process.core.killed.store(true, Ordering::SeqCst);
    drop(process);
}

/// The next request that a worker gets; it must come within a while.
pub(super) async fn next(worker: &Scheduler) -> Work {
    let worker = worker.clone();
    let next = move || {
        for _ in 0..100 {
            let items = worker.wait_work(Duration::from_millis(100));
            let mut started = items.into_iter().filter_map(|item| match item {
                WorkItem::Start(work) => Some(work),
                _ => None,
            });
            if let Some(work) = started.next() {
                assert_eq!(started.next(), None, "one request is ready");
                return work;
            }
        }
        panic!("nothing becomes ready")
    };
    tokio::task::spawn_blocking(next).await.unwrap()
}

pub(super) fn outcome(text: &str) -> Outcome {
    Outcome::Succeeded { encoding: Encoding::Json, payload: Bytes::from(text.to_owned()) }
}

pub(super) fn succeeded(text: &str) -> Poll {
    Poll::Succeeded { encoding: Encoding::Json, payload: Bytes::from(text.to_owned()) }
}

pub(super) fn report(worker: &Scheduler, work: &Work, text: &str) {
    worker.complete(work.request.clone(), outcome(text), Vec::new());
}
