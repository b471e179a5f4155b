//! A pass that extends prompts and sequences, and the tokens that it ends in.

use std::ops::Range;
use std::sync::Arc;

use super::Sampler;
use super::draw::{Decoding, Drawn};
use super::job::Target;
use crate::draw::DrawScratch;
use crate::kernels::Cpu;
use crate::kernels::elementwise::for_each;
use crate::model::{Adapter, Group, PassInput, Weights, forward, score_rows};

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
    /// Computes the parts.
    pub(super) fn run(&mut self, cpu: &Cpu, parts: &[Part]) {
        let Some(first) = parts.first() else { return };
        let of_prompts = parts.iter().filter(|part| part.target == Target::Prompt);
        self.counts.prompted += of_prompts.map(|part| part.positions.len() as u64).sum::<u64>();
        self.counts.passes += 1;
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
        self.counts.drawn += draws.len() as u64;
        for (draw, drawn) in draws.into_iter().zip(drawn) {
            let job = &mut self.active[draw.job];
            job.push(draw.sequence, drawn);
            self.admissions.charge(&job.flow.name, 1);
            self.prefills.charge(&job.flow.name, 1);
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
