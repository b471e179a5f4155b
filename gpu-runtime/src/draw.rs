//! Draws a token from logits, and picks the most likely ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use trainyard_protocol::limits::MIN_TEMPERATURE;
use trainyard_protocol::{OpError, SamplingParams};

/// Buffers that one thread reuses from draw to draw.
#[derive(Clone, Debug, Default)]
pub struct DrawScratch {
    weights: Vec<f32>,
    sums: Vec<f64>,
    ranked: Vec<Candidate>,
}

/// Checks how tokens are to be drawn; errors name the field. `stop` is checked where it is compiled,
/// when a stop matcher is made.
pub fn validate_params(params: &SamplingParams) -> Result<(), OpError> {
    let SamplingParams { max_tokens, temperature, top_k, top_p, .. } = params;
    if *max_tokens == Some(0) {
        return Err(OpError::user("sampling_params.max_tokens: must be at least 1"));
    }
    if !(temperature.is_finite() && (*temperature == 0.0 || *temperature >= MIN_TEMPERATURE)) {
        return Err(OpError::user(format!(
            "sampling_params.temperature: {temperature} is neither 0 nor finite and at least {MIN_TEMPERATURE}"
        )));
    }
    if *top_k == Some(0) {
        return Err(OpError::user("sampling_params.top_k: must be at least 1, or -1 to switch it off"));
    }
    if !(*top_p > 0.0 && *top_p <= 1.0) {
        return Err(OpError::user(format!("sampling_params.top_p: {top_p} is outside (0, 1]")));
    }
    Ok(())
}

/// Draws a token: logits are divided by `temperature`, cut to the `top_k` most likely, of those to the
/// smallest set that holds `top_p` of their probability; then `u` in [0, 1) picks by inverse distribution.
///
/// Temperature 0 picks the most likely token. Ties go to the lowest id, here and in the cuts. A token whose
/// logit is -inf or NaN is never drawn unless there is no other. Without cuts, tokens are taken in
/// order of id in one pass; with cuts, most likely first.
pub fn draw(
    logits: &[f32],
    temperature: f32,
    top_k: Option<u32>,
    top_p: f32,
    u: f64,
    scratch: &mut DrawScratch,
) -> u32 {
    let total = match weights_of(logits, temperature, scratch) {
        Ok(total) => total,
        Err(only) => return only,
    };
    let top_k = top_k.map(|k| k.max(1) as usize).filter(|&k| k < logits.len());
    if top_k.is_none() && top_p >= 1.0 {
        return pick_by_id(scratch, u * total);
    }
    pick_ranked(logits, top_k, f64::from(top_p), u, total, scratch)
}

/// Draws a token for each of `us` from the same logits, without cuts: those that [`draw`] gives for each alone, for
/// little more than the price of one.
pub fn draw_each(
    logits: &[f32],
    temperature: f32,
    us: impl Iterator<Item = f64>,
    scratch: &mut DrawScratch,
) -> Vec<u32> {
    match weights_of(logits, temperature, scratch) {
        Ok(total) => us.map(|u| pick_by_id(scratch, u * total)).collect(),
        Err(only) => us.map(|_| only).collect(),
    }
}

/// Weighs the logits and returns the weights' total, or the token when there is only one to draw.
fn weights_of(logits: &[f32], temperature: f32, scratch: &mut DrawScratch) -> Result<f64, u32> {
    let max = maximum(logits);
    let positive = temperature > 0.0;
    if !positive || !max.is_finite() {
        return Err(logits.iter().position(|&logit| logit == max).unwrap_or(0) as u32);
    }
    Ok(weigh(logits, max, temperature, scratch))
}

/// The `k` largest values with their positions, largest first, ties by lowest position; fewer when there are
/// fewer values. NaN counts as -inf.
pub fn topk(values: &[f32], k: usize) -> Vec<(u32, f32)> {
    best(values, k).map(|candidate| (candidate.id(), candidate.value())).collect()
}

/// A token by rank: greater is likelier, and of equals the lower id. One integer, so that comparing is cheap: the
/// value's bits in an order that follows the value, then the id's complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate(u64);

impl Candidate {
    const SIGN: u32 = 1 << 31;

    /// NaN counts as -inf.
    fn new(id: u32, value: f32) -> Self {
        // Adding zero makes -0 equal to 0.
        let bits = if value.is_nan() { f32::NEG_INFINITY } else { value + 0.0 }.to_bits();
        let ordered = if bits & Self::SIGN == 0 { bits | Self::SIGN } else { !bits };
        Self(u64::from(ordered) << 32 | u64::from(!id))
    }

    fn id(self) -> u32 {
        !(self.0 as u32)
    }

    fn value(self) -> f32 {
        let ordered = (self.0 >> 32) as u32;
        f32::from_bits(if ordered & Self::SIGN == 0 { !ordered } else { ordered & !Self::SIGN })
    }
}

/// The `k` best candidates, best first.
fn best(values: &[f32], k: usize) -> impl Iterator<Item = Candidate> {
    let k = k.min(values.len());
    let mut heap = BinaryHeap::with_capacity(k + 1);
    let mut floor = f32::NEG_INFINITY;
    for (id, &value) in (0u32..).zip(values) {
        // Later positions lose ties, so only a larger value can displace one of k.
        if heap.len() == k && (k == 0 || value.is_nan() || value <= floor) {
            continue;
        }
        heap.push(Reverse(Candidate::new(id, value)));
        if heap.len() > k {
            heap.pop();
        }
        floor = heap.peek().map_or(floor, |Reverse(worst)| worst.value());
    }
    heap.into_sorted_vec().into_iter().map(|Reverse(candidate)| candidate)
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

/// Sets `weights` to exp((logit - max) / temperature) and `sums` to their sums by block; returns the total.
fn weigh(logits: &[f32], max: f32, temperature: f32, scratch: &mut DrawScratch) -> f64 {
    let DrawScratch { weights, sums, .. } = scratch;
    weights.resize(logits.len(), 0.0);
    sums.clear();
    for (weights, logits) in weights.chunks_mut(BLOCK).zip(logits.chunks(BLOCK)) {
        let mut lanes = [0f32; LANES];
        for (weights, logits) in weights.chunks_mut(LANES).zip(logits.chunks(LANES)) {
            for ((weight, &logit), lane) in weights.iter_mut().zip(logits).zip(&mut lanes) {
                *weight = exp_nonpositive((logit - max) / temperature);
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
fn pick_by_id(scratch: &DrawScratch, target: f64) -> u32 {
    let DrawScratch { weights, sums, .. } = scratch;
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

/// Draws among the likeliest tokens only.
fn pick_ranked(
    logits: &[f32],
    top_k: Option<usize>,
    top_p: f64,
    u: f64,
    mut total: f64,
    scratch: &mut DrawScratch,
) -> u32 {
    let DrawScratch { weights, ranked, .. } = scratch;
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
    let (mut kept, mut mass) = (0, 0.0);
    while kept < ranked.len() && mass < limit {
        if kept == sorted {
            // Most of the probability is usually in a few tokens: sort only as far as it is needed.
            sorted += sort_first(&mut ranked[sorted..], (3 * sorted).max(64));
        }
        mass += weight(&ranked[kept]);
        kept += 1;
    }
    let (target, mut running) = (u * mass, 0.0);
    for candidate in &ranked[..kept] {
        running += weight(candidate);
        if running > target {
            return candidate.id();
        }
    }
    ranked[..kept].last().map_or(0, |candidate| candidate.id())
}

/// Brings the `count` best to the front in order; returns how many that were.
fn sort_first(candidates: &mut [Candidate], count: usize) -> usize {
    let count = count.min(candidates.len());
    if count > 0 && count < candidates.len() {
        candidates.select_nth_unstable_by_key(count - 1, |candidate| Reverse(*candidate));
    }
    candidates[..count].sort_unstable_by_key(|candidate| Reverse(*candidate));
    count
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;
    use trainyard_protocol::Stop;

    use super::*;
    use crate::rng::uniform;

    fn one(logits: &[f32], temperature: f32, top_k: Option<u32>, top_p: f32, u: f64) -> u32 {
        draw(logits, temperature, top_k, top_p, u, &mut DrawScratch::default())
    }

    #[test]
    fn greedy_takes_the_lowest_of_the_best() {
        assert_eq!(one(&[0.0, 3.0, 3.0], 0.0, None, 1.0, 0.99), 1);
        assert_eq!(one(&[f32::NAN, -1.0, f32::NEG_INFINITY], 0.0, None, 1.0, 0.99), 1);
        assert_eq!(one(&[0.0, 3.0, 3.0], 1.0, Some(1), 1.0, 0.99), 1);
        assert_eq!(one(&[0.0, 3.0, 3.0], 1.0, None, 1e-9, 0.99), 1);
        assert_eq!(one(&[0.0, 3.0, f32::INFINITY], 1.0, None, 1.0, 0.0), 2);
        assert_eq!(one(&[], 1.0, None, 1.0, 0.5), 0);
    }

    #[test]
    fn candidates_are_ordered_by_value_then_id() {
        let values = [f32::NEG_INFINITY, f32::MIN, -1.5, -f32::MIN_POSITIVE, 0.0, 1e-45, 1.0, f32::MAX, f32::INFINITY];
        for (at, value) in values.into_iter().enumerate() {
            for id in [0, 7, u32::MAX] {
                let candidate = Candidate::new(id, value);
                assert_eq!((candidate.id(), candidate.value().to_bits()), (id, value.to_bits()));
                assert!(values[..at].iter().all(|less| Candidate::new(0, *less) < candidate));
            }
            assert!(Candidate::new(3, value) > Candidate::new(4, value));
        }
        assert_eq!(Candidate::new(1, -0.0), Candidate::new(1, 0.0));
        assert_eq!(Candidate::new(1, f32::NAN), Candidate::new(1, f32::NEG_INFINITY));
    }

    #[test]
    fn extremes_are_safe() {
        let logits = [f32::MAX, f32::MIN, 0.0, f32::NAN, f32::NEG_INFINITY];
        for temperature in [f32::MIN_POSITIVE, 1e-20, 1.0, f32::MAX] {
            for u in [0.0, 0.5, 1.0 - f64::EPSILON / 2.0] {
                for (top_k, top_p) in [(None, 1.0), (Some(4), 1.0), (None, 0.999), (Some(100), 0.5)] {
                    assert!(one(&logits, temperature, top_k, top_p, u) < 3);
                }
            }
        }
    }

    #[test]
    fn exponential_is_close() {
        for at in 0..8_700 {
            let x = -(at as f32) * 0.01;
            let (found, expected) = (f64::from(exp_nonpositive(x)), f64::from(x).exp());
            assert!((found / expected - 1.0).abs() < 5e-7, "{x}: {found} {expected}");
        }
        for x in [-88.0, f32::NEG_INFINITY, f32::NAN, f32::MIN] {
            assert_eq!(exp_nonpositive(x), 0.0);
        }
    }

    #[test]
    fn frequencies_match_probabilities() {
        // Over several blocks, so that the scan crosses them.
        let logits: Vec<f32> = (0..1_300).map(|i| if i % 433 == 7 { (i / 433) as f32 } else { -30.0 }).collect();
        let temperature = 1.5f32;
        let powers: Vec<f64> = (0..3).map(|i| (f64::from(i) / f64::from(temperature)).exp()).collect();
        let draws = 20_000;
        for (top_k, top_p, kept) in [(None, 1.0, 3), (Some(3), 1.0, 3), (Some(2), 1.0, 2), (None, 0.7, 2)] {
            let mut counts = [0u32; 3];
            let mut scratch = DrawScratch::default();
            for at in 0..draws {
                let id = draw(&logits, temperature, top_k, top_p, uniform(5, 0, at), &mut scratch);
                assert_eq!(id % 433, 7);
                counts[(id / 433) as usize] += 1;
            }
            let total: f64 = powers[3 - kept..].iter().sum();
            for (at, &count) in counts.iter().enumerate() {
                let expected = if at < 3 - kept { 0.0 } else { powers[at] / total };
                assert!((f64::from(count) / draws as f64 - expected).abs() < 0.015, "{counts:?} {top_k:?} {top_p}");
            }
        }
    }

    #[test]
    fn parameters_are_named() {
        let good = SamplingParams {
            max_tokens: None,
            seed: 0,
            stop: Stop::Default,
            temperature: 1.0,
            top_k: None,
            top_p: 1.0,
        };
        validate_params(&good).unwrap();
        let cases = [
            ("max_tokens", SamplingParams { max_tokens: Some(0), ..good.clone() }),
            ("temperature", SamplingParams { temperature: -0.1, ..good.clone() }),
            ("temperature", SamplingParams { temperature: f32::NAN, ..good.clone() }),
            ("temperature", SamplingParams { temperature: 1e-38, ..good.clone() }),
            ("top_k", SamplingParams { top_k: Some(0), ..good.clone() }),
            ("top_p", SamplingParams { top_p: 0.0, ..good.clone() }),
            ("top_p", SamplingParams { top_p: 1.1, ..good.clone() }),
            ("top_p", SamplingParams { top_p: f32::NAN, ..good.clone() }),
        ];
        for (name, params) in cases {
            let message = validate_params(&params).unwrap_err().message;
            assert!(message.starts_with(&format!("sampling_params.{name}: ")), "{message}");
        }
    }

    fn logits() -> impl Strategy<Value = Vec<f32>> {
        // Whole numbers, so that there are ties.
        prop::collection::vec(prop_oneof![9 => (-6i8..6).prop_map(f32::from), 1 => Just(f32::NEG_INFINITY)], 1..1_200)
    }

    fn ranked(values: &[f32]) -> Vec<(u32, f32)> {
        let mut all: Vec<(u32, f32)> = (0u32..).zip(values.iter().copied()).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        all
    }

    proptest! {
        #[test]
        fn topk_is_a_sorted_prefix(values in logits(), k in 0usize..1_300) {
            let mut expected = ranked(&values);
            expected.truncate(k);
            prop_assert_eq!(topk(&values, k), expected);
        }

        #[test]
        fn cuts_are_never_exceeded(
            values in logits(), k in prop::option::of(1u32..1_300), p in 0.01f32..1.2, u in 0f64..1.0,
        ) {
            prop_assume!(values.iter().any(|value| value.is_finite()));
            let id = one(&values, 0.8, k, p.min(1.0), u);
            prop_assert!(values[id as usize].is_finite());
            let mut kept = ranked(&values);
            kept.truncate(k.map_or(usize::MAX, |k| k as usize));
            let rank = kept.iter().position(|candidate| candidate.0 == id);
            prop_assert!(rank.is_some());
            // What ranks before the token is less than p of what top-k left.
            let weight = |candidate: &(u32, f32)| f64::from(candidate.1 / 0.8).exp();
            let total: f64 = kept.iter().map(weight).sum();
            let before: f64 = kept.iter().take(rank.unwrap()).map(weight).sum();
            prop_assert!(before / total < f64::from(p) + 1e-5);
        }

        #[test]
        fn draws_together_are_those_alone(
            values in logits(), temperature in prop_oneof![Just(0f32), 0.1f32..3.0], seed: u64,
        ) {
            let us: Vec<f64> = (0..20).map(|at| uniform(seed, 0, at)).collect();
            let alone: Vec<u32> = us.iter().map(|&u| one(&values, temperature, None, 1.0, u)).collect();
            let mut scratch = DrawScratch::default();
            prop_assert_eq!(draw_each(&values, temperature, us.into_iter(), &mut scratch), alone);
        }

        #[test]
        fn cuts_that_keep_all_change_no_support(values in logits(), u in 0f64..1.0) {
            prop_assume!(values.iter().any(|value| value.is_finite()));
            let wide = one(&values, 1.0, Some(u32::MAX), 1.0, u);
            prop_assert_eq!(wide, one(&values, 1.0, None, 1.0, u));
        }
    }
}
