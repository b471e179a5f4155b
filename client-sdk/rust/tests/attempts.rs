//! Tests of the client against a server that follows a list of actions.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use trainyard_client::types::AdamParamsBody;
use trainyard_client::{Client, Error, NewRun, RetryPolicy};

/// Action of the server on a request.
#[derive(Clone, Copy)]
enum Does {
    Answer(u16, &'static str),
    /// Closes the connection without an answer.
    Close,
    /// Closes the connection in the middle of the body.
    Cut,
}

/// The idempotency key and the body of a request.
type Seen = (String, Value);

#[derive(Clone, Default)]
struct Server {
    answers: Arc<Mutex<VecDeque<Does>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

const ACCEPTED: &str = r#"{"session_id": "s", "request_id": "r", "model_id": "s:train:0"}"#;

impl Server {
    /// Serves on a port of its own. Returns the address.
    async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = self.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = server.clone();
                tokio::spawn(async move { server.serve(stream).await });
            }
        });
        address
    }

    /// Handles one request for each connection.
    async fn serve(&self, mut stream: TcpStream) {
        let mut received = Vec::new();
        let (head, body) = loop {
            let mut part = [0; 4096];
            let count = stream.read(&mut part).await.unwrap();
            received.extend_from_slice(&part[..count]);
            let text = String::from_utf8_lossy(&received).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n")
                && header(head, "content-length").is_none_or(|length| body.len() >= length.parse().unwrap())
            {
                break (head.to_owned(), body.to_owned());
            }
        };
        let key = header(&head, "x-idempotency-key").unwrap_or_default();
        self.seen.lock().unwrap().push((key, serde_json::from_str(&body).unwrap_or_default()));
        let does = self.answers.lock().unwrap().pop_front().unwrap_or(Does::Answer(200, ACCEPTED));
        let (status, text, sent) = match does {
            Does::Answer(status, text) => (status, text, text.len()),
            Does::Cut => (200, ACCEPTED, 5),
            Does::Close => return,
        };
        let head = format!(
            "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\
             retry-after: 0.01\r\nx-request-id: id\r\n\r\n",
            text.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&text.as_bytes()[..sent]).await.unwrap();
    }

    fn expect(&self, answers: &[Does]) {
        self.answers.lock().unwrap().extend(answers);
    }

    fn bodies(&self) -> Vec<Value> {
        self.seen.lock().unwrap().iter().map(|(_, body)| body.clone()).collect()
    }
}

fn header(head: &str, name: &str) -> Option<String> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
}

fn fast() -> RetryPolicy {
    RetryPolicy::default().first_delay(Duration::from_millis(10)).longest_delay(Duration::from_millis(20))
}

const BUSY: Does = Does::Answer(503, r#"{"detail": "busy"}"#);

#[tokio::test]
async fn every_attempt_has_the_same_key_and_body() {
    let server = Server::default();
    let client = Client::builder().base_url(server.start().await).retry(fast()).build().unwrap();
    let answers = [BUSY, Does::Close, Does::Cut, Does::Answer(429, "{}"), Does::Answer(500, "{}")];
    server.expect(&answers);
    assert_eq!(client.session_id().await.unwrap(), "s");
    let seen = server.seen.lock().unwrap();
    assert_eq!(seen.len(), answers.len() + 1);
    assert!(seen.iter().all(|attempt| *attempt == seen[0]) && !seen[0].0.is_empty());
}

#[tokio::test]
async fn what_the_server_may_have_taken_is_sent_again_before_the_next_request() {
    let server = Server::default();
    let builder = Client::builder().base_url(server.start().await).retry(RetryPolicy::none());
    let run = builder.build().unwrap().create_run(NewRun::of("model")).await.unwrap();
    server.seen.lock().unwrap().clear();
    server.expect(&[Does::Close]);
    let lost = run.optim_step(AdamParamsBody::new().learning_rate(0.5)).await;
    assert!(matches!(lost, Err(Error::Transport { .. })));
    let _ = run.optim_step(AdamParamsBody::new().learning_rate(0.25)).await.unwrap();
    let sent: Vec<_> = server.bodies().iter().map(|body| (body["seq_id"].clone(), rate(body))).collect();
    assert_eq!(sent, [(1.into(), 0.5), (1.into(), 0.5), (2.into(), 0.25)]);
}

#[tokio::test]
async fn a_caller_that_repeats_a_lost_request_means_the_same_one() {
    let server = Server::default();
    let builder = Client::builder().base_url(server.start().await).retry(RetryPolicy::none());
    let run = builder.build().unwrap().create_run(NewRun::of("model")).await.unwrap();
    server.seen.lock().unwrap().clear();
    server.expect(&[Does::Close, BUSY]);
    for _ in 0..2 {
        assert!(run.optim_step(AdamParamsBody::new()).await.is_err());
    }
    for _ in 0..2 {
        let _ = run.optim_step(AdamParamsBody::new()).await.unwrap();
    }
    let numbers: Vec<_> = server.bodies().iter().map(|body| body["seq_id"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 1, 1, 2]);
}

fn rate(body: &Value) -> f64 {
    body["adam_params"]["learning_rate"].as_f64().unwrap()
}

#[tokio::test]
async fn a_dropped_call_leaves_no_gap_and_a_refused_one_uses_up_no_number() {
    let server = Server::default();
    let builder = Client::builder().base_url(server.start().await).retry(fast());
    let run = builder.build().unwrap().create_run(NewRun::of("model")).await.unwrap();
    server.seen.lock().unwrap().clear();
    server.expect(&[BUSY; 100]);
    let call = run.optim_step(AdamParamsBody::new());
    assert!(tokio::time::timeout(Duration::from_millis(100), call).await.is_err());
    server.answers.lock().unwrap().clear();
    let _ = run.optim_step(AdamParamsBody::new().learning_rate(0.5)).await.unwrap();
    server.expect(&[Does::Answer(422, r#"{"detail": "learning_rate: wrong"}"#)]);
    let refused = run.optim_step(AdamParamsBody::new()).await;
    let Err(Error::Api(refusal)) = refused else { unreachable!("refused") };
    assert_eq!((refusal.status, refusal.detail.as_str()), (422, "learning_rate: wrong"));
    assert_eq!(refusal.request_id.as_deref(), Some("id"));
    let _ = run.optim_step(AdamParamsBody::new()).await.unwrap();
    let numbers: Vec<_> = server.bodies().iter().map(|body| body["seq_id"].as_u64().unwrap()).collect();
    let first = numbers.iter().filter(|number| **number == 1).count();
    assert!(first > 1, "the dropped call's request was sent again: {numbers:?}");
    assert_eq!(numbers[first..], [2, 3, 3]);
}

#[tokio::test]
async fn pending_and_failed_futures_are_told_apart() {
    let server = Server::default();
    let client = Client::builder().base_url(server.start().await).retry(fast()).build().unwrap();
    let pending = Does::Answer(200, r#"{"type": "try_again", "request_id": "r", "queue_state": "active"}"#);
    let failed = Does::Answer(200, r#"{"error": "rank: wrong", "category": "user"}"#);
    server.expect(&[Does::Answer(200, ACCEPTED), Does::Answer(200, ACCEPTED), pending, failed]);
    let error = client.create_run(NewRun::of("model")).await.unwrap_err();
    let Error::Failed(failure) = error else { unreachable!("failed") };
    assert_eq!((failure.message.as_str(), failure.category), ("rank: wrong", trainyard_client::Category::User));
}

#[tokio::test]
async fn an_absent_server_is_an_error_after_the_time_for_retries() {
    let policy = fast().total(Duration::from_millis(300));
    let client = Client::builder().base_url("http://127.0.0.1:9").retry(policy).build().unwrap();
    let started = std::time::Instant::now();
    assert!(matches!(client.session_id().await, Err(Error::Transport { .. })));
    assert!(started.elapsed() >= Duration::from_millis(250));
}

#[test]
fn settings_that_can_not_be_used_are_named() {
    for (url, key) in [("no url", "tml-x"), ("mailto:x", "tml-x"), ("http://x", "a\nb")] {
        assert!(matches!(Client::builder().base_url(url).api_key(key).build(), Err(Error::Configuration(_))), "{url}");
    }
}
