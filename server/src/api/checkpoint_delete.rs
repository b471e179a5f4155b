//! `DELETE training_runs/{run_id}/checkpoints/{kind}/{name}`.

use std::io;
use std::path::Path;

use axum::extract::State;
use axum::http::StatusCode;

use super::extract::{ApiPath, checkpoint_path};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::openapi::Refusals;
use crate::state::AppState;

/// Deletes a checkpoint with its files.
#[utoipa::path(
    delete, path = "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}", tag = "catalogue",
    params(("run_id" = String, Path), ("kind" = String, Path), ("name" = String, Path)),
    responses((status = 204, description = "deleted"), Refusals),
)]
pub(super) async fn checkpoint_delete(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(parts): ApiPath<(String, String, String)>,
) -> Result<StatusCode, ApiError> {
    let deleted = state.scheduler.delete_checkpoint(&tenant, &checkpoint_path(parts)?).await?;
    remove_folder(&deleted.dir).await;
    Ok(StatusCode::NO_CONTENT)
}

/// The catalogue has forgotten the checkpoint, so what remains of its folder is only space.
async fn remove_folder(dir: &Path) {
    match tokio::fs::remove_dir_all(dir).await {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(dir = %dir.display(), %error, "the folder of a deleted checkpoint remains"),
    }
}
