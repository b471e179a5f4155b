//! Handler of `POST sessions/{session_id}/finish`.

use axum::extract::State;
use axum::http::StatusCode;
use trainyard_protocol::SessionId;
use trainyard_scheduler::FinishReason;
use trainyard_wire::sessions::{FinishKind, FinishRequest};

use crate::api::request::body::JsonBody;
use crate::api::request::extract::ApiPath;
use crate::api::request::refusals::Refusals;
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

/// Ends a session. The call can be repeated; the first reason is kept.
#[utoipa::path(
    post, path = "/api/v1/sessions/{session_id}/finish", tag = "sessions", params(("session_id" = String, Path)),
    request_body = FinishRequest, responses((status = 204, description = "finished"), Refusals),
)]
pub(in crate::api) async fn session_finish(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(session_id): ApiPath<String>,
    JsonBody(request): JsonBody<FinishRequest>,
) -> Result<StatusCode, ApiError> {
    let reason = match request.reason.kind {
        FinishKind::Success => FinishReason::Success,
        FinishKind::Errored => FinishReason::Errored,
        FinishKind::Interrupted => FinishReason::Interrupted,
    };
    state.scheduler.finish_session(&tenant, &SessionId::new(session_id), reason, request.detail).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn it_repeats_and_heartbeats_are_gone() {
        let server = Server::start().await;
        let session = server.session().await;
        server.post("session_heartbeat", json!({"session_id": session})).await.json();
        let path = format!("sessions/{session}/finish");
        for reason in ["success", "errored"] {
            let body = json!({"reason": {"type": reason}, "detail": null});
            let got = server.post(&path, body).await;
            assert_eq!((got.status.as_u16(), got.body.len()), (204, 0));
        }
        server.post("session_heartbeat", json!({"session_id": session})).await.refused(410);
        server.post("session_heartbeat", json!({"session_id": "none"})).await.refused(404);
        server.post(&path, json!({"reason": {"type": "bored"}})).await.refused(400);
    }
}
