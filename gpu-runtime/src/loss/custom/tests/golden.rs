//! Recorded losses: values and gradients against torch's, and gradients against differences.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::{Case, floats};

/// Recorded losses with their values and gradients, as torch computes them in f32.
const CASES: &str = include_str!("../../../../../tests/golden/custom_loss/cases.json");

/// How far results may be from torch's, relative to the largest value.
const TOLERANCE: f64 = 1e-5;

#[track_caller]
fn assert_close(name: &str, what: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{name}: {what}");
    let scale = expected.iter().fold(1.0_f64, |most, value| most.max(value.abs()));
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (found - expected).abs();
        assert!(error <= TOLERANCE * scale, "{name}: {what}[{at}] is {found}, torch has {expected}");
    }
}

fn cases() -> Vec<Json> {
    serde_json::from_str(CASES).unwrap()
}

#[test]
fn values_gradients_and_metrics_are_those_of_torch() {
    let cases = cases();
    assert!(cases.len() >= 40);
    let mut failures = Vec::new();
    for case in &cases {
        let name = case["definition"]["name"].as_str().unwrap();
        match Case::of(case).evaluate() {
            Err(error) => failures.push(error.message),
            Ok(found) => {
                let gradient: Vec<f64> = found.dlogprobs.iter().map(|&value| f64::from(value)).collect();
                assert_close(name, "loss", &[found.sum], &[case["loss"].as_f64().unwrap()]);
                assert_close(name, "gradient", &gradient, &floats(&case["gradient"]));
                // Both are sorted by name.
                let metrics: BTreeMap<String, f64> = serde_json::from_value(case["metrics"].clone()).unwrap();
                assert_close(name, "metrics", &found.metrics, &metrics.into_values().collect::<Vec<_>>());
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Recorded losses without kinks and without constants that depend on the log-probabilities.
const SMOOTH: [&str; 20] = [
    "weighted_nll",
    "importance",
    "dpo_like",
    "kl_penalty",
    "logarithms",
    "trigonometry",
    "spread",
    "norms",
    "cumulative",
    "wide_log_softmax",
    "wide_reverse_kl",
    "wide_gather",
    "wide_triangles",
    "wide_std_mean",
    "joining",
    "pairwise",
    "entropy_bonus",
    "log_add",
    "products",
    "broadcasting",
];

#[test]
fn gradients_are_the_slopes_of_values() {
    let cases = cases();
    let smooth: Vec<_> = cases.iter().filter(|case| SMOOTH.contains(&name_of(case))).collect();
    assert_eq!(smooth.len(), SMOOTH.len());
    for case in smooth {
        let run = Case::of(case);
        let gradient = run.evaluate().unwrap().dlogprobs;
        let scale = gradient.iter().fold(1.0_f64, |most, value| most.max(f64::from(value.abs())));
        for (at, slope) in gradient.iter().enumerate() {
            let moved = |by: f32| {
                let mut logprobs = run.logprobs.clone();
                logprobs[at] += by;
                (run.evaluate_at(&logprobs).unwrap().sum, f64::from(logprobs[at]))
            };
            let (high, low) = (moved(1.0 / 1024.0), moved(-1.0 / 1024.0));
            let difference = (high.0 - low.0) / (high.1 - low.1);
            let error = (difference - f64::from(*slope)).abs();
            assert!(error < 1e-4 * scale, "{}[{at}]: {slope}, by differences {difference}", name_of(case));
        }
    }
}

fn name_of(case: &Json) -> &str {
    case["definition"]["name"].as_str().unwrap()
}

#[test]
fn results_repeat_to_the_bit() {
    for case in cases() {
        let run = Case::of(&case);
        let bits = |run: &Case| {
            let value = run.evaluate().unwrap();
            (value.sum.to_bits(), value.dlogprobs.iter().map(|slope| slope.to_bits()).collect::<Vec<_>>())
        };
        assert_eq!(bits(&run), bits(&run));
    }
}
