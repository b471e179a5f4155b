//! Submission of work, which several endpoints share.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use trainyard_protocol::{CheckpointKind, OpError, RunId, TenantId};
use trainyard_scheduler::{Decoded, RequestKind, Run, RunSubmission, Submitted};
use trainyard_wire::futures::SubmitResponse;
use trainyard_wire::json;
use trainyard_wire::payload::Payload;

use super::body::RawBody;
use super::respond::{Answer, Reply};
use crate::error::ApiError;
use crate::state::AppState;

/// Bytes of the largest body that is read as a save.
const MAX_SAVE: usize = 1 << 20;

/// A payload as the scheduler stores it, or why the request is refused.
pub(crate) struct NewRequest {
    pub(crate) payload: Bytes,
    /// Content for the worker.
    pub(crate) decoded: Decoded,
    pub(crate) identity: Bytes,
    /// Number of tokens that quotas count.
    pub(crate) tokens: u64,
    /// Kind of the checkpoint that the request writes.
    pub(crate) stores: Option<CheckpointKind>,
    pub(crate) rejected: Option<OpError>,
}

impl NewRequest {
    /// Encodes a payload. `body` identifies a refused request on a retry.
    pub(crate) fn new(built: Result<Payload, OpError>, body: &Bytes) -> Result<Self, ApiError> {
        match built {
            Ok(payload) => Ok(Self {
                payload: payload.encode()?,
                identity: payload.identity()?,
                tokens: 0,
                stores: payload.stores(),
                decoded: Decoded::default(),
                rejected: None,
            }),
            Err(error) => Ok(Self::rejected(error, body)),
        }
    }

    /// A request that takes its position in the order, and then fails.
    pub(crate) fn rejected(error: OpError, body: &Bytes) -> Self {
        let identity = without_sampling_number(body);
        let (payload, decoded) = (Bytes::new(), Decoded::default());
        Self { payload, decoded, identity, tokens: 0, stores: None, rejected: Some(error) }
    }
}

/// Clients renew `sampling_session_seq_id` when they repeat a save. A larger body does not come from them, and reading
/// it would take many times its length.
fn without_sampling_number(body: &Bytes) -> Bytes {
    if body.len() > MAX_SAVE {
        return body.clone();
    }
    match serde_json::from_slice(body) {
        Ok(serde_json::Value::Object(mut fields)) => {
            fields.remove("sampling_session_seq_id");
            serde_json::Value::Object(fields).to_string().into()
        }
        _ => body.clone(),
    }
}

/// Submits a JSON training request. If its ids are readable, it is accepted, and its future reports its errors: a
/// client never repeats a refused `seq_id`, and later requests would wait for it.
pub(crate) async fn submit_json<T: DeserializeOwned + Send + 'static>(
    state: &AppState,
    tenant: &TenantId,
    kind: RequestKind,
    mut body: RawBody,
    build: impl FnOnce(T, &Run) -> Result<Payload, OpError>,
) -> Reply<SubmitResponse> {
    admit(state, kind)?;
    let read = |bytes: &Bytes| (json::training_ids(bytes), json::parse::<T>(bytes));
    let (found, parsed) = body.decode(read).await?;
    let (run, seq_id) = ids(found, parsed.as_ref().err())?;
    let run = find_run(state, tenant, &run, seq_id).await?;
    let new = NewRequest::new(parsed.and_then(|request| build(request, &run)), &body.bytes)?;
    submit(state, tenant, &run, seq_id, kind, new).await
}

/// Refuses requests that create or save something while a disk is almost full.
pub(crate) fn admit(state: &AppState, kind: RequestKind) -> Result<(), ApiError> {
    match kind {
        RequestKind::CreateModel
        | RequestKind::SaveWeights
        | RequestKind::SaveWeightsForSampler
        | RequestKind::SaveWeightsExternal => state.disks.admit(),
        _ => Ok(()),
    }
}

/// The ids of a training request, or the error if they are missing.
pub(crate) fn ids(found: Option<(RunId, i64)>, error: Option<&OpError>) -> Result<(RunId, i64), ApiError> {
    found.ok_or_else(|| match error {
        Some(error) => ApiError::invalid(error.message.clone()),
        None => ApiError::invalid("model_id and seq_id are required"),
    })
}

/// The run of a training request.
pub(crate) async fn find_run(state: &AppState, tenant: &TenantId, run: &RunId, seq_id: i64) -> Result<Run, ApiError> {
    if seq_id < 1 {
        return Err(ApiError::invalid(format!("seq_id: {seq_id} is below 1")));
    }
    Ok(state.scheduler.run(tenant, run).await?)
}

/// Hands a training request to the scheduler.
pub(crate) async fn submit(
    state: &AppState,
    tenant: &TenantId,
    run: &Run,
    seq_id: i64,
    kind: RequestKind,
    request: NewRequest,
) -> Reply<SubmitResponse> {
    let NewRequest { payload, decoded, identity, tokens, stores, rejected } = request;
    let run_id = run.id.clone();
    let submission = RunSubmission { run: run_id, seq_id, kind, payload, decoded, identity, tokens, stores, rejected };
    let submitted = state.scheduler.submit_run(tenant, submission).await?;
    Ok(future_of(submitted, Some(&run.id)))
}

/// The answer to a training submit.
pub(crate) fn future_of(submitted: Submitted, run: Option<&RunId>) -> Answer<SubmitResponse> {
    Answer(SubmitResponse {
        request_id: submitted.request_id.to_string(),
        model_id: run.map(ToString::to_string),
        sample_sequence_ids: None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::http::header::RETRY_AFTER;
    use serde_json::{Value, json};

    use crate::api::tests::testing::*;

    fn batch(run: &str, seq_id: i64, tokens: usize) -> Value {
        let tokens = vec![1; tokens];
        json!({"model_id": run, "seq_id": seq_id, "forward_backward_input": {"loss_fn": "cross_entropy", "data": [{
            "model_input": {"chunks": [{"type": "encoded_text", "tokens": tokens}]},
            "loss_fn_inputs": {"target_tokens": {"data": tokens, "dtype": "int64"}},
        }]}})
    }

    #[tokio::test]
    async fn almost_without_space_saves_runs_and_large_bodies_wait_and_the_rest_goes_on() {
        let server = Server::start().await;
        let (run, session) = (server.run().await, server.session().await);
        let create = json!({"session_id": session, "model_seq_id": 0, "base_model": MODEL, "lora_config": {"rank": 8}});
        let mut sample = sample(&server.sampler().await, 0);
        sample["prompt"]["chunks"][0]["tokens"] = json!(vec![1; 40_000]);
        server.set_free(1);
        for (path, body) in [
            ("create_model", create.clone()),
            ("save_weights", json!({"model_id": run, "seq_id": 1, "path": "a"})),
            ("save_weights_external", json!({"model_id": run, "seq_id": 1, "path": "a"})),
            ("save_weights_for_sampler", json!({"model_id": run, "seq_id": 1, "path": "a"})),
            ("forward_backward", batch(&run, 1, 40_000)),
            ("asample", sample),
        ] {
            let answer = server.post(path, body).await;
            assert!(answer.refused(503).contains("disk is almost full"), "{path}");
            assert_eq!(answer.headers[RETRY_AFTER], "20");
        }
        server.post("forward_backward", batch(&run, 1, 4)).await.text("request_id");
        server.post("optim_step", adam(&run, 2, 0.1)).await.text("request_id");
        server.post("session_heartbeat", json!({"session_id": session})).await.json();
        server.set_free(1 << 40);
        server.post("create_model", create).await.text("model_id");
        server.post("save_weights", json!({"model_id": run, "seq_id": 3, "path": "a"})).await.text("request_id");
    }

    #[tokio::test]
    async fn what_a_small_compressed_body_holds_counts() {
        let server = Server::start().await;
        let run = server.run().await;
        server.set_free(1);
        let body = zstd::encode_all(batch(&run, 1, 40_000).to_string().as_bytes(), 3).unwrap();
        assert!(body.len() < 8 << 10);
        let headers = [("content-type", "application/json"), ("content-encoding", "zstd")];
        let answer = server.call(axum::http::Method::POST, "/api/v1/forward_backward", &headers, body).await;
        assert!(answer.refused(503).contains("disk is almost full"));
    }
}
