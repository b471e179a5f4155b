//! `POST optim_step`.

use axum::extract::State;
use trainyard_scheduler::RequestKind;

use super::body::RawBody;
use super::respond::Reply;
use super::submit::submit_json;
use crate::auth::Tenant;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::futures::SubmitResponse;
use crate::wire::models::OptimStepRequest;

/// Applies and clears a run's accumulated gradient.
#[utoipa::path(
    post, path = "/api/v1/optim_step", tag = "training", request_body = OptimStepRequest,
    responses((status = 200, body = SubmitResponse), Refusals),
)]
pub(super) async fn optim_step(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    body: RawBody,
) -> Reply<SubmitResponse> {
    let build = |request: OptimStepRequest, _: &_| request.payload();
    submit_json(&state, &tenant, RequestKind::OptimStep, body.bytes, build).await
}
