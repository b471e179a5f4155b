//! Handler of `GET agent_sessions`.

use axum::extract::State;
use trainyard_wire::agents::AgentSessionsResponse;
use trainyard_wire::catalogue::PageQuery;

use super::response;
use crate::api::request::extract::ApiQuery;
use crate::api::request::listing::{page, scope};
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

/// Lists the caller's agent sessions, newest first, until their retention is over.
#[utoipa::path(
    get, path = "/api/v1/agent_sessions", tag = "agents", params(PageQuery),
    responses((status = 200, description = "success", body = AgentSessionsResponse), Refusals),
)]
pub(in crate::api) async fn agent_sessions(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Reply<AgentSessionsResponse> {
    // Nobody else's sessions can be read, and they belong to no project.
    scope(query.access_scope.as_deref())?;
    if query.project_id.is_some() {
        return Err(ApiError::invalid("project_id: agent sessions belong to no project"));
    }
    let found = state.scheduler.agent_sessions(&tenant, page(&query)?).await?;
    Ok(Answer(AgentSessionsResponse { agent_sessions: found.into_iter().map(response).collect() }))
}
