//! The loss head with a full row of logits, and sampling.

use super::linear::{self, add_outer};
use super::{Matrix, Reference, add_scaled, log_sum_exp};
use crate::backend::{
    GradientSinks, HeadGradient, LinearCall, RowScores, Rows, SampledToken, ScoreRequest, Targets, TokenRequest,
};
use crate::sampling::{SamplingScratch, logprob_scale, sample_each, sample_token, topk};

fn logits(call: &LinearCall<'_, Reference>, hidden: &Matrix) -> (Matrix, Vec<Matrix>) {
    let mut logits = Matrix::zeros(hidden.rows(), call.weight.rows());
    let zs = linear::forward(call, hidden, None, &mut logits);
    (logits, zs)
}

pub(super) fn target_logprobs(call: &LinearCall<'_, Reference>, hidden: &Matrix, targets: &Targets) -> Vec<f32> {
    let (logits, _) = logits(call, hidden);
    let mut logprobs = vec![0.0; targets.ids.len()];
    for row in 0..hidden.rows() {
        let lse = log_sum_exp(logits.row(row));
        for t in targets.of(row) {
            logprobs[t] = logits.row(row)[targets.ids[t] as usize] - lse;
        }
    }
    logprobs
}

pub(super) fn backward(
    call: &LinearCall<'_, Reference>,
    hidden: &Matrix,
    gradient: &HeadGradient<'_>,
    param: usize,
    sinks: &mut GradientSinks<'_, '_, Reference>,
) -> Matrix {
    let (mut d, zs) = logits(call, hidden);
    for row in 0..hidden.rows() {
        let at = gradient.targets.of(row);
        let total: f32 = gradient.d_logprobs[at.clone()].iter().sum();
        let lse = log_sum_exp(d.row(row));
        d.row_mut(row).iter_mut().for_each(|x| *x = -total * (*x - lse).exp());
        for t in at {
            d.row_mut(row)[gradient.targets.ids[t] as usize] += gradient.d_logprobs[t];
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

pub(super) fn sample(logits: &Matrix, request: &TokenRequest<'_>) -> SampledToken {
    let TokenRequest { row, rule, report } = request;
    let logits = logits.row(*row);
    let token = sample_token(logits, rule, &mut SamplingScratch::default());
    let scaled = logprobs(logits, rule.temperature);
    let topk = topk(logits, *report).into_iter().map(|(id, _)| (id, scaled[id as usize])).collect();
    SampledToken { token, logprob: scaled[token as usize], topk }
}

pub(super) fn score(logits: &Matrix, request: &ScoreRequest) -> RowScores {
    let logits = logits.row(request.row);
    let plain = logprobs(logits, 1.0);
    let alternatives = request.alternatives.iter().flat_map(|(temperature, us)| {
        let ids = sample_each(logits, *temperature, us.iter().copied(), &mut SamplingScratch::default());
        let scaled = logprobs(logits, *temperature);
        ids.into_iter().map(move |id| (id, scaled[id as usize]))
    });
    RowScores {
        targets: request.targets.iter().map(|id| plain[*id as usize]).collect(),
        topk: topk(logits, request.topk).into_iter().map(|(id, _)| (id, plain[id as usize])).collect(),
        alternatives: alternatives.collect(),
    }
}

fn logprobs(logits: &[f32], temperature: f32) -> Vec<f32> {
    let mut scaled = vec![0.0; logits.len()];
    add_scaled(&mut scaled, logits, logprob_scale(temperature));
    let lse = log_sum_exp(&scaled);
    scaled.iter().map(|x| x - lse).collect()
}
