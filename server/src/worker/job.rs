//! One stored request: from its bytes to an operation, and from the operation's result to the stored answer.

use std::path::Path;

use bytes::Bytes;
use serde::Serialize;
use trainyard_protocol::{
    CheckpointKind, ForwardBackward, LoadState, OpError, OpResult, Operation, RunId, Sample, SamplerSource,
    SamplingParams, SamplingSessionId, SaveExternal, SaveSampler, SaveState, SaveTarget, SavedFiles, TinkerPath,
};
use trainyard_scheduler::{
    Effect, Encode, Encoding, NewCheckpoint, NewSamplingSession, Outcome, RequestKind, SamplingSession, Work,
};

use super::{Mailbox, loads};
use crate::codec::{EphemeralKind, NamedSave, Payload, SamplePayload, checkpoint_dir};
use crate::wire::models::{CreateModelResult, OptimStepResult};
use crate::wire::tensor::TensorData;
use crate::wire::weights::{EphemeralResult, ExternalResult, LoadResult, SavedResult};
use crate::wire::{sampling, training};

/// What a request becomes.
pub(super) enum Prepared {
    /// Work for the engine, and how to answer once it is done.
    Start(Box<Operation>, Box<Job>),
    /// Nothing to do: a save whose checkpoint was written before a restart.
    Done(Outcome, Vec<Effect>),
}

/// What came of an operation.
pub(super) enum Finished {
    /// To be stored.
    Told(Outcome, Vec<Effect>),
    /// A result that may be large: whoever stores it encodes it, off the engine's thread.
    Later(Encode),
}

/// How to answer a started operation.
#[derive(Debug)]
pub(super) struct Job {
    /// The run whose order it holds; `None` for a sample.
    pub(super) run: Option<RunId>,
    answer: Answer,
}

#[derive(Debug)]
enum Answer {
    CreateModel { run: RunId },
    LoadWeights { run: RunId, path: String, creates: bool },
    ForwardBackward,
    OptimStep,
    Saved { path: TinkerPath, save: NamedSave },
    Ephemeral(NewSamplingSession),
    Sample { target: Option<TensorData> },
}

/// Reads a stored request. Errors are the user's when the request is wrong, the server's when its bytes are.
pub(super) fn prepare(work: Work, data_dir: &Path, mailbox: &impl Mailbox) -> Result<Prepared, OpError> {
    match work.kind {
        RequestKind::Sample => prepare_sample(work, data_dir),
        RequestKind::Forward | RequestKind::ForwardBackward => prepare_pass(work),
        _ => prepare_run_operation(work, data_dir, mailbox),
    }
}

fn start(operation: Operation, run: Option<RunId>, answer: Answer) -> Prepared {
    Prepared::Start(Box::new(operation), Box::new(Job { run, answer }))
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

fn prepare_sample(work: Work, data_dir: &Path) -> Result<Prepared, OpError> {
    let Payload::Sample(payload) = read(&work)? else {
        return Err(unreadable(&work, "it is no sample"));
    };
    let session = work.sampling_session.as_ref().ok_or_else(|| unreadable(&work, "it has no sampling session"))?;
    let (operation, target) = sample(*payload, session, data_dir)?;
    Ok(start(Operation::Sample(Box::new(operation)), None, Answer::Sample { target }))
}

fn prepare_run_operation(work: Work, data_dir: &Path, mailbox: &impl Mailbox) -> Result<Prepared, OpError> {
    let run = run_of(&work)?;
    let start = |operation, answer| Ok(start(operation, Some(run.clone()), answer));
    match read(&work)? {
        Payload::CreateModel { spec, .. } => {
            start(Operation::CreateRun { run: run.clone(), spec }, Answer::CreateModel { run: run.clone() })
        }
        Payload::LoadWeights { path, with_optimizer, create } => {
            let dir = if work.replay {
                loads::kept(data_dir, &run, work.seq_id)
            } else {
                loads::keep(data_dir, &run, work.seq_id, &checkpoint_dir(data_dir, &path.parse()?))?
            };
            let answer = Answer::LoadWeights { run: run.clone(), path, creates: create.is_some() };
            start(Operation::LoadState(LoadState { run: run.clone(), dir, with_optimizer, create }), answer)
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
        Payload::SaveWeights(save) => prepare_save(&work, run, CheckpointKind::Training, save, data_dir, mailbox),
        Payload::SaveWeightsForSampler(save) => {
            prepare_save(&work, run, CheckpointKind::Sampler, save, data_dir, mailbox)
        }
        Payload::SaveWeightsExternal(save) => {
            prepare_save(&work, run, CheckpointKind::External, save, data_dir, mailbox)
        }
        Payload::Sample(_) => Err(unreadable(&work, "it is a sample")),
    }
}

fn prepare_save(
    work: &Work,
    run: RunId,
    kind: CheckpointKind,
    save: NamedSave,
    data_dir: &Path,
    mailbox: &impl Mailbox,
) -> Result<Prepared, OpError> {
    let path = TinkerPath { run: run.clone(), kind, name: save.name.parse()? };
    let dir = checkpoint_dir(data_dir, &path);
    if work.replay {
        let written = SavedFiles { dir, size_bytes: 0 };
        return Ok(Prepared::Done(saved_outcome(&path, &written), Vec::new()));
    }
    if !save.overwrite {
        ensure_free(work, &path, mailbox)?;
    }
    // The catalogue decides: a folder that it does not list was left by a server that died, or by a deletion.
    let target = SaveTarget { dir, overwrite: true };
    let operation = match kind {
        CheckpointKind::Training => Operation::SaveState(SaveState { run: run.clone(), target }),
        CheckpointKind::Sampler => {
            Operation::SaveSampler(SaveSampler { run: run.clone(), snapshot: None, target: Some(target) })
        }
        CheckpointKind::External => Operation::SaveExternal(SaveExternal { run: run.clone(), target }),
    };
    Ok(start(operation, Some(run), Answer::Saved { path, save }))
}

fn ensure_free(work: &Work, path: &TinkerPath, mailbox: &impl Mailbox) -> Result<(), OpError> {
    match mailbox.has_checkpoint(&work.tenant, path) {
        Ok(false) => Ok(()),
        Ok(true) => {
            let name = path.name.as_str();
            Err(OpError::user(format!("path: a checkpoint named {name:?} exists; choose another name or overwrite")))
        }
        Err(error) => Err(OpError::server(error.to_string())),
    }
}

fn sample(
    payload: SamplePayload,
    session: &SamplingSession,
    data_dir: &Path,
) -> Result<(Sample, Option<TensorData>), OpError> {
    let target = payload.target_prompt_logprobs;
    let prompt_length = payload.prompt.len();
    let scored = target.as_ref().map(|target| sampling::target_tensor(target, prompt_length)).transpose()?;
    let operation = Sample {
        sampling_session: session.id.clone(),
        source: source(session, data_dir),
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

fn source(session: &SamplingSession, data_dir: &Path) -> SamplerSource {
    if let Some(key) = &session.snapshot {
        return SamplerSource::Snapshot { key: key.clone() };
    }
    let base_model = session.base_model.clone();
    let dir = session.checkpoint_dir.clone();
    match dir.or_else(|| session.model_path.as_ref().map(|path| checkpoint_dir(data_dir, path))) {
        Some(dir) => SamplerSource::Checkpoint { base_model, dir },
        None => SamplerSource::Base { model: base_model },
    }
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
            (Self::OptimStep, OpResult::OptimStep { mut metrics }) => {
                // JSON has no NaN: a metric without a value is left out.
                metrics.retain(|_, value| value.is_finite());
                (json(&OptimStepResult { metrics }), Vec::new())
            }
            (Self::Saved { path, save }, OpResult::Saved(Some(files))) => saved(path, save, files),
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

fn saved(path: TinkerPath, save: NamedSave, files: SavedFiles) -> (Outcome, Vec<Effect>) {
    let outcome = saved_outcome(&path, &files);
    let checkpoint = NewCheckpoint {
        path,
        dir: files.dir,
        size_bytes: files.size_bytes,
        spec: save.spec,
        expires_in: save.ttl_seconds,
        user_metadata: save.user_metadata,
    };
    (outcome, vec![Effect::Checkpoint(checkpoint)])
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
