//! `POST create_model`.

use axum::extract::State;
use trainyard_protocol::SessionId;
use trainyard_scheduler::{NewRun, RequestKind};

use super::body::JsonBody;
use super::respond::Reply;
use super::submit::future_of;
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::futures::SubmitResponse;
use crate::wire::json;
use crate::wire::models::CreateModelRequest;

/// Creates a run: LoRA with a positive rank, all parameters otherwise. Identified by session and
/// `model_seq_id`.
#[utoipa::path(
    post, path = "/api/v1/create_model", tag = "training", request_body = CreateModelRequest,
    responses((status = 200, body = SubmitResponse), Refusals),
)]
pub(super) async fn create_model(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    JsonBody(request): JsonBody<CreateModelRequest>,
) -> Reply<SubmitResponse> {
    state.require_model(&request.base_model)?;
    check_number("model_seq_id", request.model_seq_id)?;
    let (spec, payload) = request.payload(|| (state.random)())?;
    let new = NewRun {
        session: SessionId::new(request.session_id),
        model_seq_id: request.model_seq_id,
        spec,
        user_metadata: json::text_metadata(&request.user_metadata),
        kind: RequestKind::CreateModel,
        payload: payload.encode()?,
        identity: payload.identity()?,
        rejected: None,
    };
    let (run, submitted) = state.scheduler.submit_create(&tenant, new).await?;
    Ok(future_of(submitted, Some(&run)))
}

/// Refuses a negative counter.
pub(super) fn check_number(field: &str, value: i64) -> Result<(), ApiError> {
    if value < 0 { Err(ApiError::invalid(format!("{field}: {value} is negative"))) } else { Ok(()) }
}
