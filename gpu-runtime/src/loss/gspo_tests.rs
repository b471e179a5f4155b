//! `gspo` against PyTorch, finite differences and its own properties.
#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;
use serde::Deserialize;
use trainyard_protocol::{ClipRange, PolicyInputs};

use super::*;

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

/// A datum, its loss and gradient as PyTorch computes them.
#[derive(Deserialize)]
struct Case {
    name: String,
    clip_low_threshold: f64,
    clip_high_threshold: f64,
    target_logprobs: Vec<f32>,
    logprobs: Vec<f32>,
    advantages: Vec<f32>,
    sequence_ratio_mask: Vec<f32>,
    weights: Option<Vec<f32>>,
    loss_sum: f64,
    elementwise: Vec<f64>,
    gradient: Vec<f64>,
}

impl Case {
    fn datum(&self) -> PreparedDatum {
        let ratio_mask = self.sequence_ratio_mask.iter().map(|&mask| mask != 0.0).collect();
        let policy = PolicyInputs { logprobs: self.logprobs.clone(), advantages: self.advantages.clone(), ratio_mask };
        datum(policy, self.weights.clone())
    }

    fn loss(&self) -> LossFn {
        LossFn::Gspo(ClipRange { low: self.clip_low_threshold, high: self.clip_high_threshold })
    }
}

fn datum(policy: PolicyInputs, weights: Option<Vec<f32>>) -> PreparedDatum {
    let n = policy.logprobs.len();
    PreparedDatum {
        index: 0,
        tokens: vec![0; n],
        targets: vec![0; n],
        k: 1,
        shape: vec![n],
        weights,
        entropy_weights: None,
        kl_weights: None,
        policy: Some(policy),
        values: None,
        custom: Vec::new(),
        images: Vec::new(),
    }
}

#[track_caller]
fn assert_close(what: &str, found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (&found, &expected) in found.iter().zip(expected) {
        let error = (f64::from(found) - expected).abs();
        assert!(error <= 1e-6 * (1.0 + expected.abs()), "{what}: {found}, expected {expected}");
    }
}

#[test]
fn values_and_gradients_agree_with_pytorch() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/gspo/golden.json");
    let golden: Golden = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert!(golden.cases.len() >= 10);
    for case in &golden.cases {
        let value = evaluate(&case.loss(), &case.datum(), &case.target_logprobs).unwrap();
        let error = (value.sum - case.loss_sum).abs();
        assert!(error <= 1e-9 * (1.0 + case.loss_sum.abs()), "{}: {}, not {}", case.name, value.sum, case.loss_sum);
        assert_close(&case.name, &value.elementwise, &case.elementwise);
        assert_close(&case.name, &value.dlogprobs, &case.gradient);
    }
}

const RANGE: ClipRange = ClipRange { low: 0.8, high: 1.2 };
const LOSS: LossFn = LossFn::Gspo(RANGE);

/// Rows of (lp, lp - q, A, mask).
fn rows() -> impl Strategy<Value = Vec<(f32, f32, f32, bool)>> {
    prop::collection::vec((-5f32..-0.1, -1f32..1.0, -2f32..2.0, any::<bool>()), 1..8)
}

fn split(rows: &[(f32, f32, f32, bool)]) -> (Vec<f32>, PolicyInputs) {
    let policy = PolicyInputs {
        logprobs: rows.iter().map(|row| row.0 - row.1).collect(),
        advantages: rows.iter().map(|row| row.2).collect(),
        ratio_mask: rows.iter().map(|row| row.3).collect(),
    };
    (rows.iter().map(|row| row.0).collect(), policy)
}

/// The mean log-ratio of the masked positions, 0 without any.
fn mean_log_ratio(lp: &[f32], policy: &PolicyInputs) -> f64 {
    let masked: Vec<f64> = (0..lp.len())
        .filter(|&at| policy.ratio_mask[at])
        .map(|at| f64::from(lp[at]) - f64::from(policy.logprobs[at]))
        .collect();
    masked.iter().sum::<f64>() / masked.len().max(1) as f64
}

proptest! {
    /// The gradient is the slope of the sum with the detached mean held constant: a step of `lp_t` moves only `s_t`, by
    /// the factor exp(step).
    #[test]
    fn the_gradient_agrees_with_differences(rows in rows()) {
        let (lp, policy) = split(&rows);
        let log_ratio = mean_log_ratio(&lp, &policy);
        // Differences say nothing across a kink.
        prop_assume!([RANGE.low, RANGE.high].iter().all(|bound| (log_ratio - bound.ln()).abs() > 0.02));
        let value = evaluate(&LOSS, &datum(policy.clone(), None), &lp).unwrap();
        let h = 1e-4;
        for at in 0..lp.len() {
            let advantage = f64::from(policy.advantages[at]);
            let term = |step: f64| {
                let ratio = (log_ratio + step).exp();
                -(ratio * advantage).min(RANGE.clip(ratio) * advantage)
            };
            let slope = (term(h) - term(-h)) / (2.0 * h);
            prop_assert!((slope - f64::from(value.dlogprobs[at])).abs() < 1e-5, "{slope} {:?}", value.dlogprobs);
        }
    }

    /// Moving the log-probabilities of all masked positions by a step moves the sequence's ratio by its factor, and so the
    /// sum by the sum of all tokens' gradients.
    #[test]
    fn the_sum_follows_the_sequences_ratio(rows in rows()) {
        prop_assume!(rows.iter().any(|row| row.3));
        let (lp, policy) = split(&rows);
        let log_ratio = mean_log_ratio(&lp, &policy);
        prop_assume!([RANGE.low, RANGE.high].iter().all(|bound| (log_ratio - bound.ln()).abs() > 0.02));
        let datum = datum(policy.clone(), None);
        let h = 1.0 / 256.0;
        let shifted = |step: f32| {
            let moved: Vec<f32> = lp.iter().zip(&policy.ratio_mask).map(|(&lp, &m)| if m { lp + step } else { lp }).collect();
            evaluate(&LOSS, &datum, &moved).unwrap().sum
        };
        let slope = (shifted(h) - shifted(-h)) / f64::from(2.0 * h);
        let gradient: f64 = evaluate(&LOSS, &datum, &lp).unwrap().dlogprobs.iter().map(|&d| f64::from(d)).sum();
        prop_assert!((slope - gradient).abs() < 2e-3 * (1.0 + gradient.abs()), "{slope} {gradient}");
    }

    /// A sequence with one sampled position has its token's ratio: gspo is ppo.
    #[test]
    fn a_sequence_of_one_token_is_ppo(lp in -5f32..-0.1, gap in -1f32..1.0, advantage in -2f32..2.0) {
        let (lp, policy) = split(&[(lp, gap, advantage, true)]);
        let gspo = evaluate(&LOSS, &datum(policy.clone(), None), &lp).unwrap();
        let ppo = evaluate(&LossFn::Ppo(RANGE), &datum(policy, None), &lp).unwrap();
        prop_assert_eq!(gspo, ppo);
    }

    /// The mean does not know an order: permuted rows have permuted terms.
    #[test]
    fn rotated_rows_have_rotated_terms(rows in rows(), by in 0usize..8) {
        let (lp, policy) = split(&rows);
        let value = evaluate(&LOSS, &datum(policy.clone(), None), &lp).unwrap();
        // Close to a bound the rounding of the mean may choose the other side.
        let log_ratio = mean_log_ratio(&lp, &policy);
        prop_assume!([RANGE.low, RANGE.high].iter().all(|bound| (log_ratio - bound.ln()).abs() > 1e-9));
        let mut rotated = rows.clone();
        rotated.rotate_left(by % rows.len());
        let (lp, policy) = split(&rotated);
        let found = evaluate(&LOSS, &datum(policy, None), &lp).unwrap();
        let mut expected = value.dlogprobs;
        expected.rotate_left(by % rows.len());
        for (found, expected) in found.dlogprobs.iter().zip(expected) {
            prop_assert!((found - expected).abs() <= 1e-6 * (1.0 + expected.abs()));
        }
    }

    /// Positions outside the mask change no other position's term, however wild their ratio.
    #[test]
    fn unmasked_positions_do_not_move_the_ratio(rows in rows(), wild in -60f32..60.0) {
        let (lp, policy) = split(&rows);
        let value = evaluate(&LOSS, &datum(policy, None), &lp).unwrap();
        let mut more = rows.clone();
        more.push((-1.0, wild, 0.0, false));
        let (lp, policy) = split(&more);
        let with_more = evaluate(&LOSS, &datum(policy, None), &lp).unwrap();
        prop_assert_eq!(&with_more.elementwise[..rows.len()], &value.elementwise[..]);
        prop_assert_eq!((with_more.sum, with_more.dlogprobs[rows.len()]), (value.sum, 0.0));
    }
}

#[test]
fn a_sequence_without_masked_positions_has_ratio_one() {
    let (lp, policy) = split(&[(-1.0, 0.7, 2.0, false), (-2.0, -0.7, -1.0, false)]);
    let value = evaluate(&LOSS, &datum(policy, None), &lp).unwrap();
    assert_eq!((value.sum, value.dlogprobs), (-1.0, vec![-2.0, 1.0]));
}

#[test]
fn an_overflowing_ratio_is_the_datums_fault_where_it_counts() {
    let (lp, mut policy) = split(&[(-1.0, 0.0, 0.0, true), (-1.0, 0.0, -1.0, false)]);
    policy.logprobs[0] = -1000.0;
    let error = evaluate(&LOSS, &datum(policy.clone(), None), &lp).unwrap_err();
    assert!(error.message.starts_with("data[0]: gspo is not finite at position 1"), "{error}");
    assert!(evaluate(&LOSS, &datum(policy.clone(), Some(vec![1.0, 0.0])), &lp).is_ok());
    policy.ratio_mask.clear();
    let missing = evaluate(&LOSS, &datum(policy, None), &lp).unwrap_err();
    assert!(missing.message.contains("differ in length"), "{missing}");
}
