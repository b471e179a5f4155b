//! Outputs for the tokens of a prompt: their log-probabilities, top candidates, given targets and sampled alternatives.

use std::ops::Range;

use trainyard_protocol::limits::check_targets;
use trainyard_protocol::{
    OpError, PromptAltTokens, Sample, SampleResult, SamplingParams, Tensor, TensorValues, TopkLogprobs,
};

use super::logits::{ABSENT, LOGIT_ROWS};
use super::weights::SamplerWeights;
use crate::backend::{Backend, RowScores, ScoreRequest, Targets};
use crate::model::{LastRows, LogitBuffer, RowGroup, target_logprobs};
use crate::rng::{Purpose, uniform_for};

/// Requested outputs by position, filled as rows are computed.
pub(super) struct PromptOutputs {
    logprobs: Option<Vec<f32>>,
    topk: Option<TopkLogprobs>,
    targets: Option<TargetCells>,
    alternatives: Option<PromptAltTokens>,
    /// First position with `logprobs` and `topk`.
    from: usize,
    /// First row that is not scored yet. Row p scores the token at p + 1: the last row of the prompt scores none.
    next: usize,
    rows: usize,
}

/// `target_prompt_logprobs`, `[len - 1, k]`.
struct TargetCells {
    k: usize,
    ids: Vec<i64>,
    logprobs: Vec<f32>,
}

/// The residual stream of prompt positions that a pass computed.
pub(super) struct PromptRows<'a, B: Backend> {
    pub(super) positions: Range<usize>,
    pub(super) x: &'a B::Rows,
    /// Row of the first position.
    pub(super) first: usize,
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
        return invalid("at least one token id is required".into());
    }
    Ok(TargetCells { k, logprobs: vec![0.0; ids.len()], ids })
}

impl PromptOutputs {
    /// Takes the tensor of `target_prompt_logprobs` from the request: it may be large.
    pub(super) fn new(request: &mut Sample, prompt: usize, vocab: usize) -> Result<Self, OpError> {
        let targets = request.target_prompt_logprobs.take();
        let targets = targets.map(|targets| target_cells(targets.into_dense(), prompt, vocab)).transpose()?;
        Ok(Self::unfilled(request, prompt, targets))
    }

    /// Outputs of the same request before any row is scored.
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

    /// First row that must be computed, for its score or to sample the first token from it.
    pub(super) fn first_row(&self) -> usize {
        self.next.min(self.rows)
    }

    /// Scores the rows of a pass that outputs depend on.
    pub(super) fn score<B: Backend>(
        &mut self,
        backend: &B,
        weights: &SamplerWeights<B>,
        prompt: &[u32],
        params: &SamplingParams,
        pass: &PromptRows<'_, B>,
    ) {
        let PromptRows { positions, x, first } = pass;
        let rows = positions.start.max(self.next)..positions.end.min(self.rows);
        if rows.is_empty() {
            return;
        }
        let gather =
            |rows: Range<usize>| backend.gather(x, &rows.map(|row| row - positions.start + first).collect::<Vec<_>>());
        if self.topk.is_some() || self.alternatives.is_some() {
            let mut logits = LogitBuffer::new(LOGIT_ROWS);
            for start in rows.clone().step_by(LOGIT_ROWS) {
                let part = start..rows.end.min(start + LOGIT_ROWS);
                let group = [group(weights, part.len())];
                let x = gather(part.clone());
                let last = LastRows { weights: &*weights.weights, x: &x, groups: &group };
                let request = |row| self.score_request(prompt, params, row, row - start);
                let requests: Vec<_> = part.clone().map(request).collect();
                let scores = logits.score(backend, last, &requests);
                part.zip(scores).for_each(|(row, scores)| self.store(row, scores));
            }
        } else {
            let mut targets = Targets::empty();
            rows.clone().for_each(|row| targets.push(self.wanted(prompt, row)));
            let group = [group(weights, rows.len())];
            let logprobs = target_logprobs(backend, &weights.weights, &gather(rows.clone()), &group, &targets);
            for (i, row) in rows.clone().enumerate() {
                self.store(row, RowScores { targets: logprobs[targets.of(i)].to_vec(), ..RowScores::default() });
            }
        }
        self.next = rows.end;
    }

    /// Tokens whose log-probabilities after a row are wanted.
    fn wanted(&self, prompt: &[u32], row: usize) -> impl Iterator<Item = u32> {
        let cells = self.targets.as_ref().map_or(&[][..], |cells| &cells.ids[row * cells.k..(row + 1) * cells.k]);
        std::iter::once(prompt[row + 1]).chain(cells.iter().filter(|id| **id >= 0).map(|id| *id as u32))
    }

    /// The scores to compute for prompt row `row`, whose logits are in row `at` of the buffer.
    fn score_request(&self, prompt: &[u32], params: &SamplingParams, row: usize, at: usize) -> ScoreRequest {
        let topk = self.topk.as_ref().filter(|_| row + 1 >= self.from).map_or(0, |out| out.k);
        let us = |k: usize| {
            (0..k).map(|j| uniform_for(Purpose::Alternative, params.seed, j as u64, row as u64 + 1)).collect()
        };
        let alternatives = self.alternatives.as_ref().map(|out| (params.temperature, us(out.k)));
        ScoreRequest { row: at, targets: self.wanted(prompt, row).collect(), topk, alternatives }
    }

    fn store(&mut self, row: usize, scores: RowScores) {
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

    /// Moves the outputs into `result`.
    pub(super) fn finish(self, result: &mut SampleResult) {
        result.prompt_logprobs = self.logprobs;
        result.topk_prompt_logprobs = self.topk;
        result.target_prompt_logprobs = self
            .targets
            .map(|cells| Tensor { shape: vec![self.rows, cells.k], values: TensorValues::F32(cells.logprobs) });
        result.prompt_alt_tokens = self.alternatives;
    }
}

fn group<B: Backend>(weights: &SamplerWeights<B>, rows: usize) -> RowGroup<B> {
    RowGroup { rows: 0..rows, adapter: weights.adapter.clone() }
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
