//! Handler of `POST save_weights`.

use axum::extract::State;
use trainyard_scheduler::{RequestKind, Run};
use trainyard_wire::futures::SubmitResponse;
use trainyard_wire::weights::SaveWeightsRequest;

use crate::api::request::body::RawBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::Reply;
use crate::api::request::submit::submit_json;
use crate::auth::Tenant;
use crate::state::AppState;

/// Saves weights and optimizer state under a name.
#[utoipa::path(
    post, path = "/api/v1/save_weights", tag = "weights", request_body = SaveWeightsRequest,
    responses((status = 200, description = "accepted; the response names its future", body = SubmitResponse), Refusals),
)]
pub(in crate::api) async fn save_weights(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    body: RawBody,
) -> Reply<SubmitResponse> {
    let build = |request: SaveWeightsRequest, run: &Run| request.payload(run.spec.clone());
    submit_json(&state, &tenant, RequestKind::SaveWeights, body, build).await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn a_bad_name_or_ttl_fails_in_the_future() {
        let server = Server::start().await;
        let run = server.run().await;
        let bad = [json!({"path": "../up"}), json!({"path": "a", "ttl_seconds": 3_599}), json!({"path": 3})];
        for (n, mut body) in bad.into_iter().enumerate() {
            body["model_id"] = json!(run);
            body["seq_id"] = json!(n + 1);
            let submitted = server.post("save_weights", body).await.text("request_id");
            assert_eq!(server.poll(&submitted).await.json()["category"], "user");
        }
        let body = json!({"model_id": run, "seq_id": 4, "path": "a", "ttl_seconds": 3_600, "overwrite": true});
        server.post("save_weights", body).await.json();
        assert_eq!(server.next_work().await.seq_id, 4);
    }
}
