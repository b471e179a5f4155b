//! Mixture of experts and attention sinks.

use std::ops::Range;

use super::{Matrix, Reference, add_scaled, dot, log_sum_exp};
use crate::host::HostParams;
use crate::{Dispatch, FamilyOps, RouterRule, RouterScores, Rows, ScalarHead};

/// Indices of the largest of some numbers, ascending.
fn largest(of: &[f32], count: usize) -> Vec<usize> {
    let key = |i: usize| if of[i].is_nan() { f32::NEG_INFINITY } else { of[i] };
    let mut order: Vec<usize> = (0..of.len()).collect();
    order.sort_by(|a, b| key(*b).total_cmp(&key(*a)).then(a.cmp(b)));
    order.truncate(count);
    order.sort_unstable();
    order
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// The experts of a row, ascending.
fn chosen(logits: &[f32], rule: RouterRule, correction: &[f32]) -> Vec<usize> {
    let RouterScores::Sigmoid { groups, chosen_groups, .. } = rule.scores else {
        return largest(logits, rule.per_token);
    };
    let corrected = |expert: usize| {
        let score = sigmoid(logits[expert]) + correction[expert];
        if score.is_nan() { f32::NEG_INFINITY } else { score }
    };
    let size = logits.len() / groups;
    let two_best = |group: usize| {
        let mut scores: Vec<f32> = (group * size..(group + 1) * size).map(corrected).collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        scores.iter().take(2).sum()
    };
    let own = largest(&(0..groups).map(two_best).collect::<Vec<f32>>(), chosen_groups);
    let allowed = |expert: usize| if own.contains(&(expert / size)) { corrected(expert) } else { f32::NEG_INFINITY };
    largest(&(0..logits.len()).map(allowed).collect::<Vec<f32>>(), rule.per_token)
}

/// The weights of a row's experts from their scores, if these are sigmoids: the sum that they are divided by, and the scaling.
fn divisor(rule: RouterRule, scores: &[f32]) -> Option<(f32, f32)> {
    let RouterScores::Sigmoid { scaling, .. } = rule.scores else { return None };
    Some((if rule.normalised { scores.iter().sum::<f32>() + RouterRule::EPS } else { 1.0 }, scaling))
}

/// Σ w_j (g_i - g_j) over a row's experts. Where one of them has nearly all the weight, g_i - Σ w_j g_j would cancel.
fn relative_gradient(weights: &[f32], d_weights: &[f32], i: usize) -> f32 {
    weights.iter().zip(d_weights).map(|(weight, d)| weight * (d_weights[i] - d)).sum()
}

impl FamilyOps<Self> for Reference {
    fn route(_: &Self, rule: RouterRule, correction: &[f32], logits: &Matrix) -> (Dispatch, Matrix) {
        let (mut experts, mut weights) = (Vec::new(), Vec::new());
        for row in 0..logits.rows() {
            let logits = logits.row(row);
            let own = chosen(logits, rule, correction);
            let scores: Vec<f32> = own.iter().map(|expert| logits[*expert]).collect();
            let sigmoids: Vec<f32> = scores.iter().map(|x| sigmoid(*x)).collect();
            if let Some((divisor, scaling)) = divisor(rule, &sigmoids) {
                weights.extend(sigmoids.iter().map(|s| s / divisor * scaling));
            } else {
                let sum = log_sum_exp(if rule.normalised { &scores } else { logits });
                weights.extend(scores.iter().map(|score| (score - sum).exp()));
            }
            experts.extend(own);
        }
        (Dispatch::new(experts, rule.per_token, logits.width()), Matrix::new(weights, rule.per_token))
    }

    fn route_backward(
        _: &Self,
        rule: RouterRule,
        logits: &Matrix,
        dispatch: &Dispatch,
        weights: &Matrix,
        d_weights: &Matrix,
    ) -> Matrix {
        let mut d = Matrix::zeros(logits.rows(), logits.width());
        for row in 0..logits.rows() {
            let (logits, weights, d_weights) = (logits.row(row), weights.row(row), d_weights.row(row));
            let (experts, d) = (dispatch.experts(row), d.row_mut(row));
            let relative = |at: usize| relative_gradient(weights, d_weights, at);
            let sigmoids: Vec<f32> = experts.iter().map(|expert| sigmoid(logits[*expert])).collect();
            if let Some((divisor, scaling)) = divisor(rule, &sigmoids) {
                // The derivative of w = scaling · s / (Σ s + EPS) by the quotient rule; 1 - s is the sigmoid of -x.
                for (at, expert) in experts.iter().enumerate() {
                    let own = scaling * d_weights[at];
                    let d_score = match rule.normalised {
                        true => (relative(at) + RouterRule::EPS / divisor * own) / divisor,
                        false => own,
                    };
                    d[*expert] = d_score * sigmoids[at] * sigmoid(-logits[*expert]);
                }
                continue;
            }
            let mut others = 0.0;
            if !rule.normalised {
                let (sum, mean) = (log_sum_exp(logits), dot(weights, d_weights));
                for expert in (0..logits.len()).filter(|expert| !experts.contains(expert)) {
                    let weight = (logits[expert] - sum).exp();
                    others += weight;
                    d[expert] = -mean * weight;
                }
            }
            // An expert that is not chosen has a weight too, of which nothing depends.
            for (at, expert) in experts.iter().enumerate() {
                d[*expert] = weights[at] * (relative(at) + others * d_weights[at]);
            }
        }
        d
    }

    fn combine(_: &Self, parts: &[Matrix], dispatch: &Dispatch, weights: Option<&Matrix>, onto: &mut Matrix) {
        for row in 0..onto.rows() {
            for (slot, (part, at)) in dispatch.places(row).iter().enumerate() {
                let weight = weights.map_or(1.0, |weights| weights.row(row)[slot]);
                add_scaled(onto.row_mut(row), parts[*part].row(*at), weight);
            }
        }
    }

    fn combine_backward(
        _: &Self,
        parts: &[Matrix],
        dispatch: &Dispatch,
        weights: &Matrix,
        d_out: &Matrix,
    ) -> (Vec<Matrix>, Matrix) {
        let mut d_parts: Vec<Matrix> = parts.iter().map(|part| Matrix::zeros(part.rows(), part.width)).collect();
        let mut d_weights = Matrix::zeros(weights.rows(), weights.width);
        for row in 0..d_out.rows() {
            for (slot, (part, at)) in dispatch.places(row).iter().enumerate() {
                add_scaled(d_parts[*part].row_mut(*at), d_out.row(row), weights.row(row)[slot]);
                d_weights.row_mut(row)[slot] = dot(d_out.row(row), parts[*part].row(*at));
            }
        }
        (d_parts, d_weights)
    }

    fn low_rank_rows(_: &Self, low_rank: &Vec<Matrix>, segment: usize, _: usize) -> Matrix {
        low_rank[segment].clone()
    }

    fn add_sinks(_: &Self, sinks: &Vec<f32>, [out, lse]: &mut [Matrix; 2]) {
        let head_dim = out.width / lse.width;
        for row in 0..lse.rows() {
            for (head, sink) in sinks.iter().enumerate() {
                let (before, after) = (lse.row(row)[head], log_sum_exp(&[lse.row(row)[head], *sink]));
                lse.row_mut(row)[head] = after;
                let part = (before - after).exp();
                out.row_mut(row)[head * head_dim..][..head_dim].iter_mut().for_each(|x| *x *= part);
            }
        }
    }

    fn sinks_backward(
        _: &Self,
        sinks: &Vec<f32>,
        [out, lse]: [&Matrix; 2],
        d_out: &Matrix,
        grads: &mut HostParams,
        index: usize,
    ) {
        let head_dim = out.width / lse.width;
        for row in 0..lse.rows() {
            for (head, sink) in sinks.iter().enumerate() {
                let columns = head * head_dim..(head + 1) * head_dim;
                let delta = dot(&out.row(row)[columns.clone()], &d_out.row(row)[columns]);
                grads[index][head] -= (sink - lse.row(row)[head]).exp() * delta;
            }
        }
    }

    fn scalar_head(_: &Self, head: ScalarHead<'_, Self>, x: &Matrix, rows: Range<usize>) -> Vec<f32> {
        rows.map(|row| dot(x.row(row), &head.params[head.weight]) + head.params[head.weight + 1][0]).collect()
    }

    fn scalar_head_backward(
        _: &Self,
        head: ScalarHead<'_, Self>,
        x: &Matrix,
        rows: Range<usize>,
        dy: &[f32],
        dx: &mut Matrix,
        mut grads: Option<&mut HostParams>,
    ) {
        for (row, dy) in rows.zip(dy) {
            dx.row_mut(row).fill(0.0);
            add_scaled(dx.row_mut(row), &head.params[head.weight], *dy);
            if let Some(grads) = &mut grads {
                add_scaled(&mut grads[head.weight], x.row(row), *dy);
                grads[head.weight + 1][0] += dy;
            }
        }
    }
}
