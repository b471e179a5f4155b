//! Handler of `GET models` of the OpenAI API.

use axum::extract::State;
use trainyard_wire::openai::ModelsResponse;

use crate::api::request::refusals::OpenAiRefusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::{Caller, Tenant};
use crate::inference::agents::Agent;
use crate::inference::openai;
use crate::state::AppState;

/// Lists the models that the field `model` of the OpenAI and Anthropic APIs may name. These are the base models and the
/// caller's sampler checkpoints. The key of an agent session lists the session's weights.
///
/// Also served at `/v1/models`.
#[utoipa::path(
    get, path = "/oai/api/v1/models", tag = "openai",
    responses((status = 200, description = "success", body = ModelsResponse), OpenAiRefusals),
)]
pub(in crate::api) async fn oai_models(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    Caller(caller): Caller,
) -> Reply<ModelsResponse> {
    Ok(Answer(openai::models(&state, &tenant, Agent::of(&caller).as_ref()).await?))
}
