//! Handler of `POST save_weights_external`.

use axum::extract::State;
use trainyard_scheduler::{RequestKind, Run};
use trainyard_wire::futures::SubmitResponse;
use trainyard_wire::weights::SaveWeightsExternalRequest;

use crate::api::request::body::RawBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::Reply;
use crate::api::request::submit::submit_json;
use crate::auth::Tenant;
use crate::state::AppState;

/// Exports a run's weights for download.
#[utoipa::path(
    post, path = "/api/v1/save_weights_external", tag = "weights", request_body = SaveWeightsExternalRequest,
    responses((status = 200, description = "accepted; the response names its future", body = SubmitResponse), Refusals),
)]
pub(in crate::api) async fn save_weights_external(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    body: RawBody,
) -> Reply<SubmitResponse> {
    let build = |request: SaveWeightsExternalRequest, run: &Run| request.payload(run.spec.clone());
    submit_json(&state, &tenant, RequestKind::SaveWeightsExternal, body, build).await
}
