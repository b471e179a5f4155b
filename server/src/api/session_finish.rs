//! `POST sessions/{session_id}/finish`.

use axum::extract::State;
use axum::http::StatusCode;
use trainyard_protocol::SessionId;
use trainyard_scheduler::FinishReason;

use super::body::JsonBody;
use super::extract::ApiPath;
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::sessions::{FinishKind, FinishRequest};

/// Ends a session. The first reason stands; repetitions are accepted.
#[utoipa::path(
    post, path = "/api/v1/sessions/{session_id}/finish", tag = "sessions", params(("session_id" = String, Path)),
    request_body = FinishRequest, responses((status = 204, description = "finished"), Refusals),
)]
pub(super) async fn session_finish(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(session_id): ApiPath<String>,
    JsonBody(request): JsonBody<FinishRequest>,
) -> Result<StatusCode, ApiError> {
    let reason = match request.reason.kind {
        FinishKind::Success => FinishReason::Success,
        FinishKind::Errored => FinishReason::Errored,
        FinishKind::Interrupted => FinishReason::Interrupted,
    };
    state.scheduler.finish_session(&tenant, &SessionId::new(session_id), reason, request.detail).await?;
    Ok(StatusCode::NO_CONTENT)
}
