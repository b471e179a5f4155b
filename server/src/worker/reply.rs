//! Converts an operation's result to its stored form.

use std::ops::Range;
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

use super::recorded_metrics;
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

/// A folder that the engine wrote, and what to report once it is stored.
pub(super) struct WrittenFolder {
    /// Path on this machine.
    pub(super) written: PathBuf,
    /// Location in the storage.
    pub(super) location: PathBuf,
    /// Bytes of its files as the engine wrote them.
    pub(super) size_bytes: u64,
    /// Recipients for whom the files are encrypted before they are stored; empty for no encryption.
    pub(super) age_recipients: Vec<String>,
    /// Makes the outcome from the number of stored bytes.
    pub(super) report: Box<dyn FnOnce(u64) -> (Outcome, Vec<Effect>) + Send>,
}

/// How to answer a started request.
pub(super) struct PendingReply {
    /// The run whose order the request holds; `None` for a sample.
    pub(super) run: Option<RunId>,
    /// The folder that its operation reads.
    pub(super) folder: Option<FolderGuard>,
    /// How a client's save is written again; `None` for other requests.
    pub(super) save: Option<Box<SaveAttempt>>,
    reply: Reply,
}

impl PendingReply {
    pub(super) fn new(run: Option<RunId>, reply: Reply) -> Self {
        Self { run, folder: None, save: None, reply }
    }

    /// Whether the request is a client's save, which is written again when it finds no space.
    pub(super) fn is_save(&self) -> bool {
        self.reply.is_save
    }

    /// Makes the outcome of the operation's result.
    pub(super) fn finish(self, result: Result<OpResult, OpError>) -> CompletionOutcome {
        let Reply { created, succeed, .. } = self.reply;
        match result.map(succeed) {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(result)) => {
                tracing::error!(run = ?self.run, ?result, "the engine returned another operation's result");
                let error = OpError::server("internal error; the server's log has the details");
                CompletionOutcome::Report(Outcome::Failed(error), Vec::new())
            }
            Err(error) => {
                let effects = created.map(Effect::RunFailed).into_iter().collect();
                CompletionOutcome::Report(Outcome::Failed(error), effects)
            }
        }
    }
}

/// Makes the outcome of a result, or returns the result if it is another operation's.
type Succeed = Box<dyn FnOnce(OpResult) -> Result<CompletionOutcome, Box<OpResult>> + Send>;

/// What the reply contains, by the request's operation.
pub(super) struct Reply {
    /// The run that fails with the request, because the request creates it.
    created: Option<RunId>,
    is_save: bool,
    succeed: Succeed,
}

impl Reply {
    fn new(succeed: impl FnOnce(OpResult) -> Result<CompletionOutcome, Box<OpResult>> + Send + 'static) -> Self {
        Self { created: None, is_save: false, succeed: Box::new(succeed) }
    }

    /// The reply to an operation after which a run is ready.
    fn ready(report: impl FnOnce() -> (Outcome, Vec<Effect>) + Send + 'static) -> Self {
        Self::new(|result| match result {
            OpResult::RunReady => {
                let (outcome, effects) = report();
                Ok(CompletionOutcome::Report(outcome, effects))
            }
            other => Err(Box::new(other)),
        })
    }

    /// The reply to an operation that writes a folder.
    fn written(folder: impl FnOnce(SavedFiles) -> WrittenFolder + Send + 'static) -> Self {
        Self::new(|result| match result {
            OpResult::Saved(Some(files)) => Ok(CompletionOutcome::Publish(folder(files))),
            other => Err(Box::new(other)),
        })
    }

    /// A new run, which fails with the request.
    pub(super) fn created_run(run: RunId) -> Self {
        let created = Some(run.clone());
        let report = move || (json(&CreateModelResult { model_id: run.to_string() }), vec![Effect::RunReady(run)]);
        Self { created, ..Self::ready(report) }
    }

    /// A run with loaded weights, which fails with the request if the request creates it.
    pub(super) fn loaded(run: RunId, path: String, creates: bool) -> Self {
        let created = creates.then(|| run.clone());
        let effects = created.clone().map(Effect::RunReady).into_iter().collect();
        let report = move || (json(&LoadResult { path, model_id: run.to_string() }), effects);
        Self { created, ..Self::ready(report) }
    }

    /// Reply to the restoration of a run.
    pub(super) fn restored() -> Self {
        Self::ready(|| (nothing(), Vec::new()))
    }

    /// A training pass, with the number of tokens in its examples and the sum of their weights.
    pub(super) fn pass(tokens: u64, weighted_tokens: Option<f64>) -> Self {
        Self::new(move |result| {
            let OpResult::ForwardBackward(result) = result else { return Err(Box::new(result)) };
            let used = Tokens { trained: tokens, ..Tokens::default() };
            let metrics = recorded_metrics::of_pass(&result.metrics, weighted_tokens);
            let measured = Measured { used, metrics: Some(metrics), sample: None };
            let encode = move || protobuf(training::encode_output(&result));
            Ok(CompletionOutcome::Encode(measured, Box::new(encode)))
        })
    }

    /// The metrics of an optimizer step, with its learning rate.
    pub(super) fn step(learning_rate: f64) -> Self {
        Self::new(move |result| {
            let OpResult::OptimStep { mut metrics } = result else { return Err(Box::new(result)) };
            let recorded = recorded_metrics::of_step(&metrics, learning_rate);
            let measured = Measured { metrics: Some(recorded), ..Measured::default() };
            // JSON has no NaN, so a metric without a value is left out.
            metrics.retain(|_, value| value.is_finite());
            Ok(CompletionOutcome::Encode(measured, Box::new(move || json(&OptimStepResult { metrics }))))
        })
    }

    /// A client's save under a name.
    pub(super) fn saved(path: TinkerPath, location: PathBuf, save: NamedSave) -> Self {
        Self { is_save: true, ..Self::written(move |files| saved(path, location, save, files)) }
    }

    /// A save of the scheduler's own.
    pub(super) fn maintained(location: PathBuf, effect: Effect) -> Self {
        Self::written(move |SavedFiles { dir, size_bytes }| WrittenFolder {
            written: dir,
            location,
            size_bytes,
            age_recipients: Vec::new(),
            report: Box::new(|_| (nothing(), vec![effect])),
        })
    }

    /// A sampling session whose weights are only in memory.
    pub(super) fn ephemeral(session: NewSamplingSession) -> Self {
        Self::new(|result| {
            let OpResult::Saved(None) = result else { return Err(Box::new(result)) };
            let id = SamplingSessionId::of_session(&session.session, session.seq_id);
            let answer = json(&EphemeralResult { sampling_session_id: id.to_string() });
            Ok(CompletionOutcome::Report(answer, vec![Effect::SamplingSession(session)]))
        })
    }

    /// Reply to a sample, with its tokens and log-probabilities.
    pub(super) fn sample(reply: SampleReply) -> Self {
        Self::new(move |result| {
            let OpResult::Sample(result) = result else { return Err(Box::new(result)) };
            let SampleReply { prompt, images_at, sparse, computed_with, store } = reply;
            let result = without_logprobs(result, &images_at);
            let sample = store.map(|prompt| prompt.with(&result));
            let measured = Measured { used: sampled(prompt, &result), metrics: None, sample };
            let encode = move || protobuf(sampling::encode_result(&result, sparse.as_ref(), computed_with));
            Ok(CompletionOutcome::Encode(measured, Box::new(encode)))
        })
    }
}

/// What the reply to a sample needs of the request.
pub(super) struct SampleReply {
    /// Length of the prompt.
    pub(super) prompt: u64,
    /// Positions of images in the prompt.
    pub(super) images_at: Vec<Range<usize>>,
    /// Layout of the scored tokens.
    pub(super) sparse: Option<SparseIndices>,
    /// Weights and arithmetic that compute the sample.
    pub(super) computed_with: ComputedWith,
    /// The prompt, if the run stores its samples.
    pub(super) store: Option<PromptToStore>,
}

/// Leaves out the log-probabilities of a prompt's images: their placeholders are never predicted.
fn without_logprobs(mut result: SampleResult, images_at: &[Range<usize>]) -> SampleResult {
    let logprobs = result.prompt_logprobs.as_deref_mut().unwrap_or_default();
    for image in images_at {
        logprobs.get_mut(image.clone()).into_iter().flatten().for_each(|logprob| *logprob = f32::NAN);
    }
    result
}

/// Tokens that a sample used. The prompt counts once, however many completions it has.
fn sampled(prompt: u64, result: &SampleResult) -> Tokens {
    let cached = u64::from(result.prompt_cache_hit_tokens).min(prompt);
    let sampled = result.sequences.iter().map(|sequence| sequence.tokens.len() as u64).sum();
    Tokens { prefill: prompt - cached, cached, sampled, ..Tokens::default() }
}

fn saved(path: TinkerPath, location: PathBuf, save: NamedSave, files: SavedFiles) -> WrittenFolder {
    let NamedSave { overwrite, ttl_seconds, user_metadata, spec, age_recipients, .. } = save;
    let dir = location.clone();
    let report = move |size_bytes| {
        let outcome = saved_outcome(&path, size_bytes);
        let expires_in = ttl_seconds;
        let checkpoint = NewCheckpoint { path, overwrite, dir, size_bytes, spec, expires_in, user_metadata };
        (outcome, vec![Effect::Checkpoint(checkpoint)])
    };
    let (written, size_bytes) = (files.dir, files.size_bytes);
    WrittenFolder { written, location, size_bytes, age_recipients, report: Box::new(report) }
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
            tracing::error!(%error, "failed to write a result as JSON");
            Outcome::Failed(OpError::server("internal error; the server's log has the details"))
        }
    }
}

fn protobuf(payload: Bytes) -> Outcome {
    Outcome::Succeeded { encoding: Encoding::Protobuf, payload }
}
