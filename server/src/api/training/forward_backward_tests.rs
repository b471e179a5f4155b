#![allow(clippy::unwrap_used, reason = "tests")]
use axum::http::Method;
use prost::Message;
use serde_json::json;
use trainyard_protocol::{LossConfig, PreparedBatch, Tensor, TensorValues};
use trainyard_scheduler::Work;

use super::*;
use crate::api::tests::testing::*;
use crate::auth::Keys;
use crate::engine::testing::preparer;
use crate::state::Limits;

fn message(run: &str, seq_id: i32, forward_only: bool) -> Vec<u8> {
    let request = ForwardBackwardRequest {
        model_id: run.to_owned(),
        seq_id,
        loss_fn: "cross_entropy".to_owned(),
        forward_only,
        ..ForwardBackwardRequest::default()
    };
    request.encode_to_vec()
}

async fn post(server: &Server, encoding: &str, body: Vec<u8>) -> Got {
    let headers = [("content-type", "application/x-protobuf"), ("content-encoding", encoding)];
    server.call(Method::POST, "/api/v1/forward_backward", &headers, body).await
}

/// Chunks 2 and 3 arrive before chunk 1, are answered at once and run after it.
#[tokio::test]
async fn chunks_run_in_order_whatever_the_order_of_arrival() {
    let server = Server::start().await;
    let run = server.run().await;
    let mut futures = vec![];
    for seq_id in [2, 3, 1] {
        futures.push(post(&server, "identity", message(&run, seq_id, false)).await.text("request_id"));
    }
    for seq_id in 1..=3 {
        let work = server.next_work().await;
        assert_eq!((work.seq_id, work.kind), (seq_id, RequestKind::ForwardBackward));
        server.succeed_with_bytes(&work, b"result");
    }
    for future in &futures {
        let got = server.poll(future).await;
        assert_eq!(&got.body[..], b"result");
        assert_eq!(got.headers["content-type"], "application/x-protobuf");
    }
}

#[tokio::test]
async fn zstd_and_retries_and_other_content() {
    let server = Server::start().await;
    let run = server.run().await;
    let body = message(&run, 1, true);
    let compressed = zstd::encode_all(&body[..], 3).unwrap();
    let first = post(&server, "zstd", compressed).await.text("request_id");
    assert_eq!(post(&server, "identity", body).await.text("request_id"), first);
    post(&server, "identity", message(&run, 1, false)).await.refused(422);
    assert_eq!(server.next_work().await.kind, RequestKind::Forward);
}

#[tokio::test]
async fn large_bodies_pass_and_too_large_ones_are_refused() {
    let limits = Limits { max_body_bytes: 4 << 20, ..Limits::default() };
    let server = Server::with(limits, Keys::local()).await;
    let run = server.run().await;
    let mut large = message(&run, 1, false);
    // An unknown field of 3 MB, which readers skip.
    prost::encoding::bytes::encode(99, &vec![0_u8; 3 << 20], &mut large);
    post(&server, "identity", large.clone()).await.json();
    large.resize(5 << 20, 0);
    assert!(post(&server, "identity", large.clone()).await.refused(413).contains("4194304"));
    let bomb = zstd::encode_all(&large[..], 3).unwrap();
    assert!(bomb.len() < 1 << 20);
    post(&server, "zstd", bomb).await.refused(413);
}

#[tokio::test]
async fn foreign_media_are_refused() {
    let server = Server::start().await;
    assert!(post(&server, "br", vec![]).await.refused(415).contains("br"));
    let headers = [("content-type", "text/plain")];
    server.call(Method::POST, "/api/v1/forward_backward", &headers, "x").await.refused(415);
    post(&server, "zstd", b"not zstd".to_vec()).await.refused(400);
    post(&server, "identity", b"\xff\xff".to_vec()).await.refused(400);
    post(&server, "identity", message("none:train:0", 1, false)).await.refused(404);
    post(&server, "identity", message("none:train:0", 0, false)).await.refused(400);
}

/// A malformed datum with readable ids: the request takes its position in the order and fails.
#[tokio::test]
async fn a_malformed_datum_consumes_its_seq_id() {
    let server = Server::start().await;
    let run = server.run().await;
    let mut body = message(&run, 1, false);
    prost::encoding::bytes::encode(3, &vec![0xff_u8; 4], &mut body);
    let future = post(&server, "identity", body).await.text("request_id");
    let failed = server.poll(&future).await.json();
    assert_eq!(failed["category"], "user");
    post(&server, "identity", message(&run, 2, false)).await.json();
    assert_eq!(server.next_work().await.seq_id, 2);
}

fn batch_of(work: &Work) -> Result<PreparedBatch, OpError> {
    match work.decoded.take() {
        Some(PreparedContent::Batch(batch)) => batch,
        other => unreachable!("{other:?}"),
    }
}

/// The worker gets checked examples, or what is wrong with them.
#[tokio::test]
async fn examples_are_checked_before_their_turn() {
    let server = Server::start().await;
    let run = server.run().await;
    for (seq_id, token, expected) in [(1, 99, Ok(1)), (2, 100, Err("outside the vocabulary of 100"))] {
        let tensor = json!({"data": [token, 2], "shape": [2], "dtype": "int64"});
        let input = json!({"chunks": [{"type": "encoded_text", "tokens": [1, 2]}]});
        let datum = json!({"model_input": input, "loss_fn_inputs": {"target_tokens": tensor}});
        let pass = json!({"data": [datum], "loss_fn": "cross_entropy"});
        let body = json!({"model_id": run, "seq_id": seq_id, "forward_backward_input": pass});
        server.post("forward_backward", body).await.json();
        let work = server.next_work().await;
        match (batch_of(&work), expected) {
            (Ok(batch), Ok(count)) => assert_eq!(batch.data.len(), count),
            (Err(error), Err(text)) => assert!(error.message.contains(text), "{error}"),
            (found, _) => unreachable!("{found:?}"),
        }
        server.succeed_with_bytes(&work, b"result");
    }
}

/// A body of some kilobytes that would take gigabytes once it is decoded.
#[tokio::test]
async fn a_bomb_of_datums_fails_alone() {
    let server = Server::start().await;
    let run = server.run().await;
    let mut body = message(&run, 1, false);
    body.extend([0x1a, 0].repeat(4 << 20));
    let bomb = zstd::bulk::compress(&body, 3).unwrap();
    assert!(bomb.len() < 64 << 10);
    let future = post(&server, "zstd", bomb).await.text("request_id");
    let failed = server.poll(&future).await.json();
    assert_eq!(failed["error"], "data: 4194304 datums, at most 65536 are allowed");
    post(&server, "identity", message(&run, 2, false)).await.json();
    assert_eq!(server.next_work().await.seq_id, 2);
}

#[test]
fn targets_cost_what_they_are_beyond_a_tokens_worth() {
    let datum = |n: usize, shape: &[usize]| {
        let values = TensorValues::I64(vec![0; shape.iter().product()]);
        let targets = Tensor { shape: shape.to_vec(), values };
        Datum { tokens: vec![1; n], loss_fn_inputs: [("target_tokens".to_owned(), targets)].into(), images: Vec::new() }
    };
    let batch = RawBatch {
        data: vec![datum(10, &[10]), datum(10, &[10, 64]), datum(10, &[10, 96])],
        loss_fn: "cross_entropy".to_owned(),
        loss_fn_config: LossConfig::new(),
        custom_loss: None,
        decoded: Default::default(),
    };
    assert_eq!(tokens(&batch), 10 + 10 + 15);
}

/// The ids are at the front, so they survive the loss of the rest.
#[tokio::test]
async fn a_body_that_was_cut_off_consumes_its_seq_id() {
    let server = Server::start().await;
    let run = server.run().await;
    let mut body = message(&run, 1, false);
    prost::encoding::bytes::encode(3, &vec![0_u8; 100], &mut body);
    body.truncate(body.len() - 50);
    let future = post(&server, "identity", body).await.text("request_id");
    let failed = server.poll(&future).await.json();
    assert!(failed["error"].as_str().unwrap().contains("ForwardBackwardRequest"), "{failed}");
    post(&server, "identity", message(&run, 2, false)).await.json();
    assert_eq!(server.next_work().await.seq_id, 2);
}

#[tokio::test]
async fn json_is_stored_as_protobuf() {
    let server = Server::start().await;
    let run = server.run().await;
    let input = json!({
        "data": [{"model_input": {"chunks": [{"type": "encoded_text", "tokens": [1]}]},
            "loss_fn_inputs": {"target_tokens": {"data": [2], "dtype": "int64", "shape": [1]}}}],
        "loss_fn": "cross_entropy",
    });
    let body = json!({"model_id": run, "seq_id": 1, "forward_backward_input": input});
    server.post("forward_backward", body).await.json();
    let work = server.next_work().await;
    let stored = training::decode(work.payload.clone()).unwrap();
    assert_eq!((stored.seq_id, stored.data.len(), stored.forward_only), (1, 1, false));
    assert_eq!(
        batch_of(&work),
        preparer().prepare(MODEL, training::batch(stored, &ImageRules::text_only(MODEL)).unwrap())
    );
    server.succeed_with_bytes(&work, b"result");
    server.post("forward", json!({"model_id": run, "seq_id": 2, "forward_input": input})).await.json();
    assert_eq!(server.next_work().await.kind, RequestKind::Forward);
}
