//! Tests that a slow storage of large results delays only work on these results.

use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};

use super::fleet::{Site, next};
use super::*;
use crate::store::blobs::INLINE_LIMIT;

/// A process with a worker and a storage that can be slowed down.
struct Slow {
    scheduler: Scheduler,
    store: Arc<ThrottledStore<InMemory>>,
    site: Site,
    session: SessionId,
}

impl Slow {
    async fn new() -> Self {
        let site = Site::new(Backend::Sqlite).await;
        let store = Arc::new(ThrottledStore::new(InMemory::new(), ThrottleConfig::default()));
        let storage = Storage::of_store(Arc::clone(&store));
        let options = Options { storage, ..options(&site.dir, &site.database, &site.clock) };
        let scheduler = Scheduler::open(options).await.unwrap();
        let session = scheduler.create_session(&site.me, new_session(None)).await.unwrap();
        Self { scheduler, store, site, session }
    }

    /// Sets how long the storage takes from now on to store a file.
    fn slow_down(&self, wait: Duration) {
        self.store.config_mut(|config| config.wait_put_per_call = wait);
    }

    async fn run(&self, model_seq_id: i64) -> RunId {
        let new = new_run(&self.session, model_seq_id);
        let (run, submitted) = self.scheduler.submit_create(&self.site.me, new).await.unwrap();
        self.succeed(&next(&self.scheduler).await);
        self.scheduler.poll(&self.site.me, &submitted.request_id, LONG).await.unwrap();
        run
    }

    async fn start(&self, run: &RunId, seq_id: i64) -> Work {
        let submission = submission(run, seq_id, RequestKind::Forward);
        self.scheduler.submit_run(&self.site.me, submission).await.unwrap();
        next(&self.scheduler).await
    }

    fn succeed(&self, work: &Work) {
        self.scheduler.complete(work.request.clone(), result(work.seq_id), Vec::new());
    }

    fn succeed_with_large_result(&self, work: &Work) {
        let payload = Bytes::from(vec![7; INLINE_LIMIT + 1]);
        let outcome = Outcome::Succeeded { encoding: Encoding::Json, payload };
        self.scheduler.complete(work.request.clone(), outcome, Vec::new());
    }

    async fn now(&self, work: &Work) -> Poll {
        self.scheduler.poll(&self.site.me, &work.request, NO_WAIT).await.unwrap()
    }

    async fn poll(&self, work: &Work) -> Poll {
        self.scheduler.poll(&self.site.me, &work.request, LONG).await.unwrap()
    }
}

#[tokio::test]
async fn a_result_that_is_being_uploaded_holds_up_nobody_elses_commit() {
    let slow = Slow::new().await;
    let (run, others) = (slow.run(0).await, slow.run(1).await);
    let work = slow.start(&run, 1).await;
    slow.slow_down(Duration::from_secs(3600));
    slow.succeed_with_large_result(&work);
    let other = TenantId::new("other");
    let created = tokio::time::timeout(LONG, slow.scheduler.create_session(&other, new_session(None))).await;
    created.expect("another tenant's session waits for the upload").unwrap();
    let theirs = slow.start(&others, 1).await;
    slow.succeed(&theirs);
    assert!(matches!(slow.poll(&theirs).await, Poll::Succeeded { .. }));
    assert_eq!(slow.now(&work).await, Poll::Pending);
}

#[tokio::test]
async fn results_of_a_run_are_recorded_in_order_and_after_their_files() {
    let slow = Slow::new().await;
    let run = slow.run(0).await;
    let first = slow.start(&run, 1).await;
    slow.slow_down(Duration::from_millis(300));
    slow.succeed_with_large_result(&first);
    let second = slow.start(&run, 2).await;
    slow.succeed(&second);
    assert!(matches!(slow.poll(&second).await, Poll::Succeeded { .. }));
    let Poll::Succeeded { payload, .. } = slow.now(&first).await else { panic!("the second overtook the first") };
    assert_eq!(payload.len(), INLINE_LIMIT + 1);
}

#[tokio::test]
async fn a_scheduler_that_closes_waits_for_uploads() {
    let slow = Slow::new().await;
    let run = slow.run(0).await;
    let work = slow.start(&run, 1).await;
    slow.slow_down(Duration::from_millis(300));
    slow.succeed_with_large_result(&work);
    slow.scheduler.close().await;
    let storage = Storage::of_store(Arc::clone(&slow.store));
    let options = Options { storage, ..options(&slow.site.dir, &slow.site.database, &slow.site.clock) };
    let reopened = Scheduler::open(options).await.unwrap();
    let poll = reopened.poll(&slow.site.me, &work.request, NO_WAIT).await.unwrap();
    assert!(matches!(poll, Poll::Succeeded { .. }), "{poll:?}");
}
