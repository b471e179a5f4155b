//! A pass that extends prompts and sequences, and the tokens that it ends in.

use std::ops::Range;
use std::sync::Arc;

use super::draw::{Decoding, Drawn};
use super::job::Target;
use super::{LOGIT_ROWS, Sampler, logit_buffer};
use crate::draw::DrawScratch;
use crate::kernels::elementwise::for_each;
use crate::kernels::{Cpu, rows_per_task};
use crate::model::{Adapter, Group, PassInput, Weights, forward, score_rows};

/// Consecutive positions of a sequence that a pass computes.
pub(super) struct Part {
    /// Place of the job among the active ones.
    pub(super) job: usize,
    pub(super) target: Target,
    pub(super) positions: Range<usize>,
}

/// A row that tokens are drawn from.
struct Last {
    /// In the pass.
    row: usize,
    adapter: Option<Arc<Adapter>>,
}

/// A token to draw: for a sequence of a job, from one of the rows that tokens are drawn from.
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
        let (mut last, mut draws) = (Vec::new(), Vec::new());
        for (part, (rows, _)) in parts.iter().zip(spans) {
            let job = &mut self.active[part.job];
            if part.positions.end < job.stream(part.target).0.len() {
                continue;
            }
            let row = last.len();
            last.push(Last { row: rows.end - 1, adapter: job.weights.adapter.clone() });
            match part.target {
                Target::Prompt => {
                    let sequences = job.begin_decoding();
                    draws.extend((0..sequences).map(|sequence| Draw { job: part.job, sequence, row }));
                }
                Target::Sequence(sequence) => draws.push(Draw { job: part.job, sequence, row }),
            }
        }
        let mut drawn = Vec::with_capacity(draws.len());
        for (i, last) in last.chunks(LOGIT_ROWS).enumerate() {
            let rows = i * LOGIT_ROWS..i * LOGIT_ROWS + last.len();
            let of = |row: usize| draws.partition_point(|draw: &Draw| draw.row < row);
            drawn.extend(self.draw_rows(cpu, weights, last, &draws[of(rows.start)..of(rows.end)], rows.start, x));
        }
        self.counts.drawn += draws.len() as u64;
        for (draw, drawn) in draws.into_iter().zip(drawn) {
            let job = &mut self.active[draw.job];
            job.push(draw.sequence, drawn);
            self.admissions.charge(&job.flow.name, 1);
            self.prefills.charge(&job.flow.name, 1);
        }
    }

    /// The tokens of some rows, of which `first` is the first one.
    fn draw_rows(
        &self,
        cpu: &Cpu,
        weights: &Weights,
        rows: &[Last],
        draws: &[Draw],
        first: usize,
        x: &[f32],
    ) -> Vec<Drawn> {
        let (hidden, vocab) = (weights.config.hidden_size, weights.config.vocab_size);
        let (mut last, mut groups) = (Vec::with_capacity(rows.len() * hidden), Vec::new());
        for (i, Last { row, adapter }) in rows.iter().enumerate() {
            last.extend_from_slice(&x[row * hidden..(row + 1) * hidden]);
            push_group(&mut groups, i..i + 1, adapter.as_ref());
        }
        let mut logits = logit_buffer(cpu, vocab);
        score_rows(cpu, weights, &last, &groups).logits(cpu, &mut logits[..rows.len() * vocab]);
        let decoding = |draw: &Draw| {
            let at = (draw.row - first) * vocab;
            self.active[draw.job].decoding(draw.sequence, &logits[at..at + vocab])
        };
        let mut drawn: Vec<(Decoding<'_>, Drawn)> =
            draws.iter().map(|draw| (decoding(draw), Drawn::default())).collect();
        let each = rows_per_task(&cpu.pool, drawn.len());
        for_each(cpu, &mut drawn.chunks_mut(each).collect::<Vec<_>>(), |_, draws| {
            let mut scratch = DrawScratch::default();
            draws.iter_mut().for_each(|(decoding, drawn)| *drawn = decoding.draw(cpu, &mut scratch));
        });
        drawn.into_iter().map(|(_, drawn)| drawn).collect()
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
