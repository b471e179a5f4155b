//! `POST create_session`.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName};
use trainyard_scheduler::NewSession;

use super::body::JsonBody;
use super::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::sessions::{CreateSessionRequest, CreateSessionResponse};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("x-idempotency-key");

/// Opens a session. A repetition with the same `x-idempotency-key` returns the same one.
#[utoipa::path(
    post, path = "/api/v1/create_session", tag = "sessions", request_body = CreateSessionRequest,
    responses((status = 200, body = CreateSessionResponse), Refusals),
)]
pub(super) async fn create_session(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    headers: HeaderMap,
    JsonBody(request): JsonBody<CreateSessionRequest>,
) -> Reply<CreateSessionResponse> {
    let idempotency_key = headers.get(IDEMPOTENCY_KEY).and_then(|key| key.to_str().ok()).map(str::to_owned);
    let session = NewSession {
        tags: request.tags,
        user_metadata: request.user_metadata.into_iter().collect(),
        sdk_version: request.sdk_version,
        project_id: request.project_id,
        display_name: request.display_name,
        idempotency_key,
    };
    let session_id = state.scheduler.create_session(&tenant, session).await?.to_string();
    Ok(Answer(CreateSessionResponse { session_id }))
}
