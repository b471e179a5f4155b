#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use futures::{FutureExt, StreamExt};
use trainyard_protocol::{SampleResult, StopReason};
use trainyard_scheduler::{Outcome, Work, WorkItem};
use trainyard_wire::sampling::{ComputedWith, encode_result};

use super::*;
use crate::api::tests::testing::{Server, sample};

fn tenant() -> TenantId {
    TenantId::new("local")
}

/// Two sequences of tokens 10, 11, … and 20, 21, ….
fn sequences() -> Vec<SampledSequence> {
    let sequence = |first: u32| SampledSequence {
        stop_reason: StopReason::Length,
        tokens: (first..first + 4).collect(),
        logprobs: (first..first + 4).map(|token| -(token as f32) / 8.0).collect(),
        topk: None,
    };
    vec![sequence(10), sequence(20)]
}

fn result(sequences: Vec<SampledSequence>) -> Outcome {
    let result = SampleResult {
        sequences,
        prompt_logprobs: None,
        topk_prompt_logprobs: None,
        target_prompt_logprobs: None,
        prompt_alt_tokens: None,
        prompt_cache_hit_tokens: 0,
    };
    Outcome::Succeeded { encoding: Encoding::Protobuf, payload: encode_result(&result, None, ComputedWith::default()) }
}

/// A server that executes a sample, and the sample's stream.
async fn streaming() -> (Server, Work, SampleStream) {
    let server = Server::start().await;
    let sampler = server.sampler().await;
    server.post("asample", sample(&sampler, 0)).await.json();
    let work = server.next_work().await;
    let stream = SampleStream::open(&server.state.scheduler, tenant(), work.request.clone()).await.unwrap();
    (server, work, stream)
}

fn part(sequence: usize, from: usize, tokens: usize) -> SampleProgress {
    let mut part = sequences()[sequence].progress_from(sequence, from).unwrap();
    if tokens < part.tokens.len() {
        part.end = None;
    }
    part.tokens.truncate(tokens);
    part.logprobs.truncate(tokens);
    part
}

fn tokens(event: Result<StreamEvent, StreamError>) -> SampleProgress {
    match event.unwrap() {
        StreamEvent::Tokens(progress) => progress,
        StreamEvent::Done(output) => panic!("{output:?}"),
    }
}

#[tokio::test]
async fn the_store_is_read_although_nobody_asks_for_an_event() {
    let (server, work, mut stream) = streaming().await;
    assert!(stream.next().now_or_never().is_none());
    server.state.scheduler.complete(work.request.clone(), result(sequences()), vec![]);
    while !stream.result.is_finished() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(tokens(stream.next().await.unwrap()), part(0, 0, 4));
}

#[tokio::test]
async fn tokens_come_before_the_result_and_the_rest_with_it() {
    let (server, work, mut stream) = streaming().await;
    let scheduler = &server.state.scheduler;
    assert_eq!(scheduler.watched_samples().len(), 1);
    assert!(stream.next().now_or_never().is_none());
    scheduler.report_progress(&work.request, vec![part(0, 0, 2), part(1, 0, 1)]);
    assert_eq!(tokens(stream.next().await.unwrap()), part(0, 0, 2));
    assert_eq!(tokens(stream.next().await.unwrap()), part(1, 0, 1));
    // Another execution of it begins with the first token, and what it repeats is not said again.
    scheduler.report_progress(&work.request, vec![part(0, 0, 3), part(1, 0, 4)]);
    scheduler.complete(work.request.clone(), result(sequences()), vec![]);
    let rest: Vec<_> = stream.events().map(Result::unwrap).collect().await;
    let done = StreamEvent::Done(Box::new(SampleOutput {
        sequences: sequences(),
        prompt_logprobs: None,
        topk_prompt_logprobs: None,
        prompt_cache_hit_tokens: 0,
    }));
    let said = [part(0, 2, 1), part(1, 1, 3), part(0, 3, 1)].map(StreamEvent::Tokens);
    assert_eq!(rest, [&said[..], &[done]].concat());
    assert!(scheduler.watched_samples().is_empty());
}

#[tokio::test]
async fn a_sample_that_has_ended_streams_its_result() {
    let (server, work, first) = streaming().await;
    server.state.scheduler.complete(work.request.clone(), result(sequences()), vec![]);
    let first: Vec<_> = first.events().map(Result::unwrap).collect().await;
    let second = SampleStream::open(&server.state.scheduler, tenant(), work.request.clone()).await.unwrap();
    let second: Vec<_> = second.events().map(Result::unwrap).collect().await;
    assert_eq!(first, second);
    assert_eq!(first[..2], [part(0, 0, 4), part(1, 0, 4)].map(StreamEvent::Tokens));
    assert_eq!(first.len(), 3);
}

#[tokio::test]
async fn a_dropped_stream_cancels_its_sample() {
    let (server, work, mut stream) = streaming().await;
    server.state.scheduler.report_progress(&work.request, vec![part(0, 0, 2)]);
    tokens(stream.next().await.unwrap());
    drop(stream);
    let scheduler = server.state.scheduler.clone();
    let items = tokio::task::spawn_blocking(move || scheduler.wait_work(Duration::from_secs(5))).await.unwrap();
    assert!(matches!(&items[..], [WorkItem::Cancel(request)] if *request == work.request), "{items:?}");
    let ended = server.state.scheduler.poll(&tenant(), &work.request, Duration::from_secs(5)).await.unwrap();
    assert_eq!(ended, Poll::Cancelled);
}

#[tokio::test]
async fn a_stream_whose_result_cannot_be_read_cancels_its_sample() {
    let (server, work, mut stream) = streaming().await;
    stream.result = tokio::spawn(async { Err(Error::Unavailable("read")) });
    assert!(matches!(stream.next().await.unwrap(), Err(StreamError::Scheduler(Error::Unavailable(_)))));
    assert!(stream.next().await.is_none());
    drop(stream);
    let ended = server.state.scheduler.poll(&tenant(), &work.request, Duration::from_secs(5)).await.unwrap();
    assert_eq!(ended, Poll::Cancelled);
}

#[tokio::test]
async fn failures_end_the_stream() {
    let (server, work, mut stream) = streaming().await;
    server.state.scheduler.complete(work.request, Outcome::Failed(OpError::user("no")), vec![]);
    let failed = stream.next().await.unwrap();
    assert!(matches!(failed, Err(StreamError::Failed(error)) if error.message == "no"));
    assert!(stream.next().await.is_none());

    let (server, work, mut stream) = streaming().await;
    server.state.scheduler.cancel(&tenant(), &work.request).await.unwrap();
    assert!(matches!(stream.next().await.unwrap(), Err(StreamError::Cancelled)));
    assert!(stream.next().await.is_none());

    // Another machine sampled something else.
    let (server, work, mut stream) = streaming().await;
    server.state.scheduler.report_progress(&work.request, vec![part(1, 0, 2)]);
    tokens(stream.next().await.unwrap());
    let mut other = sequences();
    other[1].tokens[1] = 7;
    server.state.scheduler.complete(work.request, result(other), vec![]);
    assert!(matches!(stream.next().await.unwrap(), Err(StreamError::Diverged)));
}

#[tokio::test]
async fn another_tenants_sample_does_not_exist() {
    let (server, work, _stream) = streaming().await;
    let watched = server.state.scheduler.watched_samples();
    let other = SampleStream::open(&server.state.scheduler, TenantId::new("other"), work.request.clone()).await;
    let unknown = SampleStream::open(&server.state.scheduler, tenant(), RequestId::new("none")).await;
    for refused in [other.err().unwrap(), unknown.err().unwrap()] {
        assert!(matches!(refused, Error::NotFound { .. }));
    }
    assert_eq!(server.state.scheduler.watched_samples(), watched);
}
