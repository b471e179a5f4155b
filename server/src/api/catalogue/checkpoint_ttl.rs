//! Handler of `PUT training_runs/{run_id}/checkpoints/{kind}/{name}/ttl`.

use axum::extract::State;
use axum::http::StatusCode;
use trainyard_wire::weights::{TtlRequest, check_ttl};

use crate::api::request::body::JsonBody;
use crate::api::request::extract::{ApiPath, checkpoint_path};
use crate::api::request::refusals::Refusals;
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

/// Sets the number of seconds after which a checkpoint is deleted. Null removes the expiry.
#[utoipa::path(
    put, path = "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/ttl", tag = "catalogue",
    params(("run_id" = String, Path), ("kind" = String, Path), ("name" = String, Path)),
    request_body = TtlRequest, responses((status = 204, description = "changed"), Refusals),
)]
pub(in crate::api) async fn checkpoint_ttl(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath((run, kind, name)): ApiPath<(String, String, String)>,
    JsonBody(request): JsonBody<TtlRequest>,
) -> Result<StatusCode, ApiError> {
    check_ttl(request.ttl_seconds)?;
    state.scheduler.set_ttl(&tenant, &checkpoint_path(run, kind, name)?, request.ttl_seconds).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::http::Method;
    use serde_json::json;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn a_ttl_counts_from_now_and_null_removes_it() {
        let server = Server::start().await;
        let run = server.run().await;
        server.checkpoint(&run, 1, "weights", "a").await;
        let path = format!("{run}/checkpoints/weights/a/ttl");
        let expiry = async || server.get("checkpoints").await.json()["checkpoints"][0].get("expires_at").cloned();
        assert_eq!(server.on_run(Method::PUT, &path, Some(json!({"ttl_seconds": 3_600}))).await.status, 204);
        assert_eq!(expiry().await, Some(json!("2023-11-14T23:13:20Z")));
        for bad in
            [json!({"ttl_seconds": 3_599}), json!({"ttl_seconds": 315_360_001}), json!({"ttl_seconds": "1"}), json!({})]
        {
            assert!(server.on_run(Method::PUT, &path, Some(bad)).await.refused(400).contains("ttl_seconds"));
        }
        assert_eq!(server.on_run(Method::PUT, &path, Some(json!({"ttl_seconds": null}))).await.status, 204);
        assert_eq!(expiry().await, None);
        let missing = format!("{run}/checkpoints/weights/b/ttl");
        server.on_run(Method::PUT, &missing, Some(json!({"ttl_seconds": null}))).await.refused(404);
    }
}
