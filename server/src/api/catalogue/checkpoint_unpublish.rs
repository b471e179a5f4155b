//! Handler of `DELETE training_runs/{run_id}/checkpoints/{kind}/{name}/publish`.

use axum::extract::State;
use axum::http::StatusCode;

use crate::api::request::extract::{ApiPath, checkpoint_path};
use crate::api::request::refusals::Refusals;
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

/// Makes a checkpoint private. The call can be repeated.
#[utoipa::path(
    delete, path = "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/publish", tag = "catalogue",
    params(("run_id" = String, Path), ("kind" = String, Path), ("name" = String, Path)),
    responses((status = 204, description = "success"), Refusals),
)]
pub(in crate::api) async fn checkpoint_unpublish(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath((run, kind, name)): ApiPath<(String, String, String)>,
) -> Result<StatusCode, ApiError> {
    state.scheduler.set_public(&tenant, &checkpoint_path(run, kind, name)?, false).await?;
    Ok(StatusCode::NO_CONTENT)
}
