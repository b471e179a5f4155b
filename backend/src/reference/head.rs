//! The loss head with a full row of logits, and sampling.

use super::linear::{self, add_outer};
use super::{Matrix, Reference, add_scaled};
use crate::collective::Ranks;
use crate::sampling::{SamplingScratch, logprob_scale, sample_each, sample_token, topk};
use crate::{
    GradientSinks, HeadGradient, HeadPart, LinearCall, LogSum, Logits, ReferenceRows, RowScores, Rows, SampledToken,
    ScorePart, ScoreRequest, Targets, TokenRequest, VocabularyOps, join_columns,
};

fn logits(call: &LinearCall<'_, Reference>, hidden: &Matrix) -> (Matrix, Vec<Matrix>) {
    let mut logits = Matrix::zeros(hidden.rows(), call.weight.rows());
    let zs = linear::forward(call, hidden, None, &mut logits);
    (logits, zs)
}

/// State that the backward pass needs from the forward pass.
pub struct HeadState {
    /// Log-sum-exp of every row.
    lse: Vec<f32>,
    /// Rows of the unembedding that are tokens.
    tokens: usize,
}

pub(super) fn target_logprobs(
    call: &LinearCall<'_, Reference>,
    hidden: &Matrix,
    targets: &Targets,
) -> (Vec<f32>, HeadState) {
    let HeadPart { sums, mut logits, mut state } =
        Reference::head_part(&Reference, call, hidden, targets, call.weight.rows(), false);
    state.lse = targets.normalise(&sums, &mut logits);
    (logits, state)
}

pub(super) fn backward(
    call: &LinearCall<'_, Reference>,
    hidden: &Matrix,
    gradient: &HeadGradient<'_, Reference>,
    state: &HeadState,
    param: usize,
    sinks: &mut GradientSinks<'_, '_, Reference>,
) -> Matrix {
    let (mut d, zs) = logits(call, hidden);
    let reference = gradient.divergence.map(|divergence| reference_logs(&divergence.reference));
    for row in 0..hidden.rows() {
        let at = gradient.targets.of(row);
        let total: f32 = gradient.d_logprobs[at.clone()].iter().sum();
        let lse = state.lse[gradient.rows[row]];
        let (own, others) = d.row_mut(row).split_at_mut(state.tokens);
        let (entropy, d_entropy) = gradient.entropy.and_then(|entropy| entropy.of(row)).unwrap_or_default();
        let other = reference
            .as_ref()
            .zip(gradient.divergence)
            .map(|(logs, of)| (logs.row(row), of.divergences[row], of.d_divergences[row]));
        own.iter_mut().enumerate().for_each(|(token, x)| {
            let log = (*x - lse).max(f32::MIN);
            let of_divergence = other.map_or(0.0, |(logs, divergence, d)| d * (log - logs[token] - divergence));
            *x = log.exp() * (-total - d_entropy * (log + entropy) + of_divergence);
        });
        others.fill(0.0);
        for t in at {
            if let Some(d) = own.get_mut(gradient.targets.ids[t] as usize) {
                *d += gradient.d_logprobs[t];
            }
        }
    }
    let mut dx = Matrix::zeros(hidden.rows(), hidden.width());
    let dzs = linear::backward(call, &d, &mut dx);
    match sinks {
        GradientSinks::Full(grads) => {
            (0..hidden.rows()).for_each(|row| add_outer(&mut grads[param], d.row(row), hidden.row(row)));
        }
        GradientSinks::Adapters(sinks) => linear::lora_gradients(call.lora, hidden, &d, [&zs, &dzs], sinks),
    }
    dx
}

impl VocabularyOps<Self> for Reference {
    fn spread(_: &Self, from: &Matrix, at: &[usize], rows: usize) -> Matrix {
        let mut to = Matrix::new(vec![-0.0; rows * from.width()], from.width());
        at.iter().enumerate().for_each(|(i, row)| to.row_mut(*row).copy_from_slice(from.row(i)));
        to
    }

    fn head_part(
        _: &Self,
        head: &LinearCall<'_, Self>,
        hidden: &Matrix,
        targets: &Targets,
        tokens: usize,
        _save_logits: bool,
    ) -> HeadPart<Self> {
        let (all, _) = logits(head, hidden);
        let own = |row: usize| &all.row(row)[..tokens];
        let of = |row: usize| targets.of(row).map(move |t| own(row).get(targets.ids[t] as usize).copied());
        HeadPart {
            sums: (0..hidden.rows()).map(|row| log_sum(own(row))).collect(),
            logits: (0..hidden.rows()).flat_map(of).map(|logit| logit.unwrap_or(-0.0)).collect(),
            state: HeadState { lse: Vec::new(), tokens },
        }
    }

    fn set_log_sums(state: &mut HeadState, log_sums: Vec<f32>) {
        state.lse = log_sums;
    }

    fn entropies(
        _: &Self,
        head: &LinearCall<'_, Self>,
        hidden: &Matrix,
        rows: &[usize],
        state: &HeadState,
    ) -> Vec<f32> {
        let (logits, _) = logits(head, hidden);
        let term = |x: &f32, lse: f32| (x - lse).exp() * (lse - x).min(f32::MAX);
        let entropy =
            |(at, row): (usize, &usize)| logits.row(at)[..state.tokens].iter().map(|x| term(x, state.lse[*row])).sum();
        rows.iter().enumerate().map(entropy).collect()
    }

    fn divergences(
        _: &Self,
        head: &LinearCall<'_, Self>,
        hidden: &Matrix,
        rows: &[usize],
        state: &HeadState,
        reference: &ReferenceRows<'_, Self>,
    ) -> Vec<f32> {
        let (logits, _) = logits(head, hidden);
        let others = reference_logs(reference);
        let divergence = |(at, row): (usize, &usize)| {
            let term = |(x, other): (&f32, &f32)| {
                let log = (x - state.lse[*row]).max(f32::MIN);
                log.exp() * (log - other)
            };
            logits.row(at)[..state.tokens].iter().zip(others.row(at)).map(term).sum()
        };
        rows.iter().enumerate().map(divergence).collect()
    }

    fn gather_logits(_: &Self, own: &Matrix, rows: usize, ranks: &Ranks, out: &mut Matrix) {
        let width = out.width();
        if let Some(parts) = ranks.all_gather(own.data()[..rows * own.width()].to_vec()) {
            join_columns(&parts, rows, &mut out.data, width);
        }
    }

    fn score_part(_: &Self, logits: &Matrix, tokens: usize, requests: &[ScoreRequest]) -> Vec<ScorePart> {
        let of = |request: &ScoreRequest| {
            let own = &logits.row(request.row)[..tokens];
            let target = |id: &u32| own.get(*id as usize).copied().unwrap_or(-0.0);
            let targets = request.targets.iter().map(target).collect();
            ScorePart { sum: log_sum(own), targets, topk: topk(own, request.topk) }
        };
        requests.iter().map(of).collect()
    }
}

/// Log-probabilities of all tokens of the rows that others are compared with.
fn reference_logs(reference: &ReferenceRows<'_, Reference>) -> Matrix {
    let call = LinearCall { weight: reference.unembedding, bias: None, lora: &[] };
    let (mut logs, _) = logits(&call, reference.hidden);
    for (row, lse) in reference.lse.iter().enumerate() {
        logs.row_mut(row).iter_mut().for_each(|x| *x = (*x - lse).max(f32::MIN));
    }
    logs
}

fn log_sum(x: &[f32]) -> LogSum {
    let max = x.iter().fold(f32::NEG_INFINITY, |m, x| m.max(*x));
    LogSum { max, sum: x.iter().map(|x| (x - max).exp()).sum() }
}

pub(super) fn sample(logits: &Logits<'_, Reference>, request: &TokenRequest<'_>) -> SampledToken {
    let TokenRequest { row, rule, report } = request;
    let (logits, part) = (logits.rows.row(*row), logits.part);
    let token = sample_token(logits, rule, &mut SamplingScratch::default());
    let scaled = logprobs(logits, part, rule.temperature);
    let topk = topk(logits, *report).into_iter().map(|(id, _)| (id, scaled[id as usize])).collect();
    SampledToken { token, logprob: scaled[token as usize], topk }
}

pub(super) fn score(logits: &Logits<'_, Reference>, request: &ScoreRequest) -> RowScores {
    let (logits, part) = (logits.rows.row(request.row), logits.part);
    let plain = logprobs(logits, part, 1.0);
    let alternatives = request.alternatives.iter().flat_map(|(temperature, us)| {
        let ids = sample_each(logits, *temperature, us.iter().copied(), &mut SamplingScratch::default());
        let scaled = logprobs(logits, part, *temperature);
        ids.into_iter().map(move |id| (id, scaled[id as usize]))
    });
    RowScores {
        targets: request.targets.iter().map(|id| plain[*id as usize]).collect(),
        topk: topk(logits, request.topk).into_iter().map(|(id, _)| (id, plain[id as usize])).collect(),
        alternatives: alternatives.collect(),
    }
}

fn logprobs(logits: &[f32], part: usize, temperature: f32) -> Vec<f32> {
    let mut scaled = vec![0.0; logits.len()];
    add_scaled(&mut scaled, logits, logprob_scale(temperature));
    let lse = LogSum::of(scaled.chunks(part).map(log_sum)).value();
    scaled.iter().map(|x| x - lse).collect()
}
