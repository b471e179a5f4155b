//! Entropies of the positions' distributions and their divergences from the base model: against the log-probabilities of all
//! tokens, and their gradients by differences.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use trainyard_protocol::{Datum, LoraSpec, Tensor, TensorValues};

use super::differences::{Fixture, numbers};
use crate::backend::cpu::{Cpu, Isa};
use crate::backend::reference::Reference;
use crate::backend::{Backend, Dtype};
use crate::loss::{LossFn, PreparedDatum, prepare};
use crate::model::TrainOutput;

const VOCAB: usize = 512;
const ENTROPY: &str = "entropy_weights";
const KL: &str = "kl_weights";

fn cpu() -> Cpu {
    Cpu::with_isa(2, Isa::detect()).with_dtype(Dtype::F32)
}

fn cross_entropy() -> LossFn {
    LossFn::parse("cross_entropy", &BTreeMap::new()).unwrap()
}

/// An example whose targets at each position are `targets` tokens, with weights of what `input` names.
fn datum(length: usize, seed: i64, targets: usize, input: &str, own: Option<Vec<f32>>) -> PreparedDatum {
    let tokens: Vec<i64> = (0..length as i64).map(|t| (t * 37 + seed * 11 + t * t) % VOCAB as i64).collect();
    let ids = (0..length * targets).map(|at| (at % targets) as i64).collect();
    let shape = vec![length, targets];
    let weights = numbers(length * targets, seed as u64, 0.5);
    let mut inputs = BTreeMap::from([
        ("target_tokens".to_owned(), Tensor { shape: shape.clone(), values: TensorValues::I64(ids) }),
        ("weights".to_owned(), Tensor { shape, values: TensorValues::F32(weights) }),
    ]);
    inputs.extend(own.map(|weights| (input.to_owned(), Tensor::f32(weights))));
    let datum = Datum { tokens, loss_fn_inputs: inputs, images: Vec::new() };
    prepare(&cross_entropy(), 0, &datum, VOCAB).unwrap()
}

fn fixture<B: Backend>(family: &str, backend: B, lora: Option<LoraSpec>, data: Vec<PreparedDatum>) -> Fixture<B> {
    Fixture::new(family, backend, lora, false, cross_entropy(), data)
}

/// Three examples with all tokens as targets; one has no weights of what `input` names. And the weights.
fn examples(input: &str) -> (Vec<PreparedDatum>, [Option<Vec<f32>>; 3]) {
    let weights = [Some(vec![0.0; 9]), None, Some(numbers(4, 7, 1.0))];
    let data = weights.iter().zip([9, 3, 4]).zip(0..);
    let data = data.map(|((weights, length), seed)| datum(length, seed, VOCAB, input, weights.clone()));
    (data.collect(), weights)
}

/// Whether an output's loss is the sum of its terms and of `sign` times what is weighted.
fn check_sum(family: &str, output: &TrainOutput, weights: &[f32], expected: &[f64], sign: f64) {
    let terms = output.value.elementwise.iter().map(|term| f64::from(*term)).sum::<f64>();
    let weighted = weights.iter().zip(expected).map(|(weight, value)| f64::from(*weight) * value).sum::<f64>();
    let sum = output.value.sum;
    assert!((sum - (terms + sign * weighted)).abs() < 1e-3, "{family}: {sum} {terms} {weighted}");
}

fn largest_difference(found: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max)
}

#[test]
fn entropies_are_those_of_the_log_probabilities_of_all_tokens() {
    for family in ["llama", "gemma3", "granitemoehybrid"] {
        let (data, weights) = examples(ENTROPY);
        let model = fixture(family, cpu(), Some(LoraSpec::on_all(3, 1)), data);
        for (output, weights) in model.run(&model.params(), false).0.iter().zip(&weights) {
            let expected: Vec<f64> = output.logprobs.chunks_exact(VOCAB).map(entropy).collect();
            assert_eq!((output.entropies.is_some(), &output.kl), (weights.is_some(), &None));
            let (Some(weights), Some(found)) = (weights, &output.entropies) else { continue };
            let difference = largest_difference(found, &expected);
            assert!(difference < 2e-5, "{family}: {difference}");
            check_sum(family, output, weights, &expected, -1.0);
        }
    }
}

#[test]
fn divergences_are_those_of_the_log_probabilities_of_all_tokens() {
    for family in ["llama", "gemma3", "granitemoehybrid", "qwen3"] {
        let (data, weights) = examples(KL);
        let model = fixture(family, cpu(), Some(LoraSpec::on_all(3, 1)), data);
        let params = model.params();
        // An adapter of zeros is the base model.
        let zeros = params.iter().map(|values| vec![0.0; values.len()]).collect();
        let base = model.run(&zeros, false).0;
        for ((output, base), weights) in model.run(&params, false).0.iter().zip(&base).zip(&weights) {
            assert_eq!((output.kl.is_some(), &output.entropies), (weights.is_some(), &None));
            let (Some(weights), Some(found), Some(none)) = (weights, &output.kl, &base.kl) else { continue };
            let of_rows = output.logprobs.chunks_exact(VOCAB).zip(base.logprobs.chunks_exact(VOCAB));
            let expected: Vec<f64> = of_rows.map(|(own, base)| divergence(own, base)).collect();
            let difference = largest_difference(found, &expected);
            assert!(difference < 2e-5, "{family}: {difference}");
            assert!(expected.iter().all(|divergence| *divergence > 1e-4), "{family}: {expected:?}");
            assert!(none.iter().all(|divergence| *divergence == 0.0), "{family}: {none:?}");
            check_sum(family, output, weights, &expected, 1.0);
        }
    }
}

fn entropy(logprobs: &[f32]) -> f64 {
    logprobs.iter().map(|logprob| -f64::from(*logprob) * f64::from(*logprob).exp()).sum()
}

fn divergence(logprobs: &[f32], others: &[f32]) -> f64 {
    let term = |(own, other): (&f32, &f32)| f64::from(*own).exp() * (f64::from(*own) - f64::from(*other));
    logprobs.iter().zip(others).map(term).sum()
}

/// Beside a datum that asks for nothing, and one whose targets have no gradient.
fn data(input: &str) -> Vec<PreparedDatum> {
    let mut alone = datum(5, 3, 1, input, Some(numbers(5, 8, 1.0)));
    alone.weights = Some(vec![0.0; 5]);
    vec![datum(12, 1, 2, input, Some(numbers(12, 9, 1.0))), datum(3, 2, 1, input, None), alone]
}

/// With weights of both, in one datum.
fn both() -> Vec<PreparedDatum> {
    let mut data = data(KL);
    data[0].entropy_weights = Some(numbers(12, 4, 1.0));
    data
}

#[test]
fn gradients_of_an_adapter_agree_with_differences() {
    let lora = Some(LoraSpec::on_all(3, 1));
    for data in [data(ENTROPY), data(KL), both()] {
        fixture("qwen3", cpu(), lora.clone(), data.clone()).check_gradients("CPU");
        fixture("qwen3", Reference, lora.clone(), data).check_gradients("reference");
    }
}

#[test]
fn gradients_of_all_parameters_agree_with_differences() {
    for family in ["llama", "llama_tied", "gemma3"] {
        fixture(family, cpu(), None, data(ENTROPY)).check_gradients(family);
    }
}

#[test]
fn gradients_of_divergences_from_the_base_model_agree_with_differences() {
    for family in ["llama", "llama_tied", "gemma3"] {
        // A model that has moved away from its base.
        fixture(family, cpu(), None, data(KL)).moved(0.05).check_gradients(family);
    }
}
