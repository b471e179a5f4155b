//! Handler of `POST weights_info`.

use axum::extract::State;
use trainyard_protocol::{OpError, TinkerPath};
use trainyard_wire::weights::{WeightsInfoRequest, WeightsInfoResponse};

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

/// Returns what a checkpoint contains.
#[utoipa::path(
    post, path = "/api/v1/weights_info", tag = "weights", request_body = WeightsInfoRequest,
    responses((status = 200, description = "success", body = WeightsInfoResponse), Refusals),
)]
pub(in crate::api) async fn weights_info(
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn it_describes_a_checkpoint() {
        let server = Server::start().await;
        let run = server.run().await;
        let path = server.checkpoint(&run, 1, "weights", "a").await;
        let info = server.post("weights_info", json!({"tinker_path": path})).await.json();
        assert_eq!((&info["base_model"], &info["is_lora"]), (&json!(MODEL), &json!(false)));
        server.post("weights_info", json!({"tinker_path": "x"})).await.refused(400);
        server.post("weights_info", json!({"tinker_path": format!("{path}2")})).await.refused(404);
    }
}
