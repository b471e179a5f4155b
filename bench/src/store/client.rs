//! A client that leaves ended sessions, runs and samples behind.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use trainyard_protocol::{
    LoraSpec, ModelHead, Optimizer, RequestId, RunId, RunSpec, SamplingSessionId, SessionId, TenantId,
};
use trainyard_scheduler::{
    Decoded, Error as StoreError, FinishReason, NewRun, NewSession, Poll, RequestKind, RunSubmission, SampleSubmission,
    Scheduler,
};

use super::worker::{MODEL, snapshot_of};

/// Requests of an ended session: the creation of its run, a save, and samples from that save.
const REQUESTS: usize = 100;
/// Number of simultaneous sessions.
const SESSIONS: usize = 16;
/// A request that takes longer counts as stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// A tenant with one open session.
pub(super) struct Client {
    scheduler: Arc<Scheduler>,
    tenant: TenantId,
    run: RunId,
    sampler: SamplingSessionId,
    /// Numbers of the last requests.
    seq_id: i64,
    /// Number of requests of ended sessions.
    retained: usize,
}

impl Client {
    pub(super) async fn new(scheduler: Arc<Scheduler>) -> Result<Self, Box<dyn Error>> {
        let tenant = TenantId::new("bench");
        let (run, sampler, _) = open(&scheduler, &tenant).await?;
        Ok(Self { scheduler, tenant, run, sampler, seq_id: 1, retained: 0 })
    }

    /// Leaves sessions behind until `requests` requests are retained.
    pub(super) async fn retain(&mut self, requests: usize) -> Result<(), Box<dyn Error>> {
        while self.retained < requests {
            let sessions = (requests - self.retained).div_ceil(REQUESTS).min(SESSIONS);
            let (scheduler, tenant) = (&self.scheduler, &self.tenant);
            for done in join_all((0..sessions).map(|_| leave_session(scheduler, tenant))).await {
                done?;
            }
            self.retained += sessions * REQUESTS;
        }
        Ok(())
    }

    pub(super) async fn submit_training(&mut self) -> Result<RequestId, StoreError> {
        self.seq_id += 1;
        let submission = training(&self.run, self.seq_id, RequestKind::ForwardBackward);
        Ok(self.scheduler.submit_run(&self.tenant, submission).await?.request_id)
    }

    pub(super) async fn submit_sample(&self) -> Result<RequestId, StoreError> {
        let submission = sample(&self.sampler, self.seq_id);
        Ok(self.scheduler.submit_sample(&self.tenant, submission).await?.request_id)
    }

    /// Waits for a request to succeed.
    pub(super) async fn wait(&self, request: &RequestId) -> Result<(), Box<dyn Error>> {
        wait(&self.scheduler, &self.tenant, request).await
    }
}

/// Opens a session with a run and a sampling session of the run.
async fn open(
    scheduler: &Scheduler,
    tenant: &TenantId,
) -> Result<(RunId, SamplingSessionId, SessionId), Box<dyn Error>> {
    let session = scheduler.create_session(tenant, new_session()).await?;
    let (run, created) = scheduler.submit_create(tenant, new_run(&session)).await?;
    wait(scheduler, tenant, &created.request_id).await?;
    let save = training(&run, 1, RequestKind::SaveWeightsForSampler);
    let saved = scheduler.submit_run(tenant, save).await?;
    wait(scheduler, tenant, &saved.request_id).await?;
    let sampler = SamplingSessionId::of_session(&session, snapshot_of(&session).seq_id);
    Ok((run, sampler, session))
}

async fn leave_session(scheduler: &Scheduler, tenant: &TenantId) -> Result<(), Box<dyn Error>> {
    let (_, sampler, session) = open(scheduler, tenant).await?;
    let samples = (2..REQUESTS).zip(0..).map(|(_, seq_id)| scheduler.submit_sample(tenant, sample(&sampler, seq_id)));
    for submitted in join_all(samples).await {
        wait(scheduler, tenant, &submitted?.request_id).await?;
    }
    Ok(scheduler.finish_session(tenant, &session, FinishReason::Success, None).await?)
}

async fn wait(scheduler: &Scheduler, tenant: &TenantId, request: &RequestId) -> Result<(), Box<dyn Error>> {
    match scheduler.poll(tenant, request, PATIENCE).await? {
        Poll::Succeeded { .. } => Ok(()),
        other => Err(format!("request {request}: {other:?}").into()),
    }
}

fn new_session() -> NewSession {
    NewSession {
        tags: Vec::new(),
        user_metadata: serde_json::json!({}),
        sdk_version: "bench".to_owned(),
        project_id: None,
        display_name: None,
        idempotency_key: None,
    }
}

fn new_run(session: &SessionId) -> NewRun {
    let lora = LoraSpec::on_all(8, 1);
    NewRun {
        session: session.clone(),
        model_seq_id: 0,
        spec: RunSpec {
            base_model: MODEL.to_owned(),
            lora: Some(lora),
            optimizer: Optimizer::AdamW,
            head: ModelHead::Unembedding,
        },
        user_metadata: BTreeMap::new(),
        kind: RequestKind::CreateModel,
        payload: b"create".to_vec().into(),
        identity: b"create".to_vec().into(),
        rejected: None,
    }
}

fn training(run: &RunId, seq_id: i64, kind: RequestKind) -> RunSubmission {
    RunSubmission {
        run: run.clone(),
        seq_id,
        kind,
        payload: vec![0; 1024].into(),
        decoded: Decoded::default(),
        identity: b"training".to_vec().into(),
        tokens: 10,
        stores: None,
        rejected: None,
    }
}

fn sample(sampler: &SamplingSessionId, seq_id: i64) -> SampleSubmission {
    SampleSubmission {
        sampling_session: sampler.clone(),
        seq_id,
        num_samples: 1,
        payload: vec![0; 1024].into(),
        decoded: Decoded::default(),
        identity: b"sample".to_vec().into(),
        tokens: 10,
        recorded: false,
    }
}
