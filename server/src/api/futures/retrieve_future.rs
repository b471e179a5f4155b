//! `POST retrieve_future`.

use std::time::Duration;

use axum::extract::State;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use trainyard_protocol::{CustomLossId, OpError, RequestId, TenantId};
use trainyard_scheduler::{Encoding, Error, MemoryWait, Pause, Poll, WorkerWait};
use trainyard_wire::custom_loss::CreateCustomLossResponse;
use trainyard_wire::futures::{FailedResponse, RetrieveFutureRequest, TryAgainResponse};
use trainyard_wire::results::{self, ResultError, RetrieveFutureResponse};

use crate::api::request::body::{JsonBody, beside};
use crate::api::request::refusals::{Binary, Refusals};
use crate::api::request::respond::Answer;
use crate::auth::Tenant;
use crate::error::{ApiError, full_response};
use crate::state::AppState;

/// The state of a queue whose owner has used up a quota.
const PAUSED_RATE_LIMIT: &str = "paused_rate_limit";
const PAUSED_CAPACITY: &str = "paused_capacity";

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/x-protobuf";

const REQUEST_TYPE: HeaderName = HeaderName::from_static("x-tinker-request-type");

/// Waits for a request to finish, for half a minute at most, and says what came of it. A result can be
/// read repeatedly. Failures are answers with status 200 and a key `error`; a pending request says `try_again`.
///
/// All answers are JSON, except the results of samples and training passes for a client that sends
/// `Accept: application/x-protobuf`. Both forms hold the same numbers.
#[utoipa::path(
    post, path = "/api/v1/retrieve_future", tag = "futures", request_body = RetrieveFutureRequest,
    responses(
        (status = 200, description = "the result, `TryAgainResponse` or `FailedResponse`",
            content((RetrieveFutureResponse = "application/json"), (inline(Binary) = "application/x-protobuf"))),
        Refusals,
    ),
)]
pub(in crate::api) async fn retrieve_future(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    headers: HeaderMap,
    JsonBody(request): JsonBody<RetrieveFutureRequest>,
) -> Result<Response, ApiError> {
    let id = RequestId::new(request.request_id);
    if let Some(loss) = CustomLossId::of_future(&id) {
        // It is done as soon as it is accepted.
        state.scheduler.custom_loss(&tenant, &loss).await?;
        return Ok(Answer(CreateCustomLossResponse::new(loss.as_str())).into_response());
    }
    match wait(&state, &tenant, &id).await {
        Ok(Poll::Pending) => Ok(Answer(pending(&state, &tenant, &id).await).into_response()),
        Ok(Poll::Succeeded { encoding: Encoding::Json, payload }) => Ok(full_response(StatusCode::OK, JSON, payload)),
        Ok(Poll::Succeeded { encoding: Encoding::Protobuf, payload }) if prefers_protobuf(&headers) => {
            Ok(full_response(StatusCode::OK, PROTOBUF, payload))
        }
        Ok(Poll::Succeeded { encoding: Encoding::Protobuf, payload }) => {
            Ok(full_response(StatusCode::OK, JSON, beside(payload.len(), move || results::to_json(&payload)).await??))
        }
        Ok(Poll::Failed(error)) => Ok(Answer(FailedResponse::from(error)).into_response()),
        Ok(Poll::Cancelled) => Ok(Answer(FailedResponse::from(OpError::user("cancelled"))).into_response()),
        Err(error) => Err(refusal(error, is_sample(&headers))),
    }
}

async fn wait(state: &AppState, tenant: &TenantId, id: &RequestId) -> Result<Poll, Error> {
    tokio::select! {
        poll = state.scheduler.poll(tenant, id, state.limits.long_poll) => poll,
        () = state.shutdown.requested() => state.scheduler.poll(tenant, id, Duration::ZERO).await,
    }
}

/// Which worker a request waits for.
fn missing_worker(wait: WorkerWait) -> String {
    match wait {
        WorkerWait::NotServed { model } => {
            format!("no worker that serves {model} is running; the request waits for one")
        }
        WorkerWait::OtherWeights { model } => format!(
            "the workers that serve {model} have other weights under that name than the training run was computed with; \
             it waits for one with the same weights"
        ),
        WorkerWait::OtherArithmetic { model, recorded, served } => format!(
            "the training run was computed with {recorded}, and workers that serve {model} compute with {}; it waits for \
             one that gives the same bits",
            served.join(", ")
        ),
    }
}

/// Why a request waits, if that is known.
pub(crate) async fn waiting_reason(state: &AppState, tenant: &TenantId, id: &RequestId) -> Option<String> {
    pending(state, tenant, id).await.queue_state_reason
}

/// The answer for a client that has to poll again; it shows its user why the request waits.
async fn pending(state: &AppState, tenant: &TenantId, id: &RequestId) -> TryAgainResponse {
    // Without the store the poll still has its answer.
    let pause = state.scheduler.pause(tenant, id).await;
    let Ok(Some(Pause { quota, limit, until })) = pause else {
        if let Ok(Some(MemoryWait { needed, held, capacity })) = state.scheduler.memory_wait(tenant, id).await {
            let [needed, held, capacity] = [needed, held, capacity].map(|bytes| bytes.div_ceil(1 << 20));
            let reason = format!(
                "the training run needs {needed} MiB of memory, other runs hold {held} of {capacity} MiB; it starts when \
                 others are idle or have had their turn"
            );
            return TryAgainResponse::paused(id.as_str(), PAUSED_CAPACITY, reason);
        }
        return match state.scheduler.worker_wait(tenant, id).await {
            Ok(Some(wait)) => TryAgainResponse::paused(id.as_str(), PAUSED_CAPACITY, missing_worker(wait)),
            _ => TryAgainResponse::active(id.as_str()),
        };
    };
    let seconds = state.clock.now().until(until).as_millis().div_ceil(1_000).max(1);
    let reason = format!(
        "quota {}: {limit} tokens per minute are used up; the tenant's next request starts in about {seconds} s",
        quota.name()
    );
    TryAgainResponse::paused(id.as_str(), PAUSED_RATE_LIMIT, reason)
}

/// Whether the client accepts protobuf, and likes JSON no better.
fn prefers_protobuf(headers: &HeaderMap) -> bool {
    let quality = |wanted: &str| {
        let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut ranges = values.flat_map(|value| value.split(',')).map(|range| {
            let (essence, parameters) = range.split_once(';').unwrap_or((range, ""));
            (essence.trim(), parameters)
        });
        let (_, parameters) = ranges.find(|(essence, _)| essence.eq_ignore_ascii_case(wanted))?;
        let weight = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("q="));
        weight.map_or(Some(1.0), |weight| weight.parse::<f32>().ok())
    };
    quality(PROTOBUF).is_some_and(|protobuf| protobuf > 0.0 && protobuf >= quality(JSON).unwrap_or(0.0))
}

impl From<ResultError> for ApiError {
    fn from(error: ResultError) -> Self {
        Self::Internal(error.to_string())
    }
}

fn is_sample(headers: &HeaderMap) -> bool {
    headers.get(REQUEST_TYPE).is_some_and(|kind| kind == "Sample")
}

/// Sampling recovers from a 410 by sending the sample again; any client polls again after a 5xx without
/// a pause, so a fault of the store is said as 429.
fn refusal(error: Error, sample: bool) -> ApiError {
    match error {
        Error::NotFound { what, id } if sample => ApiError::Gone(format!("{what} {id:?} does not exist any more")),
        Error::Store(doing) | Error::Unavailable(doing) | Error::NoSpace(doing) | Error::Conflict(doing) => {
            tracing::error!(doing, "future could not be read: store unavailable");
            ApiError::Busy { message: "the store is not available; try again".to_owned(), retry_after_seconds: 1 }
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::num::NonZeroU64;
    use std::sync::Arc;
    use std::time::Instant;

    use axum::http::Method;
    use serde_json::json;
    use trainyard_protocol::{MemoryPlan, PlanMemory, RunMemory, RunSpec};
    use trainyard_scheduler::{Outcome, TenantPolicy};

    use super::*;
    use crate::api::tests::testing::*;
    use crate::auth::Keys;
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
    async fn a_poll_of_a_tenant_that_used_up_its_pace_says_why_and_how_long() {
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
            assert_eq!(
                (&got.body[..], got.headers["content-type"].to_str().unwrap()),
                (SAMPLE, PROTOBUF),
                "{accept:?}"
            );
        }
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
}
