//! Handler of `POST copy_weights`.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName};
use trainyard_protocol::{OpError, SessionId, TinkerPath};
use trainyard_scheduler::{CopyDestination, NewCopy, NewSession};
use trainyard_wire::copies::{CopyWeightsRequest, CopyWeightsResponse};
use trainyard_wire::weights::check_ttl;

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::api::request::weights_access::reader;
use crate::api::sessions::create_session::idempotency_key;
use crate::api::training::create_model::check_number;
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

const ACCESS_TOKEN: HeaderName = HeaderName::from_static("x-tinker-weights-access-token");

/// Copies a checkpoint that the caller may read. A new run, which can't be trained, holds a checkpoint of the same kind
/// and name with the same files. A call that is repeated with the same `x-idempotency-key`, or with the same run,
/// returns the same copy.
#[utoipa::path(
    post, path = "/api/v1/copy_weights", tag = "weights", request_body = CopyWeightsRequest,
    params(
        ("x-idempotency-key" = Option<String>, Header, description = "identifies the call, so that it can be repeated", max_length = 256),
        ("x-tinker-weights-access-token" = Option<String>, Header,
            description = "a key of another tenant whose checkpoint is read; it takes precedence over `weights_access_token` in the body"),
    ),
    responses((status = 200, description = "success", body = CopyWeightsResponse), Refusals),
)]
pub(in crate::api) async fn copy_weights(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    headers: HeaderMap,
    JsonBody(request): JsonBody<CopyWeightsRequest>,
) -> Reply<CopyWeightsResponse> {
    let source: TinkerPath = request
        .source_path
        .parse()
        .map_err(|error: OpError| ApiError::invalid(format!("source_path: {}", error.message)))?;
    check_ttl(request.ttl_seconds)?;
    let token = headers.get(ACCESS_TOKEN).and_then(|token| token.to_str().ok());
    let token = token.or(request.weights_access_token.as_deref());
    let reader = reader(&state, &tenant, &source, token).await?;
    let destination = destination(&source, &headers, &request)?;
    let copy = NewCopy { source, reader, destination, expires_in: request.ttl_seconds };
    let tinker_path = state.scheduler.copy_checkpoint(&tenant, copy).await?.to_string();
    Ok(Answer(CopyWeightsResponse { tinker_path }))
}

fn destination(
    source: &TinkerPath,
    headers: &HeaderMap,
    request: &CopyWeightsRequest,
) -> Result<CopyDestination, ApiError> {
    match (&request.session_id, request.model_seq_id, &request.destination_project_id) {
        (None, None, project_id) => Ok(CopyDestination::NewSession(NewSession {
            tags: Vec::new(),
            user_metadata: serde_json::json!({}),
            sdk_version: String::new(),
            project_id: project_id.clone(),
            display_name: Some(format!("Copy of {source}")),
            // Sessions that clients create have keys of their own.
            idempotency_key: idempotency_key(headers)?.map(|key| format!("copy_weights:{key}")),
        })),
        (Some(session), Some(model_seq_id), None) => {
            check_number("model_seq_id", model_seq_id)?;
            Ok(CopyDestination::Run { session: SessionId::new(session.clone()), model_seq_id })
        }
        _ => Err(ApiError::invalid("session_id: set either session_id and model_seq_id, or destination_project_id")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::http::Method;
    use serde_json::{Value, json};
    use trainyard_protocol::TenantId;

    use crate::api::tests::testing::*;
    use crate::auth::Keys;
    use crate::state::Limits;

    const OTHER: &str = "tml-a";

    async fn shared() -> Server {
        let keys = [(OTHER, "alpha"), (KEY, "beta")];
        let keys = keys.map(|(key, tenant)| (Keys::digest(key), TenantId::new(tenant)));
        Server::with(Limits::default(), Keys::new(keys.to_vec())).await
    }

    async fn copy_with(server: &Server, headers: &[(&str, &str)], body: &Value) -> Got {
        server.call(Method::POST, "/api/v1/copy_weights", headers, body.to_string()).await
    }

    #[tokio::test]
    async fn the_files_stay_with_the_copy_and_its_run_is_not_trained() {
        let server = Server::start().await;
        let run = server.run().await;
        let source = server.checkpoint(&run, 1, "weights", "a").await;
        let body = json!({"source_path": source, "destination_project_id": "p"});
        let copy = async |key| copy_with(&server, &[("x-idempotency-key", key)], &body).await.text("tinker_path");
        let first = copy("k").await;
        assert!(first.ends_with(":train:0/weights/a") && first != source, "{first}");
        assert_eq!(copy("k").await, first);
        assert_ne!(copy("other").await, first);
        let wrong = json!({"source_path": server.checkpoint(&run, 2, "weights", "b").await});
        copy_with(&server, &[("x-idempotency-key", "k")], &wrong).await.refused(422);
        let dir = server.folder(&source).await;
        assert_eq!(server.folder(&first).await, dir);
        server.on_run(Method::DELETE, &format!("{run}/checkpoints/weights/a"), None).await;
        assert!(dir.exists());
        let holder = first.strip_prefix("tinker://").unwrap().strip_suffix("/weights/a").unwrap();
        let info = server.get(&format!("training_runs/{holder}")).await.json();
        assert_eq!((&info["user_metadata"], &info["corrupted"]), (&json!({"who": "me"}), &json!(false)));
        let refused = server.post("optim_step", adam(holder, 1, 0.1)).await.refused(400);
        assert!(refused.contains("can't be trained"), "{refused}");
    }

    #[tokio::test]
    async fn a_run_of_a_session_holds_a_copy_once() {
        let server = Server::start().await;
        let run = server.run().await;
        let source = server.checkpoint(&run, 1, "sampler_weights", "a").await;
        let session = server.session().await;
        let body =
            |source: &str, number: i64| json!({"source_path": source, "session_id": session, "model_seq_id": number});
        for _ in 0..2 {
            let copied = server.post("copy_weights", body(&source, 3)).await.text("tinker_path");
            assert_eq!(copied, format!("tinker://{session}:train:3/sampler_weights/a"));
        }
        let other = server.checkpoint(&run, 2, "weights", "b").await;
        server.post("copy_weights", body(&other, 3)).await.refused(422);
        let own = run.split(':').next().unwrap();
        let taken = json!({"source_path": source, "session_id": own, "model_seq_id": 0});
        server.post("copy_weights", taken).await.refused(422);
        server.post("copy_weights", body(&source, -1)).await.refused(400);
        server.post("copy_weights", body(&format!("{source}2"), 4)).await.refused(404);
        server.post("copy_weights", json!({"source_path": source, "session_id": session})).await.refused(400);
        server.post("copy_weights", json!({"source_path": "x"})).await.refused(400);
        server.post("copy_weights", json!({"source_path": source, "ttl_seconds": 5})).await.refused(400);
        let unknown = json!({"source_path": source, "session_id": "none", "model_seq_id": 0});
        server.post("copy_weights", unknown).await.refused(404);
    }

    #[tokio::test]
    async fn anothers_checkpoint_is_copied_with_one_of_its_keys() {
        let server = shared().await;
        let run = server.run().await;
        let source = server.checkpoint(&run, 1, "weights", "a").await;
        let copy = async |token: Option<&str>, source: &str| {
            let mut headers = vec![("x-api-key", OTHER)];
            headers.extend(token.map(|token| ("x-tinker-weights-access-token", token)));
            copy_with(&server, &headers, &json!({"source_path": source})).await
        };
        copy(None, &source).await.refused(404);
        copy(Some(OTHER), &source).await.refused(404);
        let missing = format!("{source}2");
        assert_eq!(copy(Some("tml-x"), &source).await.refused(403), copy(Some("tml-x"), &missing).await.refused(403));
        let copied = copy(Some(KEY), &source).await.text("tinker_path");
        server.post_as(OTHER, "weights_info", json!({"tinker_path": copied})).await.json();
        server.post("weights_info", json!({"tinker_path": copied})).await.refused(404);
    }
}
