//! `POST retrieve_futures`.

use std::time::Duration;

use axum::extract::State;
use trainyard_protocol::{RequestId, SamplingSessionId, TenantId};
use trainyard_scheduler::{CompletionItem, Completions, Error};

use super::body::JsonBody;
use super::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::futures::{FutureCompletion, RetrieveFuturesRequest, RetrieveFuturesResponse};

/// Waits for samples of one sampling session to finish. The cursor covers exactly what is returned.
#[utoipa::path(
    post, path = "/api/v1/retrieve_futures", tag = "futures", request_body = RetrieveFuturesRequest,
    responses((status = 200, body = RetrieveFuturesResponse), Refusals),
)]
pub(super) async fn retrieve_futures(
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
