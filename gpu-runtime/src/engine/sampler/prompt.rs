//! What a request asked of its prompt: log-probabilities of its tokens and of others in their places.

use std::ops::Range;

use trainyard_protocol::limits::check_targets;
use trainyard_protocol::{
    OpError, PromptAltTokens, Sample, SampleResult, SamplingParams, Tensor, TensorValues, TopkLogprobs,
};

use super::draw::logprob_scale;
use super::{ABSENT, LOGIT_ROWS, SamplerWeights, logit_buffer};
use crate::draw::{DrawScratch, draw_each, topk};
use crate::kernels::Cpu;
use crate::kernels::elementwise::for_each;
use crate::kernels::head::{Targets, log_sum_exp};
use crate::model::{Group, ScoredRows, score_rows};
use crate::rng::{Purpose, uniform_for};

/// Results by position, filled as rows are computed.
pub(super) struct PromptOutputs {
    logprobs: Option<Vec<f32>>,
    topk: Option<TopkLogprobs>,
    targets: Option<TargetCells>,
    alternatives: Option<PromptAltTokens>,
    /// First position whose `logprobs` and `topk` are wanted.
    from: usize,
    /// First row that is still to be scored. Row p scores the token at p + 1, so the last row never is.
    next: usize,
    rows: usize,
}

/// `target_prompt_logprobs`, `[len - 1, k]`.
struct TargetCells {
    k: usize,
    ids: Vec<i64>,
    logprobs: Vec<f32>,
}

/// What one row says of the token after it.
#[derive(Default)]
struct RowScores {
    row: usize,
    /// The prompt's own token, then the wanted cells.
    targets: Vec<f32>,
    topk: Vec<(u32, f32)>,
    alternatives: Vec<(u32, f32)>,
}

fn target_cells(tensor: Tensor, prompt: usize, vocab: usize) -> Result<TargetCells, OpError> {
    let invalid = |text: String| Err(OpError::user(format!("target_prompt_logprobs: {text}")));
    let [rows, k] = tensor.shape[..] else {
        return invalid(format!("shape {:?} is not two-dimensional", tensor.shape));
    };
    if let Err(text) = check_targets(k as u64, vocab) {
        return invalid(text);
    }
    let dtype = tensor.dtype();
    let TensorValues::I64(ids) = tensor.values else {
        return invalid(format!("dtype {dtype} is not int64"));
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
    Ok(TargetCells { k, logprobs: vec![0.0; ids.len()], ids })
}

impl PromptOutputs {
    /// Takes the tensor of `target_prompt_logprobs` from the request: it may be large.
    pub(super) fn new(request: &mut Sample, prompt: usize, vocab: usize) -> Result<Self, OpError> {
        let targets = request.target_prompt_logprobs.take();
        let targets = targets.map(|tensor| target_cells(tensor, prompt, vocab)).transpose()?;
        Ok(Self::unfilled(request, prompt, targets))
    }

    /// The same outputs before the first row.
    pub(super) fn restarted(self, request: &Sample) -> Self {
        let prompt = self.rows + 1;
        Self::unfilled(request, prompt, self.targets)
    }

    fn unfilled(request: &Sample, prompt: usize, targets: Option<TargetCells>) -> Self {
        let k = request.topk_prompt_logprobs as usize;
        let alt = request.prompt_alt_tokens_k as usize;
        let cells = alt * (prompt - 1);
        let mut outputs = Self {
            logprobs: request.prompt_logprobs.then(|| vec![f32::NAN; prompt]),
            topk: (k > 0).then(|| TopkLogprobs {
                k,
                token_ids: vec![0; prompt * k],
                logprobs: vec![ABSENT; prompt * k],
            }),
            targets,
            alternatives: (alt > 0).then(|| PromptAltTokens {
                k: alt,
                tokens: vec![0; cells],
                logprobs: vec![0.0; cells],
            }),
            from: request.prompt_logprobs_last_n.map_or(1, |n| prompt - n as usize),
            next: 0,
            rows: prompt - 1,
        };
        outputs.next = if outputs.targets.is_some() || outputs.alternatives.is_some() {
            0
        } else if outputs.logprobs.is_some() || outputs.topk.is_some() {
            outputs.from - 1
        } else {
            outputs.rows
        };
        outputs
    }

    /// First row that must be computed, because its score is wanted or because the first token is drawn from it.
    pub(super) fn first_row(&self) -> usize {
        self.next.min(self.rows)
    }

    /// Scores the rows that are wanted among prompt `positions`, whose residual stream is `x`.
    pub(super) fn score(
        &mut self,
        cpu: &Cpu,
        weights: &SamplerWeights,
        prompt: &[u32],
        params: &SamplingParams,
        positions: Range<usize>,
        x: &[f32],
    ) {
        let rows = positions.start.max(self.next)..positions.end.min(self.rows);
        if rows.is_empty() {
            return;
        }
        let hidden = weights.weights.config.hidden_size;
        let x = &x[(rows.start - positions.start) * hidden..(rows.end - positions.start) * hidden];
        if self.topk.is_some() || self.alternatives.is_some() {
            let vocab = weights.weights.config.vocab_size;
            let mut logits = logit_buffer(cpu, vocab);
            for first in rows.clone().step_by(LOGIT_ROWS) {
                let part = first..rows.end.min(first + LOGIT_ROWS);
                let x = &x[(first - rows.start) * hidden..(part.end - rows.start) * hidden];
                scored(cpu, weights, x, part.len()).logits(cpu, &mut logits[..part.len() * vocab]);
                let mut scores: Vec<_> = part.map(|row| RowScores { row, ..RowScores::default() }).collect();
                for_each(cpu, &mut scores, |i, scores| {
                    self.score_logits(cpu, prompt, params, &logits[i * vocab..(i + 1) * vocab], scores);
                });
                scores.into_iter().for_each(|scores| self.store(scores));
            }
        } else {
            let mut targets = Targets { offsets: vec![0], ids: Vec::new() };
            for row in rows.clone() {
                targets.ids.extend(self.wanted(prompt, row));
                targets.offsets.push(targets.ids.len());
            }
            let (logprobs, _) = scored(cpu, weights, x, rows.len()).target_logprobs(cpu, &targets, None);
            for (row, at) in rows.clone().zip(targets.offsets.windows(2)) {
                self.store(RowScores { row, targets: logprobs[at[0]..at[1]].to_vec(), ..RowScores::default() });
            }
        }
        self.next = rows.end;
    }

    /// Tokens whose log-probabilities after a row are wanted.
    fn wanted(&self, prompt: &[u32], row: usize) -> impl Iterator<Item = u32> {
        let cells = self.targets.as_ref().map_or(&[][..], |cells| &cells.ids[row * cells.k..(row + 1) * cells.k]);
        std::iter::once(prompt[row + 1]).chain(cells.iter().filter(|id| **id >= 0).map(|id| *id as u32))
    }

    /// The scores of a row from all its logits: targets as the loss head has them, top candidates, independent draws.
    fn score_logits(&self, cpu: &Cpu, prompt: &[u32], params: &SamplingParams, logits: &[f32], scores: &mut RowScores) {
        let lse = log_sum_exp(cpu, logits, 1.0);
        let row = scores.row;
        scores.targets = self.wanted(prompt, row).map(|id| logits[id as usize] - lse).collect();
        if let Some(out) = &self.topk
            && row + 1 >= self.from
        {
            scores.topk = topk(logits, out.k).into_iter().map(|(id, logit)| (id, logit - lse)).collect();
        }
        if let Some(out) = &self.alternatives {
            let scale = logprob_scale(params.temperature);
            let lse = log_sum_exp(cpu, logits, scale);
            let us = (0..out.k).map(|j| uniform_for(Purpose::Alternative, params.seed, j as u64, row as u64 + 1));
            let ids = draw_each(logits, params.temperature, us, &mut DrawScratch::default());
            scores.alternatives = ids.into_iter().map(|id| (id, logits[id as usize] * scale - lse)).collect();
        }
    }

    fn store(&mut self, scores: RowScores) {
        let row = scores.row;
        let mut targets = scores.targets.into_iter();
        let own = targets.next();
        if let (Some(out), Some(own)) = (&mut self.logprobs, own)
            && row + 1 >= self.from
        {
            out[row + 1] = own;
        }
        if let Some(cells) = &mut self.targets {
            let at = row * cells.k..(row + 1) * cells.k;
            for (id, out) in cells.ids[at.clone()].iter().zip(&mut cells.logprobs[at]) {
                if *id >= 0 {
                    *out = targets.next().unwrap_or(0.0);
                }
            }
        }
        if let Some(out) = &mut self.topk {
            for (j, (id, logprob)) in scores.topk.into_iter().enumerate() {
                out.token_ids[(row + 1) * out.k + j] = id;
                out.logprobs[(row + 1) * out.k + j] = logprob;
            }
        }
        if let Some(out) = &mut self.alternatives {
            for (j, (id, logprob)) in scores.alternatives.into_iter().enumerate() {
                out.tokens[row * out.k + j] = id;
                out.logprobs[row * out.k + j] = logprob;
            }
        }
    }

    /// Puts everything into the request's result.
    pub(super) fn finish(self, result: &mut SampleResult) {
        result.prompt_logprobs = self.logprobs;
        result.topk_prompt_logprobs = self.topk;
        result.target_prompt_logprobs = self
            .targets
            .map(|cells| Tensor { shape: vec![self.rows, cells.k], values: TensorValues::F32(cells.logprobs) });
        result.prompt_alt_tokens = self.alternatives;
    }
}

fn scored<'a>(cpu: &Cpu, weights: &'a SamplerWeights, x: &[f32], rows: usize) -> ScoredRows<'a> {
    score_rows(cpu, &weights.weights, x, &[Group { rows: 0..rows, adapter: weights.adapter.clone() }])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn refused(shape: [usize; 2], cells: usize, vocab: usize) -> String {
        let tensor = Tensor { shape: shape.to_vec(), values: TensorValues::I64(vec![1; cells]) };
        target_cells(tensor, 2, vocab).map(|_| ()).unwrap_err().message
    }

    #[test]
    fn targets_have_a_limit() {
        assert_eq!(refused([1, 11], 11, 10), "target_prompt_logprobs: 11 columns, at most 10 are allowed");
        assert_eq!(
            refused([1, 1_025], 1_025, 50_000),
            "target_prompt_logprobs: 1025 columns, at most 1024 are allowed"
        );
        assert!(refused([1, usize::MAX], 0, 10).contains("at most 10"));
        assert!(refused([1, 10], 9, 10).contains("does not match a prompt of 2 tokens"));
        let tensor = Tensor { shape: vec![1, 10], values: TensorValues::I64((0..10).collect()) };
        assert_eq!(target_cells(tensor, 2, 10).unwrap().k, 10);
    }
}
