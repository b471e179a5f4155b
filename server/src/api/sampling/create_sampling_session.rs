//! Handler of `POST create_sampling_session`.

use axum::extract::State;
use trainyard_protocol::{OpError, SessionId, TenantId, TinkerPath};
use trainyard_scheduler::NewSamplingSession;
use trainyard_wire::sampling::{CreateSamplingSessionRequest, CreateSamplingSessionResponse};

use crate::api::request::base_name::other_name;
use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::api::training::create_model::check_number;
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::exports::{ensure_readable, is_sampled};
use crate::state::AppState;

/// Opens a sampling session on a base model or a sampler checkpoint. The session and `sampling_session_seq_id` identify
/// it. Weights are loaded when they are first needed.
#[utoipa::path(
    post, path = "/api/v1/create_sampling_session", tag = "sampling", request_body = CreateSamplingSessionRequest,
    responses((status = 200, description = "success", body = CreateSamplingSessionResponse), Refusals),
)]
pub(in crate::api) async fn create_sampling_session(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    JsonBody(request): JsonBody<CreateSamplingSessionRequest>,
) -> Reply<CreateSamplingSessionResponse> {
    check_number("sampling_session_seq_id", request.sampling_session_seq_id)?;
    let named = request.base_model.map(|name| state.base_name(name));
    let (base_model, model_path) = source(&state, &tenant, named, request.model_path).await?;
    state.require_model(&base_model)?;
    let new = NewSamplingSession {
        session: SessionId::new(request.session_id),
        seq_id: request.sampling_session_seq_id,
        base_model,
        model_path,
        snapshot: None,
    };
    let sampling_session_id = state.scheduler.create_sampling_session(&tenant, new).await?.to_string();
    Ok(Answer(CreateSamplingSessionResponse { sampling_session_id }))
}

/// Returns the base model and the checkpoint. If both are set, the base model must be the checkpoint's or another name
/// of its weights.
pub(in crate::api) async fn source(
    state: &AppState,
    tenant: &TenantId,
    base_model: Option<String>,
    model_path: Option<String>,
) -> Result<(String, Option<TinkerPath>), ApiError> {
    let Some(text) = model_path else {
        let base = base_model.ok_or_else(|| ApiError::invalid("base_model is required without model_path"))?;
        return Ok((base, None));
    };
    let path = sampler_path(&text)?;
    let checkpoint = state.scheduler.checkpoint(tenant, &path).await?;
    ensure_readable(&state.storage, "model_path", &checkpoint).await?;
    let found = checkpoint.spec.base_model;
    let base = base_model.unwrap_or_else(|| found.clone());
    other_name(state, "base_model", &base, &found).await??;
    Ok((base, Some(path)))
}

fn sampler_path(text: &str) -> Result<TinkerPath, ApiError> {
    let path: TinkerPath =
        text.parse().map_err(|error: OpError| ApiError::invalid(format!("model_path: {}", error.message)))?;
    if !is_sampled(path.kind) {
        return Err(ApiError::invalid(format!(
            "model_path: expected sampler_weights/<name> or external_weights/<name>, found {text:?}"
        )));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn the_same_numbers_are_the_same_session() {
        let server = Server::start().await;
        let session = server.session().await;
        let body = json!({"session_id": session, "sampling_session_seq_id": 2, "base_model": MODEL});
        for _ in 0..2 {
            let id = server.post("create_sampling_session", body.clone()).await.text("sampling_session_id");
            assert_eq!(id, format!("{session}:sample:2"));
        }
    }

    #[tokio::test]
    async fn a_checkpoint_gives_its_base_model() {
        let server = Server::start().await;
        let run = server.run().await;
        let path = server.checkpoint(&run, 1, "sampler_weights", "s").await;
        let session = server.session().await;
        let body = |extra: &Value| {
            let mut body = json!({"session_id": session, "sampling_session_seq_id": 0});
            extra.as_object().unwrap().iter().for_each(|(key, value)| body[key] = value.clone());
            body
        };
        let created = server.post("create_sampling_session", body(&json!({"model_path": path}))).await;
        let id = created.text("sampling_session_id");
        let expected = json!({"sampler_id": id, "base_model": MODEL, "model_path": path});
        let named = json!({"session_id": session, "sampling_session_seq_id": 9, "model_path": path,
            "base_model": format!("{MODEL}:peft:32768")});
        server.post("create_sampling_session", named).await.json();
        assert_eq!(server.get(&format!("samplers/{id}")).await.json(), expected);
        assert_eq!(server.get(&format!("samplers/{}", id.replace(':', "%3A"))).await.json(), expected);
        server.get("samplers/none").await.refused(404);
        for (status, extra) in [
            (400, json!({})),
            (400, json!({"base_model": "other"})),
            (400, json!({"base_model": "other", "model_path": path})),
            (400, json!({"model_path": "tinker://x"})),
            (400, json!({"model_path": path.replace("sampler_weights", "weights")})),
            (404, json!({"model_path": format!("{path}2")})),
            (400, json!({"base_model": MODEL, "sampling_session_seq_id": -1})),
        ] {
            server.post("create_sampling_session", body(&extra)).await.refused(status);
        }
    }
}
