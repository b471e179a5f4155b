//! Handler of `POST retrieve_future`.

use std::time::Duration;

use axum::extract::State;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use trainyard_protocol::{CustomLossId, OpError, RequestId, TenantId};
use trainyard_scheduler::{Encoding, Error, MemoryWait, Pause, Poll, WorkerWait};
use trainyard_wire::custom_loss::CreateCustomLossResponse;
use trainyard_wire::futures::{FailedResponse, RetrieveFutureRequest, TryAgainResponse};
use trainyard_wire::results::{self, ResultError, RetrieveFutureResponse};

use crate::api::request::body::{JsonBody, beside};
use crate::api::request::refusals::{Binary, Refusals};
use crate::api::request::respond::Answer;
use crate::auth::Tenant;
use crate::bodies::answers::Shared;
use crate::error::ApiError;
use crate::state::AppState;

/// Queue state of a request whose owner has used up a quota.
const PAUSED_RATE_LIMIT: &str = "paused_rate_limit";
const PAUSED_CAPACITY: &str = "paused_capacity";

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/x-protobuf";

/// Bytes of memory for each byte of a protobuf result while it is written as JSON: numbers as text, and the values that
/// they are read into.
const WRITTEN_BYTES: usize = 5;

const REQUEST_TYPE: HeaderName = HeaderName::from_static("x-tinker-request-type");

/// Waits up to half a minute for a request to finish, and returns its result. A result can be read repeatedly. Failed
/// requests are answered with status 200 and a key `error`, pending ones with `try_again`.
///
/// All responses are JSON, except for clients that send `Accept: application/x-protobuf`: these receive results of
/// samples and training passes as protobuf. Both forms contain the same numbers.
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
        Ok(Poll::Succeeded { encoding, payload }) => succeeded(&state, &tenant, id, encoding, payload, &headers).await,
        Ok(Poll::Pending) => Ok(Answer(pending(&state, &tenant, &id).await).into_response()),
        Ok(Poll::Failed(error)) => Ok(Answer(FailedResponse::from(error)).into_response()),
        Ok(Poll::Cancelled) => Ok(Answer(FailedResponse::from(OpError::user("cancelled"))).into_response()),
        Err(error) => Err(refusal(error, is_sample(&headers))),
    }
}

/// Returns a result in the form that the client asked for. A result that another client is reading is not converted
/// again.
async fn succeeded(
    state: &AppState,
    tenant: &TenantId,
    id: RequestId,
    encoding: Encoding,
    mut payload: Bytes,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let content_type = if encoding == Encoding::Protobuf && prefers_protobuf(headers) { PROTOBUF } else { JSON };
    let shared = Shared { tenant: tenant.clone(), request: id, content_type };
    let is_written = encoding == Encoding::Protobuf && content_type == JSON;
    let needed = payload.len().saturating_mul(if is_written { WRITTEN_BYTES } else { 1 });
    if let Some(answer) = state.answers.find(&shared) {
        return Ok(answer.response(content_type));
    }
    let memory = match state.answers.try_reserve(tenant, needed) {
        Ok(memory) => memory,
        Err(_) => {
            // The result is not held by those who wait.
            drop(std::mem::take(&mut payload));
            let memory = state.answers.reserve(tenant, needed).await?;
            if let Some(answer) = state.answers.find(&shared) {
                return Ok(answer.response(content_type));
            }
            match state.scheduler.poll(tenant, &shared.request, Duration::ZERO).await {
                Ok(Poll::Succeeded { payload: again, .. }) => payload = again,
                Ok(_) => return Ok(Answer(TryAgainResponse::active(shared.request.as_str())).into_response()),
                Err(error) => return Err(refusal(error, is_sample(headers))),
            }
            memory
        }
    };
    let bytes = match is_written {
        true => beside(payload.len(), move || results::to_json(&payload)).await??,
        false => payload,
    };
    Ok(state.answers.share(shared, bytes, memory).response(content_type))
}

async fn wait(state: &AppState, tenant: &TenantId, id: &RequestId) -> Result<Poll, Error> {
    tokio::select! {
        poll = state.scheduler.poll(tenant, id, state.limits.long_poll) => poll,
        () = state.shutdown.requested() => state.scheduler.poll(tenant, id, Duration::ZERO).await,
    }
}

/// Describes the worker that a request waits for.
fn missing_worker(wait: WorkerWait) -> String {
    match wait {
        WorkerWait::NotServed { model } => {
            format!("the request waits for a worker that serves {model}; none is running")
        }
        WorkerWait::OtherWeights { model } => format!(
            "the workers that serve {model} have other weights under that name than those the training run was computed \
             with; it waits for a worker with the same weights"
        ),
        WorkerWait::OtherArithmetic { model, recorded, served } => format!(
            "the training run was computed with {recorded}, and workers that serve {model} compute with {}; it waits for \
             a worker that gives the same bits",
            served.join(", ")
        ),
    }
}

/// Returns the reason for which a request waits, if it is known.
pub(crate) async fn waiting_reason(state: &AppState, tenant: &TenantId, id: &RequestId) -> Option<String> {
    pending(state, tenant, id).await.queue_state_reason
}

/// Returns the response for a client that has to poll again. The client shows its user why the request waits.
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

/// Returns whether the client accepts protobuf and does not prefer JSON.
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

/// Converts an error of the scheduler. After a 410, a client sends the sample again. After a 5xx, any client polls
/// again without a pause, so a fault of the store is reported as 429.
fn refusal(error: Error, sample: bool) -> ApiError {
    match error {
        Error::NotFound { what, id } if sample => ApiError::Gone(format!("{what} {id:?} no longer exists")),
        Error::Store(doing) | Error::Unavailable(doing) | Error::NoSpace(doing) | Error::Conflict(doing) => {
            tracing::error!(doing, "failed to read a future: the store is not available");
            ApiError::Busy { message: "the store is not available; try again".to_owned(), retry_after_seconds: 1 }
        }
        other => other.into(),
    }
}

#[cfg(test)]
#[path = "retrieve_future_tests.rs"]
mod tests;
