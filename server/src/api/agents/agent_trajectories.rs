//! Handler of `GET agent_sessions/{agent_session_id}/trajectories`.

use axum::extract::State;
use trainyard_protocol::AgentSessionId;
use trainyard_wire::agents::{TrajectoriesQuery, TrajectoriesResponse};

use crate::api::request::body::beside;
use crate::api::request::extract::{ApiPath, ApiQuery};
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::budgets::LISTED_ENTRIES;
use crate::error::ApiError;
use crate::inference::agents::trajectories;
use crate::state::AppState;

/// Returns the branches of an agent session as examples for `forward_backward`.
///
/// A branch has the turns from a first one to one that no other continues. Turns that several branches share are trained in
/// the first one.
#[utoipa::path(
    get, path = "/api/v1/agent_sessions/{agent_session_id}/trajectories", tag = "agents",
    params(("agent_session_id" = String, Path), TrajectoriesQuery),
    responses((status = 200, description = "success", body = TrajectoriesResponse), Refusals),
)]
pub(in crate::api) async fn agent_trajectories(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(agent_session_id): ApiPath<String>,
    ApiQuery(query): ApiQuery<TrajectoriesQuery>,
) -> Reply<TrajectoriesResponse> {
    let TrajectoriesQuery { limit, offset } = query;
    if !(1..=LISTED_ENTRIES).contains(&limit) {
        return Err(ApiError::invalid(format!("limit: {limit} is not between 1 and {LISTED_ENTRIES}")));
    }
    let id = AgentSessionId::new(agent_session_id);
    let session = state.scheduler.agent_session(&tenant, &id).await?;
    let turns = state.scheduler.agent_turns(&tenant, &id).await?;
    let tokens = turns.iter().map(|found| found.turn.prompt.len() + found.turn.sampled.len()).sum::<usize>();
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let work = move || trajectories::page(&session, &turns, offset, limit as usize);
    Ok(Answer(beside(tokens, work).await??))
}
