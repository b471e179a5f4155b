//! `GET models` of the OpenAI API.

use axum::extract::State;
use trainyard_wire::openai::ModelsResponse;

use crate::api::request::refusals::OpenAiRefusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::inference::openai;
use crate::state::AppState;

/// What may be named in the field `model` of the OpenAI and Anthropic APIs: the base models and the caller's sampler
/// checkpoints.
///
/// The same under `/v1/models`.
#[utoipa::path(
    get, path = "/oai/api/v1/models", tag = "openai",
    responses((status = 200, description = "done", body = ModelsResponse), OpenAiRefusals),
)]
pub(in crate::api) async fn oai_models(State(state): State<AppState>, Tenant(tenant): Tenant) -> Reply<ModelsResponse> {
    Ok(Answer(openai::models(&state, &tenant).await?))
}
