//! Handler of `DELETE agent_sessions/{agent_session_id}`.

use axum::extract::State;
use axum::http::StatusCode;
use trainyard_protocol::AgentSessionId;

use crate::api::request::extract::ApiPath;
use crate::api::request::refusals::Refusals;
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

/// Ends an agent session: its key is refused, and running requests end. The call can be repeated.
///
/// Trajectories can be read, and rewards posted, until the session's retention is over.
#[utoipa::path(
    delete, path = "/api/v1/agent_sessions/{agent_session_id}", tag = "agents",
    params(("agent_session_id" = String, Path)), responses((status = 204, description = "ended"), Refusals),
)]
pub(in crate::api) async fn agent_session_end(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(agent_session_id): ApiPath<String>,
) -> Result<StatusCode, ApiError> {
    state.scheduler.end_agent_session(&tenant, &AgentSessionId::new(agent_session_id)).await?;
    Ok(StatusCode::NO_CONTENT)
}
