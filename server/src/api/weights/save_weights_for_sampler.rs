//! Handler of `POST save_weights_for_sampler`.

use axum::extract::State;
use trainyard_scheduler::{RequestKind, Run};
use trainyard_wire::futures::SubmitResponse;
use trainyard_wire::weights::SaveWeightsForSamplerRequest;

use crate::api::request::body::RawBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::Reply;
use crate::api::request::submit::submit_json;
use crate::auth::Tenant;
use crate::state::AppState;

/// Freezes a run's weights for sampling: under a name, or in memory as a new sampling session.
#[utoipa::path(
    post, path = "/api/v1/save_weights_for_sampler", tag = "weights", request_body = SaveWeightsForSamplerRequest,
    responses((status = 200, description = "accepted; the response names its future", body = SubmitResponse), Refusals),
)]
pub(in crate::api) async fn save_weights_for_sampler(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    body: RawBody,
) -> Reply<SubmitResponse> {
    let build = |request: SaveWeightsForSamplerRequest, run: &Run| request.payload(&run.session, run.spec.clone());
    submit_json(&state, &tenant, RequestKind::SaveWeightsForSampler, body, build).await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use serde_json::json;
    use trainyard_wire::payload::Payload;

    use crate::api::tests::testing::*;

    /// Clients repeat an ephemeral save with a new `sampling_session_seq_id`.
    #[tokio::test]
    async fn an_ephemeral_retry_may_change_the_sampling_number() {
        let server = Server::start().await;
        let run = server.run().await;
        let body = |seq_id: i64, number: i64, kind: &str| json!({"model_id": run, "seq_id": seq_id, "sampling_session_seq_id": number, "kind": kind});
        for (seq_id, kind) in [(1, "snapshot"), (2, "nonsense")] {
            let first = server.post("save_weights_for_sampler", body(seq_id, 0, kind)).await.text("request_id");
            let again = server.post("save_weights_for_sampler", body(seq_id, 7, kind)).await.text("request_id");
            assert_eq!(again, first);
        }
        let work = server.next_work().await;
        let Payload::EphemeralSampler { session, sampling_session_seq_id, .. } =
            Payload::decode(&work.payload).unwrap()
        else {
            panic!()
        };
        assert_eq!((format!("{session}:train:0"), sampling_session_seq_id), (run.clone(), 0));
    }

    #[tokio::test]
    async fn named_and_ephemeral_exclude_each_other() {
        let server = Server::start().await;
        let run = server.run().await;
        let both = json!({"model_id": run, "seq_id": 1, "sampling_session_seq_id": 0, "path": "a"});
        let neither = json!({"model_id": run, "seq_id": 2});
        for body in [both, neither] {
            let future = server.post("save_weights_for_sampler", body).await.text("request_id");
            assert_eq!(server.poll(&future).await.json()["category"], "user");
        }
    }
}
