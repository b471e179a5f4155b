//! Tests of the bounds on unfinished training requests.

use std::num::NonZeroU64;

use super::*;
use crate::{Quota, Refusal, TrainingLimits};

/// Bounds of runs: 3 requests, 100 bytes; of a tenant: 5 requests, 150 bytes; and a gap of 10.
fn bounded() -> TenantPolicy {
    let some = |limit| NonZeroU64::new(limit).unwrap();
    let training = TrainingLimits {
        run_requests: some(3),
        run_bytes: some(100),
        requests: some(5),
        bytes: some(150),
        seq_gap: some(10),
    };
    TenantPolicy { training, ..TenantPolicy::default() }
}

fn of_bytes(run: &RunId, seq_id: i64, bytes: usize) -> RunSubmission {
    let payload = Bytes::from(vec![7; bytes]);
    RunSubmission { identity: payload.clone(), payload, ..submission(run, seq_id, RequestKind::ForwardBackward) }
}

async fn submit_bytes(bench: &Bench, run: &RunId, seq_id: i64, bytes: usize) -> Result<RequestId, Error> {
    bench.scheduler.submit_run(&bench.me, of_bytes(run, seq_id, bytes)).await.map(|submitted| submitted.request_id)
}

async fn execute_next(bench: &Bench, seq_id: i64) {
    let work = bench.start().await;
    assert_eq!(work.seq_id, seq_id);
    bench.succeed(&work);
    bench.poll(&work.request).await;
}

fn refusal(result: Result<RequestId, Error>) -> Refusal {
    match result {
        Err(Error::Quota(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

fn used(result: Result<RequestId, Error>) -> (Quota, u64, u64, u64) {
    let Refusal { quota, used, limit, asked, .. } = refusal(result);
    (quota, used, limit, asked)
}

#[tokio::test]
async fn queued_bytes_are_bounded_per_run() {
    let bench = granted(bounded()).await;
    let run = bench.ready_run(0).await;
    submit_bytes(&bench, &run, 2, 60).await.unwrap();
    let third = submit_bytes(&bench, &run, 3, 40).await.unwrap();
    assert_eq!(used(submit_bytes(&bench, &run, 4, 1).await), (Quota::RunQueuedBytes, 100, 100, 1));
    let refused = refusal(submit_bytes(&bench, &run, 4, 1).await);
    assert!(refused.retry_after >= Duration::from_secs(1));
    assert_eq!(
        refused.to_string(),
        "quota max_run_queued_bytes: requests of this run with 100 of 100 bytes are queued, and this one has 1; wait for \
         results before sending more"
    );
    // A repetition was accepted before, and one with other content is still a mismatch.
    assert_eq!(submit_bytes(&bench, &run, 3, 40).await, Ok(third));
    assert!(matches!(submit_bytes(&bench, &run, 3, 41).await, Err(Error::Mismatch(_))));
    // A refused request takes no place: the same number is accepted once there is capacity.
    submit_bytes(&bench, &run, 1, 10).await.unwrap();
    execute_next(&bench, 1).await;
    execute_next(&bench, 2).await;
    submit_bytes(&bench, &run, 4, 60).await.unwrap();
}

#[tokio::test]
async fn queued_requests_are_bounded_per_run_and_tenant() {
    let bench = granted(bounded()).await;
    let (first, second) = (bench.ready_run(0).await, bench.ready_run(1).await);
    for seq_id in 2..=4 {
        submit_bytes(&bench, &first, seq_id, 1).await.unwrap();
    }
    assert_eq!(used(submit_bytes(&bench, &first, 5, 1).await), (Quota::RunQueuedRequests, 3, 3, 1));
    for seq_id in 2..=3 {
        submit_bytes(&bench, &second, seq_id, 1).await.unwrap();
    }
    assert_eq!(used(submit_bytes(&bench, &second, 4, 1).await), (Quota::QueuedRequests, 5, 5, 1));
    // Another tenant has a queue of its own.
    let other = TenantId::new("other");
    let session = bench.scheduler.create_session(&other, new_session(None)).await.unwrap();
    let (theirs, _) = bench.scheduler.submit_create(&other, new_run(&session, 0)).await.unwrap();
    bench.scheduler.submit_run(&other, of_bytes(&theirs, 1, 90)).await.unwrap();
}

#[tokio::test]
async fn queued_bytes_are_bounded_per_tenant() {
    let bench = granted(bounded()).await;
    let (first, second) = (bench.ready_run(0).await, bench.ready_run(1).await);
    submit_bytes(&bench, &first, 2, 100).await.unwrap();
    submit_bytes(&bench, &second, 2, 50).await.unwrap();
    assert_eq!(used(submit_bytes(&bench, &second, 3, 1).await), (Quota::QueuedBytes, 150, 150, 1));
    // An invalid request does not wait for capacity.
    let rejected = RunSubmission { rejected: Some(OpError::user("bad loss")), ..of_bytes(&second, 3, 1) };
    bench.scheduler.submit_run(&bench.me, rejected).await.unwrap();
}

#[tokio::test]
async fn the_next_request_is_admitted_into_a_full_queue() {
    let bench = granted(bounded()).await;
    let run = bench.ready_run(0).await;
    let other = bench.ready_run(1).await;
    for seq_id in 3..=5 {
        submit_bytes(&bench, &run, seq_id, 33).await.unwrap();
    }
    submit_bytes(&bench, &other, 3, 50).await.unwrap();
    // Request 1 is missing too.
    assert_eq!(used(submit_bytes(&bench, &run, 2, 40).await).0, Quota::RunQueuedRequests);
    submit_bytes(&bench, &run, 1, 1_000).await.unwrap();
    // Request 1 is queued before it, so request 2 is not yet the next one to execute.
    assert_eq!(used(submit_bytes(&bench, &run, 2, 40).await).0, Quota::RunQueuedRequests);
    execute_next(&bench, 1).await;
    submit_bytes(&bench, &run, 2, 40).await.unwrap();
    for seq_id in 2..=5 {
        execute_next(&bench, seq_id).await;
    }
    // An idle run is admitted whatever the tenant's other runs have queued.
    submit_bytes(&bench, &other, 4, 50).await.unwrap();
    submit_bytes(&bench, &run, 6, 500).await.unwrap();
    execute_next(&bench, 6).await;
}

#[tokio::test]
async fn requests_that_failed_at_once_open_no_way_around_the_bounds() {
    let bench = granted(bounded()).await;
    let run = bench.ready_run(0).await;
    submit_bytes(&bench, &run, 8, 100).await.unwrap();
    for seq_id in [6, 4, 2] {
        let rejected = RunSubmission { rejected: Some(OpError::user("no")), ..of_bytes(&run, seq_id, 1) };
        bench.scheduler.submit_run(&bench.me, rejected).await.unwrap();
        // Everything before it has ended, but the run still waits for another request.
        assert_eq!(used(submit_bytes(&bench, &run, seq_id + 1, 100).await).0, Quota::RunQueuedBytes);
    }
    submit_bytes(&bench, &run, 1, 100).await.unwrap();
}

#[tokio::test]
async fn requests_that_failed_at_once_are_bounded_behind_one_that_waits() {
    let bench = granted(bounded()).await;
    let run = bench.ready_run(0).await;
    submit_bytes(&bench, &run, 1, 1).await.unwrap();
    let reject = async |seq_id| {
        let rejected = RunSubmission { rejected: Some(OpError::user("no")), ..of_bytes(&run, seq_id, 1) };
        bench.scheduler.submit_run(&bench.me, rejected).await.map(|submitted| submitted.request_id)
    };
    // As many as may be queued, and as many as the order may have gaps.
    for seq_id in 2..14 {
        reject(seq_id).await.unwrap();
    }
    assert_eq!(used(reject(14).await), (Quota::RunQueuedRequests, 13, 13, 1));
    execute_next(&bench, 1).await;
    for seq_id in 14..40 {
        reject(seq_id).await.unwrap();
    }
}

#[tokio::test]
async fn a_seq_id_far_ahead_of_the_next_one_is_refused_with_both() {
    let bench = granted(bounded()).await;
    let run = bench.ready_run(0).await;
    let error = submit_bytes(&bench, &run, 12, 1).await.unwrap_err();
    let text = "seq_id: 12 is too far ahead: the run waits for 1, and numbers up to 10 after it are accepted";
    assert_eq!(error.to_string(), text);
    for far in [i64::MAX, i64::MAX - 1, 1_000_000] {
        assert!(matches!(submit_bytes(&bench, &run, far, 1).await, Err(Error::SeqGap { .. })));
    }
    let eleventh = submit_bytes(&bench, &run, 11, 1).await.unwrap();
    assert_eq!(submit_bytes(&bench, &run, 11, 1).await, Ok(eleventh));
    // The limit advances with arrivals, not with executions.
    submit_bytes(&bench, &run, 1, 1).await.unwrap();
    let error = submit_bytes(&bench, &run, 13, 1).await.unwrap_err();
    assert!(error.to_string().contains("waits for 2,"), "{error}");
    submit_bytes(&bench, &run, 12, 1).await.unwrap();
    // The bound also applies to requests that fail at once.
    let rejected = RunSubmission { rejected: Some(OpError::user("no")), ..of_bytes(&run, 100, 1) };
    assert!(matches!(bench.scheduler.submit_run(&bench.me, rejected).await, Err(Error::SeqGap { .. })));
}

#[tokio::test]
async fn concurrent_submissions_stay_within_the_bounds() {
    let bench = granted(bounded()).await;
    let run = bench.ready_run(0).await;
    let submissions = (2..=11).map(|seq_id| {
        let (scheduler, me, new) = (bench.scheduler.clone(), bench.me.clone(), of_bytes(&run, seq_id, 40));
        tokio::spawn(async move { scheduler.submit_run(&me, new).await })
    });
    let mut accepted = 0;
    for submission in submissions.collect::<Vec<_>>() {
        match submission.await.unwrap() {
            Ok(_) => accepted += 1,
            Err(error) => assert!(matches!(error, Error::Quota(_)), "{error}"),
        }
    }
    assert_eq!(accepted, 2);
}

#[tokio::test]
async fn no_file_is_left_of_a_refused_payload() {
    let bench = granted(bounded()).await;
    let run = bench.ready_run(0).await;
    submit_bytes(&bench, &run, 2, 90).await.unwrap();
    let before = bench.blobs();
    refusal(submit_bytes(&bench, &run, 3, 1 << 20).await);
    assert_eq!(bench.blobs(), before);
}
