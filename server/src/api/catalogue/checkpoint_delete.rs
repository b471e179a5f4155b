//! Handler of `DELETE training_runs/{run_id}/checkpoints/{kind}/{name}`.

use axum::extract::State;
use axum::http::StatusCode;

use crate::api::request::extract::{ApiPath, checkpoint_path};
use crate::api::request::refusals::Refusals;
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

/// Deletes a checkpoint with its files.
#[utoipa::path(
    delete, path = "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}", tag = "catalogue",
    params(("run_id" = String, Path), ("kind" = String, Path), ("name" = String, Path)),
    responses((status = 204, description = "deleted"), Refusals),
)]
pub(in crate::api) async fn checkpoint_delete(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath((run, kind, name)): ApiPath<(String, String, String)>,
) -> Result<StatusCode, ApiError> {
    state.scheduler.delete_checkpoint(&tenant, &checkpoint_path(run, kind, name)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::http::Method;

    use crate::api::tests::testing::*;

    /// Ids with raw colons, kinds and names in segments of their own, and both percent-encoded.
    #[tokio::test]
    async fn every_spelling_of_an_id_reaches_the_checkpoint_and_its_files_go() {
        let server = Server::start().await;
        let run = server.run().await;
        let encoded = run.replace(':', "%3A");
        let spellings = [
            format!("{run}/checkpoints/weights/c"),
            format!("{encoded}/checkpoints/weights/c"),
            format!("{encoded}/checkpoints/weights%2Fc"),
        ];
        for (n, spelling) in spellings.iter().enumerate() {
            let path = server.checkpoint(&run, n as i64 + 1, "weights", "c").await;
            let dir = server.folder(&path).await;
            assert!(dir.exists());
            let got = server.on_run(Method::DELETE, spelling, None).await;
            assert_eq!((got.status.as_u16(), got.body.len()), (204, 0), "{spelling}");
            assert!(!dir.exists());
            server.on_run(Method::DELETE, spelling, None).await.refused(404);
        }
        for wrong in ["weights/..%2F..%2Fx", "weights/%2e%2e", "weights/.x"] {
            server.on_run(Method::DELETE, &format!("{run}/checkpoints/{wrong}"), None).await.refused(404);
        }
    }
}
