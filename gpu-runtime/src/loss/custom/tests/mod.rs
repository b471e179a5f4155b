//! Custom losses: recorded ones against torch, and hostile ones.
#![allow(clippy::unwrap_used, reason = "tests")]

mod fuzz;
mod golden;
mod hostile;
mod interrupt;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use trainyard_protocol::custom_loss::CustomLoss;
use trainyard_protocol::{Datum, LossFn, OpError, PreparedDatum, Tensor, TensorValues};

use crate::interrupt::Interrupt;
use crate::loss::{LossValue, evaluate, evaluate_until, prepare};

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
        let datum = Datum { tokens: vec![1; rows], loss_fn_inputs: inputs, images: Vec::new() };
        Self { datum: prepare(&loss, 0, &datum, 8).unwrap(), loss, logprobs }
    }

    fn evaluate(&self) -> Result<LossValue, OpError> {
        self.evaluate_at(&self.logprobs)
    }

    fn evaluate_at(&self, logprobs: &[f32]) -> Result<LossValue, OpError> {
        evaluate(&self.loss, &self.datum, logprobs)
    }

    fn evaluate_until(&self, interrupt: &Interrupt) -> Result<LossValue, OpError> {
        evaluate_until(&self.loss, &self.datum, &self.logprobs, interrupt)
    }
}
