//! Handler of `POST retrieve_futures`.

use std::time::Duration;

use axum::extract::State;
use trainyard_protocol::{RequestId, SamplingSessionId, TenantId};
use trainyard_scheduler::{CompletionItem, Completions, Error};
use trainyard_wire::futures::{FutureCompletion, RetrieveFuturesRequest, RetrieveFuturesResponse};

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::AppState;

/// Waits for samples of a sampling session to finish. The cursor covers exactly the samples that are returned.
///
/// The results named in `retrieved_request_ids` are dropped some minutes later, unless the key has only read access.
#[utoipa::path(
    post, path = "/api/v1/retrieve_futures", tag = "futures", request_body = RetrieveFuturesRequest,
    responses((status = 200, description = "success", body = RetrieveFuturesResponse), Refusals),
)]
pub(in crate::api) async fn retrieve_futures(
    State(state): State<AppState>,
    Caller(caller): Caller,
    JsonBody(request): JsonBody<RetrieveFuturesRequest>,
) -> Reply<RetrieveFuturesResponse> {
    let timeout = timeout(&state, &request)?;
    let tenant = caller.tenant.clone();
    // What is retrieved is dropped, which takes more than reading.
    if caller.may_end_requests() {
        let retrieved: Vec<RequestId> = request.retrieved_request_ids.iter().map(RequestId::new).collect();
        state.scheduler.acknowledge(&tenant, &retrieved).await?;
    }
    let done = wait(&state, &tenant, &request, timeout).await?;
    let completions = done.items.into_iter().map(completion).collect();
    Ok(Answer(RetrieveFuturesResponse { completions, cursor: done.cursor }))
}

/// Checks the rest of the request and returns the time to wait.
fn timeout(state: &AppState, request: &RetrieveFuturesRequest) -> Result<Duration, ApiError> {
    if request.target.kind != "sampling_session" {
        let kind = &request.target.kind;
        return Err(ApiError::invalid(format!("target.type: {kind:?} is not supported; use \"sampling_session\"")));
    }
    for (field, value) in
        [("prev_cursor", request.prev_cursor), ("target.cloned_sampler_id", request.target.cloned_sampler_id)]
    {
        if value < 0 {
            return Err(ApiError::invalid(format!("{field}: {value} is negative")));
        }
    }
    let longest = state.limits.long_poll;
    match request.timeout {
        None => Ok(longest),
        Some(seconds) => Duration::try_from_secs_f64(seconds.min(longest.as_secs_f64())).map_err(|_| {
            ApiError::invalid(format!("timeout: expected a number of seconds of at least 0, found {seconds}"))
        }),
    }
}

async fn wait(
    state: &AppState,
    tenant: &TenantId,
    request: &RetrieveFuturesRequest,
    timeout: Duration,
) -> Result<Completions, Error> {
    let session = SamplingSessionId::new(request.target.sampling_session_id.clone());
    let (clone, after) = (request.target.cloned_sampler_id, request.prev_cursor);
    tokio::select! {
        done = state.scheduler.completions(tenant, &session, clone, after, timeout) => done,
        () = state.shutdown.requested() => {
            state.scheduler.completions(tenant, &session, clone, after, Duration::ZERO).await
        }
    }
}

fn completion(item: CompletionItem) -> FutureCompletion {
    let request_id = item.request_id.to_string();
    if item.failed {
        FutureCompletion::Failed { request_id }
    } else {
        FutureCompletion::Finished { request_id, response_payload_uncompressed_size: item.payload_size }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::time::Duration;

    use axum::http::{Method, StatusCode};
    use serde_json::{Value, json};
    use trainyard_protocol::{OpError, TenantId};
    use trainyard_scheduler::{Outcome, Role};

    use crate::api::tests::testing::*;
    use crate::auth::{Keys, SeedKey};
    use crate::state::Limits;

    fn ask(sampler: &str, cursor: i64, timeout: Option<f64>) -> Value {
        let target = json!({"type": "sampling_session", "sampling_session_id": sampler, "cloned_sampler_id": 0});
        json!({"target": target, "prev_cursor": cursor, "timeout": timeout, "retrieved_request_ids": []})
    }

    #[tokio::test]
    async fn the_cursor_covers_what_is_delivered_failures_too() {
        let server = Server::start().await;
        let sampler = server.sampler().await;
        for seq_id in 0..2 {
            server.post("asample", sample(&sampler, seq_id)).await.json();
        }
        let work = server.work().await;
        server.succeed_with_bytes(&work[0], b"tokens");
        let outcome = Outcome::Failed(OpError::server("no"));
        server.state.scheduler.complete(work[1].request.clone(), outcome, vec![]);
        let (mut cursor, mut seen) = (0, vec![]);
        while seen.len() < 2 {
            let got = server.post("retrieve_futures", ask(&sampler, cursor, None)).await.json();
            let new = got["completions"].as_array().unwrap().clone();
            assert!(!new.is_empty());
            seen.extend(new);
            cursor = got["cursor"].as_i64().unwrap();
        }
        seen.sort_by_key(|item| item["state"].to_string());
        assert_eq!(seen[0], json!({"state": "failed", "request_id": work[1].request.as_str()}));
        assert_eq!(seen[1]["response_payload_uncompressed_size"], 6);
        let mut last = ask(&sampler, cursor, Some(0.0));
        last["retrieved_request_ids"] = json!([work[0].request.as_str(), "unknown"]);
        let empty = server.post("retrieve_futures", last).await.json();
        assert_eq!(empty, json!({"completions": [], "cursor": cursor}));
    }

    #[tokio::test]
    async fn a_key_that_may_only_read_drops_no_results() {
        let roles = [("tml-test", Role::Member), ("tml-reader", Role::ReadOnly)];
        let entries = roles.map(|(key, role)| SeedKey {
            digest: Keys::digest(key),
            tenant: TenantId::new("acme"),
            name: key.to_owned(),
            role,
        });
        let limits = Limits { long_poll: Duration::from_millis(50), ..Limits::default() };
        let server = Server::with(limits, Keys::seed(entries.to_vec(), vec![], vec![])).await;
        let sampler = server.sampler().await;
        let session = sampler.split(':').next().unwrap();
        let id = server.post("asample", sample(&sampler, 0)).await.text("request_id");
        let work = server.next_work().await;
        server.succeed_with_bytes(&work, b"tokens");
        assert_eq!(server.poll(&id).await.status, StatusCode::OK);
        let mut body = ask(&sampler, 1, Some(0.0));
        body["retrieved_request_ids"] = json!([id]);
        for (key, left) in [("tml-reader", true), ("tml-test", false)] {
            server.post_as(key, "retrieve_futures", body.clone()).await.json();
            // Past the time that a result is kept after it was acknowledged.
            server.clock.advance(601);
            server.post("session_heartbeat", json!({"session_id": session})).await.json();
            server.state.scheduler.maintain().await.unwrap();
            assert_eq!(server.poll(&id).await.status == StatusCode::OK, left, "{key}");
        }
    }

    #[tokio::test]
    async fn too_many_or_too_long_ids_are_refused_by_field() {
        let server = Server::start().await;
        let sampler = server.sampler().await;
        let with = |ids: Vec<String>| {
            let mut body = ask(&sampler, 0, Some(0.0));
            body["retrieved_request_ids"] = json!(ids);
            body
        };
        let many = with(vec!["a".to_owned(); 16_385]);
        let text = server.post("retrieve_futures", many).await.refused(400);
        assert_eq!(text, "retrieved_request_ids: 16385 ids, at most 16384 are allowed");
        let long = with(vec!["a".to_owned(), "b".repeat(65)]);
        let text = server.post("retrieve_futures", long).await.refused(400);
        assert_eq!(text, "retrieved_request_ids[1]: 65 bytes, at most 64 are allowed");
        server.post("retrieve_futures", with(vec!["a".repeat(64); 16_384])).await.json();
    }

    #[tokio::test]
    async fn a_body_that_brings_no_data_is_small() {
        let server = Server::start().await;
        let plain = format!(r#"{{"retrieved_request_ids":[{}"a"]}}"#, r#""a","#.repeat(4 << 20));
        let body = zstd::encode_all(plain.as_bytes(), 3).unwrap();
        assert!(body.len() < 64 << 10);
        let headers = [("content-encoding", "zstd")];
        let refused = server.call(Method::POST, "/api/v1/retrieve_futures", &headers, body).await;
        assert_eq!(refused.refused(413), "the body is larger than 4194304 bytes");
    }

    #[tokio::test]
    async fn bad_fields_are_refused() {
        let server = Server::start().await;
        let sampler = server.sampler().await;
        for (status, body) in [
            (400, ask(&sampler, -1, None)),
            (400, ask(&sampler, 0, Some(-1.0))),
            (404, ask("none:sample:0", 0, Some(0.0))),
        ] {
            server.post("retrieve_futures", body).await.refused(status);
        }
    }
}
