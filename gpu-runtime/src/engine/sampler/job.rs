//! One sampling request: its prompt, its sequences and what they have come to.

use trainyard_protocol::limits::check_candidates;
use trainyard_protocol::{
    Flow, OpError, RequestId, Sample, SampleResult, SampledSequence, SamplerSource, StopReason, TopkLogprobs,
};

use super::SamplerWeights;
use super::check::{check_counts, check_tokens, max_new_tokens};
use super::draw::{Decoding, Drawn};
use super::prefix::{NodeId, PrefixCache};
use super::prompt::PromptOutputs;
use super::stream::{Stream, Text, blocks};
use crate::draw::validate_params;
use crate::kernels::Cpu;
use crate::kernels::attention::BLOCK;
use crate::rng::uniform;
use crate::stop::StopMatcher;

/// Tokens beyond those it has for which a sequence's room is set aside when requests are admitted.
const AHEAD: usize = 128;

/// A request in progress.
pub(super) struct SampleJob {
    pub(super) id: RequestId,
    pub(super) flow: Flow,
    /// Orders requests by age.
    pub(super) arrival: u64,
    pub(super) weights: SamplerWeights,
    request: Sample,
    prompt: Vec<u32>,
    /// The root of its weights in the cache.
    root: NodeId,
    /// The prompt's keys and values until its last row is computed; sequences have their own from then on.
    shared: Stream,
    decodes: bool,
    outputs: PromptOutputs,
    sequences: Vec<Sequence>,
    /// Sequences that it extends together; the others wait until one of them ends.
    width: usize,
    /// Before the first token.
    stop: StopMatcher,
    max_new: usize,
    cache_hits: usize,
    /// It has passes of its own up to this progress: one that it took part in panicked there.
    suspect_until: usize,
}

struct Sequence {
    stream: Stream,
    tokens: Vec<u32>,
    logprobs: Vec<f32>,
    topk: Vec<(u32, f32)>,
    stop: StopMatcher,
    end: Option<StopReason>,
}

impl Sequence {
    fn new(root: NodeId, stop: &StopMatcher) -> Self {
        Self {
            stream: Stream::new(root),
            tokens: Vec::new(),
            logprobs: Vec::new(),
            topk: Vec::new(),
            stop: stop.clone(),
            end: None,
        }
    }
}

/// What of a job a pass extends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    Prompt,
    Sequence(usize),
}

impl SampleJob {
    /// Checks a request.
    pub(super) fn new(
        id: RequestId,
        flow: Flow,
        arrival: u64,
        weights: SamplerWeights,
        root: NodeId,
        mut request: Sample,
    ) -> Result<Self, OpError> {
        let config = &weights.base.config;
        let prompt = check_tokens(&request.prompt, config.vocab_size)?;
        validate_params(&request.params)?;
        check_counts(&request, prompt.len())?;
        let max_new = max_new_tokens(&request.params, prompt.len(), config.max_position_embeddings)?;
        let scored = request.prompt_logprobs_last_n.map_or(prompt.len(), |rows| rows as usize);
        let (samples, topk) = (request.num_samples, request.topk_sample_logprobs);
        check_candidates(samples, max_new, topk, scored, request.topk_prompt_logprobs)?;
        let outputs = PromptOutputs::new(&mut request, prompt.len(), config.vocab_size)?;
        let stop = StopMatcher::new(&request.params.stop, &config.eos_token_ids, weights.base.detokenizer.clone())?;
        let sequences: Vec<_> = (0..request.num_samples).map(|_| Sequence::new(root, &stop)).collect();
        Ok(Self {
            id,
            flow,
            arrival,
            weights,
            request,
            prompt,
            root,
            shared: Stream::new(root),
            decodes: false,
            outputs,
            width: sequences.len(),
            sequences,
            stop,
            max_new,
            cache_hits: 0,
            suspect_until: 0,
        })
    }

    /// The request from its beginning: with the same seeds, and so with the same tokens. It has passes of its own up to
    /// progress `suspect_until`.
    pub(super) fn restarted(mut self, suspect_until: usize) -> Self {
        self.decodes = false;
        self.release();
        self.sequences.iter_mut().for_each(|sequence| *sequence = Sequence::new(self.root, &self.stop));
        self.outputs = self.outputs.restarted(&self.request);
        self.suspect_until = suspect_until;
        self
    }

    /// Lets go of all keys and values; those to come are under another root.
    pub(super) fn move_to(&mut self, root: NodeId) {
        self.root = root;
        self.release();
    }

    pub(super) fn is_suspect(&self) -> bool {
        self.progress() < self.suspect_until
    }

    /// Grows with every pass as long as keys and values are not let go of.
    pub(super) fn progress(&self) -> usize {
        let drawn = |sequence: &Sequence| sequence.tokens.len();
        if self.decodes {
            self.prompt.len() + self.sequences.iter().map(drawn).sum::<usize>()
        } else {
            self.shared.kv.len()
        }
    }

    pub(super) fn prompt_tokens(&self) -> usize {
        self.prompt.len()
    }

    /// Bytes that it comes to hold up to some tokens from where it is, shared ones included.
    pub(super) fn footprint(&self) -> usize {
        self.open().map(|(_, sequence)| self.reach(sequence)).sum::<usize>() * self.block_bytes()
    }

    /// Blocks of a sequence up to some tokens from where it is.
    fn reach(&self, sequence: &Sequence) -> usize {
        let whole = self.prompt.len() + self.max_new - 1;
        blocks(whole.min(self.prompt.len() + sequence.tokens.len() + AHEAD))
    }

    /// Extends as many sequences together as there are places and bytes for, some tokens from where they are; one at
    /// least. They have the prompt's full blocks in common.
    pub(super) fn fit(&mut self, places: usize, bytes: usize) {
        self.width = self.sequences.len();
        let (full, room) = (self.prompt.len() / BLOCK, bytes / self.block_bytes());
        let mut taken = full;
        let fitting = self.open().take(places).take_while(|(_, sequence)| {
            taken += self.reach(sequence) - full;
            taken <= room
        });
        self.width = fitting.count().max(1);
    }

    /// Extends one sequence less from now on, and lets go of what the others hold. False if there is only one.
    pub(super) fn narrow(&mut self) -> bool {
        let running = self.sequences();
        if running < 2 {
            return false;
        }
        self.width = running - 1;
        let open = self.sequences.iter_mut().filter(|sequence| sequence.end.is_none());
        open.skip(self.width).for_each(|sequence| sequence.stream = Stream::new(self.root));
        true
    }

    /// Bytes of one of its blocks.
    pub(super) fn block_bytes(&self) -> usize {
        self.weights.weights.shape.block_len() * size_of::<f32>()
    }

    /// Sequences that it decodes together.
    pub(super) fn sequences(&self) -> usize {
        self.open().count()
    }

    /// What is to be extended: the prompt, or the sequences whose turn it is.
    pub(super) fn targets(&self) -> impl Iterator<Item = Target> + use<> {
        let open: Vec<_> = match self.decodes {
            false => vec![Target::Prompt],
            true => self.open().map(|(s, _)| Target::Sequence(s)).collect(),
        };
        open.into_iter()
    }

    /// The first sequences that have not ended.
    fn open(&self) -> impl Iterator<Item = (usize, &Sequence)> {
        self.sequences.iter().enumerate().filter(|(_, sequence)| sequence.end.is_none()).take(self.width)
    }

    pub(super) fn is_finished(&self) -> bool {
        self.sequences.iter().all(|s| s.end.is_some())
    }

    /// The tokens of a target and its keys and values.
    pub(super) fn stream(&self, target: Target) -> (Text<'_>, &Stream) {
        match target {
            Target::Prompt => (Text { prompt: &self.prompt, generated: &[] }, &self.shared),
            Target::Sequence(s) => {
                let sequence = &self.sequences[s];
                (Text { prompt: &self.prompt, generated: &sequence.tokens }, &sequence.stream)
            }
        }
    }

    /// As [`SampleJob::stream`], to be changed.
    pub(super) fn stream_mut(&mut self, target: Target) -> (Text<'_>, &mut Stream) {
        match target {
            Target::Prompt => (Text { prompt: &self.prompt, generated: &[] }, &mut self.shared),
            Target::Sequence(s) => {
                let sequence = &mut self.sequences[s];
                (Text { prompt: &self.prompt, generated: &sequence.tokens }, &mut sequence.stream)
            }
        }
    }

    /// Whether all but the last token of a target are computed, and that was drawn.
    pub(super) fn is_decoding(&self, target: Target) -> bool {
        let (text, stream) = self.stream(target);
        target != Target::Prompt && stream.kv.len() + 1 == text.len()
    }

    /// Tokens of a target that need not be computed when the cache has them. The last row gives the logits to draw
    /// from; the prompt's outputs may need more rows.
    pub(super) fn reusable(&self, target: Target) -> usize {
        match target {
            Target::Prompt => self.outputs.first_row(),
            Target::Sequence(_) => self.stream(target).0.len() - 1,
        }
    }

    /// Takes from the cache what it has of a target.
    pub(super) fn reuse(&mut self, target: Target, cache: &mut PrefixCache) {
        let limit = self.reusable(target);
        let (text, stream) = self.stream_mut(target);
        let taken = stream.take(cache, text, limit);
        if target == Target::Prompt {
            self.cache_hits += taken;
        }
    }

    /// Blocks that it holds by itself.
    pub(super) fn own_blocks(&self) -> usize {
        self.shared.own_blocks() + self.sequences.iter().map(|s| s.stream.own_blocks()).sum::<usize>()
    }

    /// Blocks that it takes beyond those in the cache, up to some tokens from where it is.
    pub(super) fn blocks_ahead(&self) -> usize {
        if self.decodes {
            return self.open().map(|(_, s)| self.reach(s).saturating_sub(s.stream.cached())).sum();
        }
        let full = self.prompt.len() / BLOCK;
        full.saturating_sub(self.shared.cached()) + self.open().map(|(_, s)| self.reach(s) - full).sum::<usize>()
    }

    /// Blocks that it holds more when a target is computed up to `end`. With the prompt's end every sequence begins to
    /// fill a copy of its last block.
    pub(super) fn growth(&self, target: Target, end: usize) -> usize {
        let begins = target == Target::Prompt && end == self.prompt.len() && !end.is_multiple_of(BLOCK);
        let copies = if begins { self.sequences().saturating_sub(1) } else { 0 };
        blocks(end).saturating_sub(self.stream(target).1.kv.blocks().len()) + copies
    }

    /// Lets go of all keys and values: they are taken from the cache or computed again when the job goes on.
    pub(super) fn release(&mut self) {
        self.shared = Stream::new(self.root);
        self.sequences.iter_mut().for_each(|s| s.stream = Stream::new(self.root));
        if !self.decodes {
            self.cache_hits = 0;
        }
    }

    /// Fills the prompt's outputs from the residual stream `x` of prompt `positions`.
    pub(super) fn score_prompt(&mut self, cpu: &Cpu, positions: std::ops::Range<usize>, x: &[f32]) {
        self.outputs.score(cpu, &self.weights, &self.prompt, &self.request.params, positions, x);
    }

    /// Gives the sequences that go on the prompt's keys and values. Returns how many may draw their first token from
    /// the prompt's last row: all, since those that wait need not compute it again to know what comes next.
    pub(super) fn begin_decoding(&mut self) -> usize {
        self.decodes = true;
        let shared = std::mem::replace(&mut self.shared, Stream::new(self.root));
        self.sequences.iter_mut().take(self.width).for_each(|s| s.stream = shared.clone());
        self.sequences.len()
    }

    /// The next draw of a sequence.
    pub(super) fn decoding<'a>(&'a self, s: usize, logits: &'a [f32]) -> Decoding<'a> {
        let params = &self.request.params;
        Decoding {
            logits,
            params,
            topk: self.request.topk_sample_logprobs as usize,
            u: uniform(params.seed, s as u64, self.sequences[s].tokens.len() as u64),
        }
    }

    /// Appends a drawn token to a sequence.
    pub(super) fn push(&mut self, s: usize, drawn: Drawn) {
        let sequence = &mut self.sequences[s];
        sequence.tokens.push(drawn.token);
        sequence.logprobs.push(drawn.logprob);
        sequence.topk.extend(drawn.topk);
        if sequence.stop.push(drawn.token) {
            sequence.end = Some(StopReason::Stop);
        } else if sequence.tokens.len() >= self.max_new {
            sequence.end = Some(StopReason::Length);
        }
        if sequence.end.is_some() {
            sequence.stream = Stream::new(self.root);
        }
    }

    /// What the finished request returns.
    pub(super) fn into_result(self) -> SampleResult {
        let k = self.request.topk_sample_logprobs as usize;
        let sequences = self.sequences.into_iter().map(|s| SampledSequence {
            stop_reason: s.end.unwrap_or(StopReason::Length),
            topk: (k > 0).then(|| TopkLogprobs {
                k,
                token_ids: s.topk.iter().map(|(id, _)| *id).collect(),
                logprobs: s.topk.iter().map(|(_, logprob)| *logprob).collect(),
            }),
            tokens: s.tokens,
            logprobs: s.logprobs,
        });
        // Others may use the same base model or published checkpoint, and must not see in a hit what was asked of it.
        let private = matches!(self.request.source, SamplerSource::Snapshot { .. });
        let mut result = SampleResult {
            sequences: sequences.collect(),
            prompt_logprobs: None,
            topk_prompt_logprobs: None,
            target_prompt_logprobs: None,
            prompt_alt_tokens: None,
            prompt_cache_hit_tokens: if private { self.cache_hits as u32 } else { 0 },
        };
        self.outputs.finish(&mut result);
        result
    }
}

#[cfg(test)]
impl SampleJob {
    /// Puts a token past the checks: the last one of the prompt, or of each sequence.
    pub(super) fn poison(&mut self, token: u32) {
        let texts = self.sequences.iter_mut().map(|sequence| &mut sequence.tokens);
        let last = match self.decodes {
            true => texts.filter_map(|text| text.last_mut()).collect(),
            false => self.prompt.last_mut().into_iter().collect::<Vec<_>>(),
        };
        last.into_iter().for_each(|last| *last = token);
    }
}
