//! Entropies of the positions' distributions: against the log-probabilities of all tokens, and their gradient by differences.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use trainyard_protocol::{Datum, LoraSpec, Tensor, TensorValues};

use super::differences::{Fixture, numbers};
use crate::backend::cpu::{Cpu, Isa};
use crate::backend::reference::Reference;
use crate::backend::{Backend, Dtype};
use crate::loss::{LossFn, PreparedDatum, prepare};

const VOCAB: usize = 512;

fn cpu() -> Cpu {
    Cpu::with_isa(2, Isa::detect()).with_dtype(Dtype::F32)
}

fn cross_entropy() -> LossFn {
    LossFn::parse("cross_entropy", &BTreeMap::new()).unwrap()
}

/// An example whose targets at each position are `targets` tokens, with these weights of entropies.
fn datum(length: usize, seed: i64, targets: usize, entropy_weights: Option<Vec<f32>>) -> PreparedDatum {
    let tokens: Vec<i64> = (0..length as i64).map(|t| (t * 37 + seed * 11 + t * t) % VOCAB as i64).collect();
    let ids = (0..length * targets).map(|at| (at % targets) as i64).collect();
    let shape = vec![length, targets];
    let weights = numbers(length * targets, seed as u64, 0.5);
    let mut inputs = BTreeMap::from([
        ("target_tokens".to_owned(), Tensor { shape: shape.clone(), values: TensorValues::I64(ids) }),
        ("weights".to_owned(), Tensor { shape, values: TensorValues::F32(weights) }),
    ]);
    inputs.extend(entropy_weights.map(|weights| ("entropy_weights".to_owned(), Tensor::f32(weights))));
    let datum = Datum { tokens, loss_fn_inputs: inputs, images: Vec::new() };
    prepare(&cross_entropy(), 0, &datum, VOCAB).unwrap()
}

fn fixture<B: Backend>(family: &str, backend: B, lora: Option<LoraSpec>, data: Vec<PreparedDatum>) -> Fixture<B> {
    Fixture::new(family, backend, lora, false, cross_entropy(), data)
}

#[test]
fn entropies_are_those_of_the_log_probabilities_of_all_tokens() {
    for family in ["llama", "gemma3", "granitemoehybrid"] {
        let weights = [Some(vec![0.0; 9]), None, Some(numbers(4, 7, 1.0))];
        let data = weights.iter().zip([9, 3, 4]).zip(0..);
        let data: Vec<_> = data.map(|((weights, length), seed)| datum(length, seed, VOCAB, weights.clone())).collect();
        let model = fixture(family, cpu(), Some(LoraSpec::on_all(3, 1)), data.clone());
        for (at, output) in model.run(&model.params(), false).0.into_iter().enumerate() {
            let expected: Vec<f64> = output.logprobs.chunks_exact(VOCAB).map(entropy).collect();
            let Some(weights) = &weights[at] else {
                assert_eq!(output.entropies, None);
                continue;
            };
            let found = output.entropies.unwrap();
            assert_eq!(found.len(), expected.len());
            let difference = found.iter().zip(&expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
            assert!(difference < 2e-5, "{family}: {difference}");
            let terms = output.value.elementwise.iter().map(|term| f64::from(*term)).sum::<f64>();
            let bonus =
                weights.iter().zip(&expected).map(|(weight, entropy)| f64::from(*weight) * entropy).sum::<f64>();
            assert!(
                (output.value.sum - (terms - bonus)).abs() < 1e-3,
                "{family}: {} {terms} {bonus}",
                output.value.sum
            );
        }
    }
}

fn entropy(logprobs: &[f32]) -> f64 {
    logprobs.iter().map(|logprob| -f64::from(*logprob) * f64::from(*logprob).exp()).sum()
}

/// Beside a datum that asks for no entropies, and one whose targets have no gradient.
fn data() -> Vec<PreparedDatum> {
    let mut alone = datum(5, 3, 1, Some(numbers(5, 8, 1.0)));
    alone.weights = Some(vec![0.0; 5]);
    vec![datum(12, 1, 2, Some(numbers(12, 9, 1.0))), datum(3, 2, 1, None), alone]
}

#[test]
fn gradients_of_an_adapter_agree_with_differences() {
    let lora = Some(LoraSpec::on_all(3, 1));
    fixture("qwen3", cpu(), lora.clone(), data()).check_gradients("CPU");
    fixture("qwen3", Reference, lora, data()).check_gradients("reference");
}

#[test]
fn gradients_of_all_parameters_agree_with_differences() {
    for family in ["llama", "llama_tied", "gemma3"] {
        fixture(family, cpu(), None, data()).check_gradients(family);
    }
}
