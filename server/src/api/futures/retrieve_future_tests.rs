#![allow(clippy::unwrap_used, reason = "tests")]
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use serde_json::json;
use tower::ServiceExt;
use trainyard_protocol::{MemoryPlan, PlanMemory, RunMemory, RunSpec};
use trainyard_scheduler::{Outcome, TenantPolicy};

use super::*;
use crate::api::tests::testing::*;
use crate::auth::Keys;
use crate::bodies::BodyLimits;
use crate::state::Limits;

async fn poll_as(server: &Server, kind: &str, id: &str) -> Got {
    let headers = [("x-tinker-request-type", kind), ("accept", "application/x-protobuf")];
    let body = json!({"request_id": id, "allow_metadata_only": true}).to_string();
    server.call(Method::POST, "/api/v1/retrieve_future", &headers, body).await
}

#[tokio::test]
async fn a_pending_poll_is_held_open_and_says_try_again() {
    let server = Server::start().await;
    let sampler = server.sampler().await;
    let id = server.post("asample", sample(&sampler, 0)).await.text("request_id");
    let start = Instant::now();
    let pending = poll_as(&server, "Sample", &id).await.json();
    assert!(start.elapsed() >= server.state.limits.long_poll);
    assert_eq!(pending, json!({"type": "try_again", "request_id": id, "queue_state": "active"}));
}

#[tokio::test]
async fn a_poll_of_a_tenant_that_used_up_its_rate_limit_says_why_and_how_long() {
    let policy = TenantPolicy { tokens_per_minute: NonZeroU64::new(60), ..TenantPolicy::default() };
    let server = Server::granted(policy).await;
    let sampler = server.sampler().await;
    for seq_id in 0..6 {
        server.post("asample", sample(&sampler, seq_id)).await.json();
        server.next_work().await;
    }
    // Each takes 2 + 2 * 4 of the 60 tokens.
    let id = server.post("asample", sample(&sampler, 6)).await.text("request_id");
    assert_eq!(server.state.scheduler.take_work(), vec![]);
    let pending = poll_as(&server, "Sample", &id).await.json();
    assert_eq!(pending["queue_state"], "paused_rate_limit");
    let reason = pending["queue_state_reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("60 tokens per minute are used up") && reason.contains("about 10 s"), "{reason}");
    server.clock.advance(10);
    assert_eq!(server.next_work().await.request.as_str(), id);
    let pending = poll_as(&server, "Sample", &id).await.json();
    assert_eq!(pending, json!({"type": "try_again", "request_id": id, "queue_state": "active"}));
}

/// Two runs of any kind fill the memory.
struct RoomForTwo;

impl PlanMemory for RoomForTwo {
    fn plan(&self) -> MemoryPlan {
        MemoryPlan { budget: Some(250 << 20), ..MemoryPlan::default() }
    }

    fn run(&self, spec: &RunSpec) -> Option<RunMemory> {
        let large = spec.lora.as_ref().is_some_and(|lora| lora.rank == 512);
        Some(RunMemory { bytes: if large { 300 << 20 } else { 100 << 20 }, snapshot_bytes: 0 })
    }
}

#[tokio::test]
async fn a_poll_of_a_run_that_does_not_fit_into_memory_says_how_much_it_needs() {
    let server = Server::start().await;
    server.state.scheduler.plan_memory_with(Arc::new(RoomForTwo));
    let session = server.session().await;
    let create = async |number, rank| {
        let lora = json!({"rank": rank, "seed": 1});
        let body = json!({"session_id": session, "model_seq_id": number, "base_model": MODEL, "lora_config": lora});
        server.post("create_model", body).await.text("request_id")
    };
    for number in 0..2 {
        create(number, 8).await;
        server.next_work().await;
    }
    let waiting = create(2, 8).await;
    assert_eq!(server.state.scheduler.take_work(), vec![]);
    let pending = poll_as(&server, "CreateModel", &waiting).await.json();
    assert_eq!(pending["queue_state"], "paused_capacity");
    let reason = pending["queue_state_reason"].as_str().unwrap();
    assert!(reason.contains("needs 100 MiB") && reason.contains("hold 200 of 250 MiB"), "{reason}");
    let never = create(3, 512).await;
    assert_eq!(server.state.scheduler.take_work(), vec![]);
    let failed = poll_as(&server, "CreateModel", &never).await.json();
    assert_eq!(failed["category"], "user");
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("needs 300 MiB of memory; at most 250 MiB"), "{error}");
}

#[tokio::test]
async fn shutdown_ends_polls_at_once() {
    let limits = Limits { long_poll: Duration::from_secs(600), ..Limits::default() };
    let server = Server::with(limits, Keys::local()).await;
    let sampler = server.sampler().await;
    let id = server.post("asample", sample(&sampler, 0)).await.text("request_id");
    let (pending, ()) = tokio::join!(poll_as(&server, "Sample", &id), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        server.shutdown.send_replace(true);
    });
    assert_eq!(pending.text("type"), "try_again");
}

#[tokio::test]
async fn a_result_wakes_the_poll_and_can_be_read_again() {
    let limits = Limits { long_poll: Duration::from_secs(600), ..Limits::default() };
    let server = Server::with(limits, Keys::local()).await;
    let sampler = server.sampler().await;
    let id = server.post("asample", sample(&sampler, 0)).await.text("request_id");
    let work = server.next_work().await;
    let (got, ()) = tokio::join!(poll_as(&server, "Sample", &id), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        server.succeed_with_bytes(&work, b"tokens");
    });
    for got in [got, poll_as(&server, "Sample", &id).await] {
        assert_eq!((got.status, &got.body[..]), (StatusCode::OK, &b"tokens"[..]));
        assert_eq!(got.headers["content-type"], "application/x-protobuf");
        assert_eq!(got.headers["content-length"], "6");
    }
}

/// The one completion of two tokens, in protobuf.
const SAMPLE: &[u8] = &[10, 22, 18, 8, 4, 0, 0, 0, 5, 0, 0, 0, 26, 8, 0, 0, 128, 190, 205, 204, 204, 189, 8, 1];

#[tokio::test]
async fn a_result_is_protobuf_only_for_those_who_ask_for_it() {
    let server = Server::start().await;
    let sampler = server.sampler().await;
    let id = server.post("asample", sample(&sampler, 0)).await.text("request_id");
    let work = server.next_work().await;
    server.succeed_with_bytes(&work, SAMPLE);
    let body = json!({"request_id": id, "allow_metadata_only": true}).to_string();
    let get = async |headers: &[(&str, &str)]| {
        server.call(Method::POST, "/api/v1/retrieve_future", headers, body.clone()).await
    };
    let json = json!({
        "type": "sample", "prompt_cache_hit_tokens": 0,
        "sequences": [{"stop_reason": "length", "tokens": [4, 5], "logprobs": [-0.25, f64::from(-0.1_f32)]}],
    });
    assert_eq!(get(&[]).await.json(), json);
    for accept in [
        "application/json",
        "*/*",
        "",
        "application/x-protobuf;q=0",
        "text/html, application/json",
        "application/json, application/x-protobuf;q=0.5",
    ] {
        assert_eq!(get(&[("accept", accept)]).await.json(), json, "{accept:?}");
    }
    for accept in ["application/x-protobuf", "Application/X-Protobuf; q=0.9, application/json;q=0.1"] {
        let got = get(&[("accept", accept)]).await;
        assert_eq!((&got.body[..], got.headers["content-type"].to_str().unwrap()), (SAMPLE, PROTOBUF), "{accept:?}");
    }
}

#[tokio::test]
async fn a_large_result_is_written_once_for_the_clients_that_read_it_and_held_in_memory_by_all() {
    // One sample of 2^16 tokens without log-probabilities.
    let ids = vec![1_u8; 4 << 16];
    let mut sequence = vec![18];
    prost::encoding::encode_varint(ids.len() as u64, &mut sequence);
    sequence.extend_from_slice(&ids);
    sequence.extend_from_slice(&[8, 1]);
    let mut result = vec![10];
    prost::encoding::encode_varint(sequence.len() as u64, &mut result);
    result.extend_from_slice(&sequence);
    // What two take when they are written, or three when they are read.
    let bodies = BodyLimits { wait: Duration::from_millis(100), ..BodyLimits::default() };
    let limits =
        Limits { answer_memory: 2_600 << 10, bodies, long_poll: Duration::from_millis(50), ..Limits::default() };
    let server = Server::with(limits, Keys::local()).await;
    let sampler = server.sampler().await;
    let mut ids = Vec::new();
    for seq_id in 0..3 {
        ids.push(server.post("asample", sample(&sampler, seq_id)).await.text("request_id"));
    }
    for work in server.work().await {
        server.succeed_with_bytes(&work, result.clone().leak());
    }
    let ask = async |id: &str| {
        let body = json!({"request_id": id}).to_string();
        let request = Request::post("/api/v1/retrieve_future").header("x-api-key", KEY).body(Body::from(body));
        server.router().oneshot(request.unwrap()).await.unwrap()
    };
    // As many slow readers of one result as there are: they have the memory of one.
    let mut readers = Vec::new();
    for _ in 0..20 {
        readers.push(ask(&ids[0]).await);
    }
    assert!(readers.iter().all(|reader| reader.status() == StatusCode::OK));
    // Others have what is left, and then have to come back.
    let start = Instant::now();
    let second = ask(&ids[1]).await;
    let third = ask(&ids[2]).await;
    assert_eq!((second.status(), third.status()), (StatusCode::OK, StatusCode::TOO_MANY_REQUESTS));
    assert_eq!(third.headers()["retry-after"], "2");
    assert!(start.elapsed() >= Duration::from_millis(100), "it waits for memory");
    drop(second);
    drop(readers);
    let read = to_bytes(ask(&ids[2]).await.into_body(), usize::MAX).await.unwrap();
    let read: serde_json::Value = serde_json::from_slice(&read).unwrap();
    assert_eq!(read["sequences"][0]["tokens"].as_array().unwrap().len(), 1 << 16);
}

#[tokio::test]
async fn failures_and_cancellations_are_json_whatever_is_accepted() {
    let server = Server::start().await;
    let sampler = server.sampler().await;
    let failing = server.post("asample", sample(&sampler, 0)).await.text("request_id");
    let work = server.next_work().await;
    let outcome = Outcome::Failed(OpError::server("out of memory"));
    server.state.scheduler.complete(work.request, outcome, vec![]);
    let failed = poll_as(&server, "Sample", &failing).await.json();
    assert_eq!(failed, json!({"error": "out of memory", "category": "server"}));

    let cancelled = server.post("asample", sample(&sampler, 1)).await.text("request_id");
    for _ in 0..2 {
        server.post("cancel_future", json!({"request_id": cancelled})).await.json();
    }
    let failed = poll_as(&server, "Sample", &cancelled).await.json();
    assert_eq!(failed, json!({"error": "cancelled", "category": "user"}));
    server.post("cancel_future", json!({"request_id": "none"})).await.refused(404);
}

#[tokio::test]
async fn an_unknown_sample_is_gone_and_any_other_is_not_found() {
    let server = Server::start().await;
    poll_as(&server, "Sample", "none").await.refused(410);
    poll_as(&server, "OptimStep", "none").await.refused(404);
}

/// Clients poll again after a 5xx without any pause.
#[test]
fn a_fault_of_the_store_is_no_5xx() {
    let response = refusal(Error::Store("read a result"), true).into_response();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
}
