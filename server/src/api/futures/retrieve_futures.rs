//! `POST retrieve_futures`.

use std::time::Duration;

use axum::extract::State;
use trainyard_protocol::{RequestId, SamplingSessionId, TenantId};
use trainyard_scheduler::{CompletionItem, Completions, Error};
use trainyard_wire::futures::{FutureCompletion, RetrieveFuturesRequest, RetrieveFuturesResponse};

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

/// Waits for samples of one sampling session to finish. The cursor covers exactly what is returned.
#[utoipa::path(
    post, path = "/api/v1/retrieve_futures", tag = "futures", request_body = RetrieveFuturesRequest,
    responses((status = 200, description = "done", body = RetrieveFuturesResponse), Refusals),
)]
pub(in crate::api) async fn retrieve_futures(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    JsonBody(request): JsonBody<RetrieveFuturesRequest>,
) -> Reply<RetrieveFuturesResponse> {
    let timeout = timeout(&state, &request)?;
    let retrieved: Vec<RequestId> = request.retrieved_request_ids.iter().map(RequestId::new).collect();
    if !retrieved.is_empty() {
        state.scheduler.acknowledge(&tenant, &retrieved).await?;
    }
    let done = wait(&state, &tenant, &request, timeout).await?;
    let completions = done.items.into_iter().map(completion).collect();
    Ok(Answer(RetrieveFuturesResponse { completions, cursor: done.cursor }))
}

/// How long to wait, once the rest of the request is found sound.
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
        Some(seconds) => Duration::try_from_secs_f64(seconds.min(longest.as_secs_f64()))
            .map_err(|_| ApiError::invalid(format!("timeout: {seconds} is not a number of seconds from 0"))),
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
    use serde_json::{Value, json};
    use trainyard_protocol::OpError;
    use trainyard_scheduler::Outcome;

    use crate::api::tests::testing::*;

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
