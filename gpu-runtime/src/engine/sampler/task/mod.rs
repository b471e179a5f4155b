//! One sampling request: its prompt, its sequences and how far they are computed.

mod footprint;
mod sequence;

use std::ops::Range;

use trainyard_protocol::limits::check_candidates;
use trainyard_protocol::{OpError, RequestId, Sample, SampleProgress, SampleResult, SessionId, TenantShare};

use super::check::{check_counts, check_tokens, validate_params};
use super::images::{PromptImages, never_sampled};
use super::prefix::{NodeId, PrefixCache};
use super::prompt::{PromptOutputs, PromptRows};
use super::stream::{KvStream, SequenceTokens, StreamRoot};
use super::weights::SamplerWeights;
use crate::backend::{Backend, LogitChanges, SampledToken, SamplingRule, TokenRequest};
use crate::grammar::Grammar;
use crate::rng::uniform;
use crate::sampling::LogitRules;
use crate::stop::StopMatcher;
use sequence::Sequence;

/// A sampling request, waiting or active.
pub(super) struct SampleTask<B: Backend> {
    pub(super) id: RequestId,
    pub(super) share: TenantShare,
    pub(super) session: SessionId,
    /// Sequence number; orders requests by age.
    pub(super) arrival: u64,
    pub(super) weights: SamplerWeights<B>,
    request: Sample,
    prompt: Vec<u32>,
    /// Images of the prompt.
    pub(super) images: PromptImages<B>,
    root: StreamRoot,
    /// The prompt's keys and values until its last row is computed; after that each sequence has its own stream.
    shared: KvStream,
    /// Whether the prompt is computed.
    decodes: bool,
    outputs: PromptOutputs,
    sequences: Vec<Sequence>,
    /// Sequences that run together; the others wait until one of them ends.
    width: usize,
    /// State of the stop matcher before the first token.
    stop: StopMatcher,
    /// Grammar that the text of each sequence must follow.
    grammar: Option<Grammar>,
    /// Why the request fails.
    failure: Option<OpError>,
    /// Rules that change the logits of all sequences.
    rules: Option<LogitRules>,
    /// Tokens that each sequence may get.
    max_new: usize,
    /// Prompt tokens whose keys and values came from the cache.
    cache_hits: usize,
    /// Whether the result reports `cache_hits`: only where nobody else can use the weights.
    pub(super) reports_hits: bool,
    /// Whether it was ever active: preemption does not change that.
    pub(super) was_admitted: bool,
    /// The [`SampleTask::progress`] until which it runs in passes by itself, because a pass that it took part in
    /// panicked.
    quarantined_until: usize,
}

/// A stream of a request that a pass extends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StreamTarget {
    Prompt,
    /// A generated sequence, by index.
    Sequence(usize),
}

impl<B: Backend> SampleTask<B> {
    /// Fails if the request is not valid; the error names the field.
    pub(super) fn new(
        id: RequestId,
        share: TenantShare,
        session: SessionId,
        arrival: u64,
        weights: SamplerWeights<B>,
        grammar: Option<Grammar>,
        root: NodeId,
        mut request: Sample,
        images: PromptImages<B>,
    ) -> Result<Self, OpError> {
        let config = weights.base.config();
        let root = StreamRoot { node: root, state_bytes: weights.base.model.state_bytes };
        let prompt = check_tokens(&request.prompt, config.vocab_size)?;
        validate_params(&request.params)?;
        request.params.controls.check_vocabulary(config.vocab_size)?;
        let rules = LogitRules::new(&request.params.controls, &prompt, never_sampled(config));
        check_counts(&request, prompt.len())?;
        let max_new = request.max_new_tokens(config.max_position_embeddings)?;
        let scored = request.prompt_logprobs_last_n.map_or(prompt.len(), |rows| rows as usize);
        let (samples, topk) = (request.num_samples, request.topk_sample_logprobs);
        check_candidates(samples, max_new, topk, scored, request.topk_prompt_logprobs)?;
        let outputs = PromptOutputs::new(&mut request, prompt.len(), config.vocab_size)?;
        let stop = StopMatcher::new(&request.params.stop, &config.eos_token_ids, weights.base.detokenizer.clone())?;
        let sequences: Vec<_> =
            (0..request.num_samples).map(|_| Sequence::new(root, &stop, grammar.as_ref())).collect();
        Ok(Self {
            id,
            share,
            session,
            arrival,
            weights,
            request,
            prompt,
            images,
            root,
            shared: KvStream::new(root),
            decodes: false,
            outputs,
            width: sequences.len(),
            sequences,
            stop,
            grammar,
            failure: None,
            rules,
            max_new,
            cache_hits: 0,
            reports_hits: false,
            was_admitted: false,
            quarantined_until: 0,
        })
    }

    /// The request in its initial state: with the same seeds it samples the same tokens. It runs in passes by itself up
    /// to progress `quarantined_until`.
    pub(super) fn restarted(mut self, quarantined_until: usize) -> Self {
        self.decodes = false;
        self.release_kv();
        let start = || Sequence::new(self.root, &self.stop, self.grammar.as_ref());
        self.sequences.iter_mut().for_each(|sequence| *sequence = start());
        self.outputs = self.outputs.restarted(&self.request);
        self.quarantined_until = quarantined_until;
        self
    }

    /// Releases all keys and values; recomputed ones are cached under `root`.
    pub(super) fn change_root(&mut self, root: NodeId) {
        self.root.node = root;
        self.release_kv();
    }

    pub(super) fn is_quarantined(&self) -> bool {
        self.progress() < self.quarantined_until
    }

    /// Computed prompt tokens plus sampled tokens. Grows with every pass unless keys and values are released.
    pub(super) fn progress(&self) -> usize {
        let sampled = |sequence: &Sequence| sequence.tokens.len();
        if self.decodes {
            self.prompt.len() + self.sequences.iter().map(sampled).sum::<usize>()
        } else {
            self.shared.kv.len()
        }
    }

    pub(super) fn prompt_tokens(&self) -> usize {
        self.prompt.len()
    }

    /// Tokens that it may take: its prompt, and the longest that its sequences may become.
    pub(super) fn work(&self) -> u64 {
        (self.prompt.len() + self.sequences.len() * self.max_new) as u64
    }

    /// The number of all sequences.
    pub(super) fn all_sequences(&self) -> usize {
        self.sequences.len()
    }

    /// The number of sequences that run together.
    pub(super) fn sequences(&self) -> usize {
        self.running().count()
    }

    /// The streams to extend: the prompt's, or those of the running sequences.
    pub(super) fn targets(&self) -> impl Iterator<Item = StreamTarget> + use<B> {
        let targets: Vec<_> = match self.decodes {
            false => vec![StreamTarget::Prompt],
            true => self.running().map(|(s, _)| StreamTarget::Sequence(s)).collect(),
        };
        targets.into_iter()
    }

    /// The first `width` sequences that are still running, with their indices.
    fn running(&self) -> impl Iterator<Item = (usize, &Sequence)> {
        self.sequences.iter().enumerate().filter(|(_, sequence)| sequence.end.is_none()).take(self.width)
    }

    pub(super) fn is_finished(&self) -> bool {
        self.failure.is_some() || self.sequences.iter().all(|s| s.end.is_some())
    }

    fn tokens<'a>(&'a self, generated: &'a [u32]) -> SequenceTokens<'a> {
        SequenceTokens { prompt: &self.prompt, keys: self.images.keys(&self.prompt), generated }
    }

    /// The tokens of a target and its keys and values.
    pub(super) fn stream(&self, target: StreamTarget) -> (SequenceTokens<'_>, &KvStream) {
        match target {
            StreamTarget::Prompt => (self.tokens(&[]), &self.shared),
            StreamTarget::Sequence(s) => {
                let sequence = &self.sequences[s];
                (self.tokens(&sequence.tokens), &sequence.stream)
            }
        }
    }

    /// Mutable variant of [`SampleTask::stream`].
    pub(super) fn stream_mut(&mut self, target: StreamTarget) -> (SequenceTokens<'_>, &mut KvStream) {
        match target {
            StreamTarget::Prompt => (
                SequenceTokens { prompt: &self.prompt, keys: self.images.keys(&self.prompt), generated: &[] },
                &mut self.shared,
            ),
            StreamTarget::Sequence(s) => {
                let sequence = &mut self.sequences[s];
                let (prompt, generated) = (&self.prompt, &sequence.tokens);
                (SequenceTokens { prompt, keys: self.images.keys(prompt), generated }, &mut sequence.stream)
            }
        }
    }

    /// Whether a target is a sequence of which only the last sampled token is yet to be computed.
    pub(super) fn is_decoding(&self, target: StreamTarget) -> bool {
        let (tokens, stream) = self.stream(target);
        target != StreamTarget::Prompt && stream.kv.len() + 1 == tokens.len()
    }

    /// The number of the last turn that a target had in limited passes, 0 if none.
    pub(super) fn last_turn(&self, target: StreamTarget) -> u64 {
        match target {
            StreamTarget::Prompt => 0,
            StreamTarget::Sequence(s) => self.sequences[s].last_turn,
        }
    }

    /// Records that a target has a turn of this number, counted from 1, in a limited pass.
    pub(super) fn set_last_turn(&mut self, target: StreamTarget, turn: u64) {
        if let StreamTarget::Sequence(s) = target {
            self.sequences[s].last_turn = turn;
        }
    }

    /// Leading tokens of a target whose keys and values may come from the cache. The last row must be computed for the
    /// logits of the next token; the prompt's outputs may need more rows.
    pub(super) fn reusable_tokens(&self, target: StreamTarget) -> usize {
        match target {
            StreamTarget::Prompt => self.outputs.first_row(),
            StreamTarget::Sequence(_) => self.stream(target).0.len() - 1,
        }
    }

    /// Extends a target with the blocks that the cache holds of it.
    pub(super) fn attach_cached(&mut self, target: StreamTarget, cache: &mut PrefixCache<B>) {
        let limit = self.reusable_tokens(target);
        let (tokens, stream) = self.stream_mut(target);
        let hits = stream.attach_cached(cache, tokens, limit);
        if target == StreamTarget::Prompt {
            self.cache_hits += hits;
        }
    }

    /// Releases all keys and values: they are taken from the cache or recomputed when the request continues.
    pub(super) fn release_kv(&mut self) {
        self.shared = KvStream::new(self.root);
        self.sequences.iter_mut().for_each(|s| s.stream = KvStream::new(self.root));
        if !self.decodes {
            self.cache_hits = 0;
        }
    }

    /// Fills the prompt's outputs from the residual stream of prompt `positions`, rows of `x` from `first` on.
    pub(super) fn score_prompt(&mut self, backend: &B, positions: Range<usize>, x: &B::Rows, first: usize) {
        let pass = PromptRows { positions, x, first };
        self.outputs.score(backend, &self.weights, &self.prompt, &self.request.params, &pass);
    }

    /// Copies the prompt's keys and values to the running sequences. Returns how many sequences get their first token
    /// from the prompt's last row: all, so that those that wait need no recomputation of that row.
    pub(super) fn begin_decoding(&mut self) -> usize {
        self.decodes = true;
        let shared = std::mem::replace(&mut self.shared, KvStream::new(self.root));
        self.sequences.iter_mut().take(self.width).for_each(|s| s.stream = shared.clone());
        self.sequences.len()
    }

    /// How the next token of sequence `s` is sampled from row `row` of the logits.
    pub(super) fn token_request(&self, s: usize, row: usize) -> TokenRequest<'_> {
        let (params, sequence) = (&self.request.params, &self.sequences[s]);
        let (counts, allowed) = (&sequence.counts, sequence.grammar.as_ref().map(Grammar::allowed));
        let changes = LogitChanges { rules: self.rules.as_ref(), counts, allowed };
        let changes = (self.rules.is_some() || allowed.is_some()).then_some(changes);
        let rule = SamplingRule::new(params, uniform(params.seed, s as u64, sequence.tokens.len() as u64), changes);
        TokenRequest { row, rule, report: self.request.topk_sample_logprobs as usize }
    }

    /// Appends a sampled token to sequence `s`; releases its keys and values when it ends. The request fails when the
    /// sequence's grammar does.
    pub(super) fn push(&mut self, s: usize, sampled: SampledToken) {
        let sequence = &mut self.sequences[s];
        if self.rules.is_some() {
            *sequence.counts.entry(sampled.token).or_default() += 1;
        }
        if let Err(error) = sequence.push(sampled, self.request.topk_sample_logprobs as usize, self.max_new) {
            self.failure = Some(error);
        }
        if sequence.end.is_some() {
            sequence.stream = KvStream::new(self.root);
        }
    }

    /// Tokens beyond the known ones, a count per sequence.
    pub(super) fn sampled_since(&self, known: &[usize]) -> Vec<SampleProgress> {
        let topk = self.request.topk_sample_logprobs as usize;
        let from = |s: usize| known.get(s).copied().unwrap_or(0);
        self.sequences.iter().enumerate().filter_map(|(s, sequence)| sequence.progress(s, from(s), topk)).collect()
    }

    /// The result of a finished request.
    ///
    /// # Errors
    /// Why it failed.
    pub(super) fn into_result(self) -> Result<SampleResult, OpError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let topk = self.request.topk_sample_logprobs as usize;
        let mut result = SampleResult {
            sequences: self.sequences.into_iter().map(|sequence| sequence.into_result(topk)).collect(),
            prompt_logprobs: None,
            topk_prompt_logprobs: None,
            target_prompt_logprobs: None,
            prompt_alt_tokens: None,
            prompt_cache_hit_tokens: if self.reports_hits { self.cache_hits as u32 } else { 0 },
        };
        self.outputs.finish(&mut result);
        self.images.clear_logprobs(&mut result);
        Ok(result)
    }
}

#[cfg(test)]
impl<B: Backend> SampleTask<B> {
    /// Injects an unchecked token: the last one of the prompt, or of each sequence.
    pub(super) fn poison(&mut self, token: u32) {
        let sampled = self.sequences.iter_mut().map(|sequence| &mut sequence.tokens);
        let last = match self.decodes {
            true => sampled.filter_map(|tokens| tokens.last_mut()).collect(),
            false => self.prompt.last_mut().into_iter().collect::<Vec<_>>(),
        };
        last.into_iter().for_each(|last| *last = token);
    }
}
