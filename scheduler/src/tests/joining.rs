//! Tests of samples that are written together.

use futures::future::join_all;

use super::*;
use crate::store::blobs::INLINE_LIMIT;

/// Creates a session that ends before any request, and a sampling session of it.
async fn over(bench: &Bench) -> SamplingSessionId {
    let session = bench.scheduler.create_session(&bench.me, new_session(None)).await.unwrap();
    let sampler = bench.scheduler.create_sampling_session(&bench.me, new_sampling(&session, 0, None)).await.unwrap();
    bench.scheduler.finish_session(&bench.me, &session, crate::FinishReason::Success, None).await.unwrap();
    sampler
}

/// Returns the work that the worker gets and admits.
fn started(bench: &Bench) -> Vec<Work> {
    let work = |item| match item {
        WorkItem::Start(work) => work,
        other => panic!("{other:?}"),
    };
    let works: Vec<Work> = bench.scheduler.take_work().into_iter().map(work).collect();
    bench.scheduler.samples_admitted(&works.iter().map(|work| work.request.clone()).collect::<Vec<_>>());
    works
}

#[tokio::test]
async fn what_is_wrong_with_one_sample_is_nothing_to_those_beside_it() {
    let bench = bench().await;
    let (sampler, over) = (bench.sampling_session(0).await, over(&bench).await);
    // As in the store, whatever it was asked for before.
    bench.submit_sample(&sampler, 1000).await;
    let mut all: Vec<SampleSubmission> = (0..150).map(|seq_id| sample(&sampler, seq_id)).collect();
    let other = Bytes::from_static(b"other");
    all[20] = sample(&sampler, 19);
    all[40] = SampleSubmission { identity: other.clone(), payload: other, ..sample(&sampler, 39) };
    all[60] = sample(&SamplingSessionId::new("none"), 60);
    // PostgreSQL can't even search for a text with this character.
    all[80] = sample(&SamplingSessionId::new("\0"), 80);
    all[100] = sample(&over, 100);
    all[120] = sample(&sampler, 1000);
    let submitted = join_all(all.iter().map(|one| bench.scheduler.submit_sample(&bench.me, one.clone()))).await;
    let mut accepted = Vec::new();
    for (place, result) in submitted.iter().enumerate() {
        match (place, result) {
            (20, Ok(retry)) => assert_eq!(retry, submitted[19].as_ref().unwrap()),
            (120, Ok(retry)) => assert_eq!(retry, &bench.submit_sample(&sampler, 1000).await),
            (40, Err(Error::Mismatch(_))) | (60, Err(Error::NotFound { .. })) => {}
            (80, Err(Error::NotFound { .. } | Error::Invalid(_))) => {}
            (100, Err(Error::SessionFinished { .. })) => {}
            (_, Ok(new)) if ![20, 40, 60, 80, 100, 120].contains(&place) => accepted.push(new.request_id.clone()),
            other => panic!("{other:?}"),
        }
    }
    let started: Vec<RequestId> = started(&bench).into_iter().skip(1).map(|work| work.request).collect();
    assert_eq!(started, accepted);
    let bench = bench.restart(true).await;
    for (one, result) in all.iter().zip(&submitted).filter(|(_, result)| result.is_ok()) {
        let again = bench.scheduler.submit_sample(&bench.me, one.clone()).await;
        assert_eq!(&again.unwrap(), result.as_ref().unwrap());
    }
}

#[tokio::test]
async fn many_samples_take_few_transactions() {
    let bench = bench().await;
    let sampler = bench.sampling_session(0).await;
    let before = bench.scheduler.stats().transactions;
    join_all((0..64).map(|seq_id| bench.submit_sample(&sampler, seq_id))).await;
    let works = started(&bench);
    works.iter().for_each(|work| bench.succeed(work));
    join_all(works.iter().map(|work| bench.poll(&work.request))).await;
    let transactions = bench.scheduler.stats().transactions - before;
    assert!(transactions <= 6, "{transactions} transactions");
}

#[tokio::test]
async fn samples_that_end_together_keep_their_order_and_their_results() {
    let bench = bench().await;
    let sampler = bench.sampling_session(0).await;
    let mut all: Vec<SampleSubmission> = (0..100).map(|place| sample(&sampler, place % 2 * 1_000_000_000 + place)).collect();
    // Its payload is a file, which must be removed.
    all[10].payload = vec![7; INLINE_LIMIT + 1].into();
    let requests: Vec<RequestId> = join_all(all.into_iter().map(|one| bench.scheduler.submit_sample(&bench.me, one)))
        .await
        .into_iter()
        .map(|submitted| submitted.unwrap().request_id)
        .collect();
    // The sample whose payload is in a file arrived later.
    let mut works = started(&bench);
    works.sort_by_key(|work| requests.iter().position(|request| *request == work.request));
    assert_eq!(works.len(), 100);
    bench.scheduler.cancel(&bench.me, &requests[30]).await.unwrap();
    let large = Bytes::from(vec![9; INLINE_LIMIT + 1]);
    for (place, work) in works.iter().enumerate().rev() {
        match place {
            50 => bench.fail(work, "bad prompt"),
            70 => {
                let outcome = Outcome::Succeeded { encoding: Encoding::Protobuf, payload: large.clone() };
                bench.scheduler.complete(work.request.clone(), outcome, Vec::new());
            }
            _ => bench.succeed(work),
        }
    }
    bench.poll(&requests[0]).await;
    let bench = bench.restart(true).await;
    for (place, request) in requests.iter().enumerate() {
        match (place, bench.poll(request).await) {
            (30, Poll::Cancelled) => {}
            (50, Poll::Failed(error)) => assert_eq!(error.message, "bad prompt"),
            (70, Poll::Succeeded { payload, .. }) => assert_eq!(payload, large),
            (_, Poll::Succeeded { payload, .. }) => {
                let Outcome::Succeeded { payload: expected, .. } = result(works[place].seq_id) else { unreachable!() };
                assert_eq!(payload, expected);
            }
            other => panic!("{other:?}"),
        }
    }
    for clone in [0, 1] {
        let events = bench.scheduler.completions(&bench.me, &sampler, clone, 0, NO_WAIT).await.unwrap();
        let seen: Vec<RequestId> = events.items.iter().map(|item| item.request_id.clone()).collect();
        // The cancelled sample came first, and the one with a file needs its own statements.
        let apart = [30, 10];
        let together = (0..100).rev().filter(|place| !apart.contains(place));
        let order = [apart[0]].into_iter().chain(together).chain([apart[1]]);
        let of_clone = order.filter(|place| *place as i64 % 2 == clone);
        assert!(seen == of_clone.map(|place| requests[place].clone()).collect::<Vec<_>>(), "clone {clone}");
        let last = events.items.len() as i64;
        assert!(events.cursor >= last, "cursor {} after {last} events", events.cursor);
    }
    // Only the large result is left.
    bench.collect_garbage().await;
    assert_eq!(bench.blobs().len(), 1);
}
