//! The completions of one prompt, from tokens to pieces of text.

use std::sync::Arc;

use tokio::task::JoinHandle;
use tracing::Instrument as _;
use trainyard_chat::output::OutputFormat;
use trainyard_chat::sequence::{Piece, SequenceText, Token, row};
use trainyard_chat::settings::Settings;
use trainyard_chat::texts::ModelText;
use trainyard_protocol::{ImageSpan, Sample, SampleProgress, TenantId};
use trainyard_wire::sampling::SampleOutput;

use super::agents::Turn;
use super::generation::Generation;
use super::model_name::Target;
use crate::error::ApiError;
use crate::sample_stream::StreamEvent;
use crate::state::AppState;

/// A prompt, and how to complete it.
pub(crate) struct Prompt {
    /// Tokens of the prompt, at least one.
    pub(crate) tokens: Vec<u32>,
    /// Images among the tokens.
    pub(crate) images: Vec<ImageSpan>,
    pub(crate) settings: Settings,
    /// The marks to look for in the completions.
    pub(crate) format: OutputFormat,
    /// Whether it is a conversation, which the tokenizer's end token ends as well as the model's.
    pub(crate) is_chat: bool,
    /// Whether the prompt's log-probabilities are asked for too.
    pub(crate) score_prompt: bool,
    /// The agent session's record of the completions.
    pub(crate) turn: Option<Turn>,
}

/// Tokens of one prompt and its completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) prompt: u64,
    /// Tokens of the prompt that were served from the prefix cache.
    pub(crate) cached: u64,
    /// Tokens sampled in all completions.
    pub(crate) sampled: u64,
}

pub(crate) struct Completion {
    generation: Generation,
    sequences: Vec<SequenceText>,
    pub(crate) prompt: Vec<u32>,
    /// The prompt's tokens with log-probabilities, if requested; filled once the completions have ended.
    pub(crate) prompt_tokens: Vec<Token>,
    /// Complete once the completions have ended.
    pub(crate) tokens: Tokens,
    turn: Option<Turn>,
    recording: Option<Recording>,
}

/// The last updates, until the completions are recorded.
struct Recording {
    task: JoinHandle<Result<(), ApiError>>,
    updates: Vec<Update>,
}

/// A new piece of the completion with this position.
pub(crate) type Update = (usize, Piece);

impl Completion {
    /// Submits a prompt.
    ///
    /// # Errors
    /// Fails if the model does not accept the prompt, a queue is full or a quota is used up.
    pub(crate) async fn start(
        state: &AppState,
        tenant: &TenantId,
        target: &Target,
        text: &Arc<ModelText>,
        prompt: Prompt,
    ) -> Result<Self, ApiError> {
        let Prompt { tokens, images, settings, format, is_chat, score_prompt, turn } = prompt;
        let end = text.end.clone().filter(|end| is_chat && (end.id as usize) < target.base.vocab_size);
        let server_seed = settings.seed.is_none();
        let candidates = settings.logprobs.unwrap_or(0);
        let sample = Sample {
            prompt: tokens.iter().map(|&token| token.into()).collect(),
            num_samples: settings.n,
            params: settings.params(end.as_ref(), || (state.random)()),
            prompt_logprobs: score_prompt,
            prompt_logprobs_last_n: None,
            topk_prompt_logprobs: if score_prompt { candidates } else { 0 },
            topk_sample_logprobs: candidates,
            target_prompt_logprobs: None,
            prompt_alt_tokens_k: 0,
            images,
        };
        let generation = Generation::start(state, tenant, target, &sample, server_seed).await?;
        let sequence = || {
            let stop = settings.stop.clone();
            let tokens = settings.logprobs.is_some() || settings.token_ids;
            SequenceText::new(Arc::clone(text), stop, format, tokens).ending_at(end.clone())
        };
        Ok(Self {
            generation,
            sequences: (0..settings.n).map(|_| sequence()).collect(),
            tokens: Tokens { prompt: tokens.len() as u64, ..Tokens::default() },
            prompt: tokens,
            prompt_tokens: Vec::new(),
            turn,
            recording: None,
        })
    }

    /// The id of its request.
    pub(crate) fn id(&self) -> &str {
        self.generation.id().as_str()
    }

    pub(crate) fn count(&self) -> usize {
        self.sequences.len()
    }

    /// Waits for more updates; `None` after the end. May be dropped and called again. In an agent session the last
    /// updates come once the completions are recorded.
    ///
    /// # Errors
    /// Fails if the sample fails, this process can't wait for it, or the completions can't be recorded.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Update>>, ApiError> {
        if self.recording.is_none() {
            match self.generation.next().await? {
                None => return Ok(None),
                Some(StreamEvent::Tokens(progress)) => return Ok(Some(self.push(&progress))),
                Some(StreamEvent::Done(output)) => {
                    let updates = self.end(&output);
                    let Some(turn) = self.turn.take() else {
                        self.generation.acknowledge();
                        return Ok(Some(updates));
                    };
                    // A separate task: the client may hang up before the commit.
                    let task = tokio::spawn(turn.record(self.generation.id().clone(), *output).in_current_span());
                    self.recording = Some(Recording { task, updates });
                }
            }
        }
        let Some(recording) = &mut self.recording else { return Ok(None) };
        let done = (&mut recording.task).await;
        let updates = self.recording.take().map(|recording| recording.updates).unwrap_or_default();
        done.map_err(|error| ApiError::Internal(format!("failed to record a turn: {error}")))??;
        self.generation.acknowledge();
        Ok(Some(updates))
    }

    /// Waits for the end and returns all remaining updates.
    ///
    /// # Errors
    /// Fails if the sample fails, or this process can't wait for it.
    pub(crate) async fn rest(&mut self) -> Result<Vec<Update>, ApiError> {
        let mut all = Vec::new();
        while let Some(updates) = self.next().await? {
            all.extend(updates);
        }
        Ok(all)
    }

    fn push(&mut self, progress: &SampleProgress) -> Vec<Update> {
        let mut pieces = Vec::new();
        if let Some(sequence) = self.sequences.get_mut(progress.sequence) {
            sequence.push(progress, &mut pieces);
        }
        pieces.iter().for_each(|piece| self.note(progress.sequence, piece));
        pieces.into_iter().map(|piece| (progress.sequence, piece)).collect()
    }

    fn note(&mut self, index: usize, piece: &Piece) {
        if let Some(turn) = &mut self.turn {
            turn.note(index, piece);
        }
    }

    fn end(&mut self, output: &SampleOutput) -> Vec<Update> {
        self.tokens.cached = output.prompt_cache_hit_tokens.into();
        self.tokens.sampled = output.sequences.iter().map(|sequence| sequence.tokens.len() as u64).sum();
        self.prompt_tokens = prompt_tokens(&self.prompt, output);
        let mut updates = Vec::new();
        for (index, (state, sequence)) in self.sequences.iter_mut().zip(&output.sequences).enumerate() {
            let mut pieces = Vec::new();
            state.finish(sequence.stop_reason, &mut pieces);
            updates.extend(pieces.into_iter().map(|piece| (index, piece)));
        }
        updates.iter().for_each(|(index, piece)| self.note(*index, piece));
        updates
    }
}

fn prompt_tokens(prompt: &[u32], result: &SampleOutput) -> Vec<Token> {
    let Some(logprobs) = &result.prompt_logprobs else { return Vec::new() };
    let token = |(at, (&id, &logprob)): (usize, (&u32, &f32))| Token {
        id,
        logprob: (!logprob.is_nan()).then_some(logprob),
        candidates: result.topk_prompt_logprobs.as_ref().map(|topk| row(topk, at)).unwrap_or_default(),
    };
    prompt.iter().zip(logprobs).enumerate().map(token).collect()
}
