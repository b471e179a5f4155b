//! Handler of `GET agent_sessions/{agent_session_id}`.

use axum::extract::State;
use trainyard_protocol::AgentSessionId;
use trainyard_wire::agents::AgentSessionResponse;

use super::response;
use crate::api::request::extract::ApiPath;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::state::AppState;

/// Returns an agent session with its limits and what is used of them.
#[utoipa::path(
    get, path = "/api/v1/agent_sessions/{agent_session_id}", tag = "agents", params(("agent_session_id" = String, Path)),
    responses((status = 200, description = "success", body = AgentSessionResponse), Refusals),
)]
pub(in crate::api) async fn agent_session(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(agent_session_id): ApiPath<String>,
) -> Reply<AgentSessionResponse> {
    let id = AgentSessionId::new(agent_session_id);
    Ok(Answer(response(state.scheduler.agent_session(&tenant, &id).await?)))
}
