//! Handler of `POST session_heartbeat`.

use axum::extract::State;
use trainyard_protocol::SessionId;
use trainyard_wire::sessions::{HeartbeatRequest, HeartbeatResponse};

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::state::AppState;

/// Keeps a session alive. After the end of the session, the response is 410, so that the client stops.
#[utoipa::path(
    post, path = "/api/v1/session_heartbeat", tag = "sessions", request_body = HeartbeatRequest,
    responses((status = 200, description = "success", body = HeartbeatResponse), Refusals),
)]
pub(in crate::api) async fn session_heartbeat(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    JsonBody(request): JsonBody<HeartbeatRequest>,
) -> Reply<HeartbeatResponse> {
    state.scheduler.heartbeat(&tenant, &SessionId::new(request.session_id)).await?;
    Ok(Answer(HeartbeatResponse {}))
}
