//! `PUT training_runs/{run_id}/checkpoints/{kind}/{name}/ttl`.

use axum::extract::State;
use axum::http::StatusCode;

use super::body::JsonBody;
use super::extract::{ApiPath, checkpoint_path};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::weights::{TtlRequest, check_ttl};

/// Lets a checkpoint expire so many seconds from now; null removes the expiry.
#[utoipa::path(
    put, path = "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/ttl", tag = "catalogue",
    params(("run_id" = String, Path), ("kind" = String, Path), ("name" = String, Path)),
    request_body = TtlRequest, responses((status = 204, description = "changed"), Refusals),
)]
pub(super) async fn checkpoint_ttl(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(parts): ApiPath<(String, String, String)>,
    JsonBody(request): JsonBody<TtlRequest>,
) -> Result<StatusCode, ApiError> {
    check_ttl(request.ttl_seconds)?;
    state.scheduler.set_ttl(&tenant, &checkpoint_path(parts)?, request.ttl_seconds).await?;
    Ok(StatusCode::NO_CONTENT)
}
