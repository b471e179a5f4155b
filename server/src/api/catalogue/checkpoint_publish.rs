//! Handler of `POST training_runs/{run_id}/checkpoints/{kind}/{name}/publish`.

use axum::extract::State;
use axum::http::StatusCode;

use crate::api::request::extract::{ApiPath, checkpoint_path};
use crate::api::request::refusals::Refusals;
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

/// Publishes a checkpoint: every tenant can then read it. The call can be repeated.
#[utoipa::path(
    post, path = "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/publish", tag = "catalogue",
    params(("run_id" = String, Path), ("kind" = String, Path), ("name" = String, Path)),
    responses((status = 204, description = "success"), Refusals),
)]
pub(in crate::api) async fn checkpoint_publish(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath((run, kind, name)): ApiPath<(String, String, String)>,
) -> Result<StatusCode, ApiError> {
    state.scheduler.set_public(&tenant, &checkpoint_path(run, kind, name)?, true).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::body::Body;
    use axum::http::Method;
    use serde_json::json;
    use trainyard_protocol::TenantId;

    use crate::api::tests::testing::*;
    use crate::auth::Keys;
    use crate::state::Limits;

    #[tokio::test]
    async fn others_read_a_public_checkpoint_and_no_other() {
        let keys = [("tml-a", "alpha"), (KEY, "beta")];
        let keys = keys.map(|(key, tenant)| (Keys::digest(key), TenantId::new(tenant)));
        let server = Server::with(Limits::default(), Keys::new(keys.to_vec())).await;
        let run = server.run().await;
        let path = server.checkpoint(&run, 1, "weights", "a").await;
        let info = async || server.post_as("tml-a", "weights_info", json!({"tinker_path": path})).await;
        info().await.refused(404);
        let publish = format!("{run}/checkpoints/weights/a/publish");
        for _ in 0..2 {
            assert_eq!(server.on_run(Method::POST, &publish, None).await.status, 204);
        }
        info().await.json();
        // To read is not to change.
        let headers = [("x-api-key", "tml-a")];
        let full = format!("/api/v1/training_runs/{run}/checkpoints/weights/a");
        server.call(Method::DELETE, &full, &headers, Body::empty()).await.refused(404);
        server.call(Method::DELETE, &format!("{full}/publish"), &headers, Body::empty()).await.refused(404);
        assert_eq!(server.on_run(Method::DELETE, &publish, None).await.status, 204);
        info().await.refused(404);
    }
}
