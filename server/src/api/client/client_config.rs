//! Handler of `POST client/config`.

use axum::extract::State;
use trainyard_wire::client::{ClientConfigRequest, ClientConfigResponse};

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::state::AppState;

/// Returns settings that the server chooses for a client.
#[utoipa::path(
    post, path = "/api/v1/client/config", tag = "client", request_body = ClientConfigRequest,
    responses((status = 200, description = "success", body = ClientConfigResponse), Refusals),
)]
pub(in crate::api) async fn client_config(
    State(state): State<AppState>,
    JsonBody(_request): JsonBody<ClientConfigRequest>,
) -> Reply<ClientConfigResponse> {
    let pjwt_auth_enabled = state.auth.offers_tokens();
    Ok(Answer(ClientConfigResponse { pjwt_auth_enabled, ..ClientConfigResponse::default() }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn a_client_can_start() {
        let server = Server::start().await;
        let body = json!({"sdk_version": "0.38.0"});
        assert_eq!(server.post("client/config", body.clone()).await.json()["pjwt_auth_enabled"], true);
        assert!(server.post("client/dynamic_config", body).await.json()["refresh_interval_sec"].is_u64());
    }
}
