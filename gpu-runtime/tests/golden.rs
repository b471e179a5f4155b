//! Every family against reference numbers from PyTorch (`tests/golden/README.md`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use trainyard_gpu_runtime::config::ModelConfig;
use trainyard_gpu_runtime::kernels::packed::Dtype;
use trainyard_gpu_runtime::kernels::rope::Rope;
use trainyard_gpu_runtime::kernels::{Cpu, Isa};
use trainyard_gpu_runtime::load::load;
use trainyard_gpu_runtime::loss::{LossFn, PreparedDatum, prepare};
use trainyard_gpu_runtime::model::{
    Adapter, GradientSum, Gradients, ParamLayout, TrainGroup, TrainOutput, Weights, train_pass,
};
use trainyard_gpu_runtime::optim::{adamw_update, squared_norm};
use trainyard_protocol::{AdamParams, Datum, LoraSpec, LossConfig, LossConfigValue, Tensor};

const FAMILIES: [&str; 6] = ["llama", "llama3_rope", "llama_tied", "mistral_swa", "qwen2", "qwen3"];
const LORA: LoraSpec = LoraSpec { rank: 8, seed: 0, train_unembed: false, train_mlp: true, train_attn: true };

struct Golden {
    cpu: Cpu,
    config: Arc<ModelConfig>,
    layout: Arc<ParamLayout>,
    rope: Arc<Rope>,
    masters: Gradients,
    weights: Weights,
    json: Value,
    dir: PathBuf,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden")
}

fn floats(v: &Value) -> Vec<f32> {
    v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

fn ints(v: &Value) -> Vec<i64> {
    v.as_array().unwrap().iter().map(|x| x.as_i64().unwrap()).collect()
}

fn tensors(path: &Path) -> BTreeMap<String, Vec<f32>> {
    let bytes = std::fs::read(path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let f32s = |b: &[u8]| b.chunks_exact(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect();
    file.tensors().into_iter().map(|(name, t)| (name, f32s(t.data()))).collect()
}

impl Golden {
    fn open(family: &str, isa: Isa) -> Self {
        let cpu = Cpu::with_isa(2, isa);
        let dir = root().join(family);
        let source = load(&dir).unwrap();
        let config = Arc::new(source.config);
        let layout = Arc::new(ParamLayout::new(&config));
        let rope = Arc::new(Rope::new(&config.rope, config.head_dim, config.max_position_embeddings));
        let masters: Gradients = layout.specs.iter().map(|s| source.tensors.read(&s.name).unwrap()).collect();
        let weights = build(&cpu, &config, &layout, &rope, &masters);
        let json = serde_json::from_slice(&std::fs::read(dir.join("golden.json")).unwrap()).unwrap();
        Self { cpu, config, layout, rope, masters, weights, json, dir }
    }

    fn adapter_params(&self, file: &str) -> Gradients {
        let tensors = tensors(&self.dir.join(file));
        Adapter::params(&self.config, &LORA).iter().map(|s| tensors[&s.name].clone()).collect()
    }

    fn data(&self, loss: &LossFn, inputs: &[&str]) -> Vec<PreparedDatum> {
        let data = self.json["data"].as_array().unwrap();
        let datum = |d: &Value| {
            let mut loss_fn_inputs =
                BTreeMap::from([("target_tokens".to_owned(), Tensor::i64(ints(&d["target_tokens"])))]);
            for input in inputs {
                loss_fn_inputs.insert((*input).to_owned(), Tensor::f32(floats(&d[*input])));
            }
            Datum { tokens: ints(&d["tokens"]), loss_fn_inputs }
        };
        data.iter().enumerate().map(|(i, d)| prepare(loss, i, &datum(d), self.config.vocab_size).unwrap()).collect()
    }

    fn loss(&self, name: &str) -> (LossFn, Vec<PreparedDatum>) {
        let mut config = LossConfig::new();
        if matches!(name, "ppo" | "cispo") {
            for (key, value) in self.json["clip"].as_object().unwrap() {
                config.insert(key.clone(), LossConfigValue::Number(value.as_f64().unwrap()));
            }
        }
        let loss = LossFn::parse(name, &config).unwrap();
        let inputs: &[&str] = if name == "cross_entropy" { &["weights"] } else { &["logprobs", "advantages"] };
        let data = self.data(&loss, inputs);
        (loss, data)
    }

    fn run(
        &self,
        w: &Weights,
        adapter: Option<&Gradients>,
        loss: &str,
        grads: Option<&mut Gradients>,
    ) -> Vec<TrainOutput> {
        let (loss, data) = self.loss(loss);
        let adapter = adapter.map(|p| Arc::new(Adapter::build(&self.cpu, w.dtype, &self.config, &LORA, p)));
        let full = adapter.is_none();
        let mut sum = grads.as_deref().cloned().map(GradientSum::new);
        let mut groups = [TrainGroup { adapter, loss, data: data.iter().collect(), grads: sum.as_mut() }];
        let outputs = train_pass(&self.cpu, w, &mut groups, full, w.layers.len()).remove(0).unwrap();
        if let (Some(grads), Some(sum)) = (grads, sum) {
            *grads = sum.finish(&w.layout);
        }
        outputs
    }

    fn check_logprobs(&self, what: &str, outputs: &[TrainOutput], expected: &Value, tolerance: f32) {
        for (output, expected) in outputs.iter().zip(expected.as_array().unwrap()) {
            for (a, b) in output.logprobs.iter().zip(floats(expected)) {
                assert!((a - b).abs() < tolerance, "{what}: {a} != {b}");
            }
        }
    }
}

fn build(
    cpu: &Cpu,
    config: &Arc<ModelConfig>,
    layout: &Arc<ParamLayout>,
    rope: &Arc<Rope>,
    masters: &Gradients,
) -> Weights {
    Weights::build(cpu, config, layout, rope, Dtype::F32, &mut |i| Ok(Cow::Borrowed(&masters[i][..]))).unwrap()
}

fn relative(a: &[Vec<f32>], b: &[Vec<f32>]) -> f64 {
    let (mut d, mut n) = (0.0, 0.0);
    for (a, b) in a.iter().flatten().zip(b.iter().flatten()) {
        d += f64::from(a - b).powi(2);
        n += f64::from(*b).powi(2);
    }
    (d / n).sqrt()
}

fn total(outputs: &[TrainOutput]) -> f64 {
    outputs.iter().map(|o| o.value.sum).sum()
}

fn adam(json: &Value) -> AdamParams {
    let f = |k: &str| json[k].as_f64().unwrap();
    AdamParams {
        learning_rate: f("learning_rate"),
        beta1: f("beta1"),
        beta2: f("beta2"),
        eps: f("eps"),
        weight_decay: f("weight_decay"),
        grad_clip_norm: 0.0,
    }
}

struct Moments(Gradients, Gradients, u64);

impl Moments {
    fn new(params: &Gradients) -> Self {
        let zeros: Gradients = params.iter().map(|p| vec![0.0; p.len()]).collect();
        Self(zeros.clone(), zeros, 0)
    }

    fn step(&mut self, params: &mut Gradients, grads: &Gradients, hyper: &AdamParams) {
        self.2 += 1;
        for (((p, g), m), v) in params.iter_mut().zip(grads).zip(&mut self.0).zip(&mut self.1) {
            adamw_update(p, g, m, v, hyper, self.2, 1.0);
        }
    }
}

fn each(check: impl Fn(&Golden)) {
    for family in FAMILIES {
        eprintln!("family {family}");
        check(&Golden::open(family, Isa::detect()));
    }
}

#[test]
fn base_and_lora_logprobs() {
    each(|g| {
        g.check_logprobs("base", &g.run(&g.weights, None, "cross_entropy", None), &g.json["base_logprobs"], 2e-4);
        let lora = g.adapter_params("lora_init.safetensors");
        let outputs = g.run(&g.weights, Some(&lora), "cross_entropy", None);
        g.check_logprobs("lora", &outputs, &g.json["lora_logprobs"], 2e-4);
    });
}

#[test]
fn portable_kernels_agree() {
    let g = Golden::open("qwen3", Isa::Portable);
    let mut grads: Gradients = g.adapter_params("lora_init.safetensors");
    let lora = grads.clone();
    grads.iter_mut().for_each(|x| x.fill(0.0));
    let outputs = g.run(&g.weights, Some(&lora), "cross_entropy", Some(&mut grads));
    g.check_logprobs("lora", &outputs, &g.json["lora_logprobs"], 2e-4);
    assert!(relative(&grads, &g.adapter_params("lora_grad_cross_entropy.safetensors")) < 1e-3);
}

#[test]
fn gradients_of_every_loss() {
    each(|g| {
        let lora = g.adapter_params("lora_init.safetensors");
        for loss in ["cross_entropy", "importance_sampling", "ppo", "cispo"] {
            let mut grads: Gradients = lora.iter().map(|p| vec![0.0; p.len()]).collect();
            let outputs = g.run(&g.weights, Some(&lora), loss, Some(&mut grads));
            let expected = g.json["losses"][loss]["loss_sum"].as_f64().unwrap();
            assert!((total(&outputs) - expected).abs() < 1e-3 * expected.abs().max(1.0), "{loss}: {}", total(&outputs));
            let error = relative(&grads, &g.adapter_params(&format!("lora_grad_{loss}.safetensors")));
            assert!(error < 1e-3, "{loss}: gradient off by {error}");
        }
    });
}

#[test]
fn three_adamw_steps_on_the_adapter() {
    each(|g| {
        let hyper = adam(&g.json["adamw"]);
        let mut params = g.adapter_params("lora_init.safetensors");
        let mut moments = Moments::new(&params);
        for step in g.json["adamw"]["trace"].as_array().unwrap() {
            let mut grads: Gradients = params.iter().map(|p| vec![0.0; p.len()]).collect();
            let loss = total(&g.run(&g.weights, Some(&params), "cross_entropy", Some(&mut grads)));
            let expected = step["loss_sum"].as_f64().unwrap();
            assert!((loss - expected).abs() < 1e-3 * expected.abs(), "loss {loss} != {expected}");
            let norm = grads.iter().map(|p| squared_norm(p)).sum::<f64>().sqrt();
            let expected = step["grad_norm"].as_f64().unwrap();
            assert!((norm - expected).abs() < 1e-3 * expected, "norm {norm} != {expected}");
            moments.step(&mut params, &grads, &hyper);
        }
        for (a, b) in params.iter().flatten().zip(g.adapter_params("lora_after_adamw.safetensors").iter().flatten()) {
            assert!((a - b).abs() < 2e-4, "{a} != {b}");
        }
    });
}

#[test]
fn full_parameter_training() {
    each(|g| {
        let json = &g.json["full_finetune"];
        let mut masters = g.masters.clone();
        let mut moments = Moments::new(&masters);
        for (i, expected) in floats(&json["adamw"]["loss_sums"]).iter().enumerate() {
            let w = build(&g.cpu, &g.config, &g.layout, &g.rope, &masters);
            let mut grads = g.layout.zeros();
            let loss = total(&g.run(&w, None, "cross_entropy", Some(&mut grads)));
            assert!(
                (loss - f64::from(*expected)).abs() < 1e-3 * f64::from(expected.abs()),
                "loss {loss} != {expected}"
            );
            if i == 0 {
                for (spec, grad) in g.layout.specs.iter().zip(&grads) {
                    let expected = json["grad_norms"][&spec.name].as_f64().unwrap();
                    let norm = squared_norm(grad).sqrt();
                    assert!((norm - expected).abs() < 1e-3 * expected, "{}: {norm} != {expected}", spec.name);
                }
            }
            moments.step(&mut masters, &grads, &adam(&json["adamw"]));
        }
        let w = build(&g.cpu, &g.config, &g.layout, &g.rope, &masters);
        g.check_logprobs("after", &g.run(&w, None, "cross_entropy", None), &json["adamw"]["logprobs_after"], 5e-3);
    });
}
