//! Turns an operation's result into what is stored of it.

use std::path::PathBuf;

use bytes::Bytes;
use serde::Serialize;
use trainyard_protocol::{
    CheckpointKind, OpError, OpResult, RunId, SampleResult, SamplingSessionId, SavedFiles, SparseIndices, TinkerPath,
};
use trainyard_scheduler::{Effect, Encode, Encoding, Measured, NewCheckpoint, NewSamplingSession, Outcome, Tokens};
use trainyard_wire::models::{CreateModelResult, OptimStepResult};
use trainyard_wire::payload::NamedSave;
use trainyard_wire::sampling::ComputedWith;
use trainyard_wire::weights::{EphemeralResult, ExternalResult, LoadResult, SavedResult};
use trainyard_wire::{sampling, training};

use super::save_attempt::SaveAttempt;
use crate::stored_samples::PromptToStore;
use crate::workspace::FolderGuard;

/// Outcome of a finished operation.
pub(super) enum CompletionOutcome {
    /// An outcome that is reported at once.
    Report(Outcome, Vec<Effect>),
    /// A result that may be large, with what it used and measured. The store's writer encodes it off the engine's
    /// thread.
    Encode(Measured, Encode),
    /// A result that is reported once the folder that the engine wrote is in the storage.
    Publish(WrittenFolder),
}

/// A folder that the engine wrote, and the effects of storing it.
pub(super) struct WrittenFolder {
    /// Path on this machine.
    pub(super) written: PathBuf,
    /// Location in the storage.
    pub(super) location: PathBuf,
    pub(super) outcome: Outcome,
    pub(super) effects: Vec<Effect>,
    /// Recipients for whom the files are encrypted before they are stored; empty for no encryption.
    pub(super) age_recipients: Vec<String>,
}

impl WrittenFolder {
    /// Sets the number of bytes in the folder's files.
    pub(super) fn of_size(mut self, size_bytes: u64) -> Self {
        for effect in &mut self.effects {
            if let Effect::Checkpoint(new) = effect {
                new.size_bytes = size_bytes;
                self.outcome = saved_outcome(&new.path, size_bytes);
            }
        }
        self
    }
}

/// How to answer a started request.
#[derive(Debug)]
pub(super) struct PendingReply {
    /// The run whose order the request holds; `None` for a sample.
    pub(super) run: Option<RunId>,
    /// The folder that its operation reads.
    pub(super) folder: Option<FolderGuard>,
    /// How a client's save is written again; `None` for other requests.
    pub(super) save: Option<Box<SaveAttempt>>,
    kind: ReplyKind,
}

/// What the reply contains, by the request's operation.
#[derive(Debug)]
pub(super) enum ReplyKind {
    CreateModel {
        run: RunId,
    },
    LoadWeights {
        run: RunId,
        path: String,
        creates: bool,
    },
    /// A training pass, with the number of tokens in its examples.
    ForwardBackward {
        tokens: u64,
    },
    OptimStep,
    Saved {
        path: TinkerPath,
        location: PathBuf,
        save: NamedSave,
    },
    Ephemeral(NewSamplingSession),
    RunSaved {
        location: PathBuf,
    },
    SnapshotSaved {
        key: String,
        location: PathBuf,
    },
    Restored,
    /// A sample, with the length of its prompt, the layout of its scored tokens, and the arithmetic that computes it.
    Sample {
        prompt: u64,
        sparse: Option<SparseIndices>,
        computed_with: ComputedWith,
        /// The prompt, if the run stores its samples.
        store: Option<PromptToStore>,
    },
}

impl PendingReply {
    pub(super) fn new(run: Option<RunId>, kind: ReplyKind) -> Self {
        Self { run, folder: None, save: None, kind }
    }

    /// Makes the outcome of the operation's result.
    pub(super) fn finish(self, result: Result<OpResult, OpError>) -> CompletionOutcome {
        match (self.kind, result) {
            (ReplyKind::ForwardBackward { tokens }, Ok(OpResult::ForwardBackward(result))) => {
                let used = Tokens { trained: tokens, ..Tokens::default() };
                let measured = Measured { used, metrics: Some(result.metrics.clone()), sample: None };
                CompletionOutcome::Encode(measured, Box::new(move || protobuf(training::encode_output(&result))))
            }
            (ReplyKind::Sample { prompt, sparse, computed_with, store }, Ok(OpResult::Sample(result))) => {
                let sample = store.map(|prompt| prompt.with(&result));
                let measured = Measured { used: sampled(prompt, &result), metrics: None, sample };
                let encode = move || protobuf(sampling::encode_result(&result, sparse.as_ref(), computed_with));
                CompletionOutcome::Encode(measured, Box::new(encode))
            }
            (ReplyKind::OptimStep, Ok(OpResult::OptimStep { mut metrics })) => {
                let measured = Measured { metrics: Some(metrics.clone()), ..Measured::default() };
                // JSON has no NaN, so a metric without a value is left out.
                metrics.retain(|_, value| value.is_finite());
                CompletionOutcome::Encode(measured, Box::new(move || json(&OptimStepResult { metrics })))
            }
            (ReplyKind::Saved { path, location, save }, Ok(OpResult::Saved(Some(files)))) => {
                CompletionOutcome::Publish(saved(path, location, save, files))
            }
            (ReplyKind::RunSaved { location }, Ok(OpResult::Saved(Some(files)))) => {
                CompletionOutcome::Publish(written_by_maintenance(files, location.clone(), Effect::RunSaved(location)))
            }
            (ReplyKind::SnapshotSaved { key, location }, Ok(OpResult::Saved(Some(files)))) => {
                let effect = Effect::SnapshotSaved { key, dir: location.clone() };
                CompletionOutcome::Publish(written_by_maintenance(files, location, effect))
            }
            (kind, Ok(result)) => {
                let (outcome, effects) = kind.succeed(result);
                CompletionOutcome::Report(outcome, effects)
            }
            (kind, Err(error)) => {
                CompletionOutcome::Report(Outcome::Failed(error), kind.failed_creation().into_iter().collect())
            }
        }
    }
}

impl ReplyKind {
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
            (Self::Ephemeral(session), OpResult::Saved(None)) => {
                let id = SamplingSessionId::of_session(&session.session, session.seq_id);
                let answer = json(&EphemeralResult { sampling_session_id: id.to_string() });
                (answer, vec![Effect::SamplingSession(session)])
            }
            (kind, result) => {
                tracing::error!(?kind, ?result, "the engine returned another operation's result");
                (Outcome::Failed(OpError::server("internal error; the server's log has the details")), Vec::new())
            }
        }
    }
}

/// Tokens that a sample used. The prompt counts once, however many completions it has.
fn sampled(prompt: u64, result: &SampleResult) -> Tokens {
    let cached = u64::from(result.prompt_cache_hit_tokens).min(prompt);
    let sampled = result.sequences.iter().map(|sequence| sequence.tokens.len() as u64).sum();
    Tokens { prefill: prompt - cached, cached, sampled, ..Tokens::default() }
}

fn saved(path: TinkerPath, location: PathBuf, save: NamedSave, files: SavedFiles) -> WrittenFolder {
    let outcome = saved_outcome(&path, files.size_bytes);
    let checkpoint = NewCheckpoint {
        path,
        overwrite: save.overwrite,
        dir: location.clone(),
        size_bytes: files.size_bytes,
        spec: save.spec,
        expires_in: save.ttl_seconds,
        user_metadata: save.user_metadata,
    };
    let effects = vec![Effect::Checkpoint(checkpoint)];
    WrittenFolder { written: files.dir, location, outcome, effects, age_recipients: save.age_recipients }
}

fn written_by_maintenance(files: SavedFiles, location: PathBuf, effect: Effect) -> WrittenFolder {
    let (outcome, effects) = (nothing(), vec![effect]);
    WrittenFolder { written: files.dir, location, outcome, effects, age_recipients: Vec::new() }
}

/// Outcome of the scheduler's own requests, whose results nobody reads.
fn nothing() -> Outcome {
    Outcome::Succeeded { encoding: Encoding::Json, payload: Bytes::from_static(b"{}") }
}

fn saved_outcome(path: &TinkerPath, size_bytes: u64) -> Outcome {
    match path.kind {
        CheckpointKind::Training | CheckpointKind::Sampler => json(&SavedResult { path: path.to_string() }),
        CheckpointKind::External => json(&ExternalResult { path: path.to_string(), size_bytes }),
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
