//! `stable_reinforce` against an independent computation in f64, finite differences and its own properties.
#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;
use serde::Deserialize;
use trainyard_protocol::PolicyInputs;

use super::*;

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

/// A datum with its loss, gradient and metrics.
#[derive(Deserialize)]
struct Case {
    name: String,
    kl_coeff: f64,
    target_logprobs: Vec<f32>,
    logprobs: Vec<f32>,
    advantages: Vec<f32>,
    weights: Option<Vec<f32>>,
    loss_sum: f64,
    elementwise: Vec<f64>,
    gradient: Vec<f64>,
    truncated_fraction: f64,
    ratio_mean: f64,
    ratio_max: f64,
}

fn datum(logprobs: Vec<f32>, advantages: Vec<f32>, weights: Option<Vec<f32>>) -> PreparedDatum {
    let n = logprobs.len();
    PreparedDatum {
        index: 0,
        tokens: vec![0; n],
        targets: vec![0; n],
        k: 1,
        shape: vec![n],
        weights,
        entropy_weights: None,
        kl_weights: None,
        policy: Some(PolicyInputs { logprobs, advantages, ratio_mask: vec![] }),
        values: None,
        custom: vec![],
        images: Vec::new(),
    }
}

fn loss(kl_coeff: f64) -> LossFn {
    LossFn::StableReinforce { kl_coeff }
}

#[track_caller]
fn assert_close(what: &str, found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance * (1.0 + expected.abs()), "{what}: {found}, expected {expected}");
}

/// The metrics of some datums: truncated part, mean and largest ratio.
fn reported(data: &[(PreparedDatum, Vec<f32>)]) -> [f64; 3] {
    let found = metrics(&loss(0.0), data.iter().map(|(datum, logprobs)| (datum, logprobs.as_slice())));
    assert_eq!(found.len(), 3);
    ["truncated_fraction:mean", "ratio:mean", "ratio:max"]
        .map(|name| found[&format!("stable_reinforce_trainyard/{name}")])
}

#[test]
fn values_gradients_and_metrics_agree_with_an_independent_computation() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/stable_reinforce/golden.json");
    let golden: Golden = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert!(golden.cases.len() >= 9);
    let mut all = Vec::new();
    for case in golden.cases {
        let datum = datum(case.logprobs, case.advantages, case.weights);
        let value = evaluate(&loss(case.kl_coeff), &datum, &case.target_logprobs).unwrap();
        assert_close(&case.name, value.sum, case.loss_sum, 1e-12);
        assert_eq!((value.elementwise.len(), value.dlogprobs.len()), (case.elementwise.len(), case.gradient.len()));
        for (found, expected) in value.elementwise.iter().zip(&case.elementwise) {
            assert_close(&case.name, f64::from(*found), *expected, 1e-6);
        }
        for (found, expected) in value.dlogprobs.iter().zip(&case.gradient) {
            assert_close(&case.name, f64::from(*found), *expected, 1e-6);
        }
        let expected = [case.truncated_fraction, case.ratio_mean, case.ratio_max];
        let pair = (datum, case.target_logprobs);
        for (found, expected) in reported(std::slice::from_ref(&pair)).into_iter().zip(expected) {
            assert_close(&case.name, found, expected, 1e-12);
        }
        all.push((pair, expected));
    }
    let count = all.len() as f64;
    let mean = |at: usize| all.iter().map(|(_, expected)| expected[at]).sum::<f64>() / count;
    let max = all.iter().map(|(_, expected)| expected[2]).fold(0.0, f64::max);
    let (expected, pairs) = ([mean(0), mean(1), max], all.iter().map(|(pair, _)| pair.clone()).collect::<Vec<_>>());
    for (found, expected) in reported(&pairs).into_iter().zip(expected) {
        assert_close("all", found, expected, 1e-12);
    }
}

/// Rows of (lp, lp - q, A).
fn rows() -> impl Strategy<Value = Vec<(f32, f32, f32)>> {
    prop::collection::vec((-5f32..-0.1, -2f32..2.0, -2f32..2.0), 1..8)
}

fn split(rows: &[(f32, f32, f32)]) -> (Vec<f32>, PreparedDatum) {
    let logprobs = rows.iter().map(|row| row.0 - row.1).collect();
    let advantages = rows.iter().map(|row| row.2).collect();
    (rows.iter().map(|row| row.0).collect(), datum(logprobs, advantages, None))
}

proptest! {
    /// The penalty by itself is differentiable: its gradient is its slope.
    #[test]
    fn the_penaltys_gradient_agrees_with_differences(rows in rows(), kl_coeff in 0.0..3.0) {
        let still: Vec<_> = rows.iter().map(|row| (row.0, row.1, 0.0)).collect();
        let (lp, datum) = split(&still);
        let value = evaluate(&loss(kl_coeff), &datum, &lp).unwrap();
        let h = 1.0 / 256.0;
        for at in 0..lp.len() {
            let shifted = |by: f32| {
                let mut moved = lp.clone();
                moved[at] += by;
                evaluate(&loss(kl_coeff), &datum, &moved).unwrap().sum
            };
            let slope = (shifted(h) - shifted(-h)) / f64::from(2.0 * h);
            prop_assert!((slope - f64::from(value.dlogprobs[at])).abs() < 2e-3, "{slope} {:?}", value.dlogprobs);
        }
    }

    /// The loss equals cispo with the bounds 0 and 2 if the penalty is off.
    #[test]
    fn without_a_penalty_it_is_a_cispo(rows in rows()) {
        let (lp, datum) = split(&rows);
        let cispo = LossFn::Cispo(trainyard_protocol::ClipRange { low: 0.0, high: 2.0 });
        prop_assert_eq!(evaluate(&loss(0.0), &datum, &lp).unwrap(), evaluate(&cispo, &datum, &lp).unwrap());
    }

    /// Positions of a prompt contribute nothing, whatever the model thinks of them.
    #[test]
    fn a_prompt_contributes_nothing(rows in rows(), lp in -1e4f32..0.0, kl_coeff in 0.0..3.0) {
        let (plain_lp, plain) = split(&rows);
        let value = evaluate(&loss(kl_coeff), &plain, &plain_lp).unwrap();
        let mut more = rows.clone();
        more.push((lp, lp, 0.0));
        let (more_lp, with_prompt) = split(&more);
        let found = evaluate(&loss(kl_coeff), &with_prompt, &more_lp).unwrap();
        prop_assert_eq!((found.sum, found.dlogprobs[rows.len()]), (value.sum, 0.0));
        prop_assert_eq!(reported(&[(with_prompt, more_lp)]), reported(&[(plain, plain_lp)]));
    }
}

#[test]
fn wild_ratios_are_truncated_and_reported_as_finite() {
    let (lp, datum) = split(&[(-1.0, 900.0, 1.0), (-1.0, 900.0, -1.0)]);
    let value = evaluate(&loss(0.0), &datum, &lp).unwrap();
    assert_eq!((value.sum, value.dlogprobs), (0.0, vec![-2.0, 2.0]));
    let largest = f64::from(f32::MAX);
    assert_eq!(reported(&[(datum, lp)]), [1.0, largest, largest]);
}

#[test]
fn other_losses_report_nothing() {
    let (lp, datum) = split(&[(-1.0, 0.5, 1.0)]);
    assert!(metrics(&LossFn::ImportanceSampling, [(&datum, lp.as_slice())].into_iter()).is_empty());
}
