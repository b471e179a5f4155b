//! Handler of `GET get_server_capabilities`.

use axum::extract::State;
use trainyard_wire::client::{ServerCapabilities, SupportedModel};

use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::state::AppState;

/// Lists the base models that the server serves.
#[utoipa::path(
    get, path = "/api/v1/get_server_capabilities", tag = "client",
    responses((status = 200, description = "success", body = ServerCapabilities), Refusals),
)]
pub(in crate::api) async fn get_server_capabilities(State(state): State<AppState>) -> Reply<ServerCapabilities> {
    let models = state.models.list();
    let models = models.iter().map(|model| SupportedModel {
        model_name: model.name.clone(),
        max_context_length: model.max_context_length as u64,
        trainable: true,
        sampleable: true,
    });
    Ok(Answer(ServerCapabilities { supported_models: models.collect() }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn it_lists_the_models() {
        let server = Server::start().await;
        let model = json!({"model_name": MODEL, "max_context_length": 64, "trainable": true, "sampleable": true});
        assert_eq!(server.get("get_server_capabilities").await.json(), json!({"supported_models": [model]}));
    }
}
