//! A pass that extends prompts and sequences, and the sampling of their next tokens.

use std::ops::Range;
use std::sync::Arc;

use super::Sampler;
use super::images::pass_images;
use super::logits::LOGIT_ROWS;
use super::part::PassPart;
use super::task::StreamTarget;
use crate::backend::{Backend, SampledToken, TokenRequest};
use crate::model::{Adapter, LastRows, LogitBuffer, PassInput, RowGroup, WeightSource, Weights, forward};

/// A row of a pass whose logits tokens are sampled from.
struct LastRow<B: Backend> {
    /// Index in the pass.
    row: usize,
    adapter: Option<Arc<Adapter<B>>>,
}

/// A token to sample for a sequence of an active request.
struct NextToken {
    task: usize,
    sequence: usize,
    /// Index of its [`LastRow`].
    row: usize,
}

impl<B: Backend> Sampler<B> {
    /// Runs one pass over `parts`, which use the same weights, and samples the next tokens.
    pub(super) fn run(&mut self, backend: &B, parts: &[PassPart]) {
        let Some(first) = parts.first() else { return };
        let of_prompts = parts.iter().filter(|part| part.target == StreamTarget::Prompt);
        self.counts.prompt_tokens += of_prompts.map(|part| part.positions.len() as u64).sum::<u64>();
        self.counts.passes += 1;
        let weights = Arc::clone(&self.active[first.task].weights.weights);
        let (mut tokens, mut spans, mut kv, mut groups) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            let task = &mut self.active[part.task];
            let rows = tokens.len()..tokens.len() + part.positions.len();
            push_group(&mut groups, rows.clone(), task.weights.adapter.as_ref());
            let (sequence, stream) = task.stream_mut(part.target);
            sequence.copy_to(part.positions.clone(), &mut tokens);
            kv.push(std::mem::take(&mut stream.kv));
            spans.push((rows, part.positions.start));
        }
        let rows = parts.iter().zip(&spans);
        let images =
            pass_images(rows.map(|(part, (rows, _))| (&self.active[part.task].images, &part.positions, rows.start)));
        let images = images.as_ref();
        let input = PassInput {
            tokens: &tokens,
            rows: &spans,
            kv: &mut kv,
            is_continued: true,
            groups: &groups,
            images,
            early_end: None,
        };
        let x = forward(backend, &mut WeightSource::Resident(&weights), input, None).x;
        for ((part, (rows, _)), kv) in parts.iter().zip(&spans).zip(kv) {
            let task = &mut self.active[part.task];
            let bytes = task.block_bytes();
            let (sequence, stream) = task.stream_mut(part.target);
            stream.kv = kv;
            stream.publish(&mut self.cache, sequence, bytes);
            if part.target == StreamTarget::Prompt {
                task.score_prompt(backend, part.positions.clone(), &x, rows.start);
            }
        }
        self.sample_tokens(backend, &weights, parts, &spans, &x);
    }

    /// Samples the next token of every sequence whose known tokens are all computed now. `x` is the residual stream.
    fn sample_tokens(
        &mut self,
        backend: &B,
        weights: &Weights<B>,
        parts: &[PassPart],
        spans: &[(Range<usize>, usize)],
        x: &B::Rows,
    ) {
        let (mut last, mut next) = (Vec::new(), Vec::new());
        for (part, (rows, _)) in parts.iter().zip(spans) {
            let task = &mut self.active[part.task];
            if part.positions.end < task.stream(part.target).0.len() {
                continue;
            }
            let row = last.len();
            last.push(LastRow { row: rows.end - 1, adapter: task.weights.adapter.clone() });
            match part.target {
                StreamTarget::Prompt => {
                    let sequences = task.begin_decoding();
                    next.extend((0..sequences).map(|sequence| NextToken { task: part.task, sequence, row }));
                }
                StreamTarget::Sequence(sequence) => next.push(NextToken { task: part.task, sequence, row }),
            }
        }
        let mut sampled = Vec::with_capacity(next.len());
        for (i, last) in last.chunks(LOGIT_ROWS).enumerate() {
            let rows = i * LOGIT_ROWS..i * LOGIT_ROWS + last.len();
            let of = |row: usize| next.partition_point(|token: &NextToken| token.row < row);
            let tokens = &next[of(rows.start)..of(rows.end)];
            sampled.extend(self.sample_rows(backend, weights, last, tokens, rows.start, x));
        }
        self.counts.sampled_tokens += next.len() as u64;
        for (token, sampled) in next.into_iter().zip(sampled) {
            self.counts.digest.add(sampled.token);
            self.counts.digest.add(sampled.logprob.to_bits());
            let task = &mut self.active[token.task];
            task.push(token.sequence, sampled);
            self.admissions.charge(&task.share.name, 1);
            self.prefills.charge(&task.share.name, 1);
        }
    }

    /// Samples `tokens` from the logits of `rows`; `first` is the index of the first row.
    fn sample_rows(
        &self,
        backend: &B,
        weights: &Weights<B>,
        rows: &[LastRow<B>],
        tokens: &[NextToken],
        first: usize,
        x: &B::Rows,
    ) -> Vec<SampledToken> {
        let mut groups = Vec::new();
        for (i, last) in rows.iter().enumerate() {
            push_group(&mut groups, i..i + 1, last.adapter.as_ref());
        }
        let last = backend.gather(x, &rows.iter().map(|last| last.row).collect::<Vec<_>>());
        let last = LastRows { weights, x: &last, groups: &groups };
        let request = |token: &NextToken| self.active[token.task].token_request(token.sequence, token.row - first);
        let requests: Vec<TokenRequest<'_>> = tokens.iter().map(request).collect();
        LogitBuffer::new(LOGIT_ROWS).sample(backend, last, &requests)
    }
}

/// Extends the last group by `rows` if its adapter is the same, else adds a group.
fn push_group<B: Backend>(groups: &mut Vec<RowGroup<B>>, rows: Range<usize>, adapter: Option<&Arc<Adapter<B>>>) {
    let same = |a: &Option<Arc<Adapter<B>>>| match (a, adapter) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    };
    match groups.last_mut() {
        Some(last) if same(&last.adapter) => last.rows.end = rows.end,
        _ => groups.push(RowGroup { rows, adapter: adapter.cloned() }),
    }
}
