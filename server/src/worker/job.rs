//! One stored request: from its bytes to an operation, and from the operation's result to the stored answer.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::Serialize;
use trainyard_protocol::{
    CheckpointKind, ForwardBackward, LoadState, OpError, OpResult, Operation, RestoreRun, RunId, RunSpec, Sample,
    SamplerSource, SamplingParams, SamplingSessionId, SaveExternal, SaveRun, SaveSampler, SaveSnapshot, SaveState,
    SaveTarget, SavedFiles, TinkerPath,
};
use trainyard_scheduler::{
    Effect, Encode, Encoding, NewCheckpoint, NewSamplingSession, Outcome, RequestKind, SamplingSession, Upkeep, Work,
};

use super::fetching::{Build, Folder, Waiting};
use crate::codec::{EphemeralKind, NamedSave, Payload, SamplePayload, checkpoint_location, snapshot_location};
use crate::wire::models::{CreateModelResult, OptimStepResult};
use crate::wire::tensor::TensorData;
use crate::wire::weights::{EphemeralResult, ExternalResult, LoadResult, SavedResult};
use crate::wire::{sampling, training};
use crate::workspace::{Lease, Workspace};

/// What a request becomes.
pub(super) enum Prepared {
    /// Work for the engine, and how to answer once it is done.
    Start(Box<Operation>, Box<Job>),
    /// The same, once a folder is there.
    Wait(Box<Waiting>),
}

/// What came of an operation.
pub(super) enum Finished {
    /// To be stored.
    Told(Outcome, Vec<Effect>),
    /// A result that may be large: whoever stores it encodes it, off the engine's thread.
    Later(Encode),
    /// To be stored once what the engine wrote is stored.
    Saved(Saved),
}

/// A folder that the engine wrote, and what becomes true with it.
pub(super) struct Saved {
    /// Where it is on this machine.
    pub(super) written: PathBuf,
    /// Where it shall be in the storage.
    pub(super) location: PathBuf,
    pub(super) outcome: Outcome,
    pub(super) effects: Vec<Effect>,
}

/// How to answer a started operation.
#[derive(Debug)]
pub(super) struct Job {
    /// The run whose order it holds; `None` for a sample.
    pub(super) run: Option<RunId>,
    /// The folder that it reads.
    pub(super) reading: Option<Lease>,
    answer: Answer,
}

#[derive(Debug)]
enum Answer {
    CreateModel { run: RunId },
    LoadWeights { run: RunId, path: String, creates: bool },
    ForwardBackward,
    OptimStep,
    Saved { path: TinkerPath, location: PathBuf, save: NamedSave },
    Ephemeral(NewSamplingSession),
    RunSaved { location: PathBuf },
    SnapshotSaved { key: String, location: PathBuf },
    Restored,
    Sample { target: Option<TensorData> },
}

/// Reads a stored request. Errors are the user's when the request is wrong, the server's when its bytes are.
pub(super) fn prepare(work: Work, workspace: &Workspace, random: &dyn Fn() -> u64) -> Result<Prepared, OpError> {
    match work.kind {
        RequestKind::Sample => prepare_sample(work, workspace),
        RequestKind::Forward | RequestKind::ForwardBackward => prepare_pass(work),
        kind if kind.is_upkeep() => prepare_upkeep(&work, workspace, random()),
        _ => prepare_run_operation(work, workspace, random),
    }
}

fn start(operation: Operation, run: Option<RunId>, answer: Answer) -> Prepared {
    Prepared::Start(Box::new(operation), Box::new(Job { run, reading: None, answer }))
}

fn wait(folder: Folder, build: Build, run: Option<RunId>, answer: Answer, restores: bool) -> Prepared {
    Prepared::Wait(Box::new(Waiting { folder, build, job: Job { run, reading: None, answer }, restores }))
}

/// What the scheduler asks for on its own account.
fn prepare_upkeep(work: &Work, workspace: &Workspace, attempt: u64) -> Result<Prepared, OpError> {
    let run = run_of(work)?;
    let upkeep = serde_json::from_slice(&work.payload).map_err(|error| unreadable(work, &error.to_string()))?;
    let location = snapshot_location(&run, work.kind, attempt);
    let target = SaveTarget { dir: workspace.target(&location), overwrite: false };
    let (operation, answer) = match upkeep {
        Upkeep::SaveRun => (Operation::SaveRun(SaveRun { run: run.clone(), target }), Answer::RunSaved { location }),
        Upkeep::SaveSnapshot { key } => {
            let operation = Operation::SaveSnapshot(SaveSnapshot { key: key.clone(), target });
            (operation, Answer::SnapshotSaved { key, location })
        }
        Upkeep::RestoreRun { spec, dir } => {
            let restore = RestoreRun { run: run.clone(), spec, dir: PathBuf::new() };
            let build: Build =
                Box::new(move |dir| Operation::RestoreRun(RestoreRun { dir: dir.to_owned(), ..restore }));
            return Ok(wait(Folder::At(dir), build, Some(run), Answer::Restored, true));
        }
    };
    Ok(start(operation, Some(run), answer))
}

fn prepare_pass(work: Work) -> Result<Prepared, OpError> {
    let run = run_of(&work)?;
    let mut pass = match work.decoded.take::<Result<ForwardBackward, OpError>>() {
        Some(operation) => operation?,
        None => training::operation(training::decode(work.payload)?)?,
    };
    pass.run = run.clone();
    Ok(start(Operation::ForwardBackward(pass), Some(run), Answer::ForwardBackward))
}

fn prepare_sample(work: Work, workspace: &Workspace) -> Result<Prepared, OpError> {
    let Payload::Sample(payload) = read(&work)? else {
        return Err(unreadable(&work, "it is no sample"));
    };
    let session = work.sampling_session.as_ref().ok_or_else(|| unreadable(&work, "it has no sampling session"))?;
    let base_model = session.base_model.clone();
    let source = match (&session.snapshot, &session.checkpoint_dir, &session.model_path) {
        (Some(key), ..) => SamplerSource::Snapshot { key: key.clone() },
        (None, Some(location), _) => return prepare_checkpoint_sample(*payload, session, location, workspace),
        (None, None, None) => SamplerSource::Base { model: base_model },
        (None, None, Some(_)) => return Err(unreadable(&work, "its sampling session has no folder")),
    };
    let (operation, target) = sample(*payload, session, source)?;
    Ok(start(Operation::Sample(Box::new(operation)), None, Answer::Sample { target }))
}

fn prepare_checkpoint_sample(
    payload: SamplePayload,
    session: &SamplingSession,
    location: &Path,
    workspace: &Workspace,
) -> Result<Prepared, OpError> {
    let base_model = session.base_model.clone();
    let reading = workspace.present(location);
    let dir = reading.as_ref().map(|lease| lease.dir().to_owned()).unwrap_or_default();
    let (mut operation, target) =
        sample(payload, session, SamplerSource::Checkpoint { base_model: base_model.clone(), dir })?;
    let answer = Answer::Sample { target };
    if reading.is_some() {
        let job = Job { run: None, reading, answer };
        return Ok(Prepared::Start(Box::new(Operation::Sample(Box::new(operation))), Box::new(job)));
    }
    let build: Build = Box::new(move |dir| {
        operation.source = SamplerSource::Checkpoint { base_model, dir: dir.to_owned() };
        Operation::Sample(Box::new(operation))
    });
    Ok(wait(Folder::At(location.to_owned()), build, None, answer, false))
}

fn prepare_load(
    work: &Work,
    run: RunId,
    path: String,
    with_optimizer: bool,
    create: Option<RunSpec>,
) -> Result<Prepared, OpError> {
    let folder = Folder::Load { tenant: work.tenant.clone(), request: work.request.clone(), path: path.parse()? };
    let answer = Answer::LoadWeights { run: run.clone(), path, creates: create.is_some() };
    let load = LoadState { run: run.clone(), dir: PathBuf::new(), with_optimizer, create };
    let build: Build = Box::new(move |dir| Operation::LoadState(LoadState { dir: dir.to_owned(), ..load }));
    Ok(wait(folder, build, Some(run), answer, work.replay))
}

fn prepare_run_operation(work: Work, workspace: &Workspace, random: &dyn Fn() -> u64) -> Result<Prepared, OpError> {
    let run = run_of(&work)?;
    let start = |operation, answer| Ok(start(operation, Some(run.clone()), answer));
    let saving = |kind, save| prepare_save(&work, run.clone(), kind, save, workspace, random());
    match read(&work)? {
        Payload::CreateModel { spec, .. } => {
            start(Operation::CreateRun { run: run.clone(), spec }, Answer::CreateModel { run: run.clone() })
        }
        Payload::LoadWeights { path, with_optimizer, create } => {
            prepare_load(&work, run.clone(), path, with_optimizer, create)
        }
        Payload::OptimStep { params } => start(Operation::OptimStep { run: run.clone(), params }, Answer::OptimStep),
        Payload::EphemeralSampler { session, sampling_session_seq_id, base_model, kind } => {
            let session_id = SamplingSessionId::of_session(&session, sampling_session_seq_id);
            let key = match kind {
                EphemeralKind::Snapshot => session_id.to_string(),
                EphemeralKind::Inflight => format!("{run}/inflight"),
            };
            let created = NewSamplingSession {
                session,
                seq_id: sampling_session_seq_id,
                base_model,
                model_path: None,
                snapshot: Some(key.clone()),
            };
            let save = SaveSampler { run: run.clone(), snapshot: Some(key), target: None };
            start(Operation::SaveSampler(save), Answer::Ephemeral(created))
        }
        Payload::SaveWeights(save) => saving(CheckpointKind::Training, save),
        Payload::SaveWeightsForSampler(save) => saving(CheckpointKind::Sampler, save),
        Payload::SaveWeightsExternal(save) => saving(CheckpointKind::External, save),
        Payload::Sample(_) => Err(unreadable(&work, "it is a sample")),
    }
}

fn prepare_save(
    work: &Work,
    run: RunId,
    kind: CheckpointKind,
    save: NamedSave,
    workspace: &Workspace,
    attempt: u64,
) -> Result<Prepared, OpError> {
    let path = TinkerPath { run: run.clone(), kind, name: save.name.parse()? };
    let location = checkpoint_location(&path, &work.request, attempt);
    let target = SaveTarget { dir: workspace.target(&location), overwrite: false };
    let operation = match kind {
        CheckpointKind::Training => Operation::SaveState(SaveState { run: run.clone(), target }),
        CheckpointKind::Sampler => {
            Operation::SaveSampler(SaveSampler { run: run.clone(), snapshot: None, target: Some(target) })
        }
        CheckpointKind::External => Operation::SaveExternal(SaveExternal { run: run.clone(), target }),
    };
    Ok(start(operation, Some(run), Answer::Saved { path, location, save }))
}

fn sample(
    payload: SamplePayload,
    session: &SamplingSession,
    source: SamplerSource,
) -> Result<(Sample, Option<TensorData>), OpError> {
    let target = payload.target_prompt_logprobs;
    let prompt_length = payload.prompt.len();
    let scored = target.as_ref().map(|target| sampling::target_tensor(target, prompt_length)).transpose()?;
    let operation = Sample {
        sampling_session: session.id.clone(),
        source,
        prompt: payload.prompt,
        num_samples: payload.num_samples,
        params: SamplingParams {
            max_tokens: payload.max_tokens,
            seed: payload.seed,
            stop: payload.stop,
            temperature: payload.temperature,
            top_k: payload.top_k,
            top_p: payload.top_p,
        },
        prompt_logprobs: payload.prompt_logprobs,
        prompt_logprobs_last_n: payload.prompt_logprobs_last_n,
        topk_prompt_logprobs: payload.topk_prompt_logprobs,
        topk_sample_logprobs: payload.topk_sample_logprobs,
        target_prompt_logprobs: scored,
        prompt_alt_tokens_k: payload.prompt_alt_tokens_k,
    };
    Ok((operation, target))
}

fn run_of(work: &Work) -> Result<RunId, OpError> {
    work.run.clone().ok_or_else(|| unreadable(work, "it has no run"))
}

fn read(work: &Work) -> Result<Payload, OpError> {
    if let Some(payload) = work.decoded.take() {
        return Ok(payload);
    }
    Payload::decode(&work.payload).map_err(|error| unreadable(work, &error.to_string()))
}

/// The store holds something that this program did not write; the client learns no details.
fn unreadable(work: &Work, reason: &str) -> OpError {
    tracing::error!(request = %work.request, kind = work.kind.as_str(), reason, "a stored request is unreadable");
    OpError::server("the stored request is unreadable; the server's log has the details")
}

impl Job {
    /// What to store of the operation's result.
    pub(super) fn finish(self, result: Result<OpResult, OpError>) -> Finished {
        match (self.answer, result) {
            (Answer::ForwardBackward, Ok(OpResult::ForwardBackward(result))) => {
                Finished::Later(Box::new(move || protobuf(training::encode_output(&result))))
            }
            (Answer::Sample { target }, Ok(OpResult::Sample(result))) => {
                Finished::Later(Box::new(move || protobuf(sampling::encode_result(&result, target.as_ref()))))
            }
            (Answer::Saved { path, location, save }, Ok(OpResult::Saved(Some(files)))) => {
                Finished::Saved(saved(path, location, save, files))
            }
            (Answer::RunSaved { location }, Ok(OpResult::Saved(Some(files)))) => {
                Finished::Saved(upkept(files, location.clone(), Effect::RunSaved(location)))
            }
            (Answer::SnapshotSaved { key, location }, Ok(OpResult::Saved(Some(files)))) => {
                let effect = Effect::SnapshotSaved { key, dir: location.clone() };
                Finished::Saved(upkept(files, location, effect))
            }
            (answer, Ok(result)) => {
                let (outcome, effects) = answer.succeed(result);
                Finished::Told(outcome, effects)
            }
            (answer, Err(error)) => {
                Finished::Told(Outcome::Failed(error), answer.failed_creation().into_iter().collect())
            }
        }
    }
}

impl Answer {
    fn failed_creation(&self) -> Option<Effect> {
        match self {
            Self::CreateModel { run } | Self::LoadWeights { run, creates: true, .. } => {
                Some(Effect::RunFailed(run.clone()))
            }
            _ => None,
        }
    }

    fn succeed(self, result: OpResult) -> (Outcome, Vec<Effect>) {
        match (self, result) {
            (Self::CreateModel { run }, OpResult::RunReady) => {
                (json(&CreateModelResult { model_id: run.to_string() }), vec![Effect::RunReady(run)])
            }
            (Self::LoadWeights { run, path, creates }, OpResult::RunReady) => {
                let answer = json(&LoadResult { path, model_id: run.to_string() });
                (answer, creates.then_some(Effect::RunReady(run)).into_iter().collect())
            }
            (Self::Restored, OpResult::RunReady) => (nothing(), Vec::new()),
            (Self::OptimStep, OpResult::OptimStep { mut metrics }) => {
                // JSON has no NaN: a metric without a value is left out.
                metrics.retain(|_, value| value.is_finite());
                (json(&OptimStepResult { metrics }), Vec::new())
            }
            (Self::Ephemeral(session), OpResult::Saved(None)) => {
                let id = SamplingSessionId::of_session(&session.session, session.seq_id);
                let answer = json(&EphemeralResult { sampling_session_id: id.to_string() });
                (answer, vec![Effect::SamplingSession(session)])
            }
            (answer, result) => {
                tracing::error!(?answer, ?result, "the engine answered with another operation's result");
                (Outcome::Failed(OpError::server("internal error; the server's log has the details")), Vec::new())
            }
        }
    }
}

fn saved(path: TinkerPath, location: PathBuf, save: NamedSave, files: SavedFiles) -> Saved {
    let outcome = saved_outcome(&path, &files);
    let checkpoint = NewCheckpoint {
        path,
        overwrite: save.overwrite,
        dir: location.clone(),
        size_bytes: files.size_bytes,
        spec: save.spec,
        expires_in: save.ttl_seconds,
        user_metadata: save.user_metadata,
    };
    Saved { written: files.dir, location, outcome, effects: vec![Effect::Checkpoint(checkpoint)] }
}

fn upkept(files: SavedFiles, location: PathBuf, effect: Effect) -> Saved {
    Saved { written: files.dir, location, outcome: nothing(), effects: vec![effect] }
}

/// Nobody reads what comes of the scheduler's own requests.
fn nothing() -> Outcome {
    Outcome::Succeeded { encoding: Encoding::Json, payload: Bytes::from_static(b"{}") }
}

fn saved_outcome(path: &TinkerPath, files: &SavedFiles) -> Outcome {
    match path.kind {
        CheckpointKind::Training | CheckpointKind::Sampler => json(&SavedResult { path: path.to_string() }),
        CheckpointKind::External => json(&ExternalResult { path: path.to_string(), size_bytes: files.size_bytes }),
    }
}

fn json<T: Serialize>(value: &T) -> Outcome {
    match serde_json::to_vec(value) {
        Ok(bytes) => Outcome::Succeeded { encoding: Encoding::Json, payload: bytes.into() },
        Err(error) => {
            tracing::error!(%error, "a result cannot be written as JSON");
            Outcome::Failed(OpError::server("internal error; the server's log has the details"))
        }
    }
}

fn protobuf(payload: Bytes) -> Outcome {
    Outcome::Succeeded { encoding: Encoding::Protobuf, payload }
}

#[cfg(test)]
#[path = "job_tests.rs"]
mod tests;
