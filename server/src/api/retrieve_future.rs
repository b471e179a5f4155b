//! `POST retrieve_future`.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use trainyard_protocol::{OpError, RequestId, TenantId};
use trainyard_scheduler::{Encoding, Error, Poll};

use super::body::JsonBody;
use super::respond::Answer;
use crate::auth::Tenant;
use crate::error::{ApiError, full_response};
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::futures::{FailedResponse, RetrieveFutureRequest, TryAgainResponse};

const REQUEST_TYPE: HeaderName = HeaderName::from_static("x-tinker-request-type");

/// Waits for a request to finish, for half a minute at most, and says what came of it. A result can be
/// read again. Failures are answers with status 200 and a key `error`; a pending request says `try_again`.
#[utoipa::path(
    post, path = "/api/v1/retrieve_future", tag = "futures", request_body = RetrieveFutureRequest,
    responses(
        (status = 200, description = "the result, `TryAgainResponse` or `FailedResponse`",
            content((serde_json::Value = "application/json"), (Vec<u8> = "application/x-protobuf"))),
        Refusals,
    ),
)]
pub(super) async fn retrieve_future(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    headers: HeaderMap,
    JsonBody(request): JsonBody<RetrieveFutureRequest>,
) -> Result<Response, ApiError> {
    let id = RequestId::new(request.request_id);
    match wait(&state, &tenant, &id).await {
        Ok(poll) => Ok(answer(&id, poll)),
        Err(error) => Err(refusal(error, is_sample(&headers))),
    }
}

async fn wait(state: &AppState, tenant: &TenantId, id: &RequestId) -> Result<Poll, Error> {
    tokio::select! {
        poll = state.scheduler.poll(tenant, id, state.limits.long_poll) => poll,
        () = state.shutdown.requested() => state.scheduler.poll(tenant, id, Duration::ZERO).await,
    }
}

fn answer(id: &RequestId, poll: Poll) -> Response {
    match poll {
        Poll::Pending => Answer(TryAgainResponse::active(id.as_str())).into_response(),
        Poll::Succeeded { encoding: Encoding::Json, payload } => {
            full_response(StatusCode::OK, "application/json", payload)
        }
        Poll::Succeeded { encoding: Encoding::Protobuf, payload } => {
            full_response(StatusCode::OK, "application/x-protobuf", payload)
        }
        Poll::Failed(error) => Answer(FailedResponse::from(error)).into_response(),
        Poll::Cancelled => Answer(FailedResponse::from(OpError::user("cancelled"))).into_response(),
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
        Error::Store(doing) => {
            tracing::error!(doing, "a future could not be read");
            ApiError::Busy { message: "the store is not available; try again".to_owned(), retry_after_seconds: 1 }
        }
        other => other.into(),
    }
}
