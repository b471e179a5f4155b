//! Tests of the effects of a commit on other processes.

use super::fleet::{Fleet, next, report, succeeded};
use super::*;
use crate::store::db::{connect_as_system, sql};
use crate::store::workers;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_to_a_run_costs_no_transaction_of_any_worker_but_its_result() {
    let fleet = Fleet::new().await;
    let (owner, other) = (fleet.worker("a").await, fleet.worker("b").await);
    let run = fleet.run_of(&owner, 0).await;
    let samples = async |seq_id| {
        // Both workers are notified of a sample, so what was sent before it has arrived when one of them has it.
        let new = new_sampling(&fleet.session, seq_id, None);
        let sampler = fleet.api.create_sampling_session(&fleet.me, new).await.unwrap();
        fleet.api.submit_sample(&fleet.me, sample(&sampler, 0)).await.unwrap();
        claimed(&[&owner, &other]).await;
    };
    samples(0).await;
    let before = [&owner, &other].map(|worker| worker.stats().transactions);
    const REQUESTS: u64 = 20;
    for seq_id in 1..=REQUESTS as i64 {
        let request = fleet.submit(&fleet.api, &run, seq_id).await;
        report(&owner, &next(&owner).await, "done");
        assert_eq!(fleet.poll(&request).await, succeeded("done"));
    }
    samples(1).await;
    let after = [&owner, &other].map(|worker| worker.stats().transactions);
    // Statements other than reads of results: claims of the samples, and the work on one of them.
    const APART: u64 = 8;
    let spent = [after[0] - before[0], after[1] - before[1]];
    assert!(spent[0] <= REQUESTS + APART && spent[1] <= APART, "{spent:?} transactions");
}

/// Waits until one of the workers has a sample, and completes it.
async fn claimed(workers: &[&Scheduler]) {
    let deadline = std::time::Instant::now() + LONG;
    loop {
        for worker in workers {
            for item in worker.take_work() {
                if let WorkItem::Start(work) = item {
                    return report(worker, &work, "sampled");
                }
            }
        }
        assert!(std::time::Instant::now() < deadline, "nobody claims the sample");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_clients_whose_requests_ended_are_woken_when_notifications_were_missed() {
    let fleet = Fleet::new().await;
    let worker = fleet.worker("a").await;
    let run = fleet.run_of(&worker, 0).await;
    let mut requests = Vec::new();
    for seq_id in 1..=40 {
        requests.push(fleet.submit(&worker, &run, seq_id).await);
    }
    let polls: Vec<_> = requests.iter().map(|request| (fleet.api.clone(), fleet.me.clone(), request.clone())).collect();
    let polls: Vec<_> = polls
        .into_iter()
        .map(|(api, me, request)| tokio::spawn(async move { api.poll(&me, &request, LONG * 6).await.unwrap() }))
        .collect();
    while fleet.api.core.waiters.awaited_requests().len() < requests.len() {
        tokio::task::yield_now().await;
    }
    fleet.api.core.wake_ended().await.unwrap();
    assert_eq!(
        fleet.api.core.waiters.awaited_requests().len(),
        requests.len(),
        "a client was woken before its request ended"
    );
    // Act as if the notification had been missed.
    const END: &str = "UPDATE requests SET state = 'cancelled', finished_at = 1 WHERE id = $1";
    let conn = &mut connect_as_system(&fleet.site.database.database).await.unwrap();
    sql(END).bind(requests[0].as_str()).execute(conn).await.unwrap();
    fleet.api.core.wake_ended().await.unwrap();
    let mut polls = polls.into_iter();
    assert_eq!(polls.next().unwrap().await.unwrap(), Poll::Cancelled);
    assert_eq!(fleet.api.core.waiters.awaited_requests().len(), requests.len() - 1);
    polls.for_each(|poll| poll.abort());
}

#[tokio::test]
async fn a_claim_does_not_hold_up_the_heartbeat_of_its_worker() {
    let fleet = Fleet::new().await;
    let worker = fleet.worker("a").await;
    let incarnation = worker.core.heartbeats.incarnation();
    let database = &fleet.site.database.database;
    let (mut claim, mut heartbeat) =
        (connect_as_system(database).await.unwrap(), connect_as_system(database).await.unwrap());
    claim.begin().await.unwrap();
    assert!(workers::is_registered(&mut claim, "a", incarnation).await.unwrap());
    assert!(
        workers::renew_worker(&mut heartbeat, "a", incarnation, LONG, &crate::EngineReport::default()).await.unwrap()
    );
    // Meanwhile its lease is not revoked, and no other process of its name takes over.
    heartbeat.begin().await.unwrap();
    let deleted = workers::delete_worker(&mut heartbeat, "a").await;
    assert!(matches!(deleted, Err(Error::Conflict(_))), "{deleted:?}");
    heartbeat.rollback().await.unwrap();
    let locked = workers::lock_worker(&mut heartbeat, "a").await;
    assert!(matches!(locked, Err(Error::Conflict(_))), "{locked:?}");
    claim.rollback().await.unwrap();
}
