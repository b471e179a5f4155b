#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use trainyard_protocol::custom_loss::CustomLoss;
use trainyard_protocol::{Datum, LossFn, OpError, PreparedDatum, Tensor, TensorValues};

use crate::loss::{LossValue, evaluate, prepare};

/// Recorded losses with their values and gradients, as torch computes them in f32.
const CASES: &str = include_str!("../../../../tests/golden/custom_loss/cases.json");

/// How far results may be from torch's, relative to the largest value.
const TOLERANCE: f64 = 1e-5;

fn floats(values: &Json) -> Vec<f64> {
    values.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

fn tensor(encoded: &Json) -> Tensor {
    let shape: Vec<usize> = floats(&encoded["shape"]).into_iter().map(|extent| extent as usize).collect();
    let data = floats(&encoded["data"]);
    let values = match encoded["dtype"].as_str().unwrap() {
        "int64" => TensorValues::I64(data.into_iter().map(|value| value as i64).collect()),
        _ => TensorValues::F32(data.into_iter().map(|value| value as f32).collect()),
    };
    // As a client sends a number: without a shape.
    Tensor { shape: if shape.is_empty() { vec![1] } else { shape }, values }
}

/// A loss with a datum that it fits.
struct Case {
    loss: LossFn,
    datum: PreparedDatum,
    logprobs: Vec<f32>,
}

impl Case {
    fn of(case: &Json) -> Self {
        let loss = Arc::new(CustomLoss::read(&case["definition"]).unwrap());
        let TensorValues::F32(logprobs) = tensor(&case["logprobs"]).values else { unreachable!() };
        let targets = Tensor { values: TensorValues::I64(vec![1; logprobs.len()]), ..tensor(&case["logprobs"]) };
        let rows = targets.shape[0];
        let mut inputs = BTreeMap::from([("target_tokens".to_owned(), targets)]);
        for (input, encoded) in loss.inputs[1..].iter().zip(case["inputs"].as_array().unwrap()) {
            inputs.insert(input.name.clone(), tensor(encoded));
        }
        let loss = LossFn::Custom(loss);
        let datum = Datum { tokens: vec![1; rows], loss_fn_inputs: inputs };
        Self { datum: prepare(&loss, 0, &datum, 8).unwrap(), loss, logprobs }
    }

    fn evaluate(&self) -> Result<LossValue, OpError> {
        evaluate(&self.loss, &self.datum, &self.logprobs)
    }
}

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
