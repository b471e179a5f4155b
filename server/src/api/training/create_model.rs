//! Handler of `POST create_model`.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName};
use trainyard_protocol::SessionId;
use trainyard_scheduler::{NewRun, RequestKind};
use trainyard_wire::futures::SubmitResponse;
use trainyard_wire::json;
use trainyard_wire::models::CreateModelRequest;

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::Reply;
use crate::api::request::submit::{admit, future_of};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

/// Creates a run: a LoRA adapter if the rank is positive, all parameters otherwise. The session and `model_seq_id`
/// identify it.
#[utoipa::path(
    post, path = "/api/v1/create_model", tag = "training", request_body = CreateModelRequest,
    responses((status = 200, description = "accepted; the response names its future", body = SubmitResponse), Refusals),
)]
pub(in crate::api) async fn create_model(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    headers: HeaderMap,
    JsonBody(mut request): JsonBody<CreateModelRequest>,
) -> Reply<SubmitResponse> {
    admit(&state, RequestKind::CreateModel)?;
    request.base_model = state.base_name(request.base_model);
    state.require_model(&request.base_model)?;
    check_number("model_seq_id", request.model_seq_id)?;
    let (spec, payload) = request.payload(|| (state.random)())?;
    let new = NewRun {
        session: SessionId::new(request.session_id),
        model_seq_id: request.model_seq_id,
        spec,
        user_metadata: json::text_metadata(&request.user_metadata),
        kind: RequestKind::CreateModel,
        payload: payload.encode()?,
        identity: payload.identity()?,
        rejected: None,
    };
    let submitted = state.scheduler.submit_create(&tenant, new).await;
    let (run, submitted) = submitted.map_err(|error| shown_soon(error.into(), &headers))?;
    Ok(future_of(submitted, Some(&run)))
}

/// Ends the retries of a client that has waited for another run to end, so that it reports the reason. The official SDK
/// repeats a 429 for minutes without a word, and counts the retries in a header.
fn shown_soon(error: ApiError, headers: &HeaderMap) -> ApiError {
    let retries = headers.get(RETRIES).and_then(|count| count.to_str().ok()?.parse::<u32>().ok());
    match error {
        ApiError::Quota { refusal, .. } => {
            ApiError::Quota { refusal, is_final: retries.is_some_and(|retries| retries >= SILENT_RETRIES) }
        }
        error => error,
    }
}

/// The number of retries that a request has behind it, as the official SDK sends it.
const RETRIES: HeaderName = HeaderName::from_static("x-stainless-retry-count");
/// Retries without a word, ten seconds apart: a session that is about to end may free a run.
const SILENT_RETRIES: u32 = 2;

/// Refuses a negative counter.
pub(crate) fn check_number(field: &str, value: i64) -> Result<(), ApiError> {
    if value < 0 { Err(ApiError::invalid(format!("{field}: {value} is negative"))) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use std::num::NonZeroU64;

    use axum::body::Body;
    use axum::http::Method;
    use serde_json::{Value, json};
    use trainyard_scheduler::TenantPolicy;
    use trainyard_wire::payload::Payload;

    use crate::api::tests::testing::*;

    fn body(session: &str, changes: &Value) -> Value {
        let mut body =
            json!({"session_id": session, "model_seq_id": 0, "base_model": MODEL, "lora_config": {"rank": 4}});
        for (key, value) in changes.as_object().unwrap() {
            body[key] = value.clone();
        }
        body
    }

    #[tokio::test]
    async fn the_id_is_the_one_that_clients_compute_and_a_retry_is_the_same_future() {
        let server = Server::start().await;
        let session = server.session().await;
        let first = server.post("create_model", body(&session, &json!({}))).await;
        assert_eq!(first.text("model_id"), format!("{session}:train:0"));
        // The server chooses another seed for the retry, and the first one stands.
        let again = server.post("create_model", body(&session, &json!({}))).await;
        assert_eq!(again.text("request_id"), first.text("request_id"));
        let other = json!({"lora_config": {"rank": 5}});
        server.post("create_model", body(&session, &other)).await.refused(422);
        let work = server.next_work().await;
        let Payload::CreateModel { spec, server_seed } = Payload::decode(&work.payload).unwrap() else { panic!() };
        assert_eq!((spec.lora.unwrap().seed, server_seed), (40, true));
        server.succeed(&work, &json!({"model_id": format!("{session}:train:0")}), vec![]);
        assert_eq!(server.poll(&first.text("request_id")).await.text("model_id"), format!("{session}:train:0"));
    }

    #[tokio::test]
    async fn a_base_model_may_be_named_with_a_context_length() {
        let server = Server::start().await;
        let session = server.session().await;
        let created =
            server.post("create_model", body(&session, &json!({"base_model": format!("{MODEL}:peft:256")}))).await;
        let run = created.text("model_id");
        let Payload::CreateModel { spec, .. } = Payload::decode(&server.next_work().await.payload).unwrap() else {
            panic!()
        };
        assert_eq!(spec.base_model, MODEL);
        // The same request under the other name.
        let again = server.post("create_model", body(&session, &json!({}))).await;
        assert_eq!((again.text("model_id"), again.text("request_id")), (run, created.text("request_id")));
        for other in ["nobody/none:peft:256", "acme/tiny:peft:x", "acme/tiny:peft:"] {
            let changes = json!({"base_model": other, "model_seq_id": 1});
            let refused = server.post("create_model", body(&session, &changes)).await.refused(400);
            assert!(refused.contains("served: acme/tiny"), "{refused}");
        }
    }

    #[tokio::test]
    async fn a_run_beyond_the_quota_is_put_off() {
        let policy = TenantPolicy { max_runs: NonZeroU64::new(1), ..TenantPolicy::default() };
        let server = Server::granted(policy).await;
        let session = server.session().await;
        server.post("create_model", body(&session, &json!({}))).await.json();
        let refused = server.post("create_model", body(&session, &json!({"model_seq_id": 1}))).await;
        assert!(refused.refused(429).contains("quota max_runs: 1 of 1 training runs are live"));
        assert_eq!(
            (&refused.headers["retry-after"], &refused.any_json()["quota"]),
            (&"10".parse().unwrap(), &json!("max_runs"))
        );
        assert!(!refused.headers.contains_key("x-should-retry"));
        // After two silent retries the SDK reports the reason, instead of repeating the request until its user gives up.
        for (retries, should_retry) in [("0", None), ("1", None), ("2", Some("false")), ("9", Some("false"))] {
            let again = body(&session, &json!({"model_seq_id": 1})).to_string();
            let headers = [("content-type", "application/json"), ("x-stainless-retry-count", retries)];
            let refused = server.call(Method::POST, "/api/v1/create_model", &headers, Body::from(again)).await;
            let found = refused.headers.get("x-should-retry").map(|value| value.to_str().unwrap().to_owned());
            assert_eq!((refused.status.as_u16(), found.as_deref()), (429, should_retry), "{retries}");
        }
    }

    #[tokio::test]
    async fn no_lora_or_rank_0_trains_everything() {
        let server = Server::start().await;
        let session = server.session().await;
        for (n, lora) in [json!(null), json!({"rank": 0})].into_iter().enumerate() {
            let changes = json!({"model_seq_id": n, "lora_config": lora});
            server.post("create_model", body(&session, &changes)).await.json();
            let Payload::CreateModel { spec, .. } = Payload::decode(&server.next_work().await.payload).unwrap() else {
                panic!()
            };
            assert_eq!(spec.lora, None);
        }
    }

    #[tokio::test]
    async fn a_scalar_head_is_asked_for_by_metadata_and_takes_the_unembedding_s_place() {
        let server = Server::start().await;
        let session = server.session().await;
        let head = json!({"trainyard.head": "scalar"});
        for (n, lora) in [json!({"rank": 4}), json!(null)].into_iter().enumerate() {
            let changes = json!({"model_seq_id": n, "lora_config": lora, "user_metadata": head});
            server.post("create_model", body(&session, &changes)).await.json();
            let Payload::CreateModel { spec, .. } = Payload::decode(&server.next_work().await.payload).unwrap() else {
                panic!()
            };
            assert!(spec.head.is_scalar());
            assert!(spec.lora.is_none_or(|lora| lora.train_mlp && lora.train_attn && !lora.train_unembed));
        }
        let unembedding = json!({"rank": 4, "train_attn": false, "train_mlp": false});
        let changes = json!({"model_seq_id": 2, "lora_config": unembedding, "user_metadata": head});
        let refused = server.post("create_model", body(&session, &changes)).await.refused(400);
        assert!(refused.starts_with("lora_config.train_unembed: a model with a scalar head"), "{refused}");
    }

    #[tokio::test]
    async fn what_cannot_be_trained_is_refused_by_name() {
        let server = Server::start().await;
        let session = server.session().await;
        let off = json!({"rank": 4, "train_attn": false, "train_mlp": false, "train_unembed": false});
        for (changes, text) in [
            (json!({"base_model": "nobody/none"}), "served: acme/tiny"),
            (json!({"lora_config": off}), "At least one of train_unembed, train_mlp, train_attn must be True"),
            (json!({"lora_config": {"rank": -1}}), "lora_config.rank"),
            (json!({"optimizer_config": {"type": "dimuon", "version": 1}}), "dimuon"),
            (
                json!({"user_metadata": {"trainyard.head": "vector"}}),
                "user_metadata.trainyard.head: unknown head \"vector\"",
            ),
            (json!({"model_seq_id": -1}), "model_seq_id"),
            (json!({"model_seq_id": "x"}), "model_seq_id"),
        ] {
            let refused = server.post("create_model", body(&session, &changes)).await.refused(400);
            assert!(refused.contains(text), "{refused}");
        }
        server.post("create_model", body("none", &json!({}))).await.refused(404);
    }
}
