//! `POST save_weights_for_sampler`.

use axum::extract::State;
use trainyard_scheduler::{RequestKind, Run};

use super::body::RawBody;
use super::respond::Reply;
use super::submit::submit_json;
use crate::auth::Tenant;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::futures::SubmitResponse;
use crate::wire::weights::SaveWeightsForSamplerRequest;

/// Freezes a run's weights for sampling: under a name, or in memory as a new sampling session.
#[utoipa::path(
    post, path = "/api/v1/save_weights_for_sampler", tag = "weights", request_body = SaveWeightsForSamplerRequest,
    responses((status = 200, body = SubmitResponse), Refusals),
)]
pub(super) async fn save_weights_for_sampler(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    body: RawBody,
) -> Reply<SubmitResponse> {
    let build = |request: SaveWeightsForSamplerRequest, run: &Run| request.payload(&run.session, run.spec.clone());
    submit_json(&state, &tenant, RequestKind::SaveWeightsForSampler, body.bytes, build).await
}
