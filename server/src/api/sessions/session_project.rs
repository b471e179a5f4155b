//! Handler of `PUT sessions/{session_id}/project`.

use axum::extract::State;
use axum::http::StatusCode;
use trainyard_protocol::SessionId;
use trainyard_wire::session_search::SessionProjectRequest;

use crate::api::request::body::JsonBody;
use crate::api::request::extract::ApiPath;
use crate::api::request::refusals::Refusals;
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

/// Moves a session, with its runs and sampling sessions, to a project. A project is a name that sessions share.
#[utoipa::path(
    put, path = "/api/v1/sessions/{session_id}/project", tag = "sessions", params(("session_id" = String, Path)),
    request_body = SessionProjectRequest, responses((status = 204, description = "success"), Refusals),
)]
pub(in crate::api) async fn session_project(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(session_id): ApiPath<String>,
    JsonBody(request): JsonBody<SessionProjectRequest>,
) -> Result<StatusCode, ApiError> {
    if request.project_id.is_empty() {
        return Err(ApiError::invalid("project_id: must not be empty"));
    }
    state.scheduler.assign_project(&tenant, &SessionId::new(session_id), &request.project_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::http::Method;
    use serde_json::{Value, json};

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn runs_follow_their_session_into_a_project() {
        let server = Server::start().await;
        let run = server.run().await;
        let session = run.split(':').next().unwrap();
        let assign = async |session: &str, body: Value| {
            let path = format!("/api/v1/sessions/{session}/project");
            server.call(Method::PUT, &path, &[], body.to_string()).await
        };
        let total = async |query: &str| server.get(query).await.json()["cursor"]["total_count"].clone();
        assert_eq!(total("training_runs?project_id=p").await, 0);
        assert_eq!(assign(session, json!({"project_id": "p"})).await.status, 204);
        assert_eq!(total("training_runs?project_id=p").await, 1);
        assert_eq!(server.get("sessions?project_id=p").await.json(), json!({"sessions": [session]}));
        assert_eq!(server.get("sessions?project_id=q").await.json(), json!({"sessions": []}));
        assign(session, json!({"project_id": ""})).await.refused(400);
        assign(session, json!({})).await.refused(400);
        assign("none", json!({"project_id": "p"})).await.refused(404);
    }
}
