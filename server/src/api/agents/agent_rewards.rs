//! Handler of `POST agent_sessions/{agent_session_id}/rewards`.

use axum::extract::State;
use trainyard_protocol::{AgentSessionId, RequestId};
use trainyard_scheduler::Rewarded;
use trainyard_wire::agents::{AgentRewardRequest, AgentRewardResponse};

use crate::api::request::body::JsonBody;
use crate::api::request::extract::ApiPath;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

/// Sets the reward of a turn, of the branch that ends with a turn, or of the whole session. A later call replaces it.
#[utoipa::path(
    post, path = "/api/v1/agent_sessions/{agent_session_id}/rewards", tag = "agents",
    params(("agent_session_id" = String, Path)), request_body = AgentRewardRequest,
    responses((status = 200, description = "success", body = AgentRewardResponse), Refusals),
)]
pub(in crate::api) async fn agent_rewards(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(agent_session_id): ApiPath<String>,
    JsonBody(request): JsonBody<AgentRewardRequest>,
) -> Reply<AgentRewardResponse> {
    let rewarded = match (request.turn_id, request.branch) {
        (None, None) => Rewarded::Session,
        (Some(turn), None) => {
            let (request, choice) = turn_of(&turn)?;
            Rewarded::Turn(request, choice)
        }
        (None, Some(turn)) => {
            let (request, choice) = turn_of(&turn)?;
            Rewarded::Branch(request, choice)
        }
        (Some(_), Some(_)) => return Err(ApiError::invalid("branch: set either turn_id or branch")),
    };
    state.scheduler.reward_agent(&tenant, &AgentSessionId::new(agent_session_id), rewarded, request.reward).await?;
    Ok(Answer(AgentRewardResponse {}))
}

/// The request and the choice of a turn's id.
fn turn_of(id: &str) -> Result<(RequestId, u32), ApiError> {
    let parts = id.rsplit_once('.').and_then(|(request, choice)| Some((RequestId::new(request), choice.parse().ok()?)));
    parts.ok_or_else(|| ApiError::NotFound { what: "turn", id: id.to_owned() })
}
