//! Submission of work, which several endpoints share.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use trainyard_protocol::{OpError, RunId, TenantId};
use trainyard_scheduler::{RequestKind, Run, RunSubmission, Submitted};
use trainyard_wire::futures::SubmitResponse;
use trainyard_wire::json;
use trainyard_wire::payload::Payload;

use super::body::RawBody;
use super::respond::{Answer, Reply};
use crate::error::ApiError;
use crate::state::AppState;

/// Maximum size of a body that is read as a save, in bytes.
const MAX_SAVE: usize = 1 << 20;

/// Completes a submission with a payload, or with the reason why it is refused. `body` identifies a refused request on a
/// retry.
pub(crate) fn encoded(
    submission: RunSubmission,
    built: Result<Payload, OpError>,
    body: &Bytes,
) -> Result<RunSubmission, ApiError> {
    Ok(match built {
        Ok(payload) => RunSubmission {
            payload: payload.encode()?,
            identity: payload.identity()?,
            stores: payload.stores(),
            ..submission
        },
        Err(error) => rejected(submission, error, body),
    })
}

/// Completes a submission that takes its position in the order, and then fails.
pub(crate) fn rejected(submission: RunSubmission, error: OpError, body: &Bytes) -> RunSubmission {
    RunSubmission { identity: without_sampling_number(body), rejected: Some(error), ..submission }
}

/// Returns a body without `sampling_session_seq_id`, which clients renew when they repeat a save. A larger body is not
/// theirs, and reading it would take many times its length.
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

/// Submits a JSON training request. If its ids are readable, the request is accepted and its future reports its errors:
/// a client never repeats a refused `seq_id`, and later requests would wait for it.
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
    let built = parsed.and_then(|request| build(request, &run));
    submit(state, tenant, encoded(RunSubmission::new(run.id, seq_id, kind), built, &body.bytes)?).await
}

/// Refuses requests that create or save something while a disk is almost full.
pub(crate) fn admit(state: &AppState, kind: RequestKind) -> Result<(), ApiError> {
    if kind.fills_disk() { state.disks.admit() } else { Ok(()) }
}

/// Returns the ids of a training request, or the error if they are missing.
pub(crate) fn ids(found: Option<(RunId, i64)>, error: Option<&OpError>) -> Result<(RunId, i64), ApiError> {
    found.ok_or_else(|| match error {
        Some(error) => ApiError::invalid(error.message.clone()),
        None => ApiError::invalid("model_id and seq_id are required"),
    })
}

/// Returns the run of a training request.
pub(crate) async fn find_run(state: &AppState, tenant: &TenantId, run: &RunId, seq_id: i64) -> Result<Run, ApiError> {
    if seq_id < 1 {
        return Err(ApiError::invalid(format!("seq_id: {seq_id} is below 1")));
    }
    Ok(state.scheduler.run(tenant, run).await?)
}

/// Hands a training request to the scheduler.
pub(crate) async fn submit(state: &AppState, tenant: &TenantId, submission: RunSubmission) -> Reply<SubmitResponse> {
    let run = submission.run.clone();
    let submitted = state.scheduler.submit_run(tenant, submission).await?;
    Ok(future_of(submitted, Some(&run)))
}

/// Returns the response to the submission of a training request.
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
