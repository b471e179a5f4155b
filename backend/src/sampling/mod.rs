//! Samples a token from a row of logits, and finds the most likely ones.

mod changes;
mod mask;
mod ranking;

pub use changes::LogitChanges;
pub use changes::{LogitRules, TokenCounts};
pub use mask::TokenMask;
pub use ranking::topk;
use ranking::{Candidate, best, sort_first};
use trainyard_protocol::SamplingParams;

/// Buffers that one thread reuses from token to token.
#[derive(Clone, Debug, Default)]
pub struct SamplingScratch {
    weights: Vec<f32>,
    sums: Vec<f64>,
    ranked: Vec<Candidate>,
    changed: Vec<f32>,
}

/// How a token is sampled from a row of logits.
#[derive(Clone, Copy, Debug)]
pub struct SamplingRule<'a> {
    /// Softmax temperature; 0 takes the largest logit.
    pub temperature: f32,
    /// Tokens less likely than this fraction of the most likely one are excluded; 0 turns the cut off.
    pub min_p: f32,
    /// Number of most likely tokens that are candidates; all when `None`.
    pub top_k: Option<u32>,
    /// Probability mass of the candidates.
    pub top_p: f32,
    /// The uniform number in [0, 1) that selects the token.
    pub u: f64,
    /// Changes of the logits that are applied before everything else.
    pub changes: Option<LogitChanges<'a>>,
}

impl<'a> SamplingRule<'a> {
    /// Creates the rule of a request's parameters for the token that `u` picks.
    pub fn new(params: &SamplingParams, u: f64, changes: Option<LogitChanges<'a>>) -> Self {
        let SamplingParams { temperature, top_k, top_p, .. } = *params;
        Self { temperature, min_p: params.controls.min_p, top_k, top_p, u, changes }
    }
}

/// Samples a token. Logits are changed, divided by the temperature, and cut to those with at least `min_p` of the
/// largest probability, then to the `top_k` most likely, then to the smallest set of these with `top_p` of their
/// probability. Then `u` picks by inverse distribution.
///
/// Temperature 0 picks the most likely token. Ties go to the lowest id, here and in the cuts. A token whose logit is
/// -inf or NaN is only sampled if all tokens are such. Without cuts, tokens are taken in order of id in one pass; with
/// cuts, the most likely first.
pub fn sample_token(logits: &[f32], rule: &SamplingRule<'_>, scratch: &mut SamplingScratch) -> u32 {
    let Some(changes) = rule.changes else { return sample_unchanged(logits, rule, scratch) };
    let mut changed = std::mem::take(&mut scratch.changed);
    changed.clear();
    changed.extend_from_slice(logits);
    changes.apply(&mut changed);
    let token = sample_unchanged(&changed, rule, scratch);
    scratch.changed = changed;
    token
}

fn sample_unchanged(logits: &[f32], rule: &SamplingRule<'_>, scratch: &mut SamplingScratch) -> u32 {
    let SamplingRule { temperature, min_p, top_k, top_p, u, changes: _ } = *rule;
    let total = match weights_of(logits, temperature, min_p, scratch) {
        Ok(total) => total,
        Err(only) => return only,
    };
    let top_k = top_k.map(|k| k.max(1) as usize).filter(|&k| k < logits.len());
    if top_k.is_none() && top_p >= 1.0 {
        return pick_by_id(scratch, u * total);
    }
    pick_ranked(logits, top_k, f64::from(top_p), u, total, scratch)
}

/// Samples a token for each of `us` from the same logits, without cuts: the tokens of [`sample_token`] for each, at about the
/// cost of one.
pub fn sample_each(
    logits: &[f32],
    temperature: f32,
    us: impl Iterator<Item = f64>,
    scratch: &mut SamplingScratch,
) -> Vec<u32> {
    match weights_of(logits, temperature, 0.0, scratch) {
        Ok(total) => us.map(|u| pick_by_id(scratch, u * total)).collect(),
        Err(only) => us.map(|_| only).collect(),
    }
}

/// Sets the weights of the logits, 0 for those below `min_p`, and returns their total, or the token where only one can be
/// sampled.
fn weights_of(logits: &[f32], temperature: f32, min_p: f32, scratch: &mut SamplingScratch) -> Result<f64, u32> {
    let max = maximum(logits);
    let positive = temperature > 0.0;
    if !positive || !max.is_finite() {
        return Err(logits.iter().position(|&logit| logit == max).unwrap_or(0) as u32);
    }
    Ok(weigh(logits, max, temperature, min_p, scratch))
}

/// The scale of logits whose log-softmax is reported: 1 / temperature, and 1 when greedy, where the scaled distribution has
/// all its mass on one token.
pub fn logprob_scale(temperature: f32) -> f32 {
    if temperature == 0.0 { 1.0 } else { 1.0 / temperature }
}

/// Elements that one partial sum covers.
const BLOCK: usize = 512;
/// Independent accumulators, for vector registers.
const LANES: usize = 16;

fn maximum(values: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for chunk in values.chunks(LANES) {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, value);
        }
    }
    lanes.into_iter().fold(f32::NEG_INFINITY, larger)
}

/// Sets `weights` to exp((logit - max) / temperature), or 0 where that is below `min_p`, and `sums` to their sums by block;
/// returns the total. The largest weight is 1, so that a weight is the ratio of its probability to the largest one.
fn weigh(logits: &[f32], max: f32, temperature: f32, min_p: f32, scratch: &mut SamplingScratch) -> f64 {
    let SamplingScratch { weights, sums, .. } = scratch;
    weights.resize(logits.len(), 0.0);
    sums.clear();
    for (weights, logits) in weights.chunks_mut(BLOCK).zip(logits.chunks(BLOCK)) {
        let mut lanes = [0f32; LANES];
        for (weights, logits) in weights.chunks_mut(LANES).zip(logits.chunks(LANES)) {
            for ((weight, &logit), lane) in weights.iter_mut().zip(logits).zip(&mut lanes) {
                let ratio = exp_nonpositive((logit - max) / temperature);
                *weight = if ratio >= min_p { ratio } else { 0.0 };
                *lane += *weight;
            }
        }
        sums.push(lanes.iter().map(|&lane| f64::from(lane)).sum());
    }
    sums.iter().sum()
}

/// exp(x) for x <= 0 to a few units in the last place, 0 below -87 and for NaN. No branch and no table, so that
/// loops over it become vector code.
#[inline(always)]
fn exp_nonpositive(x: f32) -> f32 {
    // Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits.
    const ROUND: f32 = 12_582_912.0;
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    let tail = 1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0)));
    let fraction = 1.0 + (r + r * r * (0.5 + r * tail));
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    if x > -87.0 { fraction * f32::from_bits(exponent) } else { 0.0 }
}

/// The first token, by id, at which the running sum of weights exceeds `target`.
fn pick_by_id(scratch: &SamplingScratch, target: f64) -> u32 {
    let SamplingScratch { weights, sums, .. } = scratch;
    let (mut running, mut start, mut end) = (0.0, 0, weights.len());
    for (&sum, block) in sums.iter().zip((0..weights.len()).step_by(BLOCK)) {
        if running + sum > target {
            (start, end) = (block, weights.len().min(block + BLOCK));
            break;
        }
        running += sum;
        start = end;
    }
    for (id, &weight) in (start..end).zip(&weights[start..end]) {
        running += f64::from(weight);
        if running > target {
            return id as u32;
        }
    }
    // Sums by block and by element round differently; the last token with weight closes the gap.
    weights[..end].iter().rposition(|&weight| weight > 0.0).unwrap_or(0) as u32
}

/// Samples among the likeliest tokens only.
fn pick_ranked(
    logits: &[f32],
    top_k: Option<usize>,
    top_p: f64,
    u: f64,
    mut total: f64,
    scratch: &mut SamplingScratch,
) -> u32 {
    let SamplingScratch { weights, ranked, .. } = scratch;
    let weight = |candidate: &Candidate| f64::from(weights[candidate.id() as usize]);
    ranked.clear();
    let mut sorted = 0;
    if let Some(k) = top_k {
        ranked.extend(best(logits, k).filter(|candidate| weight(candidate) > 0.0));
        sorted = ranked.len();
        total = ranked.iter().map(weight).sum();
    } else {
        // All tokens below this hold less than half of what top-p leaves out: none of them is in its set.
        let floor = (0.5 * (1.0 - top_p) * total / weights.len() as f64) as f32;
        let likely = (0u32..).zip(weights.iter().zip(logits)).filter(|(_, (weight, _))| **weight > floor);
        ranked.extend(likely.map(|(id, (_, &logit))| Candidate::new(id, logit)));
    }
    let limit = if top_p < 1.0 { top_p * total } else { f64::INFINITY };
    let (mut candidates, mut mass) = (0, 0.0);
    while candidates < ranked.len() && mass < limit {
        if candidates == sorted {
            // Most of the probability is usually in a few tokens: sort only as far as it is needed.
            sorted += sort_first(&mut ranked[sorted..], (3 * sorted).max(64));
        }
        mass += weight(&ranked[candidates]);
        candidates += 1;
    }
    let (target, mut running) = (u * mass, 0.0);
    for candidate in &ranked[..candidates] {
        running += weight(candidate);
        if running > target {
            return candidate.id();
        }
    }
    ranked[..candidates].last().map_or(0, |candidate| candidate.id())
}

#[cfg(test)]
mod tests;
