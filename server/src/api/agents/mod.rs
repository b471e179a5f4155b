//! Sessions of agents: keys with limits, for programs that speak the OpenAI or Anthropic API, and what they sampled.

pub(super) mod agent_rewards;
pub(super) mod agent_session;
pub(super) mod agent_session_create;
pub(super) mod agent_session_end;
pub(super) mod agent_sessions;
pub(super) mod agent_trajectories;
#[cfg(test)]
mod tests;

use crate::endpoint::table::endpoints;
use crate::inference::model_name::is_sampler;
use trainyard_scheduler::{AgentSession, AgentState};
use trainyard_wire::agents::{AgentLimits, AgentSessionResponse};
use trainyard_wire::timestamp::rfc3339;

endpoints! {
    keyed {
        post "/api/v1/agent_sessions" agent_session_create: Sample, [Missing];
        get "/api/v1/agent_sessions" agent_sessions: Nothing, [];
        get "/api/v1/agent_sessions/{agent_session_id}" agent_session: Nothing, [Missing];
        delete "/api/v1/agent_sessions/{agent_session_id}" agent_session_end: Sample, [Missing];
        get "/api/v1/agent_sessions/{agent_session_id}/trajectories" agent_trajectories: Nothing, [Missing];
        post "/api/v1/agent_sessions/{agent_session_id}/rewards" agent_rewards: Sample, [Missing];
    }
    open {}
}

/// Converts a session to the form of the API.
pub(in crate::api) fn response(session: AgentSession) -> AgentSessionResponse {
    let state = match session.state {
        AgentState::Open => "open",
        AgentState::Ended => "ended",
        AgentState::Expired => "expired",
    };
    let (sampling_session_id, model_path) = match session.model_path {
        Some(weights) if is_sampler(&weights) => (Some(weights), None),
        path => (None, path),
    };
    AgentSessionResponse {
        agent_session_id: session.id.to_string(),
        base_model: session.base_model,
        model_path,
        sampling_session_id,
        state: state.to_owned(),
        limits: AgentLimits {
            max_tokens: Some(session.limits.max_tokens),
            max_turns: Some(session.limits.max_turns),
            seconds: Some(session.limits.seconds),
            max_tools: session.limits.max_tools,
        },
        turns: session.turns,
        tokens: session.tokens,
        reward: session.reward,
        created_at: rfc3339(session.created_at.as_millis()),
        expires_at: rfc3339(session.expires_at.as_millis()),
    }
}
