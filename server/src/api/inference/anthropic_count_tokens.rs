//! Handler of `POST messages/count_tokens` of the Anthropic API.

use axum::extract::State;
use trainyard_wire::anthropic::{CountTokensRequest, CountTokensResponse};

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::AnthropicRefusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::{Caller, Tenant};
use crate::inference::agents::Agent;
use crate::inference::anthropic;
use crate::state::AppState;

/// Counts the tokens of a conversation, rendered with the model's own chat template. Nothing is sampled.
///
/// Also served at `/v1/messages/count_tokens`.
#[utoipa::path(
    post, path = "/anthropic/api/v1/messages/count_tokens", tag = "anthropic", request_body = CountTokensRequest,
    responses((status = 200, description = "success", body = CountTokensResponse), AnthropicRefusals),
)]
pub(in crate::api) async fn anthropic_count_tokens(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    Caller(caller): Caller,
    JsonBody(request): JsonBody<CountTokensRequest>,
) -> Reply<CountTokensResponse> {
    Ok(Answer(anthropic::count_tokens(&state, &tenant, Agent::of(&caller).as_ref(), request).await?))
}
