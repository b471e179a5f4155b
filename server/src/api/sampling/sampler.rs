//! Handler of `GET samplers/{sampler_id}`.

use axum::extract::State;
use trainyard_protocol::SamplingSessionId;
use trainyard_wire::sampling::SamplerResponse;

use crate::api::request::extract::ApiPath;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::state::AppState;

/// Returns the model that a sampling session samples from.
#[utoipa::path(
    get, path = "/api/v1/samplers/{sampler_id}", tag = "sampling", params(("sampler_id" = String, Path)),
    responses((status = 200, description = "success", body = SamplerResponse), Refusals),
)]
pub(in crate::api) async fn sampler(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(sampler_id): ApiPath<String>,
) -> Reply<SamplerResponse> {
    let sampler = state.scheduler.sampling_session(&tenant, &SamplingSessionId::new(sampler_id)).await?;
    Ok(Answer(SamplerResponse {
        sampler_id: sampler.id.to_string(),
        base_model: sampler.base_model.clone(),
        model_path: sampler.model_path.as_ref().map(|path| path.to_string()),
    }))
}
