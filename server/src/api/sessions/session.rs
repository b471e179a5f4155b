//! Handler of `GET sessions/{session_id}`.

use axum::extract::State;
use trainyard_protocol::SessionId;
use trainyard_wire::catalogue::ScopeQuery;
use trainyard_wire::json;
use trainyard_wire::sessions::SessionResponse;

use crate::api::request::extract::{ApiPath, ApiQuery};
use crate::api::request::listing::scope;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::state::AppState;

/// Returns a session with its runs and samplers.
#[utoipa::path(
    get, path = "/api/v1/sessions/{session_id}", tag = "sessions",
    params(("session_id" = String, Path), ScopeQuery),
    responses((status = 200, description = "success", body = SessionResponse), Refusals),
)]
pub(in crate::api) async fn session(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(session_id): ApiPath<String>,
    ApiQuery(query): ApiQuery<ScopeQuery>,
) -> Reply<SessionResponse> {
    // Nobody else's session can be read.
    scope(query.access_scope.as_deref())?;
    let session = state.scheduler.session(&tenant, &SessionId::new(session_id)).await?;
    let metadata: json::Metadata = serde_json::from_value(session.user_metadata).unwrap_or_default();
    Ok(Answer(SessionResponse {
        training_run_ids: session.training_run_ids.iter().map(ToString::to_string).collect(),
        sampler_ids: session.sampler_ids.iter().map(ToString::to_string).collect(),
        user_metadata: json::text_metadata(&metadata),
        display_name: session.display_name,
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn it_tells_runs_samplers_and_metadata() {
        let server = Server::start().await;
        let run = server.run().await;
        let session = run.split(':').next().unwrap();
        let sampling = json!({"session_id": session, "sampling_session_seq_id": 3, "base_model": MODEL});
        let sampler = server.post("create_sampling_session", sampling).await.text("sampling_session_id");
        let expected = json!({"training_run_ids": [run], "sampler_ids": [sampler], "user_metadata": {"a": "1"}});
        assert_eq!(server.get(&format!("sessions/{session}")).await.json(), expected);
        server.get("sessions/none").await.refused(404);
        let listed = server.get("sessions?limit=5&offset=0&access_scope=owned").await.json();
        assert_eq!(listed, json!({"sessions": [session]}));
    }
}
