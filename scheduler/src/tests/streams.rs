//! Tests of streams of tokens of samples that another process executes.

use trainyard_protocol::SampleProgress;

use super::fleet::{Fleet, kill, next, report, succeeded};
use super::*;

fn progress(sequence: usize, tokens: std::ops::Range<usize>) -> SampleProgress {
    SampleProgress {
        sequence,
        first_index: tokens.start,
        logprobs: tokens.clone().map(|at| -(at as f32) / 3.0).collect(),
        tokens: tokens.map(|at| at as u32).collect(),
        topk: None,
        end: None,
    }
}

/// Waits until a worker knows of the watch. Returns the generation of the only watched sample.
async fn generation(worker: &Scheduler, other_than: u64) -> u64 {
    let deadline = std::time::Instant::now() + LONG;
    loop {
        match &worker.watched_samples()[..] {
            [watched] if watched.generation != other_than => return watched.generation,
            _ => assert!(std::time::Instant::now() < deadline, "nobody watches"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn sampled(fleet: &Fleet, seq_id: i64) -> RequestId {
    let new = new_sampling(&fleet.session, seq_id, None);
    let sampler = fleet.api.create_sampling_session(&fleet.me, new).await.unwrap();
    fleet.api.submit_sample(&fleet.me, sample(&sampler, 0)).await.unwrap().request_id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_reach_the_process_that_watches_once_and_in_order() {
    let fleet = Fleet::new().await;
    let worker = fleet.worker("a").await;
    let request = sampled(&fleet, 0).await;
    let work = next(&worker).await;
    assert!(worker.watched_samples().is_empty());
    let mut watch = fleet.api.watch_sample(&fleet.me, &request).await.unwrap();
    let first = generation(&worker, 0).await;
    worker.report_progress(&request, vec![progress(0, 0..2), progress(1, 0..600)]);
    assert_eq!(watch.next().await, progress(0, 0..2));
    let mut sequence = Vec::new();
    while sequence.len() < 600 {
        let part = watch.next().await;
        assert_eq!((part.sequence, part.first_index), (1, sequence.len()));
        sequence.extend(part.tokens);
    }
    assert_eq!(sequence, (0..600).collect::<Vec<u32>>());
    // A part was lost: the process that watches asks for everything, and passes on what it lacks.
    worker.report_progress(&request, vec![progress(0, 5..7)]);
    assert!(generation(&worker, first).await > first);
    worker.report_progress(&request, vec![progress(0, 0..8), progress(1, 0..601)]);
    assert_eq!(watch.next().await, progress(0, 2..8));
    assert_eq!(watch.next().await, progress(1, 600..601));
    report(&worker, &work, "done");
    assert_eq!(fleet.poll(&request).await, succeeded("done"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_goes_on_when_another_worker_takes_over() {
    let fleet = Fleet::new().await;
    let first = fleet.worker("a").await;
    let request = sampled(&fleet, 0).await;
    next(&first).await;
    let mut watch = fleet.api.watch_sample(&fleet.me, &request).await.unwrap();
    generation(&first, 0).await;
    first.report_progress(&request, vec![progress(0, 0..3)]);
    assert_eq!(watch.next().await, progress(0, 0..3));
    kill(first);
    fleet.pass_lease().await;
    // This worker started after the watch was announced.
    let second = fleet.worker("b").await;
    let work = next(&second).await;
    assert_eq!(work.request, request);
    generation(&second, 0).await;
    second.report_progress(&request, vec![progress(0, 0..4)]);
    assert_eq!(watch.next().await, progress(0, 3..4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_learns_who_watches_although_it_was_deaf() {
    let fleet = Fleet::new().await;
    let worker = fleet.worker("a").await;
    let request = sampled(&fleet, 0).await;
    next(&worker).await;
    let mut watch = fleet.api.watch_sample(&fleet.me, &request).await.unwrap();
    let first = generation(&worker, 0).await;
    // The API server requests tokens again that were sent while it did not listen.
    fleet.api.core.progress.request_again();
    generation(&worker, first).await;
    worker.report_progress(&request, vec![progress(0, 0..1)]);
    assert_eq!(watch.next().await, progress(0, 0..1));
    drop(watch);
    assert!(fleet.api.watched_samples().is_empty());
    fleet.site.pass(Duration::from_secs(60));
    assert!(worker.watched_samples().is_empty(), "the watch has run out");
}
