//! Scalar heads: their values, and gradients of losses on them by differences, for adapters and for all parameters.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use trainyard_protocol::{Datum, LoraSpec, LossConfigValue, Tensor};

use super::differences::{Fixture, numbers};
use crate::backend::cpu::{Cpu, Isa};
use crate::backend::reference::Reference;
use crate::backend::{Backend, Dtype};
use crate::loss::{LossFn, PreparedDatum, prepare};

const SPEC: LoraSpec = LoraSpec { train_unembed: false, ..LoraSpec::on_all(3, 1) };

fn datum(loss: &LossFn, length: usize, seed: i64) -> PreparedDatum {
    let tokens: Vec<i64> = (0..length as i64).map(|t| (t * 37 + seed * 11 + t * t) % 512).collect();
    let random = |k: u64, bound| Tensor::f32(numbers(length, seed as u64 * 10 + k, bound));
    let mut inputs = BTreeMap::from([("weights".to_owned(), random(1, 1.0))]);
    match loss {
        LossFn::ValueMse { .. } => {
            inputs.insert("returns".to_owned(), random(2, 2.0));
            inputs.insert("old_values".to_owned(), random(3, 2.0));
        }
        _ => drop(inputs.insert("target_tokens".to_owned(), Tensor::i64(tokens.clone()))),
    }
    prepare(loss, 0, &Datum { tokens, loss_fn_inputs: inputs, images: Vec::new() }, 512).unwrap()
}

/// A model with a scalar head.
fn fixture<B: Backend>(family: &str, backend: B, lora: Option<LoraSpec>, loss: LossFn) -> Fixture<B> {
    let data = [(12, 1), (3, 2), (7, 3)].map(|(length, seed)| datum(&loss, length, seed)).into();
    Fixture::new(family, backend, lora, true, loss, data)
}

fn losses() -> [(&'static str, LossFn); 2] {
    let clip = BTreeMap::from([("value_clip".to_owned(), LossConfigValue::Number(1.5))]);
    let parse = |name, config| LossFn::parse(name, &config).unwrap();
    [("linear", parse("cross_entropy", BTreeMap::new())), ("value_mse", parse("value_mse", clip))]
}

#[test]
fn gradients_of_head_and_adapter_agree_with_differences() {
    for (name, loss) in losses() {
        let cpu = Cpu::with_isa(2, Isa::detect()).with_dtype(Dtype::F32);
        fixture("qwen3", cpu, Some(SPEC), loss.clone()).check_gradients(&format!("{name}, CPU"));
        fixture("qwen3", Reference, Some(SPEC), loss).check_gradients(&format!("{name}, reference"));
    }
}

#[test]
fn gradients_of_all_parameters_agree_with_differences() {
    for (name, loss) in losses() {
        for family in ["llama", "llama_tied"] {
            let cpu = Cpu::with_isa(2, Isa::detect()).with_dtype(Dtype::F32);
            fixture(family, cpu, None, loss.clone()).check_gradients(&format!("{name}, all of {family}"));
        }
    }
}

#[test]
fn values_are_zero_at_the_start_and_the_bias_where_the_weight_is_zero() {
    let [_, (_, loss)] = losses();
    let fixture = fixture("llama", Reference, Some(SPEC), loss);
    let mut params = fixture.params();
    let (weight, bias) = (params.len() - 2, params.len() - 1);
    params[weight].fill(0.0);
    for expected in [0.0, 0.25] {
        params[bias][0] = expected;
        let outputs = fixture.run(&params, false).0;
        let lengths: Vec<usize> = outputs.iter().map(|output| output.logprobs.len()).collect();
        assert_eq!(lengths, [12, 3, 7]);
        assert!(outputs.iter().flat_map(|output| &output.logprobs).all(|value| *value == expected));
    }
}
