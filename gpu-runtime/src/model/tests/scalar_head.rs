//! Scalar heads: their values, and gradients of losses on them by differences, for adapters and for all parameters.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use trainyard_protocol::{Datum, LoraSpec, LossConfigValue, Tensor};

use crate::backend::cpu::{Cpu, Isa};
use crate::backend::reference::Reference;
use crate::backend::{Backend, Dtype, Params};
use crate::collective::Ranks;
use crate::interrupt::Interrupt;
use crate::load::load;
use crate::loss::{LossFn, PreparedDatum, prepare};
use crate::model::{
    Adapter, GradientSum, Model, ParamSpec, RunHead, Saved, TrainGroup, TrainOutput, TrainedParams, Weights, train_pass,
};
use crate::parallel::Parallel;
use crate::rng::kaiming_uniform_fill;

const SPEC: LoraSpec = LoraSpec { train_unembed: false, ..LoraSpec::on_all(3, 1) };

type Arrays = Vec<Vec<f32>>;

/// Random numbers in ±`bound`.
fn numbers(len: usize, seed: u64, bound: f32) -> Vec<f32> {
    let mut values = vec![0.0; len];
    kaiming_uniform_fill(seed, 3, &mut values, bound);
    values
}

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

/// A model whose adapter, or all of it, is trained together with a head.
struct Fixture<B: Backend> {
    backend: B,
    model: Arc<Model<B>>,
    masters: Arrays,
    lora: Option<LoraSpec>,
    loss: LossFn,
    data: Vec<PreparedDatum>,
}

impl<B: Backend> Fixture<B> {
    fn new(family: &str, backend: B, lora: Option<LoraSpec>, loss: LossFn) -> Self {
        let source = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(family)).unwrap();
        let model = Arc::new(Model::new(&backend, &source.config, Ranks::default(), Parallel::default()).unwrap());
        let masters = model.table.specs.iter().map(|spec| source.tensors.read(&spec.name).unwrap()).collect();
        let data = [(12, 1), (3, 2), (7, 3)].map(|(length, seed)| datum(&loss, length, seed)).into();
        Self { backend, model, masters, lora, loss, data }
    }

    fn what(&self) -> TrainedParams<'_> {
        TrainedParams { lora: self.lora.as_ref(), scalar_head: true }
    }

    fn specs(&self) -> Vec<ParamSpec> {
        self.model.table.trained(&self.model.config, self.what())
    }

    /// Parameters that are trained: those of the model, and random ones of adapter and head.
    fn params(&self) -> Arrays {
        let own = if self.lora.is_none() { self.masters.clone() } else { Arrays::new() };
        let specs = self.specs();
        let random = (own.len()..).zip(&specs[own.len()..]).map(|(i, spec)| numbers(spec.len(), i as u64, 0.2));
        own.into_iter().chain(random).collect()
    }

    fn run(&self, params: &Arrays, trains: bool) -> (Vec<TrainOutput>, Arrays) {
        let (backend, full) = (&self.backend, self.lora.is_none());
        let base = if full { params } else { &self.masters };
        let weights = Weights::load(backend, &self.model, &mut |i| Ok(Cow::Borrowed(&base[i][..]))).unwrap();
        let lens: Vec<usize> = params.iter().map(Vec::len).collect();
        let mut sum = GradientSum::new(backend.begin_gradient(&lens, None));
        let params = Arc::new(backend.upload_params(params.clone()));
        let config = &self.model.config;
        let adapter = self.lora.as_ref().map(|lora| Arc::new(Adapter::from_params(backend, config, lora, &params)));
        let mut groups = [TrainGroup {
            adapter,
            scalar_head: Some(RunHead::of(&params)),
            loss: self.loss.clone(),
            data: self.data.iter().collect(),
            images: Vec::new(),
            evaluated: Vec::new(),
            interrupt: Interrupt::default(),
            grads: trains.then_some(&mut sum),
        }];
        let outputs = train_pass(backend, &weights, &mut groups, full, Saved::with_all_inputs(config.num_layers()))
            .remove(0)
            .unwrap();
        let gradient = sum.finish(backend, &self.model, self.what());
        (outputs, (0..gradient.len()).map(|i| gradient.host(i).into_owned()).collect())
    }

    fn loss_of(&self, params: &Arrays) -> f64 {
        self.run(params, false).0.iter().map(|output| output.value.sum).sum()
    }

    /// Moves each array along its gradient and back: the loss changes by the gradient's norm per length.
    fn check_gradients(&self, what: &str) {
        let params = self.params();
        let gradients = self.run(&params, true).1;
        for (i, (spec, gradient)) in self.specs().iter().zip(&gradients).enumerate() {
            let norm = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
            if spec.name == "lm_head.weight" {
                assert_eq!(norm, 0.0, "{what}: the unembedding is not part of the model");
                continue;
            }
            assert!(norm > 1e-4, "{what}: {} has no gradient", spec.name);
            // Of an embedding only the rows of tokens that occur move.
            let moving = params[i].iter().zip(gradient).filter(|(_, g)| **g != 0.0);
            let h = 1e-3 * moving.map(|(p, _)| f64::from(*p).powi(2)).sum::<f64>().sqrt();
            let moved = |by: f64| {
                let mut params = params.clone();
                let scale = (by / norm) as f32;
                params[i].iter_mut().zip(gradient).for_each(|(p, g)| *p += scale * g);
                self.loss_of(&params)
            };
            let slope = (moved(h) - moved(-h)) / (2.0 * h);
            assert!((slope - norm).abs() < 0.02 * norm + 1e-3, "{what}: {} has {norm}, not {slope}", spec.name);
        }
    }
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
        Fixture::new("qwen3", cpu, Some(SPEC), loss.clone()).check_gradients(&format!("{name}, CPU"));
        Fixture::new("qwen3", Reference, Some(SPEC), loss).check_gradients(&format!("{name}, reference"));
    }
}

#[test]
fn gradients_of_all_parameters_agree_with_differences() {
    for (name, loss) in losses() {
        for family in ["llama", "llama_tied"] {
            let cpu = Cpu::with_isa(2, Isa::detect()).with_dtype(Dtype::F32);
            Fixture::new(family, cpu, None, loss.clone()).check_gradients(&format!("{name}, all of {family}"));
        }
    }
}

#[test]
fn values_are_zero_at_the_start_and_the_bias_where_the_weight_is_zero() {
    let [_, (_, loss)] = losses();
    let fixture = Fixture::new("llama", Reference, Some(SPEC), loss);
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
