//! Handler of `POST get_info`.

use axum::extract::State;
use trainyard_protocol::RunId;
use trainyard_wire::models::{GetInfoRequest, GetInfoResponse, ModelData};

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::state::AppState;

/// Returns what a run trains, and the name of its tokenizer.
#[utoipa::path(
    post, path = "/api/v1/get_info", tag = "training", request_body = GetInfoRequest,
    responses((status = 200, description = "success", body = GetInfoResponse), Refusals),
)]
pub(in crate::api) async fn get_info(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    JsonBody(request): JsonBody<GetInfoRequest>,
) -> Reply<GetInfoResponse> {
    let run = state.scheduler.run(&tenant, &RunId::new(request.model_id)).await?;
    let name = run.spec.base_model;
    // A run outlives its base model when the server is started without it.
    let arch = state.model(&name).map_or_else(|| "unknown".to_owned(), |model| model.arch.clone());
    Ok(Answer(GetInfoResponse {
        model_id: run.id.to_string(),
        model_data: ModelData { arch, model_name: name.clone(), tokenizer_id: Some(name.clone()) },
        optimizer_config: run.spec.optimizer.into(),
        is_lora: run.spec.lora.is_some(),
        lora_rank: run.spec.lora.map(|lora| lora.rank),
        model_name: name,
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn it_names_model_and_tokenizer() {
        let server = Server::start().await;
        let run = server.run().await;
        let info = server.post("get_info", json!({"model_id": run, "type": "get_info"})).await.json();
        let data = json!({"arch": "llama", "model_name": MODEL, "tokenizer_id": MODEL});
        assert_eq!((&info["model_data"], &info["is_lora"], &info["lora_rank"]), (&data, &json!(true), &json!(8)));
        assert_eq!(info["optimizer_config"], json!({"type": "adamw"}));
        server.post("get_info", json!({"model_id": "none:train:0"})).await.refused(404);
    }
}
