//! Adapters on every module, on experts with A of gate and up, and B of down, in common: they compute what merged weights compute,
//! and their gradients follow from those of the merged weights.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use trainyard_protocol::{Datum, LoraSpec, Tensor};

use crate::backend::cpu::{Cpu, Isa};
use crate::backend::reference::Reference;
use crate::backend::{Backend, Dtype, Params};
use crate::collective::Ranks;
use crate::interrupt::Interrupt;
use crate::load::load;
use crate::load::tests::without_query_latent;
use crate::loss::{LossFn, PreparedDatum, prepare};
use crate::model::{Adapter, GradientSum, Model, ParamSpec, ParamTable, Saved, TrainGroup, Weights, train_pass};
use crate::parallel::Parallel;
use crate::rng::kaiming_uniform_fill;

const RANK: usize = 3;
const SPEC: LoraSpec = LoraSpec { train_unembed: false, ..LoraSpec::on_all(RANK as u32, 1) };

type Arrays = Vec<Vec<f32>>;

fn datum(length: usize, seed: i64) -> PreparedDatum {
    let tokens: Vec<i64> = (0..length as i64).map(|t| (t * 37 + seed * 11 + t * t) % 512).collect();
    let inputs = [
        ("target_tokens".to_owned(), Tensor::i64(tokens.clone())),
        ("weights".to_owned(), Tensor::f32((0..length).map(|i| 0.1 * (i % 7) as f32).collect())),
    ];
    let loss = LossFn::parse("cross_entropy", &BTreeMap::new()).unwrap();
    prepare(&loss, 0, &Datum { tokens, loss_fn_inputs: BTreeMap::from(inputs), images: Vec::new() }, 512).unwrap()
}

/// A model with random adapters on its experts.
struct Fixture<B: Backend> {
    backend: B,
    model: Arc<Model<B>>,
    masters: Arrays,
    adapter: Arrays,
}

impl<B: Backend> Fixture<B> {
    fn new(family: &str, backend: B) -> Self {
        let source = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(family)).unwrap();
        let model = Arc::new(Model::new(&backend, &source.config, Ranks::default(), Parallel::default()).unwrap());
        let masters = model.table.specs.iter().map(|spec| source.tensors.read(&spec.name).unwrap()).collect();
        let random = |(i, spec): (u64, ParamSpec)| {
            let mut values = vec![0.0; spec.len()];
            kaiming_uniform_fill(9, i, &mut values, 0.1);
            values
        };
        let adapter = (0..).zip(ParamTable::of_adapter(&source.config, &SPEC)).map(random).collect();
        Self { backend, model, masters, adapter }
    }

    /// Log-probabilities, and the gradient of the adapter, or of all parameters without one.
    fn run(&self, masters: &Arrays, adapter: Option<&Arrays>, data: &[PreparedDatum]) -> (Vec<f32>, Arrays) {
        let backend = &self.backend;
        let weights = Weights::load(backend, &self.model, &mut |i| Ok(Cow::Borrowed(&masters[i][..]))).unwrap();
        let lens: Vec<usize> = adapter.unwrap_or(masters).iter().map(Vec::len).collect();
        let mut sum = GradientSum::new(backend.begin_gradient(&lens, None));
        let packed = adapter.map(|params| {
            let params = backend.upload_params(params.clone());
            Arc::new(Adapter::from_params(backend, &self.model.config, &SPEC, &params))
        });
        let loss = LossFn::parse("cross_entropy", &BTreeMap::new()).unwrap();
        // A group without an adapter is between the sequence's rows and the batch's start.
        let other = datum(9, 5);
        let mut groups = Vec::new();
        if adapter.is_some() {
            groups.push(TrainGroup {
                adapter: None,
                scalar_head: None,
                loss: loss.clone(),
                data: vec![&other],
                images: Vec::new(),
                evaluated: Vec::new(),
                interrupt: Interrupt::default(),
                grads: None,
            });
        }
        groups.push(TrainGroup {
            adapter: packed,
            scalar_head: None,
            loss,
            data: data.iter().collect(),
            images: Vec::new(),
            evaluated: Vec::new(),
            interrupt: Interrupt::default(),
            grads: Some(&mut sum),
        });
        let saved = Saved::with_all_inputs(self.model.config.num_layers());
        let outputs = train_pass(backend, &weights, &mut groups, adapter.is_none(), saved).pop().unwrap().unwrap();
        drop(groups);
        let gradient = sum.finish(backend, &self.model, adapter.map(|_| &SPEC));
        let gradient = (0..gradient.len()).map(|i| gradient.host(i).into_owned()).collect();
        (outputs.into_iter().flat_map(|output| output.logprobs).collect(), gradient)
    }

    /// The index of a module's weight in the table, on experts of this one's.
    fn weight(&self, module: &str, expert: usize) -> usize {
        let name = match module.split_once(".mlp.experts.") {
            None => format!("{module}.weight"),
            Some((block, kind)) => {
                let projection = match kind {
                    "w1" => "gate_proj",
                    "w3" => "up_proj",
                    _ => "down_proj",
                };
                format!("{block}.mlp.experts.{expert}.{projection}.weight")
            }
        };
        self.model.table.specs.iter().position(|spec| spec.name == name).unwrap()
    }

    /// A and B of each expert of a module, as (first element of A, first element of B, outputs, inputs).
    fn experts(&self, a: &ParamSpec, b: &ParamSpec) -> Vec<(usize, usize, usize, usize)> {
        if a.shape.len() == 2 {
            return vec![(0, 0, b.shape[0], a.shape[1])];
        }
        let (outputs, inputs) = (b.shape[1], a.shape[2]);
        let count = a.shape[0].max(b.shape[0]);
        assert_eq!(a.shape[0].min(b.shape[0]), 1);
        let at = |spec: &ParamSpec, expert: usize| {
            if spec.shape[0] == 1 { 0 } else { expert * spec.shape[1] * spec.shape[2] }
        };
        (0..count).map(|expert| (at(a, expert), at(b, expert), outputs, inputs)).collect()
    }
}

fn relative(found: &[f32], expected: &[f32]) -> f64 {
    let square = |x: f64| x * x;
    let d: f64 = found.iter().zip(expected).map(|(a, b)| square(f64::from(a - b))).sum();
    let n: f64 = expected.iter().map(|b| square(f64::from(*b))).sum();
    assert!(n > 0.0);
    (d / n).sqrt()
}

fn adapters_are_what_merged_weights_are<B: Backend>(family: &str, backend: B) {
    let fixture = Fixture::new(family, backend);
    let specs = ParamTable::of_adapter(&fixture.model.config, &SPEC);
    let scale = SPEC.scale();
    let data = [datum(40, 1), datum(7, 2), datum(20, 3)];
    let mut merged = fixture.masters.clone();
    for (i, pair) in specs.chunks_exact(2).enumerate() {
        let (a, b) = (&fixture.adapter[2 * i], &fixture.adapter[2 * i + 1]);
        let module = pair[0].name.strip_suffix(".lora_A").unwrap();
        for (expert, (a_at, b_at, outputs, inputs)) in fixture.experts(&pair[0], &pair[1]).into_iter().enumerate() {
            let weight = &mut merged[fixture.weight(module, expert)];
            for (n, k) in (0..outputs).flat_map(|n| (0..inputs).map(move |k| (n, k))) {
                let product: f32 = (0..RANK).map(|r| b[b_at + n * RANK + r] * a[a_at + r * inputs + k]).sum();
                weight[n * inputs + k] += scale * product;
            }
        }
    }
    let (logprobs, found) = fixture.run(&fixture.masters, Some(&fixture.adapter), &data);
    let (expected_logprobs, full) = fixture.run(&merged, None, &data);
    assert!(relative(&logprobs, &expected_logprobs) < 1e-4, "{family}");
    for (i, pair) in specs.chunks_exact(2).enumerate() {
        let (a, b) = (&fixture.adapter[2 * i], &fixture.adapter[2 * i + 1]);
        let module = pair[0].name.strip_suffix(".lora_A").unwrap();
        let (mut d_a, mut d_b) = (vec![0.0; a.len()], vec![0.0; b.len()]);
        for (expert, (a_at, b_at, outputs, inputs)) in fixture.experts(&pair[0], &pair[1]).into_iter().enumerate() {
            let d = &full[fixture.weight(module, expert)];
            for (n, k) in (0..outputs).flat_map(|n| (0..inputs).map(move |k| (n, k))) {
                for r in 0..RANK {
                    d_a[a_at + r * inputs + k] += scale * b[b_at + n * RANK + r] * d[n * inputs + k];
                    d_b[b_at + n * RANK + r] += scale * a[a_at + r * inputs + k] * d[n * inputs + k];
                }
            }
        }
        for (which, found, expected) in [("A", &found[2 * i], &d_a), ("B", &found[2 * i + 1], &d_b)] {
            let error = relative(found, expected);
            assert!(error < 1e-3, "{family}, {module}, {which}: off by {error}");
        }
    }
}

#[test]
fn adapters_are_what_merged_weights_are_on_every_module() {
    let queries_alone = without_query_latent();
    for family in ["qwen3_moe", "gpt_oss", "deepseek_v3", queries_alone.path().to_str().unwrap()] {
        adapters_are_what_merged_weights_are(family, Reference);
        adapters_are_what_merged_weights_are(family, Cpu::with_isa(2, Isa::detect()).with_dtype(Dtype::F32));
    }
}
