//! Tests of which worker claims which samples.

use super::fleet::{Fleet, LEASE, outcome, round};
use super::*;
use crate::store::db::{connect_as_system, sql};
use crate::store::leases;

/// Opens a worker whose engine decodes `decode_slots` sequences together.
async fn worker(fleet: &Fleet, id: &str, decode_slots: usize) -> Scheduler {
    let worker = WorkerOptions { lease: LEASE, decode_slots, ..WorkerOptions::new(id, vec!["base".to_owned()]) };
    Scheduler::open(Options { worker: Some(worker), ..fleet.options() }).await.unwrap()
}

/// Submits samples of one sequence each, in a new sampling session.
async fn submit(fleet: &Fleet, session: &SessionId, seq_id: i64, count: i64) -> Vec<RequestId> {
    let new = new_sampling(session, seq_id, None);
    let sampler = fleet.api.create_sampling_session(&fleet.me, new).await.unwrap();
    let mut requests = Vec::new();
    for seq_id in 0..count {
        let one = SampleSubmission { num_samples: 1, ..sample(&sampler, seq_id) };
        requests.push(fleet.api.submit_sample(&fleet.me, one).await.unwrap().request_id);
    }
    requests
}

/// Returns the number of samples that a worker has claimed.
async fn claimed(fleet: &Fleet, worker: &str) -> usize {
    let mut conn = fleet.api.core.system_reader().await.unwrap();
    leases::owned_samples(&mut conn, worker).await.unwrap().len()
}

/// Waits until workers have claimed `count` samples.
async fn until_claimed(fleet: &Fleet, workers: &[&str], count: usize) {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    loop {
        let mut all = 0;
        for worker in workers {
            all += claimed(fleet, worker).await;
        }
        if all == count {
            return;
        }
        assert!(std::time::Instant::now() < deadline, "{all} are claimed");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Returns the `count` samples that a worker has got since the last call.
async fn take(worker: &Scheduler, count: usize) -> Vec<RequestId> {
    let mut started = Vec::new();
    while started.len() < count {
        let waiting = worker.clone();
        let items = tokio::task::spawn_blocking(move || waiting.wait_work(LONG)).await.unwrap();
        assert!(!items.is_empty(), "{} of {count}", started.len());
        started.extend(items.into_iter().filter_map(|item| match item {
            WorkItem::Start(work) => Some(work.request),
            _ => None,
        }));
    }
    started
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_claim_equal_parts_of_the_samples() {
    let fleet = Fleet::new().await;
    let workers = [worker(&fleet, "a", 256).await, worker(&fleet, "b", 256).await];
    round(&workers[0]).await;
    submit(&fleet, &fleet.session, 0, 200).await;
    until_claimed(&fleet, &["a", "b"], 200).await;
    assert_eq!((claimed(&fleet, "a").await, claimed(&fleet, "b").await), (100, 100));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sample_that_another_claim_had_locked_is_claimed_once_that_has_ended() {
    const LOCK: &str = "SELECT id FROM requests WHERE worker_id IS NULL FOR UPDATE";
    let fleet = Fleet::new().await;
    let a = worker(&fleet, "a", 1).await;
    submit(&fleet, &fleet.session, 0, 2).await;
    until_claimed(&fleet, &["a"], 1).await;
    // Act like a worker that is claiming at the same time.
    let mut claim = connect_as_system(&fleet.site.database.database).await.unwrap();
    claim.begin().await.unwrap();
    assert_eq!(sql(LOCK).fetch_all(&mut claim).await.unwrap().len(), 1);
    let _b = worker(&fleet, "b", 256).await;
    round(&a).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(claimed(&fleet, "b").await, 0);
    claim.rollback().await.unwrap();
    until_claimed(&fleet, &["b"], 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_claims_what_its_engine_can_decode_and_more_as_that_ends() {
    let fleet = Fleet::new().await;
    submit(&fleet, &fleet.session, 0, 30).await;
    let a = worker(&fleet, "a", 8).await;
    until_claimed(&fleet, &["a"], 10).await;
    let first = take(&a, 10).await;
    a.samples_admitted(&first[..8]);
    round(&a).await;
    assert_eq!(claimed(&fleet, "a").await, 10, "two wait for the others' slots");
    for request in &first[..8] {
        a.complete(request.clone(), outcome("done"), Vec::new());
    }
    until_claimed(&fleet, &["a"], 10).await;
    assert_eq!(take(&a, 8).await.len(), 8);
    // Another session gets its share at once.
    let session = fleet.api.create_session(&fleet.me, new_session(None)).await.unwrap();
    let other = submit(&fleet, &session, 0, 1).await;
    assert_eq!(take(&a, 1).await, other);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn samples_that_wait_at_a_worker_move_to_one_that_joins() {
    let fleet = Fleet::new().await;
    submit(&fleet, &fleet.session, 0, 10).await;
    let a = worker(&fleet, "a", 8).await;
    let samples = take(&a, 10).await;
    a.samples_admitted(&samples[..8]);
    let b = worker(&fleet, "b", 8).await;
    round(&a).await;
    let mut moved = take(&b, 2).await;
    moved.sort_unstable();
    let mut expected = samples[8..].to_vec();
    expected.sort_unstable();
    assert_eq!(moved, expected);
    assert_eq!(claimed(&fleet, "a").await, 8, "what is executed stays");
}
