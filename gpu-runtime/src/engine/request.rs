//! One sampling request: its checks, its prompt's results and its sequences.

use std::ops::Range;

use trainyard_protocol::limits::{MAX_NUM_SAMPLES, MAX_TOPK_LOGPROBS};
use trainyard_protocol::{
    OpError, PromptAltTokens, RequestId, Sample, SampleResult, SampledSequence, SamplingParams, StopReason, Tensor,
    TensorValues, TopkLogprobs,
};

use super::sampler::{SamplerWeights, blocks};
use crate::draw::{DrawScratch, draw, topk, validate_params};
use crate::kernels::Cpu;
use crate::kernels::attention::KvSequence;
use crate::kernels::head::{Targets, log_sum_exp};
use crate::model::{Group, ScoredRows, score_rows};
use crate::rng::{Purpose, uniform, uniform_for};
use crate::stop::StopMatcher;

/// Log-probability of an absent candidate, with token 0.
const ABSENT: f32 = -99_999.0;
/// Prompt rows whose logits are held together.
const LOGIT_ROWS: usize = 32;

/// A request in progress.
pub(super) struct SampleJob {
    pub(super) id: RequestId,
    pub(super) weights: SamplerWeights,
    pub(super) prompt: Vec<u32>,
    /// Keys and values of the prompt while it is being computed.
    pub(super) kv: KvSequence,
    request: Sample,
    phase: Phase,
    outputs: PromptOutputs,
    sequences: Vec<Sequence>,
    max_new: usize,
}

enum Phase {
    /// Prompt positions computed.
    Prefill(usize),
    Decode,
}

struct Sequence {
    kv: KvSequence,
    tokens: Vec<u32>,
    logprobs: Vec<f32>,
    topk: Vec<(u32, f32)>,
    stop: StopMatcher,
    end: Option<StopReason>,
}

/// What the request asked of its prompt, filled position by position.
struct PromptOutputs {
    logprobs: Option<Vec<f32>>,
    topk: Option<TopkLogprobs>,
    targets: Option<TargetCells>,
    alternatives: Option<PromptAltTokens>,
    /// First position whose `logprobs` and `topk` are wanted.
    from: usize,
}

/// `target_prompt_logprobs`, `[len - 1, k]`.
struct TargetCells {
    k: usize,
    ids: Vec<i64>,
    logprobs: Vec<f32>,
}

fn check_tokens(prompt: &[i64], vocab: usize) -> Result<Vec<u32>, OpError> {
    if prompt.is_empty() {
        return Err(OpError::user("prompt: must hold at least one token"));
    }
    let check = |(i, id): (usize, &i64)| {
        u32::try_from(*id).ok().filter(|id| (*id as usize) < vocab).ok_or_else(|| {
            OpError::user(format!("prompt: token {id} at position {i} is outside the vocabulary of {vocab}"))
        })
    };
    prompt.iter().enumerate().map(check).collect()
}

fn max_new_tokens(params: &SamplingParams, prompt: usize, context: usize) -> Result<usize, OpError> {
    let exceeds = |new: usize| {
        OpError::user(format!(
            "Prompt length plus max_tokens exceeds the model's context window: {prompt} + {new} > {context}"
        ))
    };
    match params.max_tokens {
        Some(new) if prompt + new as usize > context => Err(exceeds(new as usize)),
        Some(new) => Ok(new as usize),
        None if prompt >= context => Err(exceeds(1)),
        None => Ok(context - prompt),
    }
}

fn check_counts(request: &Sample, prompt: usize) -> Result<(), OpError> {
    if request.num_samples == 0 || request.num_samples > MAX_NUM_SAMPLES {
        return Err(OpError::user(format!(
            "num_samples: {} is not between 1 and {MAX_NUM_SAMPLES}",
            request.num_samples
        )));
    }
    for (name, k) in [
        ("topk_prompt_logprobs", request.topk_prompt_logprobs),
        ("topk_sample_logprobs", request.topk_sample_logprobs),
        ("prompt_alt_tokens_k", request.prompt_alt_tokens_k),
    ] {
        if k > MAX_TOPK_LOGPROBS {
            return Err(OpError::user(format!("{name}: {k} is more than {MAX_TOPK_LOGPROBS}")));
        }
    }
    if let Some(n) = request.prompt_logprobs_last_n {
        if !request.prompt_logprobs {
            return Err(OpError::user("prompt_logprobs_last_n: needs prompt_logprobs"));
        }
        if n == 0 || n as usize >= prompt {
            return Err(OpError::user(format!("prompt_logprobs_last_n: {n} is not between 1 and {}", prompt - 1)));
        }
    }
    Ok(())
}

fn target_cells(tensor: &Tensor, prompt: usize, vocab: usize) -> Result<TargetCells, OpError> {
    let invalid = |text: String| Err(OpError::user(format!("target_prompt_logprobs: {text}")));
    let TensorValues::I64(ids) = &tensor.values else {
        return invalid(format!("dtype {} is not int64", tensor.dtype()));
    };
    let [rows, k] = tensor.shape[..] else {
        return invalid(format!("shape {:?} is not two-dimensional", tensor.shape));
    };
    if rows + 1 != prompt || rows * k != ids.len() {
        return invalid(format!("shape {:?} does not match a prompt of {prompt} tokens", tensor.shape));
    }
    if let Some(id) = ids.iter().find(|id| **id < -1 || **id >= vocab as i64) {
        return invalid(format!("token {id} is outside the vocabulary of {vocab}"));
    }
    if ids.iter().all(|id| *id < 0) {
        return invalid("must hold at least one token id".into());
    }
    Ok(TargetCells { k, ids: ids.clone(), logprobs: vec![0.0; ids.len()] })
}

impl PromptOutputs {
    fn new(request: &Sample, prompt: usize, vocab: usize) -> Result<Self, OpError> {
        let k = request.topk_prompt_logprobs as usize;
        let alt = request.prompt_alt_tokens_k as usize;
        let cells = alt * (prompt - 1);
        Ok(Self {
            logprobs: request.prompt_logprobs.then(|| vec![f32::NAN; prompt]),
            topk: (k > 0).then(|| TopkLogprobs {
                k,
                token_ids: vec![0; prompt * k],
                logprobs: vec![ABSENT; prompt * k],
            }),
            targets: request.target_prompt_logprobs.as_ref().map(|t| target_cells(t, prompt, vocab)).transpose()?,
            alternatives: (alt > 0).then(|| PromptAltTokens {
                k: alt,
                tokens: vec![0; cells],
                logprobs: vec![0.0; cells],
            }),
            from: request.prompt_logprobs_last_n.map_or(1, |n| prompt - n as usize),
        })
    }

    fn wanted(&self) -> bool {
        self.logprobs.is_some() || self.topk.is_some() || self.targets.is_some() || self.alternatives.is_some()
    }
}

impl SampleJob {
    /// Checks a request.
    pub(super) fn new(id: RequestId, weights: SamplerWeights, request: Sample) -> Result<Self, OpError> {
        let config = &weights.base.config;
        let prompt = check_tokens(&request.prompt, config.vocab_size)?;
        validate_params(&request.params)?;
        check_counts(&request, prompt.len())?;
        let max_new = max_new_tokens(&request.params, prompt.len(), config.max_position_embeddings)?;
        let outputs = PromptOutputs::new(&request, prompt.len(), config.vocab_size)?;
        let stop = StopMatcher::new(&request.params.stop, &config.eos_token_ids, weights.base.detokenizer.clone())?;
        let sequence = || Sequence {
            kv: KvSequence::default(),
            tokens: Vec::new(),
            logprobs: Vec::new(),
            topk: Vec::new(),
            stop: stop.clone(),
            end: None,
        };
        let sequences = (0..request.num_samples).map(|_| sequence()).collect();
        let kv = KvSequence::default();
        Ok(Self { id, weights, prompt, kv, request, phase: Phase::Prefill(0), outputs, sequences, max_new })
    }

    /// Sequences that it decodes.
    pub(super) fn sequences(&self) -> usize {
        self.sequences.len()
    }

    /// Most blocks of keys and values that it can come to hold: samples share the prompt's full blocks.
    pub(super) fn kv_blocks(&self) -> usize {
        blocks(self.prompt.len()) + self.sequences.len() * (blocks(self.max_new) + 1)
    }

    /// Prompt positions computed; `None` once it decodes.
    pub(super) fn prefilled(&self) -> Option<usize> {
        match self.phase {
            Phase::Prefill(done) => Some(done),
            Phase::Decode => None,
        }
    }

    pub(super) fn set_prefilled(&mut self, done: usize) {
        self.phase = Phase::Prefill(done);
    }

    /// Gives every sequence the prompt's keys and values.
    pub(super) fn begin_decoding(&mut self) {
        self.phase = Phase::Decode;
        let kv = std::mem::take(&mut self.kv);
        self.sequences.iter_mut().for_each(|s| s.kv = kv.clone());
    }

    pub(super) fn unfinished(&self) -> Vec<usize> {
        (0..self.sequences.len()).filter(|s| self.sequences[*s].end.is_none()).collect()
    }

    pub(super) fn is_finished(&self) -> bool {
        self.sequences.iter().all(|s| s.end.is_some())
    }

    /// The last token of a sequence and its keys and values, which the caller gives back.
    pub(super) fn take_decoding(&mut self, s: usize) -> (u32, KvSequence) {
        let sequence = &mut self.sequences[s];
        (sequence.tokens.last().copied().unwrap_or_default(), std::mem::take(&mut sequence.kv))
    }

    pub(super) fn put_kv(&mut self, s: usize, kv: KvSequence) {
        self.sequences[s].kv = kv;
    }

    /// Fills the prompt's outputs from the residual stream `x` of prompt `positions`.
    pub(super) fn score_prompt(&mut self, cpu: &Cpu, positions: Range<usize>, x: &[f32]) {
        // Row p scores the token at p + 1, so the last prompt row has nothing to score.
        let end = positions.end.min(self.prompt.len() - 1);
        if !self.outputs.wanted() || end <= positions.start {
            return;
        }
        let rows = end - positions.start;
        let weights = self.weights.weights.clone();
        let hidden = weights.config.hidden_size;
        let group = [Group { rows: 0..rows, adapter: self.weights.adapter.clone() }];
        let scored = score_rows(cpu, &weights, &x[..rows * hidden], &group);
        self.score_targets(cpu, positions.start, rows, &scored);
        if self.outputs.topk.is_some() || self.outputs.alternatives.is_some() {
            for first in (0..rows).step_by(LOGIT_ROWS) {
                let count = (rows - first).min(LOGIT_ROWS);
                let group = [Group { rows: 0..count, adapter: self.weights.adapter.clone() }];
                let part = scored.hidden[first * hidden..(first + count) * hidden].to_vec();
                let logits = ScoredRows::from_hidden(cpu, &weights, part, &group).logits(cpu);
                for (i, logits) in logits.chunks_exact(weights.config.vocab_size).enumerate() {
                    self.score_candidates(cpu, positions.start + first + i, logits);
                }
            }
        }
    }

    fn score_targets(&mut self, cpu: &Cpu, first: usize, rows: usize, scored: &ScoredRows<'_>) {
        let mut targets = Targets { offsets: vec![0], ids: Vec::new() };
        let outputs = &mut self.outputs;
        for row in first..first + rows {
            targets.ids.push(self.prompt[row + 1]);
            if let Some(cells) = &outputs.targets {
                let wanted = &cells.ids[row * cells.k..(row + 1) * cells.k];
                targets.ids.extend(wanted.iter().filter(|id| **id >= 0).map(|id| *id as u32));
            }
            targets.offsets.push(targets.ids.len());
        }
        let (logprobs, _) = scored.target_logprobs(cpu, &targets);
        for row in first..first + rows {
            let mut found = logprobs[targets.offsets[row - first]..].iter();
            let own = found.next();
            if let (Some(out), Some(own)) = (&mut outputs.logprobs, own)
                && row + 1 >= outputs.from
            {
                out[row + 1] = *own;
            }
            if let Some(cells) = &mut outputs.targets {
                let at = row * cells.k..(row + 1) * cells.k;
                for (id, out) in cells.ids[at.clone()].iter().zip(&mut cells.logprobs[at]) {
                    if *id >= 0 {
                        *out = found.next().copied().unwrap_or(0.0);
                    }
                }
            }
        }
    }

    /// Top candidates and independent draws for the token after prompt position `row`.
    fn score_candidates(&mut self, cpu: &Cpu, row: usize, logits: &[f32]) {
        let params = &self.request.params;
        if let Some(out) = &mut self.outputs.topk
            && row + 1 >= self.outputs.from
        {
            let lse = log_sum_exp(cpu, logits, 1.0);
            for (j, (id, logit)) in topk(logits, out.k).into_iter().enumerate() {
                out.token_ids[(row + 1) * out.k + j] = id;
                out.logprobs[(row + 1) * out.k + j] = logit - lse;
            }
        }
        if let Some(out) = &mut self.outputs.alternatives {
            let scale = logprob_scale(params.temperature);
            let lse = log_sum_exp(cpu, logits, scale);
            let mut scratch = DrawScratch::default();
            for j in 0..out.k {
                let u = uniform_for(Purpose::Alternative, params.seed, j as u64, row as u64 + 1);
                let id = draw(logits, params.temperature, None, 1.0, u, &mut scratch);
                out.tokens[row * out.k + j] = id;
                out.logprobs[row * out.k + j] = logits[id as usize] * scale - lse;
            }
        }
    }

    /// The next draw of a sequence.
    pub(super) fn decoding<'a>(&self, s: usize, logits: &'a [f32]) -> Decoding<'a> {
        let params = &self.request.params;
        Decoding {
            logits,
            params: params.clone(),
            topk: self.request.topk_sample_logprobs as usize,
            u: uniform(params.seed, s as u64, self.sequences[s].tokens.len() as u64),
            drawn: Drawn::default(),
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
            sequence.kv = KvSequence::default();
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
        let target_shape = vec![self.prompt.len() - 1, self.outputs.targets.as_ref().map_or(0, |t| t.k)];
        SampleResult {
            sequences: sequences.collect(),
            prompt_logprobs: self.outputs.logprobs,
            topk_prompt_logprobs: self.outputs.topk,
            target_prompt_logprobs: self
                .outputs
                .targets
                .map(|cells| Tensor { shape: target_shape, values: TensorValues::F32(cells.logprobs) }),
            prompt_alt_tokens: self.outputs.alternatives,
            prompt_cache_hit_tokens: 0,
        }
    }
}

/// The factor on logits whose log-softmax is reported: 1 / temperature, and 1 when greedy, where the
/// scaled distribution is a point.
fn logprob_scale(temperature: f32) -> f32 {
    if temperature == 0.0 { 1.0 } else { 1.0 / temperature }
}

/// A token that is about to be drawn.
pub(super) struct Decoding<'a> {
    logits: &'a [f32],
    params: SamplingParams,
    topk: usize,
    u: f64,
    drawn: Drawn,
}

/// A drawn token.
#[derive(Default)]
pub(super) struct Drawn {
    token: u32,
    logprob: f32,
    topk: Vec<(u32, f32)>,
}

impl Decoding<'_> {
    pub(super) fn draw(&mut self, cpu: &Cpu) {
        let p = &self.params;
        let token = draw(self.logits, p.temperature, p.top_k, p.top_p, self.u, &mut DrawScratch::default());
        let scale = logprob_scale(p.temperature);
        let lse = log_sum_exp(cpu, self.logits, scale);
        let logprob = |logit: f32| logit * scale - lse;
        let mut topk: Vec<_> = topk(self.logits, self.topk).into_iter().map(|(id, l)| (id, logprob(l))).collect();
        topk.resize(self.topk, (0, ABSENT));
        self.drawn = Drawn { token, logprob: logprob(self.logits[token as usize]), topk };
    }

    pub(super) fn finish(self) -> Drawn {
        self.drawn
    }
}
