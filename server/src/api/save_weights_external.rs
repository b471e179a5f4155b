//! `POST save_weights_external`.

use axum::extract::State;
use trainyard_scheduler::{RequestKind, Run};

use super::body::RawBody;
use super::respond::Reply;
use super::submit::submit_json;
use crate::auth::Tenant;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::futures::SubmitResponse;
use crate::wire::weights::SaveWeightsExternalRequest;

/// Exports a run's weights for download.
#[utoipa::path(
    post, path = "/api/v1/save_weights_external", tag = "weights", request_body = SaveWeightsExternalRequest,
    responses((status = 200, description = "accepted: its future", body = SubmitResponse), Refusals),
)]
pub(super) async fn save_weights_external(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    body: RawBody,
) -> Reply<SubmitResponse> {
    let build = |request: SaveWeightsExternalRequest, run: &Run| request.payload(run.spec.clone());
    submit_json(&state, &tenant, RequestKind::SaveWeightsExternal, body, build).await
}
