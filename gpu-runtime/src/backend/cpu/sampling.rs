//! Tokens and log-probabilities from rows of logits, rows in parallel.

use super::Cpu;
use super::head::log_sum_exp;
use super::parallel::{for_each, rows_per_task};
use crate::backend::{RowScores, SampledToken, ScoreRequest, TokenRequest};
use crate::sampling::{SamplingScratch, logprob_scale, sample_each, sample_token, topk};

/// Samples from `logits`, rows of `vocab` elements, a token for each request.
pub(super) fn sample(cpu: &Cpu, logits: &[f32], vocab: usize, requests: &[TokenRequest<'_>]) -> Vec<SampledToken> {
    let mut sampled: Vec<(&TokenRequest<'_>, SampledToken)> =
        requests.iter().map(|request| (request, SampledToken::default())).collect();
    let each = rows_per_task(&cpu.pool, sampled.len());
    for_each(cpu, &mut sampled.chunks_mut(each).collect::<Vec<_>>(), |_, tokens| {
        let mut scratch = SamplingScratch::default();
        for (request, token) in tokens.iter_mut() {
            *token = sample_row(cpu, &logits[request.row * vocab..][..vocab], request, &mut scratch);
        }
    });
    sampled.into_iter().map(|(_, token)| token).collect()
}

fn sample_row(cpu: &Cpu, logits: &[f32], request: &TokenRequest<'_>, scratch: &mut SamplingScratch) -> SampledToken {
    let token = sample_token(logits, &request.rule, scratch);
    let scale = logprob_scale(request.rule.temperature);
    let lse = log_sum_exp(cpu, logits, scale);
    let logprob = |logit: f32| logit * scale - lse;
    let topk = topk(logits, request.report).into_iter().map(|(id, logit)| (id, logprob(logit))).collect();
    SampledToken { token, logprob: logprob(logits[token as usize]), topk }
}

/// Scores rows of `vocab` logits, as the requests ask.
pub(super) fn score(cpu: &Cpu, logits: &[f32], vocab: usize, requests: &[ScoreRequest]) -> Vec<RowScores> {
    let mut scores = vec![RowScores::default(); requests.len()];
    for_each(cpu, &mut scores, |i, scores| {
        let request = &requests[i];
        let logits = &logits[request.row * vocab..][..vocab];
        let lse = log_sum_exp(cpu, logits, 1.0);
        scores.targets = request.targets.iter().map(|id| logits[*id as usize] - lse).collect();
        scores.topk = topk(logits, request.topk).into_iter().map(|(id, logit)| (id, logit - lse)).collect();
        if let Some((temperature, us)) = &request.alternatives {
            let scale = logprob_scale(*temperature);
            let lse = log_sum_exp(cpu, logits, scale);
            let ids = sample_each(logits, *temperature, us.iter().copied(), &mut SamplingScratch::default());
            scores.alternatives = ids.into_iter().map(|id| (id, logits[id as usize] * scale - lse)).collect();
        }
    });
    scores
}
