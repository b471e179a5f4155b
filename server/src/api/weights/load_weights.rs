//! Handler of `POST load_weights`.

use axum::extract::State;
use bytes::Bytes;
use trainyard_protocol::{LoraSpec, ModelHead, OpError, RunId, RunSpec, SessionId, TenantId, TinkerPath};
use trainyard_scheduler::{NewRun, RequestKind, Run, RunSubmission};
use trainyard_wire::futures::SubmitResponse;
use trainyard_wire::json;
use trainyard_wire::payload::Payload;
use trainyard_wire::weights::{LoadForm, LoadWeightsRequest};

use crate::api::request::base_name::other_name;
use crate::api::request::body::RawBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::Reply;
use crate::api::request::submit::{self, future_of};
use crate::api::request::weights_access::reader;
use crate::api::training::create_model::check_number;
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::exports::ensure_readable;
use crate::state::AppState;

/// Creates a run from a training checkpoint (`session_id`, `model_seq_id`), or loads a checkpoint into an existing run
/// (`model_id`, `seq_id`).
#[utoipa::path(
    post, path = "/api/v1/load_weights", tag = "weights", request_body = LoadWeightsRequest,
    responses((status = 200, description = "accepted; the response names its future", body = SubmitResponse), Refusals),
)]
pub(in crate::api) async fn load_weights(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    mut body: RawBody,
) -> Reply<SubmitResponse> {
    let form = body.decode(read).await?;
    let body = body.bytes;
    match form {
        Ok((LoadForm::Create { session, model_seq_id }, mut request)) => {
            request.base_model = request.base_model.map(|name| state.base_name(name));
            create(&state, &tenant, session, model_seq_id, request).await
        }
        Ok((LoadForm::Existing { run, seq_id }, mut request)) => {
            request.base_model = request.base_model.map(|name| state.base_name(name));
            existing(&state, &tenant, run, seq_id, Ok(request), &body).await
        }
        Err(error) => {
            let (run, seq_id) = submit::ids(json::training_ids(&body), Some(&error))?;
            existing(&state, &tenant, run, seq_id, Err(error), &body).await
        }
    }
}

fn read(body: &Bytes) -> Result<(LoadForm, LoadWeightsRequest), OpError> {
    let request = json::parse::<LoadWeightsRequest>(body)?;
    Ok((request.form()?, request))
}

async fn create(
    state: &AppState,
    tenant: &TenantId,
    session: SessionId,
    model_seq_id: i64,
    request: LoadWeightsRequest,
) -> Reply<SubmitResponse> {
    submit::admit(state, RequestKind::CreateModel)?;
    check_number("model_seq_id", model_seq_id)?;
    let (mut spec, reader) = source(state, tenant, &request.checkpoint()?, &request).await?;
    let mut checkpoint_base = None;
    if let Some(base) = &request.base_model {
        checkpoint_base = other_name(state, "base_model", base, &spec.base_model).await??;
        spec.base_model.clone_from(base);
    }
    let user_metadata = json::text_metadata(&request.user_metadata);
    if let Some(head) = ModelHead::of_metadata(&user_metadata)? {
        spec.head = head;
    }
    match &spec.lora {
        Some(lora) => lora.check_scale(&user_metadata)?,
        None => LoraSpec::refuse_scale(&user_metadata)?,
    }
    state.require_model(&spec.base_model)?;
    let payload = request.payload(&spec, reader, checkpoint_base)?;
    let new = NewRun {
        session,
        model_seq_id,
        spec,
        user_metadata,
        kind: RequestKind::LoadWeights,
        payload: payload.encode()?,
        identity: payload.identity()?,
        rejected: None,
    };
    let (run, submitted) = state.scheduler.submit_create(tenant, new).await?;
    Ok(future_of(submitted, Some(&run)))
}

async fn existing(
    state: &AppState,
    tenant: &TenantId,
    run: RunId,
    seq_id: i64,
    request: Result<LoadWeightsRequest, OpError>,
    body: &Bytes,
) -> Reply<SubmitResponse> {
    let run = submit::find_run(state, tenant, &run, seq_id).await?;
    let built = match request {
        Ok(request) => build(state, tenant, &run, &request).await?,
        Err(error) => Err(error),
    };
    let submission = RunSubmission::new(run.id, seq_id, RequestKind::LoadWeights);
    submit::submit(state, tenant, submit::encoded(submission, built, body)?).await
}

/// Returns the payload, or the user's error; the outer error is the service's.
async fn build(
    state: &AppState,
    tenant: &TenantId,
    run: &Run,
    request: &LoadWeightsRequest,
) -> Result<Result<Payload, OpError>, ApiError> {
    let path = match request.checkpoint() {
        Ok(path) => path,
        Err(error) => return Ok(Err(error)),
    };
    match source(state, tenant, &path, request).await {
        Ok((spec, reader)) => {
            let wanted = request.base_model.as_ref().unwrap_or(&run.spec.base_model);
            if *wanted != run.spec.base_model {
                return Ok(Err(OpError::user(format!("base_model: {wanted:?} is not the base model of {}", run.id))));
            }
            let checkpoint_base = other_name(state, "path", wanted, &spec.base_model).await?;
            Ok(checkpoint_base.and_then(|checkpoint_base| request.payload(&spec, reader, checkpoint_base)))
        }
        Err(error @ (ApiError::NotFound { .. } | ApiError::Gone(_))) => {
            Ok(Err(OpError::user(format!("path: {error}"))))
        }
        Err(error @ (ApiError::Forbidden(_) | ApiError::Invalid(_))) => Ok(Err(OpError::user(error.to_string()))),
        Err(error) => Err(error),
    }
}

/// Returns what a checkpoint trains, and the tenant in whose name it is read, if that is not the caller.
async fn source(
    state: &AppState,
    tenant: &TenantId,
    path: &TinkerPath,
    request: &LoadWeightsRequest,
) -> Result<(RunSpec, Option<TenantId>), ApiError> {
    let reader = reader(state, tenant, path, request.weights_access_token.as_deref()).await?;
    let checkpoint = state.scheduler.checkpoint(&reader, path).await?;
    ensure_readable(&state.storage, "path", &checkpoint).await?;
    Ok((checkpoint.spec, Some(reader).filter(|reader| reader != tenant)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;
    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn a_run_is_created_from_a_checkpoint_and_counts_from_1() {
        let server = Server::start().await;
        let run = server.run().await;
        let path = server.checkpoint(&run, 1, "weights", "a").await;
        let session = server.session().await;
        let body = json!({"session_id": session, "model_seq_id": 0, "path": path, "optimizer": true});
        let first = server.post("load_weights", body.clone()).await;
        assert_eq!(first.text("model_id"), format!("{session}:train:0"));
        assert_eq!(server.post("load_weights", body).await.text("request_id"), first.text("request_id"));
        let work = server.next_work().await;
        assert_eq!((work.seq_id, work.kind), (0, RequestKind::LoadWeights));
        server.succeed(&work, &json!({"path": path}), vec![]);
        let info = server.post("get_info", json!({"model_id": format!("{session}:train:0")})).await.json();
        assert_eq!(info["is_lora"], false);
        server.post("optim_step", adam(&format!("{session}:train:0"), 1, 0.1)).await.json();
        assert_eq!(server.next_work().await.seq_id, 1);
    }

    #[tokio::test]
    async fn a_checkpoint_may_get_a_scalar_head() {
        let server = Server::start().await;
        let run = server.run().await;
        let path = server.checkpoint(&run, 1, "weights", "a").await;
        let session = server.session().await;
        let create = |seq: i64, head: &str| json!({"session_id": session, "model_seq_id": seq, "path": path, "optimizer": false, "user_metadata": {"trainyard.head": head}});
        let refused = server.post("load_weights", create(0, "vector")).await.refused(400);
        assert_eq!(refused, "user_metadata.trainyard.head: unknown head \"vector\": expected \"scalar\"");
        server.post("load_weights", create(0, "scalar")).await.json();
        let payload = Payload::decode(&server.next_work().await.payload).unwrap();
        assert!(matches!(payload, Payload::LoadWeights { create: Some(spec), .. } if spec.head.is_scalar()));
    }

    #[tokio::test]
    async fn a_bad_creation_is_refused() {
        let server = Server::start().await;
        let run = server.run().await;
        let path = server.checkpoint(&run, 1, "weights", "a").await;
        let session = server.session().await;
        let create = |path: &str| json!({"session_id": session, "model_seq_id": 0, "path": path, "optimizer": false});
        server.post("load_weights", create(&format!("tinker://{run}/weights/none"))).await.refused(404);
        server.post("load_weights", create(&format!("tinker://{run}/sampler_weights/a"))).await.refused(400);
        assert!(server.post("load_weights", create("weights/a")).await.refused(400).starts_with("path: "));
        let mut wrong_base = create(&path);
        wrong_base["base_model"] = json!("other");
        assert!(server.post("load_weights", wrong_base).await.refused(400).contains("base_model"));
        server.post("load_weights", json!({"path": path, "optimizer": false})).await.refused(400);
    }

    #[tokio::test]
    async fn loading_into_a_run_takes_a_seq_id() {
        let server = Server::start().await;
        let run = server.run().await;
        let path = server.checkpoint(&run, 1, "weights", "a").await;
        let missing = json!({"model_id": run, "seq_id": 2, "path": format!("{path}x"), "optimizer": false});
        let failed = server.post("load_weights", missing).await.text("request_id");
        assert_eq!(server.poll(&failed).await.json()["category"], "user");
        server
            .post("load_weights", json!({"model_id": run, "seq_id": 3, "path": path, "optimizer": false}))
            .await
            .json();
        let work = server.next_work().await;
        assert_eq!((work.seq_id, work.kind), (3, RequestKind::LoadWeights));
    }
}
