//! `POST weights_info`.

use axum::extract::State;
use trainyard_protocol::{OpError, TinkerPath};

use super::body::JsonBody;
use super::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::weights::{WeightsInfoRequest, WeightsInfoResponse};

/// What a checkpoint holds.
#[utoipa::path(
    post, path = "/api/v1/weights_info", tag = "weights", request_body = WeightsInfoRequest,
    responses((status = 200, body = WeightsInfoResponse), Refusals),
)]
pub(super) async fn weights_info(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    JsonBody(request): JsonBody<WeightsInfoRequest>,
) -> Reply<WeightsInfoResponse> {
    let path: TinkerPath = request
        .tinker_path
        .parse()
        .map_err(|error: OpError| ApiError::invalid(format!("tinker_path: {}", error.message)))?;
    let checkpoint = state.scheduler.checkpoint(&tenant, &path).await?;
    Ok(Answer(WeightsInfoResponse::from(&checkpoint.spec)))
}
