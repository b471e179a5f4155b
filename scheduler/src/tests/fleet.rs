//! Several processes on one database and one storage: an API server, and workers that come and go.

use trainyard_protocol::Numerics;

use super::*;
use crate::store::db::{connect_as_system, sql};

/// Duration longer than any test, so that time passes and rounds happen only when a test asks for it.
pub(super) const LEASE: Duration = Duration::from_secs(3600);

/// Database, storage and clock that processes share.
pub(super) struct Site {
    pub(super) dir: TempDir,
    pub(super) database: TestDatabase,
    pub(super) clock: Arc<TestClock>,
    pub(super) me: TenantId,
}

impl Site {
    pub(super) async fn new(backend: Backend) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = TestDatabase::new(backend, dir.path()).await;
        let clock = Arc::new(TestClock(AtomicI64::new(1_700_000_000_000)));
        Self { dir, database, clock, me: TenantId::new("me") }
    }

    /// Opens the process of a worker of this name, or one that clients call.
    pub(super) async fn process(&self, worker: Option<&str>) -> Scheduler {
        let serves_clients = worker.is_none();
        let worker = worker.map(|id| WorkerOptions { lease: LEASE, ..WorkerOptions::new(id, vec!["base".to_owned()]) });
        self.open(Options { worker, serves_clients, ..options(&self.dir, &self.database, &self.clock) }).await
    }

    /// Opens a process with a worker of these numerics.
    pub(super) async fn computing(&self, worker: WorkerOptions, numerics: Numerics) -> Scheduler {
        let worker = Some(WorkerOptions { lease: LEASE, ..worker });
        let options = Options { worker, worker_waits: true, ..options(&self.dir, &self.database, &self.clock) };
        let process = self.open(options).await;
        process.compute_with(BTreeMap::from([("base".to_owned(), numerics)]));
        process.start_worker().await.unwrap();
        process
    }

    async fn open(&self, options: Options) -> Scheduler {
        let process = Scheduler::open(options).await.unwrap();
        // Make the store look as if it had been reachable for long.
        process.core.heartbeats.store_reachable_since(Timestamp(0));
        process
    }

    /// Advances the clock of the tests.
    pub(super) fn pass(&self, time: Duration) {
        self.clock.0.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    /// Advances the clock by more than a lease, here and in the database.
    pub(super) async fn pass_lease(&self) {
        const SQL: &str = "UPDATE workers SET expires_at = expires_at - $1";
        let time = LEASE + Duration::from_secs(1);
        self.pass(time);
        let mut conn = connect_as_system(&self.database.database).await.unwrap();
        sql(SQL).bind(i64::try_from(time.as_millis()).unwrap()).execute(&mut conn).await.unwrap();
        conn.close().await.unwrap();
    }
}

/// An API server with a session, on PostgreSQL.
pub(super) struct Fleet {
    // Declared before the database, which can't be dropped properly while it is in use.
    pub(super) api: Scheduler,
    pub(super) site: Site,
    pub(super) me: TenantId,
    pub(super) session: SessionId,
}

impl Fleet {
    pub(super) async fn new() -> Self {
        let site = Site::new(Backend::Postgres).await;
        let (api, me) = (site.process(None).await, site.me.clone());
        let session = api.create_session(&me, new_session(None)).await.unwrap();
        Self { api, site, me, session }
    }

    /// Opens a process with a worker.
    pub(super) async fn worker(&self, id: &str) -> Scheduler {
        self.site.process(Some(id)).await
    }

    pub(super) async fn pass_lease(&self) {
        self.site.pass_lease().await;
    }

    pub(super) fn options(&self) -> Options {
        options(&self.site.dir, &self.site.database, &self.site.clock)
    }

    pub(super) async fn submit(&self, through: &Scheduler, run: &RunId, seq_id: i64) -> RequestId {
        let submission = submission(run, seq_id, RequestKind::ForwardBackward);
        through.submit_run(&self.me, submission).await.unwrap().request_id
    }

    pub(super) async fn poll(&self, request: &RequestId) -> Poll {
        self.api.poll(&self.me, request, LONG).await.unwrap()
    }

    /// Creates a run whose creation a worker executes.
    pub(super) async fn run_of(&self, worker: &Scheduler, model_seq_id: i64) -> RunId {
        let (run, submitted) = worker.submit_create(&self.me, new_run(&self.session, model_seq_id)).await.unwrap();
        report(worker, &next(worker).await, "created");
        self.poll(&submitted.request_id).await;
        run
    }
}

/// Returns the numerics of a worker.
pub(super) fn compute() -> Numerics {
    let [weights, dtype, kernels, layout] = ["00ff", "bf16", "avx512-bf16", "single"].map(str::to_owned);
    Numerics { weights, dtype, kernels, layout, version: 1 }
}

/// Performs a worker's periodic round: it renews its leases, ends those of others, and claims free ones.
pub(super) async fn round(worker: &Scheduler) {
    worker.core.lease_round(true).await.unwrap();
}

/// Ends a process abruptly; uncommitted changes are lost.
pub(super) fn kill(process: Scheduler) {
    process.core.kill();
    drop(process);
}

/// Returns the next request that a worker gets, which must arrive soon.
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
