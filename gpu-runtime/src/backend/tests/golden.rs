//! Every family against reference numbers from PyTorch (`tests/golden/README.md`), on every backend.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use trainyard_images::{Format, Limits, Patches, Preprocessor, decode};
use trainyard_protocol::{
    AdamParams, Datum, ImageDigest, LoraSpec, LossConfig, LossConfigValue, PreparedImage, Tensor,
};

use crate::backend::cpu::{Cpu, Isa};
use crate::backend::reference::Reference;
use crate::backend::{AdamWStep, Backend, Dtype, Params};
use crate::collective::Ranks;
use crate::config::{ModelConfig, ModelSource};
use crate::interrupt::Interrupt;
use crate::load::load;
use crate::load::tests::families;
use crate::loss::{LossFn, PreparedDatum, prepare};
use crate::model::zero::replicas::{divide, gather_into, part_lens, part_of, scatter_sums};
use crate::model::{
    Adapter, GradientSum, Model, ParamSpec, ParamTable, Saved, TrainGroup, TrainOutput, Weights, train_pass,
};
use crate::parallel::Parallel;
use crate::vision::{ImageEmbedding, Tower};

pub(super) const LORA: LoraSpec = LoraSpec { train_unembed: false, ..LoraSpec::on_all(8, 0) };

/// Host arrays of parameters.
pub(super) type Arrays = Vec<Vec<f32>>;

pub(super) struct Golden<B: Backend> {
    pub(super) backend: B,
    pub(super) model: Arc<Model<B>>,
    /// Master parameters of this rank.
    pub(super) masters: Arrays,
    pub(super) weights: Weights<B>,
    pub(super) json: Value,
    /// Spec of the adapters: only on attention where the reference's are.
    pub(super) lora: LoraSpec,
    /// What passes keep; `None` for everything.
    pub(super) saved: Option<Saved>,
    /// Images by name, in models that take images.
    pub(super) images: BTreeMap<String, GoldenImage<B>>,
    dir: PathBuf,
}

/// An image of a golden model, decoded and embedded.
pub(super) struct GoldenImage<B: Backend> {
    pub(super) patches: Arc<Patches>,
    pub(super) embedding: Arc<ImageEmbedding<B>>,
}

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden")
}

fn floats(v: &Value) -> Vec<f32> {
    v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

fn ints(v: &Value) -> Vec<i64> {
    v.as_array().unwrap().iter().map(|x| x.as_i64().unwrap()).collect()
}

pub(super) fn tensors(path: &Path) -> BTreeMap<String, Vec<f32>> {
    let bytes = std::fs::read(path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let f32s = |b: &[u8]| b.chunks_exact(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect();
    file.tensors().into_iter().map(|(name, t)| (name, f32s(t.data()))).collect()
}

impl<B: Backend> Golden<B> {
    pub(super) fn open(family: &str, backend: B) -> Self {
        Self::on_ranks(family, backend, Ranks::default(), Parallel::default())
    }

    pub(super) fn on_ranks(family: &str, backend: B, ranks: Ranks, layout: Parallel) -> Self {
        let dir = root().join(family);
        Self::of(load(&dir).unwrap(), dir, backend, ranks, layout)
    }

    /// A golden model whose configuration may have been changed.
    pub(super) fn of(source: ModelSource, dir: PathBuf, backend: B, ranks: Ranks, layout: Parallel) -> Self {
        let model = Model::new(&backend, &source.config, ranks, layout).unwrap();
        let model = Arc::new(model.with_indexers(&backend, &*source.tensors, &mut |_, _| {}).unwrap());
        let read = |s: &ParamSpec| model.shard.read(s, &*source.tensors).unwrap();
        let masters: Arrays = model.table.specs.iter().map(read).collect();
        let weights = build(&backend, &model, &masters);
        let json = serde_json::from_slice(&std::fs::read(dir.join("golden.json")).unwrap()).unwrap();
        let adapter = tensors(&dir.join("lora_init.safetensors"));
        let with_mlp = ParamTable::of_adapter(&source.config, &LoraSpec { train_mlp: true, train_attn: false, ..LORA });
        let train_mlp = with_mlp.iter().any(|spec| adapter.contains_key(&adapter_name(&source.config, &spec.name)));
        let lora = LoraSpec { train_mlp, ..LORA };
        let images = embedded(&backend, &source, &dir);
        Self { backend, model, masters, weights, json, lora, saved: None, images, dir }
    }

    /// The images of a datum, whose digests number them by name.
    fn images_of(&self, datum: &Value) -> Vec<PreparedImage> {
        let (mut images, mut start) = (Vec::new(), 0);
        for chunk in datum["chunks"].as_array().into_iter().flatten() {
            let Some(name) = chunk["image"].as_str() else {
                start += chunk["tokens"].as_array().unwrap().len();
                continue;
            };
            let (at, (_, image)) = self.images.iter().enumerate().find(|(_, (own, _))| *own == name).unwrap();
            let patches = Arc::clone(&image.patches);
            let tokens = patches.layout().tokens();
            images.push(PreparedImage { start, digest: ImageDigest([at as u8; 32]), patches });
            start += tokens;
        }
        images
    }

    /// Embeddings of a datum's images.
    fn embeddings_of(&self, datum: &PreparedDatum) -> Vec<Arc<ImageEmbedding<B>>> {
        let of = |image: &PreparedImage| self.images.values().nth(image.digest.0[0].into()).unwrap();
        datum.images.iter().map(|image| Arc::clone(&of(image).embedding)).collect()
    }

    /// This rank's part of an adapter's parameters. Modules without the reference's adapter have zeros, whose gradient
    /// is zero.
    pub(super) fn adapter_params(&self, file: &str) -> Arrays {
        let mut tensors = tensors(&self.dir.join(file));
        let own = ParamTable::of_adapter(&self.model.config, &self.lora);
        let whole = ParamTable::of_adapter(&self.model.whole.config, &self.lora);
        let take = |(own, whole): (&ParamSpec, &ParamSpec)| {
            let name = adapter_name(&self.model.config, &own.name);
            let values = tensors.remove(&name).unwrap_or_else(|| vec![0.0; whole.len()]);
            self.model.shard.slice(own, values.into()).into_owned()
        };
        let params = own.iter().zip(&whole).map(take).collect();
        let layers = self.model.config.num_layers();
        let is_beyond = |name: &String| (layers..8).any(|layer| name.starts_with(&format!("model.layers.{layer}.")));
        tensors.retain(|name, _| !is_beyond(name));
        assert!(tensors.is_empty(), "modules that the model lacks: {tensors:?}");
        params
    }

    fn data(&self, loss: &LossFn, inputs: &[&str]) -> Vec<PreparedDatum> {
        let data = self.json["data"].as_array().unwrap();
        let datum = |d: &Value| {
            let mut loss_fn_inputs =
                BTreeMap::from([("target_tokens".to_owned(), Tensor::i64(ints(&d["target_tokens"])))]);
            for input in inputs {
                loss_fn_inputs.insert((*input).to_owned(), Tensor::f32(floats(&d[*input])));
            }
            Datum { tokens: ints(&d["tokens"]), loss_fn_inputs, images: Vec::new() }
        };
        let vocab = self.model.config.vocab_size;
        let prepared =
            |(i, d)| PreparedDatum { images: self.images_of(d), ..prepare(loss, i, &datum(d), vocab).unwrap() };
        data.iter().enumerate().map(prepared).collect()
    }

    pub(super) fn loss(&self, name: &str) -> (LossFn, Vec<PreparedDatum>) {
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

    /// Outputs, and the gradient where `trains`: of the adapter, or of all parameters without one.
    pub(super) fn run(
        &self,
        w: &Weights<B>,
        adapter: Option<&Arrays>,
        loss: &str,
        trains: bool,
    ) -> (Vec<TrainOutput>, Option<Arrays>) {
        self.run_on(&Ranks::default(), w, adapter, (loss, trains))
    }

    /// [`Golden::run`] on replicas that divide the examples: returns all outputs, and this replica's parts of the
    /// gradient.
    pub(super) fn run_on(
        &self,
        replicas: &Ranks,
        w: &Weights<B>,
        adapter: Option<&Arrays>,
        (loss, trains): (&str, bool),
    ) -> (Vec<TrainOutput>, Option<Arrays>) {
        let (loss, data) = self.loss(loss);
        let divided = divide(data.iter().map(|datum| datum.tokens.len()), replicas.world());
        let own: Vec<&PreparedDatum> = divided[replicas.rank()].iter().map(|index| &data[*index]).collect();
        let (backend, config) = (&self.backend, &self.model.config);
        let params = adapter.map(|params| backend.upload_params(params.clone()));
        let build = |params| Arc::new(Adapter::from_params(backend, config, &self.lora, params));
        let lens: Vec<usize> = adapter.unwrap_or(&self.masters).iter().map(Vec::len).collect();
        let full = adapter.is_none();
        let adapter = params.as_ref().map(build);
        let mut sum = trains.then(|| GradientSum::new(backend.begin_gradient(&lens, None)));
        let is_idle = own.is_empty();
        let mut groups = [TrainGroup {
            adapter,
            scalar_head: None,
            loss,
            // A batch without images has no list of them, as in the engine.
            images: match own.iter().all(|datum| datum.images.is_empty()) {
                true => Vec::new(),
                false => own.iter().map(|datum| self.embeddings_of(datum)).collect(),
            },
            data: own,
            evaluated: Vec::new(),
            interrupt: Interrupt::default(),
            grads: sum.as_mut(),
        }];
        let outputs = match is_idle {
            true => Vec::new(),
            false => {
                let saved = self.saved.unwrap_or(Saved::with_all_inputs(config.num_layers()));
                train_pass(backend, w, &mut groups, full, saved).remove(0).unwrap()
            }
        };
        let computed = replicas.all_of(outputs).into_iter().flatten();
        let mut outputs: Vec<_> = divided.into_iter().flatten().zip(computed).collect();
        outputs.sort_by_key(|(index, _)| *index);
        let gradient = sum.map(|sum| {
            let whole = sum.finish(backend, &self.model, (!full).then_some(&self.lora));
            arrays(&scatter_sums(backend, replicas, &whole))
        });
        (outputs.into_iter().map(|(_, output)| output).collect(), gradient)
    }

    fn check_logprobs(&self, what: &str, outputs: &[TrainOutput], expected: &Value, tolerance: f32) {
        for (output, expected) in outputs.iter().zip(expected.as_array().unwrap()) {
            for (a, b) in output.logprobs.iter().zip(floats(expected)) {
                assert!((a - b).abs() < tolerance, "{what}: {a} != {b}");
            }
        }
    }

    fn total(&self, outputs: &[TrainOutput]) -> f64 {
        outputs.iter().map(|o| o.value.sum).sum()
    }
}

/// The images of a model's folder, decoded and embedded one by one; empty where the model has no tower.
fn embedded<B: Backend>(backend: &B, source: &ModelSource, dir: &Path) -> BTreeMap<String, GoldenImage<B>> {
    let Some(vision) = &source.config.vision else { return BTreeMap::new() };
    let preprocessor = Preprocessor::from_json(&vision.preprocessor).unwrap();
    let tower = Tower::load(backend, vision, &*source.tensors, &mut |_, _| {}).unwrap();
    let image = |(name, format): (&str, Format)| {
        let file = std::fs::read(dir.join(name)).unwrap();
        let pixels = decode(&file, format, &Limits::default()).unwrap();
        let patches = Arc::new(preprocessor.patches(&pixels, pixels.size()).unwrap());
        let embedding = Arc::new(tower.embed(backend, &[&patches]).remove(0));
        (name.to_owned(), GoldenImage { patches, embedding })
    };
    [("a.png", Format::Png), ("b.png", Format::Png), ("c.jpg", Format::Jpeg)].map(image).into()
}

pub(super) fn build<B: Backend>(backend: &B, model: &Arc<Model<B>>, masters: &Arrays) -> Weights<B> {
    Weights::load(backend, model, &mut |i| Ok(Cow::Borrowed(&masters[i][..]))).unwrap()
}

pub(super) fn arrays<P: Params>(params: &P) -> Arrays {
    (0..params.len()).map(|i| params.host(i).into_owned()).collect()
}

pub(super) fn relative(a: &Arrays, b: &Arrays) -> f64 {
    let (mut d, mut n) = (0.0, 0.0);
    for (a, b) in a.iter().flatten().zip(b.iter().flatten()) {
        d += f64::from(a - b).powi(2);
        n += f64::from(*b).powi(2);
    }
    (d / n).sqrt()
}

fn norm(values: &[f32]) -> f64 {
    values.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt()
}

/// The name of an adapter's parameter in the spelling of the family.
fn adapter_name(c: &ModelConfig, name: &str) -> String {
    let (module, side) = name.rsplit_once('.').unwrap();
    format!("{}.{side}", c.spelling.in_adapters(module))
}

/// The parameter of the PyTorch model that holds one of ours: all experts of a block are in one, gate and up together, and so are
/// modules that the family's files fuse.
fn torch_name(c: &ModelConfig, name: &str) -> String {
    if let Some((fused, _)) = c.spelling.fused(name) {
        return fused;
    }
    let Some((block, rest)) = name.split_once(".mlp.experts.") else { return name.to_owned() };
    let (_, projection) = rest.split_once('.').unwrap();
    let (projection, kind) = projection.split_once('.').unwrap();
    let layer: usize = block.rsplit('.').next().unwrap().parse().unwrap();
    let fused = match projection {
        "gate_proj" | "up_proj" if c.blocks[layer].activation.is_gated() => "gate_up_proj",
        alone => alone,
    };
    format!("{block}.mlp.experts.{fused}{}", if kind == "bias" { "_bias" } else { "" })
}

pub(super) fn adam(json: &Value) -> AdamParams {
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

/// Parameters with their moments; each replica has a part of the moments.
pub(super) struct Trained<B: Backend> {
    pub(super) params: B::Params,
    moments: [B::Params; 2],
    replicas: Ranks,
    step: u64,
}

impl<B: Backend> Trained<B> {
    pub(super) fn new(backend: &B, params: &Arrays) -> Self {
        Self::on(&Ranks::default(), backend, params)
    }

    pub(super) fn on(replicas: &Ranks, backend: &B, params: &Arrays) -> Self {
        let lens = part_lens(&params.iter().map(Vec::len).collect::<Vec<_>>(), replicas);
        let moments = [0, 1].map(|_| backend.zero_params(&lens));
        Self { params: backend.upload_params(params.clone()), moments, replicas: replicas.clone(), step: 0 }
    }

    pub(super) fn step(&mut self, backend: &B, grads: Arrays, hyper: &AdamParams) {
        self.step += 1;
        let [m, v] = &mut self.moments;
        let grads = backend.upload_params(grads);
        let mut part = part_of(backend, &self.replicas, &self.params);
        let (params, step) = (&mut part, self.step);
        let step = AdamWStep { params, grads: &grads, moments: [m, v], hyper, step, grad_scale: 1.0 };
        assert!(backend.adamw(vec![step]).iter().all(Result::is_ok));
        gather_into(&self.replicas, &part, &mut self.params);
    }

    /// Bytes of this replica's part of a moment.
    pub(super) fn moment_bytes(&self) -> usize {
        self.moments[0].bytes()
    }
}

/// A processor with the kernels of a class, in f32.
pub(super) fn cpu(isa: Isa) -> Cpu {
    Cpu::with_isa(2, isa).with_dtype(Dtype::F32)
}

/// Base and adapter log-probabilities of a family.
pub(super) fn logprobs<B: Backend>(g: &Golden<B>) {
    g.check_logprobs("base", &g.run(&g.weights, None, "cross_entropy", false).0, &g.json["base_logprobs"], 2e-4);
    let lora = g.adapter_params("lora_init.safetensors");
    let (outputs, _) = g.run(&g.weights, Some(&lora), "cross_entropy", false);
    g.check_logprobs("lora", &outputs, &g.json["lora_logprobs"], 2e-4);
}

/// What rounding weights and sums to another type changes.
#[derive(Debug)]
pub(super) struct RoundingErrors {
    /// Mean absolute error of a log-probability.
    pub(super) mean: f32,
    /// Relative error of the adapter's gradient.
    pub(super) gradient: f64,
}

/// Errors of an adapter's log-probabilities and gradient, with weights in a type that rounds.
pub(super) fn rounding_errors<B: Backend>(g: &Golden<B>) -> RoundingErrors {
    let lora = g.adapter_params("lora_init.safetensors");
    let (outputs, grads) = g.run(&g.weights, Some(&lora), "cross_entropy", true);
    let expected = g.json["lora_logprobs"].as_array().unwrap();
    let errors: Vec<f32> = (outputs.iter().zip(expected))
        .flat_map(|(output, expected)| output.logprobs.iter().zip(floats(expected)).map(|(a, b)| (a - b).abs()))
        .collect();
    RoundingErrors {
        mean: errors.iter().sum::<f32>() / errors.len() as f32,
        gradient: relative(&grads.unwrap(), &g.adapter_params("lora_grad_cross_entropy.safetensors")),
    }
}

pub(super) fn lora_gradients<B: Backend>(g: &Golden<B>, losses: &[&str]) {
    let lora = g.adapter_params("lora_init.safetensors");
    for loss in losses {
        let (outputs, grads) = g.run(&g.weights, Some(&lora), loss, true);
        let (total, expected) = (g.total(&outputs), g.json["losses"][loss]["loss_sum"].as_f64().unwrap());
        assert!((total - expected).abs() < 1e-3 * expected.abs().max(1.0), "{loss}: {total}");
        let error = relative(&grads.unwrap(), &g.adapter_params(&format!("lora_grad_{loss}.safetensors")));
        assert!(error < 1e-3, "{loss}: gradient off by {error}");
    }
}

pub(super) fn adapter_training<B: Backend>(g: &Golden<B>) {
    let hyper = adam(&g.json["adamw"]);
    let mut trained = Trained::new(&g.backend, &g.adapter_params("lora_init.safetensors"));
    for step in g.json["adamw"]["trace"].as_array().unwrap() {
        let (outputs, grads) = g.run(&g.weights, Some(&arrays(&trained.params)), "cross_entropy", true);
        let (loss, expected) = (g.total(&outputs), step["loss_sum"].as_f64().unwrap());
        assert!((loss - expected).abs() < 1e-3 * expected.abs(), "loss {loss} != {expected}");
        let grads = grads.unwrap();
        let found = g.backend.squared_norms(&g.backend.upload_params(grads.clone()), None).iter().sum::<f64>().sqrt();
        let expected = step["grad_norm"].as_f64().unwrap();
        assert!((found - expected).abs() < 1e-3 * expected, "norm {found} != {expected}");
        trained.step(&g.backend, grads, &hyper);
    }
    let expected = g.adapter_params("lora_after_adamw.safetensors");
    for (a, b) in arrays(&trained.params).iter().flatten().zip(expected.iter().flatten()) {
        assert!((a - b).abs() < 2e-4, "{a} != {b}");
    }
}

pub(super) fn full_parameter_training<B: Backend>(g: &Golden<B>) {
    full_parameter_steps(g, 3);
}

/// Up to three steps; after the last one the log-probabilities are known.
pub(super) fn full_parameter_steps<B: Backend>(g: &Golden<B>, steps: usize) {
    let json = &g.json["full_finetune"];
    let mut trained = Trained::new(&g.backend, &g.masters);
    let mut w = build(&g.backend, &g.model, &g.masters);
    for (i, expected) in floats(&json["adamw"]["loss_sums"]).iter().enumerate().take(steps) {
        let (outputs, grads) = g.run(&w, None, "cross_entropy", true);
        let (loss, expected, grads) = (g.total(&outputs), f64::from(*expected), grads.unwrap());
        assert!((loss - expected).abs() < 1e-3 * expected.abs(), "loss {loss} != {expected}");
        let mut squares: BTreeMap<String, f64> = BTreeMap::new();
        for (spec, grad) in g.model.table.specs.iter().zip(&grads) {
            *squares.entry(torch_name(&g.model.config, &spec.name)).or_default() += norm(grad).powi(2);
        }
        for (name, square) in squares.iter().filter(|_| i == 0) {
            let of_family = g.model.config.spelling.in_files(name).replace("backbone.", "model.");
            let of_torch = of_family.replace("language_model.model.", "model.language_model.");
            let expected = [name, &of_family, &of_torch].into_iter().find_map(|name| json["grad_norms"][name].as_f64());
            let (norm, expected) = (square.sqrt(), expected.unwrap());
            assert!((norm - expected).abs() < 1e-3 * expected, "{name}: {norm} != {expected}");
        }
        trained.step(&g.backend, grads, &adam(&json["adamw"]));
        w.update(&g.backend, &trained.params);
    }
    if steps < 3 {
        return;
    }
    let (outputs, _) = g.run(&w, None, "cross_entropy", false);
    g.check_logprobs("after", &outputs, &json["adamw"]["logprobs_after"], 5e-3);
}

fn each(check: impl Fn(&Golden<Cpu>)) {
    for family in &families() {
        eprintln!("family {family}");
        check(&Golden::open(family, cpu(Isa::detect())));
    }
}

#[test]
fn base_and_lora_logprobs() {
    each(logprobs);
}

#[test]
fn gradients_of_every_loss() {
    each(|g| lora_gradients(g, &["cross_entropy", "importance_sampling", "ppo", "cispo"]));
}

#[test]
fn three_adamw_steps_on_the_adapter() {
    each(adapter_training);
}

#[test]
fn three_adamw_steps_on_all_parameters() {
    each(full_parameter_training);
}

#[test]
fn portable_kernels_agree() {
    let g = Golden::open("qwen3", cpu(Isa::Portable));
    logprobs(&g);
    lora_gradients(&g, &["cross_entropy"]);
}

#[test]
fn the_reference_backend_runs_every_family() {
    for family in &families() {
        eprintln!("family {family}");
        let g = Golden::open(family, Reference);
        logprobs(&g);
        lora_gradients(&g, &["cross_entropy", "ppo"]);
        adapter_training(&g);
        full_parameter_training(&g);
    }
}
