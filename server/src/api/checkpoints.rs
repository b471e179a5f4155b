//! `GET checkpoints`.

use axum::extract::State;

use super::extract::ApiQuery;
use super::listing::{checkpoint, cursor, page, scope};
use super::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::catalogue::{CheckpointsResponse, PageQuery};

/// The caller's checkpoints across runs, newest first; with `access_scope=accessible` also other tenants' public ones.
#[utoipa::path(
    get, path = "/api/v1/checkpoints", tag = "catalogue", params(PageQuery),
    responses((status = 200, description = "done", body = CheckpointsResponse), Refusals),
)]
pub(super) async fn checkpoints(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Reply<CheckpointsResponse> {
    let page = page(&query)?;
    if query.project_id.is_some() {
        return Err(ApiError::invalid(
            "project_id: checkpoints are not filtered by it; training_runs and sessions are",
        ));
    }
    let scope = scope(query.access_scope.as_deref())?;
    let (found, total) = state.scheduler.checkpoints(&tenant, scope, page).await?;
    let checkpoints = found.into_iter().map(checkpoint).collect();
    Ok(Answer(CheckpointsResponse { checkpoints, cursor: Some(cursor(page, total)) }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::super::testing::*;

    #[tokio::test]
    async fn both_listings_show_a_checkpoint() {
        let server = Server::start().await;
        let run = server.run().await;
        let path = server.checkpoint(&run, 1, "sampler_weights", "step-1").await;
        let listed = server.get("checkpoints?limit=1000&offset=0").await.json();
        assert_eq!(listed["cursor"]["total_count"], 1);
        let expected = json!({
            "checkpoint_id": "sampler_weights/step-1", "checkpoint_type": "sampler", "time": "2023-11-14T22:13:20Z",
            "tinker_path": path, "base_model": MODEL, "size_bytes": 7, "public": false, "user_metadata": {"k": "v"},
        });
        assert_eq!(listed["checkpoints"], json!([expected]));
        let of_run = server.get(&format!("training_runs/{run}/checkpoints")).await.json();
        assert_eq!(of_run["checkpoints"], json!([expected]));
        server.get("training_runs/none/checkpoints").await.refused(404);
    }
}
