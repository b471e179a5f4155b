//! `POST create_session`.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName};
use trainyard_protocol::limits::MAX_IDEMPOTENCY_KEY_BYTES;
use trainyard_scheduler::NewSession;

use super::body::JsonBody;
use super::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::sessions::{CreateSessionRequest, CreateSessionResponse};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("x-idempotency-key");

/// Opens a session. A repetition with the same `x-idempotency-key` returns the same one.
#[utoipa::path(
    post, path = "/api/v1/create_session", tag = "sessions", request_body = CreateSessionRequest,
    responses((status = 200, description = "done", body = CreateSessionResponse), Refusals),
)]
pub(super) async fn create_session(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    headers: HeaderMap,
    JsonBody(request): JsonBody<CreateSessionRequest>,
) -> Reply<CreateSessionResponse> {
    let idempotency_key = headers.get(IDEMPOTENCY_KEY).and_then(|key| key.to_str().ok()).map(str::to_owned);
    if let Some(length) = idempotency_key.as_ref().map(String::len).filter(|length| *length > MAX_IDEMPOTENCY_KEY_BYTES)
    {
        return Err(ApiError::invalid(format!(
            "x-idempotency-key: {length} bytes; at most {MAX_IDEMPOTENCY_KEY_BYTES} are allowed"
        )));
    }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::http::Method;
    use serde_json::json;

    use super::super::testing::*;

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
    async fn a_wrong_field_is_named() {
        let server = Server::start().await;
        let refused = server.post("create_session", json!({"tags": [1]})).await.refused(400);
        assert!(refused.starts_with("tags[0]: "), "{refused}");
    }
}
