//! Tokens and log-probabilities from rows of logits, rows in parallel.

use super::Cpu;
use super::head::log_sum;
use super::parallel::{for_each, rows_per_task};
use super::rows::HostRows;
use crate::sampling::{SamplingScratch, logprob_scale, sample_each, sample_token, topk};
use crate::{LogSum, Logits, RowScores, Rows, SampledToken, ScorePart, ScoreRequest, Targets, TokenRequest};

/// log Σ exp(scale · x) of a row of logits, from those of its parts of `part` tokens; with scale 1 the same bits as the loss head's.
fn log_sum_exp(cpu: &Cpu, logits: &[f32], part: usize, scale: f32) -> f32 {
    LogSum::of(logits.chunks(part).map(|part| log_sum(cpu, part, scale))).value()
}

/// Samples a token for each request.
pub(super) fn sample(cpu: &Cpu, logits: &Logits<'_, Cpu>, requests: &[TokenRequest<'_>]) -> Vec<SampledToken> {
    let (vocab, part) = (logits.rows.width(), logits.part);
    let mut sampled: Vec<(&TokenRequest<'_>, SampledToken)> =
        requests.iter().map(|request| (request, SampledToken::default())).collect();
    let each = rows_per_task(&cpu.pool, sampled.len());
    for_each(cpu, &mut sampled.chunks_mut(each).collect::<Vec<_>>(), |_, tokens| {
        let mut scratch = SamplingScratch::default();
        for (request, token) in tokens.iter_mut() {
            *token = sample_row(cpu, &logits.rows[request.row * vocab..][..vocab], part, request, &mut scratch);
        }
    });
    sampled.into_iter().map(|(_, token)| token).collect()
}

fn sample_row(
    cpu: &Cpu,
    logits: &[f32],
    part: usize,
    request: &TokenRequest<'_>,
    scratch: &mut SamplingScratch,
) -> SampledToken {
    let token = sample_token(logits, &request.rule, scratch);
    let scale = logprob_scale(request.rule.temperature);
    let lse = log_sum_exp(cpu, logits, part, scale);
    let logprob = |logit: f32| logit * scale - lse;
    let topk = topk(logits, request.report).into_iter().map(|(id, logit)| (id, logprob(logit))).collect();
    SampledToken { token, logprob: logprob(logits[token as usize]), topk }
}

/// Scores rows as the requests ask.
pub(super) fn score(cpu: &Cpu, logits: &Logits<'_, Cpu>, requests: &[ScoreRequest]) -> Vec<RowScores> {
    let (vocab, part) = (logits.rows.width(), logits.part);
    let mut scores = vec![RowScores::default(); requests.len()];
    for_each(cpu, &mut scores, |i, scores| {
        let request = &requests[i];
        let logits = &logits.rows[request.row * vocab..][..vocab];
        let lse = log_sum_exp(cpu, logits, part, 1.0);
        scores.targets = request.targets.iter().map(|id| logits[*id as usize] - lse).collect();
        scores.topk = topk(logits, request.topk).into_iter().map(|(id, logit)| (id, logit - lse)).collect();
        if let Some((temperature, us)) = &request.alternatives {
            let scale = logprob_scale(*temperature);
            let lse = log_sum_exp(cpu, logits, part, scale);
            let ids = sample_each(logits, *temperature, us.iter().copied(), &mut SamplingScratch::default());
            scores.alternatives = ids.into_iter().map(|id| (id, logits[id as usize] * scale - lse)).collect();
        }
    });
    scores
}

/// Implementation of [`score_part`](crate::VocabularyOps::score_part) on the processor.
pub(super) fn score_part(cpu: &Cpu, logits: &HostRows, tokens: usize, requests: &[ScoreRequest]) -> Vec<ScorePart> {
    let empty = ScorePart { sum: LogSum::EMPTY, targets: Vec::new(), topk: Vec::new() };
    let (mut parts, width) = (vec![empty; requests.len()], logits.width());
    for_each(cpu, &mut parts, |i, part| {
        let request = &requests[i];
        let logits = &logits[request.row * width..][..tokens];
        let target = |id: &u32| if *id == Targets::ELSEWHERE { -0.0 } else { logits[*id as usize] };
        part.sum = log_sum(cpu, logits, 1.0);
        part.targets = request.targets.iter().map(target).collect();
        part.topk = topk(logits, request.topk);
    });
    parts
}
