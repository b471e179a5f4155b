//! Tests of samples whose sessions end.

use super::*;
use crate::store::quotas;
use crate::{FinishReason, RequestState};

/// Returns the numbers of unfinished samples: those that wait, and those that are executed.
async fn open_samples(bench: &Bench) -> (u64, u64) {
    // Starts are written together with another write.
    bench.scheduler.observe().await.unwrap();
    let mut conn = bench.scheduler.core.system_reader().await.unwrap();
    let open = quotas::open_requests(&mut conn).await.unwrap();
    let of = |state| open.iter().find(|(kind, of, _)| (*kind, *of) == (RequestKind::Sample, state)).map_or(0, |row| row.2);
    (of(RequestState::Queued), of(RequestState::Running))
}

/// Submits samples that the worker gets, and admits the first two.
async fn at_the_worker(bench: &Bench) -> Vec<RequestId> {
    let sampler = bench.sampling_session(0).await;
    let mut requests = Vec::new();
    for seq_id in 0..5 {
        requests.push(bench.submit_sample(&sampler, seq_id).await.request_id);
    }
    let mut started = 0;
    while started < 5 {
        started += bench.items().await.len();
    }
    bench.scheduler.samples_admitted(&requests[..2]);
    requests
}

fn cancels(items: Vec<WorkItem>) -> Vec<RequestId> {
    let cancel = |item| match item {
        WorkItem::Cancel(request) => request,
        other => panic!("{other:?}"),
    };
    sorted(items.into_iter().map(cancel).collect())
}

fn sorted(mut requests: Vec<RequestId>) -> Vec<RequestId> {
    requests.sort_unstable();
    requests
}

#[tokio::test]
async fn a_sample_waits_until_the_engine_admits_it() {
    let bench = bench().await;
    let requests = at_the_worker(&bench).await;
    assert_eq!(open_samples(&bench).await, (3, 2));
    bench.scheduler.samples_admitted(&requests);
    assert_eq!(open_samples(&bench).await, (0, 5));
}

#[tokio::test]
async fn a_session_that_ends_without_success_takes_its_samples_from_the_engine() {
    let bench = bench().await;
    let requests = at_the_worker(&bench).await;
    let reason = FinishReason::Interrupted;
    bench.scheduler.finish_session(&bench.me, &bench.session, reason, None).await.unwrap();
    for request in &requests {
        assert_eq!(bench.poll(request).await, Poll::Cancelled);
    }
    assert_eq!(cancels(bench.scheduler.take_work()), sorted(requests.clone()));
    assert_eq!(open_samples(&bench).await, (0, 0));
    bench.scheduler.complete(requests[0].clone(), result(0), Vec::new());
    assert_eq!(bench.poll(&requests[0]).await, Poll::Cancelled, "a result that comes late changes nothing");
}

#[tokio::test]
async fn a_session_that_expires_takes_its_samples_from_the_engine() {
    let bench = bench().await;
    let requests = at_the_worker(&bench).await;
    bench.pass(Duration::from_secs(301));
    bench.scheduler.maintain().await.unwrap();
    for request in &requests {
        assert_eq!(bench.poll(request).await, Poll::Cancelled);
    }
    assert_eq!(cancels(bench.scheduler.take_work()), sorted(requests.clone()));
    assert_eq!(open_samples(&bench).await, (0, 0));
    // The session is revived by new samples.
    let sampler = bench.sampling_session(1).await;
    let next = bench.submit_sample(&sampler, 0).await.request_id;
    bench.succeed(&bench.start().await);
    assert!(matches!(bench.poll(&next).await, Poll::Succeeded { .. }));
}

#[tokio::test]
async fn a_session_that_ends_with_success_keeps_its_samples() {
    let bench = bench().await;
    let sampler = bench.sampling_session(0).await;
    let request = bench.submit_sample(&sampler, 0).await.request_id;
    let work = bench.start().await;
    bench.scheduler.finish_session(&bench.me, &bench.session, FinishReason::Success, None).await.unwrap();
    bench.nothing_ready();
    bench.succeed(&work);
    assert!(matches!(bench.poll(&request).await, Poll::Succeeded { .. }));
}

#[tokio::test]
async fn cancelled_samples_are_delivered_as_completions_in_order() {
    let bench = bench().await;
    let sampler = bench.sampling_session(0).await;
    let mut requests = Vec::new();
    for seq_id in [0, 1, 2, 1_000_000_000] {
        requests.push(bench.submit_sample(&sampler, seq_id).await.request_id);
    }
    let items = bench.scheduler.take_work();
    let Some(WorkItem::Start(first)) = items.first() else { panic!("{items:?}") };
    bench.succeed(first);
    bench.poll(&first.request).await;
    let reason = FinishReason::Errored;
    bench.scheduler.finish_session(&bench.me, &bench.session, reason, None).await.unwrap();
    let found = bench.scheduler.completions(&bench.me, &sampler, 0, 1, LONG).await.unwrap();
    let ids: Vec<_> = found.items.iter().map(|item| (item.request_id.clone(), item.failed)).collect();
    assert_eq!(ids, [(requests[1].clone(), true), (requests[2].clone(), true)]);
    let of_clone = bench.scheduler.completions(&bench.me, &sampler, 1, 0, LONG).await.unwrap();
    assert_eq!(of_clone.items.len(), 1);
}
