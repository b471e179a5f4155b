//! Mixture of experts and attention sinks.

use std::ops::Range;

use super::linear::LowRankRows;
use super::parallel::for_rows;
use super::rows::HostRows;
use super::vexp::{dot, exp, max, multiversion, sigmoid, sum_by};
use super::{Cpu, scalar_head};
use crate::collective::Ranks;
use crate::host::HostParams;
use crate::{Dispatch, FamilyOps, RouterRule, RouterScores, Rows, ScalarHead};

multiversion! {
    /// Replaces elements by exp(x - largest) and returns their sum.
    fn exponentials(x: &mut [f32]) -> f32 {
        let top = max(x);
        for x in x.iter_mut() {
            *x = exp(*x - top);
        }
        sum_by(x, |x| x)
    }
}

multiversion! {
    fn sigmoids(x: &mut [f32]) {
        for x in x {
            *x = sigmoid(*x);
        }
    }
}

multiversion! {
    fn total(x: &[f32]) -> f32 {
        sum_by(x, |x| x)
    }
}

multiversion! {
    fn add_scaled(to: &mut [f32], from: &[f32], by: f32) {
        for (to, from) in to.iter_mut().zip(from) {
            *to += by * from;
        }
    }
}

multiversion! {
    fn scale_from(to: &mut [f32], from: &[f32], by: f32) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = by * from;
        }
    }
}

multiversion! {
    fn dot_rows(x: &[f32], y: &[f32]) -> f32 {
        dot(x, y)
    }
}

/// The experts of a row, ascending.
fn chosen(logits: &[f32], count: usize) -> Vec<usize> {
    let mut taken = vec![false; logits.len()];
    for _ in 0..count.min(logits.len()) {
        let mut best: Option<(usize, f32)> = None;
        for (expert, logit) in logits.iter().enumerate().filter(|(expert, _)| !taken[*expert]) {
            let logit = if logit.is_nan() { f32::NEG_INFINITY } else { *logit };
            if best.is_none_or(|(_, most)| logit > most) {
                best = Some((expert, logit));
            }
        }
        if let Some((expert, _)) = best {
            taken[expert] = true;
        }
    }
    (0..logits.len()).filter(|expert| taken[*expert]).collect()
}

/// Values by which a row's experts are chosen: -inf for experts in groups that are not chosen.
fn keys(cpu: &Cpu, rule: RouterRule, correction: &[f32], logits: &[f32]) -> Vec<f32> {
    let mut keys = logits.to_vec();
    let RouterScores::Sigmoid { groups, chosen_groups, .. } = rule.scores else { return keys };
    sigmoids(cpu.isa(), &mut keys);
    for (key, correction) in keys.iter_mut().zip(correction) {
        *key += correction;
        if key.is_nan() {
            *key = f32::NEG_INFINITY;
        }
    }
    let size = keys.len() / groups;
    let best: Vec<f32> =
        keys.chunks_exact(size).map(|group| chosen(group, 2).iter().map(|i| group[*i]).sum()).collect();
    let own = chosen(&best, chosen_groups);
    for (_, group) in keys.chunks_exact_mut(size).enumerate().filter(|(group, _)| !own.contains(group)) {
        group.fill(f32::NEG_INFINITY);
    }
    keys
}

/// The weights of a row's experts.
fn weights(cpu: &Cpu, rule: RouterRule, logits: &[f32], experts: &[usize], out: &mut [f32]) {
    for (out, expert) in out.iter_mut().zip(experts) {
        *out = logits[*expert];
    }
    if let RouterScores::Sigmoid { scaling, .. } = rule.scores {
        sigmoids(cpu.isa(), out);
        let sum = divisor(rule, out);
        out.iter_mut().for_each(|w| *w = *w / sum * scaling);
        return;
    }
    if rule.normalised {
        let sum = exponentials(cpu.isa(), out);
        out.iter_mut().for_each(|w| *w /= sum);
        return;
    }
    let all = softmax(cpu, logits);
    for (out, expert) in out.iter_mut().zip(experts) {
        *out = all[*expert];
    }
}

/// Divisor of the sigmoids of a row's experts.
fn divisor(rule: RouterRule, scores: &[f32]) -> f32 {
    if rule.normalised { scores.iter().sum::<f32>() + RouterRule::EPS } else { 1.0 }
}

/// Σ w_j (g_i - g_j) over a row's experts. Where one of them has nearly all the weight, g_i - Σ w_j g_j would cancel.
fn relative_gradient(weights: &[f32], d_weights: &[f32], i: usize) -> f32 {
    weights.iter().zip(d_weights).map(|(weight, d)| weight * (d_weights[i] - d)).sum()
}

fn softmax(cpu: &Cpu, logits: &[f32]) -> Vec<f32> {
    let mut all = logits.to_vec();
    let sum = exponentials(cpu.isa(), &mut all);
    all.iter_mut().for_each(|p| *p /= sum);
    all
}

impl FamilyOps<Self> for Cpu {
    fn route(cpu: &Self, rule: RouterRule, correction: &[f32], logits: &HostRows) -> (Dispatch, HostRows) {
        let width = logits.width();
        let own = |logits: &[f32]| chosen(&keys(cpu, rule, correction, logits), rule.per_token);
        let experts: Vec<usize> = logits.chunks_exact(width).flat_map(own).collect();
        let dispatch = Dispatch::new(experts, rule.per_token, width);
        let mut out = HostRows::alloc(cpu, logits.rows(), rule.per_token);
        for_rows(cpu, &mut out, rule.per_token, |row, out| {
            weights(cpu, rule, &logits[row * width..(row + 1) * width], dispatch.experts(row), out);
        });
        (dispatch, out)
    }

    fn route_backward(
        cpu: &Self,
        rule: RouterRule,
        logits: &HostRows,
        dispatch: &Dispatch,
        weights: &HostRows,
        d_weights: &HostRows,
    ) -> HostRows {
        let (width, chosen) = (logits.width(), rule.per_token);
        let mut d = HostRows::zeros(cpu, logits.rows(), width);
        for_rows(cpu, &mut d, width, |row, d| {
            let own = row * chosen..(row + 1) * chosen;
            let (weights, d_weights) = (&weights[own.clone()], &d_weights[own]);
            let (experts, logits) = (dispatch.experts(row), &logits[row * width..(row + 1) * width]);
            if let RouterScores::Sigmoid { scaling, .. } = rule.scores {
                let of = |sign: f32| {
                    let mut scores: Vec<f32> = experts.iter().map(|expert| sign * logits[*expert]).collect();
                    sigmoids(cpu.isa(), &mut scores);
                    scores
                };
                // 1 - s is the sigmoid of -x.
                let (scores, complements) = (of(1.0), of(-1.0));
                let sum = divisor(rule, &scores);
                for (at, expert) in experts.iter().enumerate() {
                    let own = scaling * d_weights[at];
                    let d_score = match rule.normalised {
                        true => (relative_gradient(weights, d_weights, at) + RouterRule::EPS / sum * own) / sum,
                        false => own,
                    };
                    d[*expert] = d_score * scores[at] * complements[at];
                }
                return;
            }
            let mut others = 0.0;
            if !rule.normalised {
                let mean: f32 = weights.iter().zip(d_weights).map(|(w, d)| w * d).sum();
                let mut all = softmax(cpu, logits);
                experts.iter().for_each(|expert| all[*expert] = 0.0);
                others = total(cpu.isa(), &all);
                d.iter_mut().zip(all).for_each(|(d, p)| *d = -mean * p);
            }
            for (at, expert) in experts.iter().enumerate() {
                d[*expert] = weights[at] * (relative_gradient(weights, d_weights, at) + others * d_weights[at]);
            }
        });
        d
    }

    fn combine(cpu: &Self, parts: &[HostRows], dispatch: &Dispatch, weights: Option<&HostRows>, onto: &mut HostRows) {
        let width = onto.width();
        for_rows(cpu, onto, width, |row, onto| {
            let places = dispatch.places(row);
            for (slot, (part, at)) in places.iter().enumerate() {
                let weight = weights.map_or(1.0, |weights| weights[row * places.len() + slot]);
                add_scaled(cpu.isa(), onto, &parts[*part][at * width..(at + 1) * width], weight);
            }
        });
    }

    fn combine_backward(
        cpu: &Self,
        parts: &[HostRows],
        dispatch: &Dispatch,
        weights: &HostRows,
        d_out: &HostRows,
    ) -> (Vec<HostRows>, HostRows) {
        Self::combine_backward_of(cpu, parts, 0..parts.len(), dispatch, weights, d_out)
    }

    fn combine_backward_of(
        cpu: &Self,
        parts: &[HostRows],
        held: Range<usize>,
        dispatch: &Dispatch,
        weights: &HostRows,
        d_out: &HostRows,
    ) -> (Vec<HostRows>, HostRows) {
        let (width, chosen) = (d_out.width(), weights.width());
        let of_part = |(part, own): (&HostRows, &crate::ExpertRows)| {
            let mut d = HostRows::alloc(cpu, part.rows(), width);
            for_rows(cpu, &mut d, width, |i, d| {
                let (row, slot) = (own.rows[i], own.slots[i]);
                scale_from(cpu.isa(), d, &d_out[row * width..(row + 1) * width], weights[row * chosen + slot]);
            });
            d
        };
        let d_parts = parts.iter().zip(&dispatch.parts()[held.clone()]).map(of_part).collect();
        let mut d_weights = HostRows::alloc(cpu, weights.rows(), chosen);
        for_rows(cpu, &mut d_weights, chosen, |row, d| {
            for (d, (part, at)) in d.iter_mut().zip(dispatch.places(row)) {
                if !held.contains(part) {
                    *d = 0.0;
                    continue;
                }
                let part = &parts[part - held.start][at * width..(at + 1) * width];
                *d = dot_rows(cpu.isa(), &d_out[row * width..(row + 1) * width], part);
            }
        });
        (d_parts, d_weights)
    }

    fn gather_parts(
        cpu: &Self,
        own: &[HostRows],
        extents: &[(usize, usize)],
        width: usize,
        ranks: &Ranks,
    ) -> Vec<HostRows> {
        let mut lens = vec![0; ranks.world()];
        extents.iter().for_each(|(rank, rows)| lens[*rank] += rows * width);
        let mine = own.iter().map(|part| &part[..]).collect::<Vec<_>>().concat();
        let all = ranks.all_gather_sized(mine, &lens);
        let mut read = vec![0; ranks.world()];
        let part = |(rank, rows): &(usize, usize)| {
            let mut part = HostRows::zeros(cpu, *rows, width);
            let first = read[*rank];
            read[*rank] += rows * width;
            if let Some(all) = &all {
                part.copy_from_slice(&all[*rank][first..read[*rank]]);
            }
            part
        };
        extents.iter().map(part).collect()
    }

    fn low_rank_rows(cpu: &Self, low_rank: &LowRankRows, segment: usize, rank: usize) -> HostRows {
        let from = &low_rank[segment];
        let mut rows = HostRows::alloc(cpu, from.len() / rank, rank);
        rows.copy_from_slice(from);
        rows
    }

    fn add_sinks(cpu: &Self, sinks: &Vec<f32>, [out, lse]: &mut [HostRows; 2]) {
        let (width, heads) = (out.width(), lse.width());
        let head_dim = width / heads;
        let before = &lse[..];
        for_rows(cpu, out, width, |row, out| {
            for ((out, lse), sink) in out.chunks_exact_mut(head_dim).zip(&before[row * heads..]).zip(sinks) {
                let part = (lse - with_sink(*lse, *sink)).exp();
                out.iter_mut().for_each(|x| *x *= part);
            }
        });
        for_rows(cpu, lse, heads, |_, lse| {
            for (lse, sink) in lse.iter_mut().zip(sinks) {
                *lse = with_sink(*lse, *sink);
            }
        });
    }

    fn sinks_backward(
        cpu: &Self,
        sinks: &Vec<f32>,
        [out, lse]: [&HostRows; 2],
        d_out: &HostRows,
        grads: &mut HostParams,
        index: usize,
    ) {
        let (width, heads) = (out.width(), lse.width());
        let head_dim = width / heads;
        let rows = out.chunks_exact(width).zip(d_out.chunks_exact(width)).zip(lse.chunks_exact(heads));
        for ((out, d_out), lse) in rows {
            let heads = out.chunks_exact(head_dim).zip(d_out.chunks_exact(head_dim)).zip(lse.iter().zip(sinks));
            for (((out, d_out), (lse, sink)), grad) in heads.zip(&mut grads[index]) {
                *grad -= (sink - lse).exp() * dot_rows(cpu.isa(), out, d_out);
            }
        }
    }

    fn scalar_head(cpu: &Self, head: ScalarHead<'_, Self>, x: &HostRows, rows: Range<usize>) -> Vec<f32> {
        scalar_head::scalar_head(cpu, head, x, rows)
    }

    fn scalar_head_backward(
        cpu: &Self,
        head: ScalarHead<'_, Self>,
        x: &HostRows,
        rows: Range<usize>,
        dy: &[f32],
        dx: &mut HostRows,
        grads: Option<&mut HostParams>,
    ) {
        scalar_head::scalar_head_backward(cpu, head, x, rows, dy, dx, grads);
    }
}

/// The log-sum-exp that includes a sink: log(exp(lse) + exp(sink)).
fn with_sink(lse: f32, sink: f32) -> f32 {
    let (low, high) = if lse < sink { (lse, sink) } else { (sink, lse) };
    high + (low - high).exp().ln_1p()
}
