//! Handler of `POST agent_sessions`.

use axum::extract::State;
use axum::http::HeaderMap;
use trainyard_protocol::{SamplingSessionId, TenantId};
use trainyard_scheduler::budgets::{AGENT_TOKENS, AGENT_TURNS};
use trainyard_scheduler::{AgentLimits, NewAgentSession};
use trainyard_wire::agents::{self, CreateAgentSessionRequest, CreateAgentSessionResponse};
use trainyard_wire::timestamp::rfc3339;

use crate::api::catalogue::external_weights_urls::base_url;
use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::api::sampling::create_sampling_session::source;
use crate::auth::{Caller, Tenant, agent_key};
use crate::budgets::{AGENT_DEFAULT_TIME, AGENT_DEFAULT_TURNS, AGENT_TIME};
use crate::error::ApiError;
use crate::state::AppState;

/// Creates a session with a key of its own. Programs that speak the OpenAI or Anthropic API sample with the key.
///
/// The key serves only these APIs. Their field `model` may have any value: the session's weights are sampled. Replies are
/// recorded with their tokens, and a conversation continues from the tokens that were recorded.
#[utoipa::path(
    post, path = "/api/v1/agent_sessions", tag = "agents", request_body = CreateAgentSessionRequest,
    responses((status = 200, description = "success", body = CreateAgentSessionResponse), Refusals),
)]
pub(in crate::api) async fn agent_session_create(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    Caller(caller): Caller,
    headers: HeaderMap,
    JsonBody(request): JsonBody<CreateAgentSessionRequest>,
) -> Reply<CreateAgentSessionResponse> {
    let mut limits = limits(request.limits)?;
    if let Some(end) = caller.key.as_ref().and_then(|found| found.key.expires_at) {
        // The session does not outlive the key that makes it.
        limits.seconds = limits.seconds.min(state.clock.now().until(end).as_secs().max(1));
    }
    let url = base_url(&state, &headers)?;
    let (base_model, model_path) = weights(&state, &tenant, &request).await?;
    state.require_model(&base_model)?;
    let (api_key, key_digest) =
        agent_key().map_err(|error| ApiError::Internal(format!("failed to make a key: {error}")))?;
    let new = NewAgentSession { key_digest, base_model, model_path, limits };
    let session = state.scheduler.create_agent_session(&tenant, new).await?;
    Ok(Answer(CreateAgentSessionResponse {
        agent_session_id: session.id.to_string(),
        base_url: format!("{url}/v1"),
        anthropic_base_url: url,
        api_key,
        expires_at: rfc3339(session.expires_at.as_millis()),
    }))
}

/// The base model of the weights that a session samples, and the checkpoint or the sampling session that has them.
///
/// # Errors
/// Fails if the tenant has no such weights, or the request names others too.
async fn weights(
    state: &AppState,
    tenant: &TenantId,
    request: &CreateAgentSessionRequest,
) -> Result<(String, Option<String>), ApiError> {
    let CreateAgentSessionRequest { base_model, model_path, sampling_session_id, .. } = request.clone();
    let named = base_model.map(|name| state.base_name(name));
    let Some(id) = sampling_session_id else {
        let (base_model, path) = source(state, tenant, named, model_path).await?;
        return Ok((base_model, path.map(|path| path.to_string())));
    };
    if model_path.is_some() {
        return Err(ApiError::invalid("sampling_session_id: expected no model_path beside it"));
    }
    let sampler = state.scheduler.sampling_session(tenant, &SamplingSessionId::new(id)).await?;
    let found = &sampler.base_model;
    if let Some(named) = named.filter(|named| named != found)
        && !state.scheduler.are_same_weights(&named, found).await?
    {
        return Err(ApiError::invalid(format!("base_model: the sampler's base model is {found:?}, not {named:?}")));
    }
    Ok((found.clone(), Some(sampler.id.to_string())))
}

fn limits(asked: agents::AgentLimits) -> Result<AgentLimits, ApiError> {
    let within = |field: &str, value: u64, most: u64| match value {
        1.. if value <= most => Ok(value),
        _ => Err(ApiError::invalid(format!("limits.{field}: {value} is not between 1 and {most}"))),
    };
    Ok(AgentLimits {
        max_tokens: within("max_tokens", asked.max_tokens.unwrap_or(AGENT_TOKENS), AGENT_TOKENS)?,
        max_turns: within("max_turns", asked.max_turns.unwrap_or(AGENT_DEFAULT_TURNS), AGENT_TURNS)?,
        max_tools: asked.max_tools,
        seconds: within("seconds", asked.seconds.unwrap_or(AGENT_DEFAULT_TIME.as_secs()), AGENT_TIME.as_secs())?,
    })
}
