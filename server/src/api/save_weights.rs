//! `POST save_weights`.

use axum::extract::State;
use trainyard_scheduler::{RequestKind, Run};

use super::body::RawBody;
use super::respond::Reply;
use super::submit::submit_json;
use crate::auth::Tenant;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::futures::SubmitResponse;
use crate::wire::weights::SaveWeightsRequest;

/// Saves weights and optimizer state under a name.
#[utoipa::path(
    post, path = "/api/v1/save_weights", tag = "weights", request_body = SaveWeightsRequest,
    responses((status = 200, body = SubmitResponse), Refusals),
)]
pub(super) async fn save_weights(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    body: RawBody,
) -> Reply<SubmitResponse> {
    let build = |request: SaveWeightsRequest, run: &Run| request.payload(run.spec.clone());
    submit_json(&state, &tenant, RequestKind::SaveWeights, body.bytes, build).await
}
