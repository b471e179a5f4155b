#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicI64, Ordering};

use tempfile::TempDir;
use trainyard_scheduler::Options;
use trainyard_storage::Storage;

use super::*;
use crate::jwt;

const POLICY: TokenPolicy =
    TokenPolicy { lifetime: Duration::from_secs(900), key_age: Duration::from_secs(10 * 86_400), offered: true };

struct SetClock(AtomicI64);

impl SetClock {
    fn pass(&self, duration: Duration) {
        self.0.fetch_add(i64::try_from(duration.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

struct Bench {
    clock: Arc<SetClock>,
    scheduler: Scheduler,
    _dir: TempDir,
}

impl Bench {
    async fn start() -> Self {
        jwt::initialise();
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(SetClock(AtomicI64::new(1_700_000_000_000)));
        let options =
            Options { clock: clock.clone(), ..Options::new(dir.path().join("t.db"), Storage::folder(dir.path())) };
        Self { clock, scheduler: Scheduler::open(options).await.unwrap(), _dir: dir }
    }

    /// The keys as another process has them.
    fn process(&self) -> SigningKeys {
        SigningKeys::new(self.scheduler.clone(), self.clock.clone(), POLICY)
    }
}

async fn kids(keys: &SigningKeys) -> Vec<String> {
    keys.latest().await.unwrap().0.iter().map(|key| key.key.kid().to_owned()).collect()
}

#[tokio::test]
async fn a_successor_is_published_before_it_signs_and_its_predecessor_until_its_tokens_expired() {
    let bench = Bench::start().await;
    let keys = bench.process();
    assert!(keys.published().await.unwrap().is_empty());
    let first = keys.signer().await.unwrap().kid().to_owned();
    assert_eq!(kids(&keys).await, std::slice::from_ref(&first));
    bench.clock.pass(POLICY.key_age - PUBLISHED_AHEAD - Duration::from_secs(1));
    assert_eq!((keys.signer().await.unwrap().kid(), kids(&keys).await.len()), (&*first, 1));
    bench.clock.pass(Duration::from_secs(1));
    assert_eq!(keys.signer().await.unwrap().kid(), first);
    let both = kids(&keys).await;
    assert_eq!((both.len(), &both[0]), (2, &first));
    bench.clock.pass(PUBLISHED_AHEAD - Duration::from_secs(1));
    assert_eq!(keys.signer().await.unwrap().kid(), first);
    bench.clock.pass(Duration::from_secs(1));
    assert_eq!(keys.signer().await.unwrap().kid(), both[1]);
    // Tokens of the first one are around.
    bench.clock.pass(browser::LIFETIME.max(POLICY.lifetime));
    keys.signer().await.unwrap();
    assert_eq!(kids(&keys).await, both);
    bench.clock.pass(MARGIN);
    keys.signer().await.unwrap();
    assert_eq!(kids(&keys).await, both[1..]);
    // The second one is the oldest now, and is followed in the same way.
    bench.clock.pass(POLICY.key_age);
    assert_eq!(keys.signer().await.unwrap().kid(), both[1]);
    assert_eq!(kids(&keys).await.len(), 2);
}

#[tokio::test]
async fn all_processes_have_the_same_keys() {
    let bench = Bench::start().await;
    let (one, other) = (bench.process(), bench.process());
    // Both look before there is a key, and make it at the same time.
    assert!(one.published().await.unwrap().is_empty() && other.published().await.unwrap().is_empty());
    let (made, also) = tokio::join!(one.signer(), other.signer());
    let kid = made.unwrap().kid().to_owned();
    assert_eq!(also.unwrap().kid(), kid);
    // A third one that looked too early finds what it does not know.
    let third = bench.process();
    third.current().await.unwrap();
    bench.clock.pass(POLICY.key_age);
    one.signer().await.unwrap();
    let newest = kids(&one).await.pop().unwrap();
    assert!(third.public_keys(Some(&newest)).await.unwrap().find(Some(&newest)).is_ok());
    assert!(third.public_keys(Some("unheard of")).await.unwrap().find(Some("unheard of")).is_err());
}

#[tokio::test]
async fn wrong_names_of_keys_make_it_look_a_few_times_a_second_at_most() {
    let bench = Bench::start().await;
    let keys = bench.process();
    keys.signer().await.unwrap();
    let begin = Instant::now();
    for _ in 0..4 {
        let wrong = (0..50).map(|_| keys.public_keys(Some("wrong")));
        futures::future::join_all(wrong).await.into_iter().for_each(|found| drop(found.unwrap()));
    }
    assert!(begin.elapsed() >= PAUSE * 3, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn keys_that_are_withdrawn_are_unknown_to_all_processes_within_a_second_and_the_next_one_signs_at_once() {
    let bench = Bench::start().await;
    let (one, other) = (bench.process(), bench.process());
    one.signer().await.unwrap();
    bench.clock.pass(POLICY.key_age);
    one.signer().await.unwrap();
    let withdrawn = kids(&other).await;
    assert_eq!(withdrawn.len(), 2);
    // By the command line, beside them.
    let beside = bench.scheduler.directory();
    assert_eq!(replace_all(&beside, bench.clock.now()).await.unwrap(), 2);
    let begin = Instant::now();
    while other.knows(&withdrawn[1]).await.unwrap() {
        assert!(begin.elapsed() < Duration::from_secs(1));
        sleep(Duration::from_millis(10)).await;
    }
    assert!(!other.knows(&withdrawn[0]).await.unwrap());
    let signer = other.signer().await.unwrap().kid().to_owned();
    assert!(!withdrawn.contains(&signer));
    assert_eq!(kids(&one).await, std::slice::from_ref(&signer));
    assert_eq!((one.signer().await.unwrap().kid(), one.withdraw_all().await.unwrap()), (&*signer, 1));
    assert!(!one.knows(&signer).await.unwrap());
}

#[tokio::test]
async fn damaged_secrets_are_an_error_of_the_service() {
    let bench = Bench::start().await;
    bench.scheduler.shared_secret(name(1), vec![1, 2, 3]).await.unwrap();
    assert!(matches!(bench.process().signer().await, Err(ApiError::Internal(_))));
}
