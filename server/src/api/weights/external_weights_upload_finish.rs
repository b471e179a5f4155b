//! Handler of `POST external_weights_upload_finish`.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::State;
use serde_json::Value;
use tokio::time::Instant;
use trainyard_protocol::{
    Category, CheckpointKind, OpError, RequestId, RunId, SessionId, TenantId, TinkerPath, UploadId, UploadedAdapter,
};
use trainyard_scheduler::{
    Decoded, Error, FinishReason, NewRun, NewSession, Poll, RequestKind, RunSubmission, Upload, UploadEnd, UploadState,
};
use trainyard_wire::payload::{NamedSave, Payload};
use trainyard_wire::uploads::{UploadFinishRequest, UploadFinishResponse};

use super::external_weights_upload_start::{CONFIG_FILE, TENSORS_FILE};
use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

/// Name of the checkpoint.
const NAME: &str = "upload";

/// Checks an upload whose files have arrived, tensor by tensor, and creates a checkpoint from it. Training and sampling
/// can start from the checkpoint. A repeated call returns the same checkpoint or refusal. While the check continues or
/// waits for other work, the response is 503: repeat the call.
#[utoipa::path(
    post, path = "/api/v1/external_weights_upload_finish", tag = "weights", request_body = UploadFinishRequest,
    responses((status = 200, description = "success", body = UploadFinishResponse), Refusals),
)]
pub(in crate::api) async fn external_weights_upload_finish(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    JsonBody(request): JsonBody<UploadFinishRequest>,
) -> Reply<UploadFinishResponse> {
    let id = UploadId::new(request.upload_id);
    let mut upload = state.scheduler.upload(&tenant, &id).await?;
    if upload.state == UploadState::Open {
        upload = begin_check(&state, &tenant, &upload).await?;
    }
    let path = match &upload.state {
        UploadState::Finished(path) => {
            // Also removes what is left of its files, which a kill may have interrupted.
            let end = UploadEnd::Checkpoint(path.clone());
            state.scheduler.end_upload_check(&tenant, &id, &path.run, end).await?;
            path.clone()
        }
        UploadState::Refused(error) => return Err(ApiError::invalid(error.message.clone())),
        UploadState::Checking(run) => check(&state, &tenant, &upload, run).await?,
        UploadState::Open => return Err(ApiError::Internal(format!("failed to start the check of upload {id}"))),
    };
    Ok(Answer(UploadFinishResponse { tinker_path: path.to_string() }))
}

/// Creates the session whose run checks an upload.
async fn begin_check(state: &AppState, tenant: &TenantId, upload: &Upload) -> Result<Upload, ApiError> {
    state.disks.admit()?;
    upload.check_complete()?;
    let new = NewSession {
        tags: Vec::new(),
        user_metadata: Value::Object(serde_json::Map::new()),
        sdk_version: String::new(),
        project_id: upload.project_id.clone(),
        display_name: Some(format!("Upload {}", upload.id)),
        idempotency_key: None,
    };
    let session = state.scheduler.create_session(tenant, new).await?;
    let run = RunId::of_session(&session, 0);
    let begun = state.scheduler.check_upload(tenant, &upload.id, &run, state.limits.upload_lifetime).await;
    let checking = UploadState::Checking(run);
    if !begun.as_ref().is_ok_and(|begun| begun.state == checking) {
        end_session(state, tenant, &session, FinishReason::Interrupted).await;
    }
    Ok(begun?)
}

/// Outcome of the requests that check an upload.
enum Checked {
    Done,
    Pending,
    /// The upload was refused, with the reason for the client.
    Refused(OpError),
    /// The check did not finish.
    Interrupted(String),
}

/// Lets a run load the upload and export it again, and waits for both.
async fn check(state: &AppState, tenant: &TenantId, upload: &Upload, run: &RunId) -> Result<TinkerPath, ApiError> {
    let session = SessionId::new(run.as_str().split(':').next().unwrap_or_default());
    let checked = match submit(state, tenant, upload, run, &session).await {
        Ok(requests) => wait(state, tenant, &requests).await?,
        Err(error @ (Error::SessionFinished { .. } | Error::Gone { .. } | Error::NotFound { .. })) => {
            Checked::Interrupted(error.to_string())
        }
        Err(error) => return Err(error.into()),
    };
    let id = &upload.id;
    let path = TinkerPath { run: run.clone(), kind: CheckpointKind::External, name: NAME.parse()? };
    let (end, reason) = match checked {
        Checked::Pending => {
            return Err(ApiError::Unavailable(format!("the check of upload {id} is not finished; repeat the call")));
        }
        Checked::Done => (UploadEnd::Checkpoint(path), FinishReason::Success),
        Checked::Refused(error) => (UploadEnd::Refused(error), FinishReason::Errored),
        Checked::Interrupted(cause) => {
            tracing::debug!(upload = %id, %run, cause, "check of an upload interrupted");
            (UploadEnd::Unchecked, FinishReason::Errored)
        }
    };
    state.scheduler.end_upload_check(tenant, id, run, end).await?;
    end_session(state, tenant, &session, reason).await;
    // Another call may have recorded its end, and ended its session, meanwhile.
    match state.scheduler.upload(tenant, id).await?.state {
        UploadState::Finished(path) => Ok(path),
        UploadState::Refused(error) => Err(ApiError::invalid(error.message)),
        UploadState::Open | UploadState::Checking(_) => {
            tracing::warn!(upload = %id, %run, "check of an upload interrupted");
            Err(ApiError::Unavailable(format!("the check of upload {id} was interrupted; repeat the call")))
        }
    }
}

/// Submits the load and the export; a repeated call finds them.
async fn submit(
    state: &AppState,
    tenant: &TenantId,
    upload: &Upload,
    run: &RunId,
    session: &SessionId,
) -> Result<[RequestId; 2], Error> {
    state.scheduler.heartbeat(tenant, session).await?;
    let encoded = |payload: &Payload| payload.encode().map_err(|error| Error::Invalid(error.to_string()));
    let names = |file: &str| -> Vec<String> {
        let pieces = upload.files.get(file).map(|file| file.pieces.as_slice()).unwrap_or_default();
        pieces.iter().map(|(name, _)| name.clone()).collect()
    };
    let files = UploadedAdapter { config: names(CONFIG_FILE), tensors: names(TENSORS_FILE) };
    let (dir, spec) = (upload.dir.clone(), upload.spec.clone());
    let load = encoded(&Payload::ImportAdapter { dir, files, spec: spec.clone() })?;
    let new = NewRun {
        session: session.clone(),
        model_seq_id: 0,
        spec: spec.clone(),
        user_metadata: BTreeMap::new(),
        kind: RequestKind::LoadWeights,
        payload: load.clone(),
        identity: load,
        rejected: None,
    };
    let (_, load) = state.scheduler.submit_create(tenant, new).await?;
    let save = encoded(&Payload::SaveWeightsExternal(NamedSave {
        name: NAME.to_owned(),
        overwrite: false,
        ttl_seconds: None,
        user_metadata: BTreeMap::new(),
        spec,
        age_recipients: Vec::new(),
    }))?;
    let submission = RunSubmission {
        run: run.clone(),
        seq_id: 1,
        kind: RequestKind::SaveWeightsExternal,
        payload: save.clone(),
        decoded: Decoded::default(),
        identity: save,
        tokens: 0,
        stores: Some(CheckpointKind::External),
        rejected: None,
    };
    let save = state.scheduler.submit_run(tenant, submission).await?;
    Ok([load.request_id, save.request_id])
}

/// Waits for the requests as long as a poll may take.
async fn wait(state: &AppState, tenant: &TenantId, requests: &[RequestId; 2]) -> Result<Checked, ApiError> {
    let deadline = Instant::now() + state.limits.long_poll;
    for request in requests {
        let left = deadline.saturating_duration_since(Instant::now());
        let poll = tokio::select! {
            poll = state.scheduler.poll(tenant, request, left) => poll?,
            () = state.shutdown.requested() => state.scheduler.poll(tenant, request, Duration::ZERO).await?,
        };
        match poll {
            Poll::Succeeded { .. } => {}
            Poll::Pending => return Ok(Checked::Pending),
            Poll::Cancelled => return Ok(Checked::Interrupted("cancelled".to_owned())),
            Poll::Failed(error) if error.category == Category::User => return Ok(Checked::Refused(error)),
            Poll::Failed(error) => return Ok(Checked::Interrupted(error.message)),
        }
    }
    Ok(Checked::Done)
}

/// Ends the session of a check. If that fails, its run keeps its memory until a heartbeat is missed.
async fn end_session(state: &AppState, tenant: &TenantId, session: &SessionId, reason: FinishReason) {
    if let Err(error) = state.scheduler.finish_session(tenant, session, reason, None).await {
        tracing::warn!(%session, %error, "failed to end the session of an upload's check");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use std::path::PathBuf;

    use axum::body::Body;
    use axum::http::Request;
    use serde_json::{Value, json};
    use trainyard_protocol::OpError;
    use trainyard_scheduler::{Effect, NewCheckpoint, Outcome, Timestamp, Work};

    use super::*;
    use crate::api::tests::testing::*;

    async fn put(server: &Server, url: &Value, headers: &[(&str, &str)], body: &'static str) -> Got {
        let path = url.as_str().unwrap().strip_prefix("http://trainyard.test:8000").unwrap();
        let request = headers.iter().fold(Request::put(path), |request, (name, value)| request.header(*name, *value));
        server.send(request.body(Body::from(body)).unwrap()).await
    }

    /// An upload whose files have arrived, one in parts.
    async fn uploaded(server: &Server) -> Value {
        let body = json!({"base_model": MODEL, "lora_config": {"rank": 4}});
        let started = server.post("external_weights_upload_start", body).await.json();
        put(server, &started["urls"][CONFIG_FILE], &[], "{}").await.json();
        let tensors = &started["urls"][TENSORS_FILE];
        assert_eq!(put(server, tensors, &[("content-range", "bytes 0-3/10")], "0123").await.status, 308);
        // A repetition, and an overlap.
        assert_eq!(put(server, tensors, &[("content-range", "bytes 0-3/10")], "0123").await.status, 308);
        let done = put(server, tensors, &[("content-range", "bytes 2-9/10")], "23456789").await.json();
        assert_eq!(done, json!({"received_bytes": 10, "total_bytes": 10, "complete": true}));
        started
    }

    async fn finish(server: &Server, started: &Value) -> Got {
        server.post("external_weights_upload_finish", json!({"upload_id": started["upload_id"]})).await
    }

    /// Uploads in the audit log: what became of them, and who did it.
    async fn logged(server: &Server) -> Vec<(String, String)> {
        let log = server
            .state
            .scheduler
            .audit_log(&TenantId::new("local"), None, Timestamp(0), Timestamp(i64::MAX))
            .await
            .unwrap();
        let uploads = log.into_iter().filter(|entry| entry.event == "checkpoint_upload");
        uploads.map(|entry| (entry.subject, entry.actor)).collect()
    }

    fn import_of(work: &Work) -> (PathBuf, UploadedAdapter) {
        match Payload::decode(&work.payload).unwrap() {
            Payload::ImportAdapter { dir, files, .. } => (dir, files),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_run_loads_and_exports_what_arrived() {
        let server = Server::start().await;
        let started = uploaded(&server).await;
        assert!(finish(&server, &started).await.refused(503).contains("is not finished"));
        let load = server.next_work().await;
        let (dir, files) = import_of(&load);
        let read = |name: &String| std::fs::read_to_string(server.dir.path().join(&dir).join(name)).unwrap();
        assert_eq!(files.tensors.iter().map(read).collect::<Vec<_>>(), ["0123", "456789"]);
        let late = put(&server, &started["urls"][TENSORS_FILE], &[], "other").await;
        assert!(late.refused(400).contains("is finished and can't be changed"));
        server.succeed(&load, &json!({"model_id": "x"}), vec![]);
        let save = server.next_work().await;
        let run = save.run.clone().unwrap();
        let path = TinkerPath { run, kind: CheckpointKind::External, name: NAME.parse().unwrap() };
        let checkpoint = NewCheckpoint {
            path: path.clone(),
            overwrite: false,
            dir: PathBuf::from("checkpoints/r/external_weights/upload"),
            size_bytes: 3,
            spec: trainyard_protocol::RunSpec {
                base_model: MODEL.to_owned(),
                lora: None,
                optimizer: trainyard_protocol::Optimizer::AdamW,
                head: trainyard_protocol::ModelHead::Unembedding,
            },
            expires_in: None,
            user_metadata: BTreeMap::new(),
        };
        server.succeed(&save, &json!({"path": path.to_string()}), vec![Effect::Checkpoint(checkpoint)]);
        // That it is done is recorded although its client has not come back.
        let poll = server.state.scheduler.poll(&TenantId::new("local"), &save.request, Duration::from_secs(30)).await;
        assert!(matches!(poll, Ok(Poll::Succeeded { .. })));
        let more = adam(path.run.as_str(), 2, 0.1);
        assert!(server.post("optim_step", more).await.refused(400).contains("can't be trained"));
        let told = logged(&server).await;
        assert_eq!(told, [(path.to_string(), "a caller without a key".to_owned())]);
        for _ in 0..2 {
            assert_eq!(finish(&server, &started).await.json(), json!({"tinker_path": path.to_string()}));
        }
        assert_eq!(logged(&server).await, told);
    }

    #[tokio::test]
    async fn a_refusal_stays() {
        let server = Server::start().await;
        let started = uploaded(&server).await;
        finish(&server, &started).await.refused(503);
        let load = server.next_work().await;
        let failure = Outcome::Failed(OpError::user("adapter_config.json: r: it is odd"));
        let run = load.run.clone().unwrap();
        server.state.scheduler.complete(load.request.clone(), failure, vec![Effect::RunFailed(run)]);
        for _ in 0..2 {
            assert_eq!(finish(&server, &started).await.refused(400), "adapter_config.json: r: it is odd");
        }
    }

    #[tokio::test]
    async fn parts_fit_and_expire() {
        let server = Server::start().await;
        let body = json!({"base_model": MODEL, "lora_config": {"rank": 4}});
        let started = server.post("external_weights_upload_start", body).await.json();
        let url = &started["urls"][TENSORS_FILE];
        for (range, body, word) in [
            ("bytes 0-3/10", "012", "the body has 3"),
            ("bytes 1-3/10", "123", "expected the bytes from 0 on"),
            ("bytes 3-1/10", "", "expected bytes <first>-<last>/<total>"),
        ] {
            assert!(put(&server, url, &[("content-range", range)], body).await.refused(400).contains(word));
        }
        let status = put(&server, url, &[("content-range", "bytes */*")], "").await;
        assert_eq!((status.status.as_u16(), status.headers.get("range")), (308, None));
        put(&server, url, &[("content-encoding", "zstd")], "x").await.refused(415);
        let huge = [("content-range", "bytes 0-0/99999999999999")];
        put(&server, url, &huge, "x").await.refused(413);
        server.set_free(1);
        put(&server, url, &[], "x").await.refused(503);
        server.set_free(1 << 40);
        assert_eq!(put(&server, url, &[], "").await.json()["complete"], true);
        assert!(finish(&server, &started).await.refused(400).contains("adapter_config.json: 0 bytes arrived"));
        server.clock.advance(24 * 3_600);
        put(&server, url, &[], "x").await.refused(403);
        finish(&server, &started).await.refused(404);
    }
}
