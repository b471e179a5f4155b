//! Continuous batching: every step runs one pass that extends prompts and sequences of many requests.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use trainyard_protocol::{Completion, OpError, OpResult, RequestId, Sample};

use super::base::Base;
use super::request::{Decoding, SampleJob};
use crate::kernels::Cpu;
use crate::kernels::attention::{BLOCK, KvSequence};
use crate::kernels::elementwise::for_each;
use crate::model::{Adapter, Group, PassInput, ScoredRows, Weights, forward};

/// Sequences that decode together at most.
const MAX_SEQUENCES: usize = 256;
/// Prompt rows of one pass; decoding rows come on top.
const PREFILL_ROWS: usize = 256;

/// The weights that a sample uses, frozen: training replaces a run's, it never changes them.
#[derive(Clone)]
pub(super) struct SamplerWeights {
    pub(super) base: Arc<Base>,
    pub(super) weights: Arc<Weights>,
    pub(super) adapter: Option<Arc<Adapter>>,
}

impl SamplerWeights {
    pub(super) fn of_base(base: Arc<Base>) -> Self {
        Self { weights: Arc::clone(&base.weights), base, adapter: None }
    }
}

/// Samples in progress and waiting.
pub(super) struct Sampler {
    waiting: VecDeque<SampleJob>,
    active: Vec<SampleJob>,
    kv_bytes: usize,
    turn: usize,
}

/// A job's part in a pass.
enum Part {
    /// Prompt positions.
    Prefill(Range<usize>),
    /// One row per unfinished sequence, by index.
    Decode(Vec<usize>),
}

impl Sampler {
    pub(super) fn new(kv_bytes: usize) -> Self {
        Self { waiting: VecDeque::new(), active: Vec::new(), kv_bytes, turn: 0 }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.active.is_empty()
    }

    /// Checks a request and queues it.
    pub(super) fn start(&mut self, id: RequestId, weights: SamplerWeights, request: Sample) -> Result<(), OpError> {
        self.waiting.push_back(SampleJob::new(id, weights, request)?);
        Ok(())
    }

    /// Gives up a request.
    pub(super) fn cancel(&mut self, id: &RequestId) -> bool {
        let before = self.waiting.len() + self.active.len();
        self.waiting.retain(|job| job.id != *id);
        self.active.retain(|job| job.id != *id);
        before != self.waiting.len() + self.active.len()
    }

    /// Admits what fits, in order of arrival; a request that alone is too large runs alone.
    fn admit(&mut self) {
        while let Some(next) = self.waiting.front() {
            let block = |job: &SampleJob| job.weights.weights.shape.block_len() * size_of::<f32>();
            let held: usize = self.active.iter().map(|job| job.kv_blocks() * block(job)).sum();
            let sequences: usize = self.active.iter().map(SampleJob::sequences).sum();
            let fits =
                held + next.kv_blocks() * block(next) <= self.kv_bytes && sequences + next.sequences() <= MAX_SEQUENCES;
            if !fits && !self.active.is_empty() {
                return;
            }
            self.active.extend(self.waiting.pop_front());
        }
    }

    /// Runs one pass and returns the requests that it finished.
    pub(super) fn step(&mut self, cpu: &Cpu) -> Vec<Completion> {
        self.admit();
        if self.active.is_empty() {
            return Vec::new();
        }
        let parts = self.plan();
        self.run(cpu, &parts);
        let finished = self.active.extract_if(.., |job| job.is_finished());
        finished.map(|job| Completion { id: job.id.clone(), result: Ok(OpResult::Sample(job.into_result())) }).collect()
    }

    /// Which jobs take part: those on the same weights as the one whose turn it is.
    fn plan(&mut self) -> Vec<(usize, Part)> {
        self.turn = (self.turn + 1) % self.active.len();
        let leader = Arc::clone(&self.active[self.turn].weights.weights);
        let mut room = PREFILL_ROWS;
        let mut parts = Vec::new();
        for i in (0..self.active.len()).map(|i| (self.turn + i) % self.active.len()) {
            let job = &self.active[i];
            if !Arc::ptr_eq(&job.weights.weights, &leader) {
                continue;
            }
            if let Some(prefilled) = job.prefilled() {
                let end = job.prompt.len().min(prefilled + room);
                if end > prefilled {
                    room -= end - prefilled;
                    parts.push((i, Part::Prefill(prefilled..end)));
                }
            } else {
                parts.push((i, Part::Decode(job.unfinished())));
            }
        }
        parts
    }

    fn run(&mut self, cpu: &Cpu, parts: &[(usize, Part)]) {
        let Some(weights) = parts.first().map(|(i, _)| Arc::clone(&self.active[*i].weights.weights)) else { return };
        let (mut tokens, mut spans, mut kv, mut groups) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (i, part) in parts {
            let job = &mut self.active[*i];
            let first = tokens.len();
            match part {
                Part::Prefill(positions) => {
                    tokens.extend_from_slice(&job.prompt[positions.clone()]);
                    spans.push((first..tokens.len(), positions.start));
                    kv.push(std::mem::take(&mut job.kv));
                }
                Part::Decode(sequences) => {
                    for s in sequences {
                        let (token, sequence) = job.take_decoding(*s);
                        spans.push((tokens.len()..tokens.len() + 1, sequence.len()));
                        tokens.push(token);
                        kv.push(sequence);
                    }
                }
            }
            push_group(&mut groups, first..tokens.len(), job.weights.adapter.as_ref());
        }
        let input = PassInput { tokens: &tokens, spans: &spans, kv: &mut kv, groups: &groups };
        let x = forward(cpu, &weights, input, None).x;
        self.give_back(parts, kv);
        self.score_prompts(cpu, &weights, parts, &spans, &x);
        self.draw(cpu, &weights, parts, &spans, &x);
    }

    fn give_back(&mut self, parts: &[(usize, Part)], kv: Vec<KvSequence>) {
        let mut kv = kv.into_iter();
        for (i, part) in parts {
            let job = &mut self.active[*i];
            match part {
                Part::Prefill(_) => job.kv = kv.next().unwrap_or_default(),
                Part::Decode(sequences) => {
                    sequences.iter().for_each(|s| job.put_kv(*s, kv.next().unwrap_or_default()));
                }
            }
        }
    }

    /// Log-probabilities of prompt tokens, for jobs that asked.
    fn score_prompts(
        &mut self,
        cpu: &Cpu,
        weights: &Weights,
        parts: &[(usize, Part)],
        spans: &[(Range<usize>, usize)],
        x: &[f32],
    ) {
        let hidden = weights.config.hidden_size;
        let mut span = 0;
        for (i, part) in parts {
            match part {
                Part::Prefill(positions) => {
                    let rows = spans[span].0.clone();
                    let x = &x[rows.start * hidden..rows.end * hidden];
                    self.active[*i].score_prompt(cpu, positions.clone(), x);
                    span += 1;
                }
                Part::Decode(sequences) => span += sequences.len(),
            }
        }
    }

    /// Draws the next token of every sequence that this pass brought to its end.
    fn draw(
        &mut self,
        cpu: &Cpu,
        weights: &Weights,
        parts: &[(usize, Part)],
        spans: &[(Range<usize>, usize)],
        x: &[f32],
    ) {
        let (hidden, vocab) = (weights.config.hidden_size, weights.config.vocab_size);
        let (mut rows, mut groups, mut draws) = (Vec::new(), Vec::new(), Vec::new());
        let mut span = 0;
        for (i, part) in parts {
            let job = &mut self.active[*i];
            let first = rows.len();
            match part {
                Part::Prefill(positions) => {
                    if positions.end == job.prompt.len() {
                        job.begin_decoding();
                        draws.extend((0..job.sequences()).map(|s| (*i, s, rows.len())));
                        rows.push(spans[span].0.end - 1);
                    } else {
                        job.set_prefilled(positions.end);
                    }
                    span += 1;
                }
                Part::Decode(sequences) => {
                    for s in sequences {
                        draws.push((*i, *s, rows.len()));
                        rows.push(spans[span].0.start);
                        span += 1;
                    }
                }
            }
            push_group(&mut groups, first..rows.len(), job.weights.adapter.as_ref());
        }
        if rows.is_empty() {
            return;
        }
        let x: Vec<f32> = rows.iter().flat_map(|r| x[r * hidden..(r + 1) * hidden].iter().copied()).collect();
        let scored: ScoredRows<'_> = crate::model::score_rows(cpu, weights, &x, &groups);
        let logits = scored.logits(cpu);
        let mut decoding: Vec<Decoding> = draws
            .iter()
            .map(|(i, s, row)| self.active[*i].decoding(*s, &logits[row * vocab..(row + 1) * vocab]))
            .collect();
        for_each(cpu, &mut decoding, |_, d| d.draw(cpu));
        let drawn: Vec<_> = decoding.into_iter().map(Decoding::finish).collect();
        for ((i, s, _), drawn) in draws.into_iter().zip(drawn) {
            self.active[i].push(s, drawn);
        }
    }
}

/// Appends rows to the last group when the adapter is the same.
fn push_group(groups: &mut Vec<Group>, rows: Range<usize>, adapter: Option<&Arc<Adapter>>) {
    let same = |a: &Option<Arc<Adapter>>| match (a, adapter) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    };
    match groups.last_mut() {
        Some(last) if same(&last.adapter) => last.rows.end = rows.end,
        _ => groups.push(Group { rows, adapter: adapter.cloned() }),
    }
}

/// Blocks of keys and values that `tokens` tokens take.
pub(super) fn blocks(tokens: usize) -> usize {
    tokens.div_ceil(BLOCK)
}
