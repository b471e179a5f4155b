//! Handler of `POST create_session`.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName};
use trainyard_protocol::limits::MAX_IDEMPOTENCY_KEY_BYTES;
use trainyard_scheduler::NewSession;
use trainyard_wire::sessions::{CreateSessionRequest, CreateSessionResponse};

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("x-idempotency-key");

/// Opens a session. A call that is repeated with the same `x-idempotency-key` returns the same session.
#[utoipa::path(
    post, path = "/api/v1/create_session", tag = "sessions", request_body = CreateSessionRequest,
    params(("x-idempotency-key" = Option<String>, Header, description = "identifies the call, so that it can be repeated", max_length = 256)),
    responses((status = 200, description = "success", body = CreateSessionResponse), Refusals),
)]
pub(in crate::api) async fn create_session(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    headers: HeaderMap,
    JsonBody(request): JsonBody<CreateSessionRequest>,
) -> Reply<CreateSessionResponse> {
    let idempotency_key = idempotency_key(&headers)?;
    let session = NewSession {
        tags: request.tags,
        user_metadata: request.user_metadata.into_iter().collect(),
        sdk_version: request.sdk_version,
        project_id: request.project_id,
        display_name: request.display_name,
        idempotency_key,
    };
    let session_id = state.scheduler.create_session(&tenant, session).await?.to_string();
    Ok(Answer(CreateSessionResponse { session_id }))
}

/// Returns the key that a client sends with every repetition of one call.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let key = headers.get(IDEMPOTENCY_KEY).and_then(|key| key.to_str().ok()).map(str::to_owned);
    if let Some(length) = key.as_ref().map(String::len).filter(|length| *length > MAX_IDEMPOTENCY_KEY_BYTES) {
        return Err(ApiError::invalid(format!(
            "x-idempotency-key: {length} bytes; at most {MAX_IDEMPOTENCY_KEY_BYTES} are allowed"
        )));
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::http::Method;
    use serde_json::json;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn a_repetition_with_the_same_key_is_the_same_session() {
        let server = Server::start().await;
        let create = async |key: &str| {
            let headers = [("x-idempotency-key", key)];
            server
                .call(Method::POST, "/api/v1/create_session", &headers, json!({}).to_string())
                .await
                .text("session_id")
        };
        let first = create("a").await;
        assert!(!first.contains(['/', ':', '?', '#']));
        assert_eq!(create("a").await, first);
        assert_ne!(create("b").await, first);
    }

    #[tokio::test]
    async fn a_key_that_is_too_long_is_refused_with_the_limit() {
        let server = Server::start().await;
        let create = async |length| {
            let key = "k".repeat(length);
            let headers = [("x-idempotency-key", key.as_str())];
            server.call(Method::POST, "/api/v1/create_session", &headers, json!({}).to_string()).await
        };
        create(256).await.text("session_id");
        let refused = create(3_000).await.refused(400);
        assert_eq!(refused, "x-idempotency-key: 3000 bytes; at most 256 are allowed");
    }

    #[tokio::test]
    async fn labels_and_metadata_are_bounded_by_name() {
        let server = Server::start().await;
        let entries: serde_json::Map<_, _> = (0..257).map(|i| (i.to_string(), json!(i))).collect();
        for (body, text) in [
            (json!({"user_metadata": entries}), "user_metadata: 257 entries, at most 256 are allowed"),
            (
                json!({"user_metadata": {"k".repeat(257): 1}}),
                "user_metadata: 257 bytes in a key, at most 256 are allowed",
            ),
            (
                json!({"user_metadata": {"k": "v".repeat(16_383)}}),
                "user_metadata: 16385 bytes under \"k\", at most 16384 are allowed",
            ),
            (json!({"tags": vec!["t"; 257]}), "tags: 257 tags, at most 256 are allowed"),
            (json!({"tags": ["t".repeat(4_097)]}), "tags[0]: 4097 bytes, at most 4096 are allowed"),
            (json!({"display_name": "n".repeat(4_097)}), "display_name: 4097 bytes, at most 4096 are allowed"),
            (json!({"project_id": "n".repeat(4_097)}), "project_id: 4097 bytes, at most 4096 are allowed"),
            (json!({"sdk_version": "n".repeat(4_097)}), "sdk_version: 4097 bytes, at most 4096 are allowed"),
        ] {
            assert_eq!(server.post("create_session", body).await.refused(400), text);
        }
        let body = json!({"user_metadata": {"k".repeat(256): "v".repeat(16_382)}, "tags": null, "display_name": null});
        server.post("create_session", body).await.text("session_id");
        let run = server.run().await;
        let large = json!({"k": "v".repeat(16_383)});
        let body = json!({"session_id": run.split(':').next(), "model_seq_id": 1, "base_model": MODEL, "user_metadata": large});
        assert!(server.post("create_model", body).await.refused(400).starts_with("user_metadata: 16385 bytes"));
        let body = json!({"model_id": run, "seq_id": 1, "path": "a", "user_metadata": large});
        let future = server.post("save_weights", body).await.text("request_id");
        assert!(server.poll(&future).await.json()["error"].as_str().unwrap().starts_with("user_metadata: 16385 bytes"));
    }

    #[tokio::test]
    async fn a_wrong_field_is_named() {
        let server = Server::start().await;
        let refused = server.post("create_session", json!({"tags": [1]})).await.refused(400);
        assert!(refused.starts_with("tags[0]: "), "{refused}");
    }

    #[tokio::test]
    async fn a_session_with_much_metadata_waits_while_the_disk_is_almost_full() {
        let server = Server::start().await;
        let with = |bytes: usize| json!({"user_metadata": {"a": "x".repeat(bytes), "b": "x".repeat(bytes)}});
        server.set_free(0);
        server.post("create_session", with(1_000)).await.json();
        let text = server.post("create_session", with(8_000)).await.refused(503);
        assert!(text.contains("the server's disk is almost full"), "{text}");
        // However small the body is that arrives.
        let body = zstd::encode_all(with(8_000).to_string().as_bytes(), 3).unwrap();
        let headers = [("content-encoding", "zstd")];
        server.call(Method::POST, "/api/v1/create_session", &headers, body).await.refused(503);
        server.set_free(1 << 40);
        server.post("create_session", with(8_000)).await.json();
    }

    #[tokio::test]
    async fn metadata_and_tags_have_bounds_in_all() {
        let server = Server::start().await;
        let metadata = |entries: usize| {
            let entries = (0..entries).map(|number| (format!("k{number:03}"), json!("x".repeat(4_090))));
            json!({"user_metadata": entries.collect::<serde_json::Map<_, _>>()})
        };
        server.post("create_session", metadata(16)).await.json();
        let text = server.post("create_session", metadata(17)).await.refused(400);
        assert_eq!(text, "user_metadata: 69632 bytes in all, at most 65536 are allowed");
        let tags = |count: usize| json!({"tags": vec!["x".repeat(4_096); count]});
        server.post("create_session", tags(16)).await.json();
        let text = server.post("create_session", tags(17)).await.refused(400);
        assert_eq!(text, "tags: 69632 bytes in all tags, at most 65536 are allowed");
    }
}
