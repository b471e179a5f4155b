//! One pass: which prompts and sequences it extends, the pass itself, and the tokens that it ends in.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::Sampler;
use super::draw::{Decoding, Drawn};
use super::job::Target;
use crate::draw::DrawScratch;
use crate::kernels::Cpu;
use crate::kernels::attention::BLOCK;
use crate::kernels::elementwise::for_each;
use crate::model::{Adapter, Group, PassInput, Weights, forward, score_rows};

/// Prompt rows of a pass while no sequence decodes.
const PREFILL_ROWS: usize = 256;
/// Prompt rows of a pass for which decoding sequences wait, at least: a compromise between their pace and the price
/// of reading all weights for few rows.
const SHARED_ROWS: usize = 64;

/// Consecutive positions of a sequence that a pass computes.
pub(super) struct Part {
    /// Place of the job among the active ones.
    pub(super) job: usize,
    pub(super) target: Target,
    pub(super) positions: Range<usize>,
}

/// A token to draw: for a sequence of a job, from a row of the logits.
struct Draw {
    job: usize,
    sequence: usize,
    row: usize,
}

impl Sampler {
    /// What the next pass computes. Passes go around among the weights in use. Every sequence gets its next token;
    /// prompts get their next rows, oldest first, as far as there is room.
    pub(super) fn plan(&mut self) -> Vec<Part> {
        let Some(weights) = self.turns.pop_front() else { return Vec::new() };
        self.turns.push_back(Arc::clone(&weights));
        let mut room = self.prefill_room(&weights);
        let mut parts = Vec::new();
        let mut claimed = BTreeSet::new();
        for (i, job) in self.active.iter_mut().enumerate() {
            if !Arc::ptr_eq(&job.weights.weights, &weights) {
                continue;
            }
            for target in job.targets() {
                job.reuse(target, &mut self.cache);
                let (text, stream) = job.stream(target);
                let (start, known) = (stream.kv.len(), text.len());
                let decodes = job.is_decoding(target);
                let end = if decodes { known } else { chunk_end(start, known, room) };
                if end == start {
                    continue;
                }
                if let Some(block) = stream.next_block(text) {
                    // Another part of this pass computes the same block: it will be in the cache afterwards.
                    if start < job.reusable(target) && claimed.contains(&block) {
                        continue;
                    }
                    claimed.insert(block);
                }
                if !decodes {
                    room -= end - start;
                }
                parts.push(Part { job: i, target, positions: start..end });
            }
        }
        self.by_adapter(&mut parts);
        parts
    }

    /// Brings parts with the same adapter together: each adapter is one product for all of its rows.
    fn by_adapter(&self, parts: &mut [Part]) {
        let mut seen: Vec<*const Adapter> = Vec::new();
        let mut place = |part: &Part| {
            let adapter = self.active[part.job].weights.adapter.as_ref().map_or(std::ptr::null(), Arc::as_ptr);
            seen.iter().position(|other| std::ptr::eq(*other, adapter)).unwrap_or_else(|| {
                seen.push(adapter);
                seen.len() - 1
            })
        };
        parts.sort_by_cached_key(|part| place(part));
    }

    /// Prompt rows of the next pass: fewer when sequences wait for it, on any weights, than when none does; more
    /// the more prompts wait for each of those sequences.
    fn prefill_room(&self, weights: &Arc<Weights>) -> usize {
        let (mut decoding, mut behind) = (0usize, 0usize);
        for job in &self.active {
            for target in job.targets() {
                if job.is_decoding(target) {
                    decoding += 1;
                } else if Arc::ptr_eq(&job.weights.weights, weights) {
                    behind += 1;
                }
            }
        }
        let each = behind.checked_div(decoding);
        each.map_or(PREFILL_ROWS, |each| (SHARED_ROWS * each).clamp(SHARED_ROWS, PREFILL_ROWS))
    }

    /// Computes the parts.
    pub(super) fn run(&mut self, cpu: &Cpu, parts: &[Part]) {
        let Some(first) = parts.first() else { return };
        let weights = Arc::clone(&self.active[first.job].weights.weights);
        let (mut tokens, mut spans, mut kv, mut groups) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            let job = &mut self.active[part.job];
            let rows = tokens.len()..tokens.len() + part.positions.len();
            push_group(&mut groups, rows.clone(), job.weights.adapter.as_ref());
            let (text, stream) = job.stream_mut(part.target);
            text.copy(part.positions.clone(), &mut tokens);
            kv.push(std::mem::take(&mut stream.kv));
            spans.push((rows, part.positions.start));
        }
        let input = PassInput { tokens: &tokens, spans: &spans, kv: &mut kv, groups: &groups };
        let x = forward(cpu, &weights, input, None).x;
        let hidden = weights.config.hidden_size;
        for ((part, (rows, _)), kv) in parts.iter().zip(&spans).zip(kv) {
            let job = &mut self.active[part.job];
            let bytes = job.block_bytes();
            let (text, stream) = job.stream_mut(part.target);
            stream.kv = kv;
            stream.publish(&mut self.cache, text, bytes);
            if part.target == Target::Prompt {
                job.score_prompt(cpu, part.positions.clone(), &x[rows.start * hidden..rows.end * hidden]);
            }
        }
        self.draw(cpu, &weights, parts, &spans, &x);
    }

    /// Draws the next token of every sequence that the pass brought to its end.
    fn draw(&mut self, cpu: &Cpu, weights: &Weights, parts: &[Part], spans: &[(Range<usize>, usize)], x: &[f32]) {
        let (hidden, vocab) = (weights.config.hidden_size, weights.config.vocab_size);
        let (mut last, mut groups, mut draws) = (Vec::new(), Vec::new(), Vec::new());
        for (part, (rows, _)) in parts.iter().zip(spans) {
            let job = &mut self.active[part.job];
            if part.positions.end < job.stream(part.target).0.len() {
                continue;
            }
            let row = last.len() / hidden;
            last.extend_from_slice(&x[(rows.end - 1) * hidden..rows.end * hidden]);
            push_group(&mut groups, row..row + 1, job.weights.adapter.as_ref());
            match part.target {
                Target::Prompt => {
                    job.begin_decoding();
                    draws.extend((0..job.sequences()).map(|sequence| Draw { job: part.job, sequence, row }));
                }
                Target::Sequence(sequence) => draws.push(Draw { job: part.job, sequence, row }),
            }
        }
        if draws.is_empty() {
            return;
        }
        let logits = score_rows(cpu, weights, &last, &groups).logits(cpu);
        let decoding = |draw: &Draw| {
            let logits = &logits[draw.row * vocab..(draw.row + 1) * vocab];
            self.active[draw.job].decoding(draw.sequence, logits)
        };
        let mut drawn: Vec<(Decoding<'_>, Drawn)> =
            draws.iter().map(|draw| (decoding(draw), Drawn::default())).collect();
        for_each(cpu, &mut drawn, |_, (decoding, drawn)| *drawn = decoding.draw(cpu, &mut DrawScratch::default()));
        let drawn: Vec<Drawn> = drawn.into_iter().map(|(_, drawn)| drawn).collect();
        for (draw, drawn) in draws.into_iter().zip(drawn) {
            self.active[draw.job].push(draw.sequence, drawn);
        }
    }
}

/// Where a chunk of a prompt ends: at the end of a block, so that the next one can come from the cache, or of the
/// prompt.
fn chunk_end(start: usize, known: usize, room: usize) -> usize {
    if known - start <= room { known } else { ((start + room) / BLOCK * BLOCK).max(start) }
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
