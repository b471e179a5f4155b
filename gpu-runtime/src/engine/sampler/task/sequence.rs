//! One completion of a prompt.

use trainyard_protocol::{OpError, SampleProgress, SampledSequence, StopReason, TopkLogprobs};

use crate::backend::SampledToken;
use crate::engine::sampler::logits::ABSENT;
use crate::engine::sampler::stream::{KvStream, StreamRoot};
use crate::grammar::Grammar;
use crate::sampling::TokenCounts;
use crate::stop::StopMatcher;

pub(super) struct Sequence {
    pub(super) stream: KvStream,
    /// Sampled tokens, without the prompt's.
    pub(super) tokens: Vec<u32>,
    /// How often each of them was, if that changes logits.
    pub(super) counts: TokenCounts,
    logprobs: Vec<f32>,
    /// Top candidates, `[tokens, k]`.
    topk: Vec<(u32, f32)>,
    stop: StopMatcher,
    /// Grammar that the sequence's text must follow.
    pub(super) grammar: Option<Grammar>,
    /// The number of its last turn, counted from 1, in passes in which the rows of shares were limited; 0 if none.
    pub(super) last_turn: u64,
    /// Set once it has ended.
    pub(super) end: Option<StopReason>,
}

impl Sequence {
    pub(super) fn new(root: StreamRoot, stop: &StopMatcher, grammar: Option<&Grammar>) -> Self {
        Self {
            stream: KvStream::new(root),
            tokens: Vec::new(),
            counts: TokenCounts::new(),
            logprobs: Vec::new(),
            topk: Vec::new(),
            stop: stop.clone(),
            grammar: grammar.cloned(),
            last_turn: 0,
            end: None,
        }
    }

    /// Appends a sampled token with `topk` candidates. The sequence ends at a stop token or string, or with `max_new`
    /// tokens, or when its text is complete.
    ///
    /// # Errors
    /// Fails if its grammar takes too much work.
    pub(super) fn push(&mut self, mut sampled: SampledToken, topk: usize, max_new: usize) -> Result<(), OpError> {
        let complete = match &mut self.grammar {
            Some(grammar) => grammar.push(sampled.token)?,
            None => false,
        };
        sampled.topk.resize(topk, (0, ABSENT));
        self.tokens.push(sampled.token);
        self.logprobs.push(sampled.logprob);
        self.topk.extend(sampled.topk);
        if self.stop.push(sampled.token) || complete {
            self.end = Some(StopReason::Stop);
        } else if self.tokens.len() >= max_new {
            self.end = Some(StopReason::Length);
        }
        Ok(())
    }

    /// Tokens from index `from` on, with `topk` candidates each; `sequence` is the index of the sequence.
    pub(super) fn progress(&self, sequence: usize, from: usize, topk: usize) -> Option<SampleProgress> {
        let tokens = self.tokens.get(from..).filter(|tokens| !tokens.is_empty())?;
        let candidates = self.topk.get(from * topk..).unwrap_or_default();
        Some(SampleProgress {
            sequence,
            first_index: from,
            tokens: tokens.to_vec(),
            logprobs: self.logprobs.get(from..).unwrap_or_default().to_vec(),
            topk: (topk > 0).then(|| candidate_rows(candidates, topk)),
            end: self.end,
        })
    }

    /// The result of a finished sequence with `topk` candidates per token.
    pub(super) fn into_result(self, topk: usize) -> SampledSequence {
        SampledSequence {
            stop_reason: self.end.unwrap_or(StopReason::Length),
            topk: (topk > 0).then(|| candidate_rows(&self.topk, topk)),
            tokens: self.tokens,
            logprobs: self.logprobs,
        }
    }
}

/// Rows of `k` candidates.
fn candidate_rows(candidates: &[(u32, f32)], k: usize) -> TopkLogprobs {
    TopkLogprobs {
        k,
        token_ids: candidates.iter().map(|(id, _)| *id).collect(),
        logprobs: candidates.iter().map(|(_, logprob)| *logprob).collect(),
    }
}
