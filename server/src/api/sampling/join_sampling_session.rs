//! Handler of `POST join_sampling_session`.

use axum::extract::State;
use trainyard_protocol::SamplingSessionId;
use trainyard_wire::sampling::{JoinSamplingSessionRequest, JoinSamplingSessionResponse};

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::state::AppState;

/// Returns a number for a clone of a sampling session's client. The clone counts its samples from `client_counter`
/// times 10^9, so that no two clients use the same `seq_id`.
#[utoipa::path(
    post, path = "/api/v1/join_sampling_session", tag = "sampling", request_body = JoinSamplingSessionRequest,
    responses((status = 200, description = "success", body = JoinSamplingSessionResponse), Refusals),
)]
pub(in crate::api) async fn join_sampling_session(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    JsonBody(request): JsonBody<JoinSamplingSessionRequest>,
) -> Reply<JoinSamplingSessionResponse> {
    let id = SamplingSessionId::new(request.sampling_session_id);
    let client_counter = state.scheduler.join_sampling_session(&tenant, &id).await?;
    Ok(Answer(JoinSamplingSessionResponse { client_counter }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn every_clone_has_a_number_of_its_own() {
        let server = Server::start().await;
        let session = server.session().await;
        let sampler = async |number: i64| {
            let body = json!({"session_id": session, "sampling_session_seq_id": number, "base_model": MODEL});
            server.post("create_sampling_session", body).await.text("sampling_session_id")
        };
        let join = async |id: &str| server.post("join_sampling_session", json!({"sampling_session_id": id})).await;
        let (one, two) = (sampler(0).await, sampler(1).await);
        for (id, number) in [(&one, 1), (&one, 2), (&two, 1), (&one, 3)] {
            assert_eq!(join(id).await.json(), json!({"client_counter": number}));
        }
        join("none").await.refused(404);
        let end = json!({"reason": {"type": "success"}, "detail": null});
        server.post(&format!("sessions/{session}/finish"), end).await;
        join(&one).await.refused(410);
    }
}
