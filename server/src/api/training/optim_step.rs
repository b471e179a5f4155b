//! Handler of `POST optim_step`.

use axum::extract::State;
use trainyard_scheduler::RequestKind;
use trainyard_wire::futures::SubmitResponse;
use trainyard_wire::models::OptimStepRequest;

use crate::api::request::body::RawBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::Reply;
use crate::api::request::submit::submit_json;
use crate::auth::Tenant;
use crate::state::AppState;

/// Applies a run's accumulated gradient and clears it.
#[utoipa::path(
    post, path = "/api/v1/optim_step", tag = "training", request_body = OptimStepRequest,
    responses((status = 200, description = "accepted; the response names its future", body = SubmitResponse), Refusals),
)]
pub(in crate::api) async fn optim_step(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    body: RawBody,
) -> Reply<SubmitResponse> {
    let build = |request: OptimStepRequest, _: &_| request.payload();
    submit_json(&state, &tenant, RequestKind::OptimStep, body, build).await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::num::NonZeroU64;

    use axum::http::Method;
    use serde_json::json;
    use trainyard_scheduler::{TenantPolicy, TrainingLimits};

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn a_wrong_field_fails_in_the_future_and_consumes_its_seq_id() {
        let server = Server::start().await;
        let run = server.run().await;
        for (seq_id, body, field) in [
            (1, adam(&run, 1, -1.0), "adam_params.learning_rate"),
            (2, json!({"model_id": run, "seq_id": 2, "adam_params": {"lr": 1}}), "adam_params"),
            (3, json!({"model_id": run, "seq_id": 3, "optimizer_params": {"type": "dimuon"}}), "dimuon"),
            (4, json!({"model_id": run, "seq_id": 4, "adam_params": "x"}), "adam_params"),
            (5, json!({"model_id": run, "seq_id": 5, "adam_params": [1]}), "adam_params"),
            (6, adam(&run, 6, 1e300), "adam_params.learning_rate"),
        ] {
            let submitted = server.post("optim_step", body).await;
            assert_eq!(submitted.text("model_id"), run);
            let failed = server.poll(&submitted.text("request_id")).await.json();
            assert_eq!(failed["category"], "user", "{seq_id}");
            assert!(failed["error"].as_str().unwrap().contains(field), "{failed}");
        }
        server.post("optim_step", adam(&run, 7, 0.1)).await.json();
        assert_eq!(server.next_work().await.seq_id, 7);
    }

    /// `x-idempotency-key` changes with every retry; run and seq_id are the identity.
    #[tokio::test]
    async fn a_retry_is_the_same_future_and_other_content_is_refused() {
        let server = Server::start().await;
        let run = server.run().await;
        let mut futures = vec![];
        for key in ["one", "two"] {
            let headers = [("x-idempotency-key", key)];
            let body = adam(&run, 1, 0.1).to_string();
            futures.push(server.call(Method::POST, "/api/v1/optim_step", &headers, body).await.text("request_id"));
        }
        assert_eq!(futures[0], futures[1]);
        server.post("optim_step", adam(&run, 1, 0.2)).await.refused(422);
        assert_eq!(server.next_work().await.seq_id, 1);
    }

    #[tokio::test]
    async fn a_full_queue_is_named_and_a_number_far_ahead_is_refused() {
        let training = TrainingLimits {
            run_requests: NonZeroU64::new(2).unwrap(),
            seq_gap: NonZeroU64::new(10).unwrap(),
            ..TrainingLimits::default()
        };
        let server = Server::granted(TenantPolicy { training, ..TenantPolicy::default() }).await;
        let run = server.run().await;
        for seq_id in [2, 3] {
            server.post("optim_step", adam(&run, seq_id, 0.1)).await.json();
        }
        let refused = server.post("optim_step", adam(&run, 4, 0.1)).await;
        assert!(refused.refused(429).starts_with("quota max_run_queued_requests: 2 of 2 requests"));
        let body = refused.any_json();
        assert_eq!(
            (&refused.headers["retry-after"], &body["quota"], &body["limit"], &body["used"]),
            (&"5".parse().unwrap(), &json!("max_run_queued_requests"), &json!(2), &json!(2))
        );
        let far = server.post("optim_step", adam(&run, 12, 0.1)).await.refused(400);
        assert_eq!(far, "seq_id: 12 is too far ahead: the run waits for 1, and numbers up to 10 after it are accepted");
        server.post("optim_step", adam(&run, 1, 0.1)).await.json();
        assert_eq!(server.next_work().await.seq_id, 1);
    }

    #[tokio::test]
    async fn unreadable_ids_and_foreign_runs_are_refused() {
        let server = Server::start().await;
        let run = server.run().await;
        assert!(server.post("optim_step", adam(&run, 0, 0.1)).await.refused(400).contains("seq_id"));
        assert!(server.post("optim_step", json!({"model_id": run})).await.refused(400).contains("seq_id"));
        server.post("optim_step", json!([])).await.refused(400);
        server.post("optim_step", adam("none:train:0", 1, 0.1)).await.refused(404);
    }
}
