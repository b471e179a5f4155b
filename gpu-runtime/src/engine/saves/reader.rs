//! Reading runs and sampler weights from checkpoints and snapshots.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use trainyard_protocol::{LoadState, LoraSpec, ModelHead, OpError, RunSpec, UploadedAdapter};

use crate::backend::{Backend, Source};
use crate::checkpoint::adapter::{CONFIG_FILE, TENSORS_FILE};
use crate::checkpoint::{
    AdapterTensors, ExpectedModule, Kind, MANIFEST_FILE, MODEL_FILE, SCALAR_HEAD_FILE, read_adapter, read_manifest,
    read_names, read_optimizer, read_run, read_tensors, read_uploaded, unreadable, written_name,
};
use crate::config::{LoadError, ModelConfig};
use crate::engine::base::Base;
use crate::engine::run::{TrainingRun, initial_values};
use crate::engine::sampler::SamplerWeights;
use crate::interrupt;
use crate::load::has_own_form;
use crate::model::zero::replicas::part_of;
use crate::model::{AdaptedModule, Adapter, Model, ParamSpec, ParamTable, SCALAR_HEAD_NAMES, Weights};

impl<B: Backend> TrainingRun<B> {
    /// A run from a training checkpoint, whose spec must agree with `expected`, but for another name of the base model.
    pub(crate) fn load(backend: &B, base: Arc<Base<B>>, expected: &RunSpec, load: &LoadState) -> Result<Self, OpError> {
        let LoadState { dir, with_optimizer, checkpoint_base, .. } = load;
        if let Some(files) = &load.uploaded {
            return Self::load_uploaded(backend, base, expected, dir, files);
        }
        if !dir.join(MANIFEST_FILE).exists() {
            return Self::load_export(backend, base, expected, load);
        }
        let mut manifest = read_manifest(dir).map_err(|error| unreadable(&error))?;
        if checkpoint_base.as_ref().is_some_and(|name| *name == manifest.spec.base_model) {
            manifest.spec.base_model.clone_from(&expected.base_model);
        }
        check_spec(&manifest.spec, expected)?;
        let stored = manifest.spec.head;
        check_head(stored, expected.head, *with_optimizer)?;
        manifest.spec.head = expected.head;
        let mut masters = read_masters(&base, &manifest.spec, dir)?;
        masters.extend(read_scalar_head(&base, &manifest.spec, dir, stored)?);
        let specs = base.whole_params(&manifest.spec);
        // The seed of the checkpoint, not of `expected`: the run continues its weights.
        let mut run = Self::from_masters(backend, base, manifest.spec, masters)?;
        if *with_optimizer && manifest.step > 0 {
            run.moments = Some(read_moments(dir, &specs)?.map(|moment| Arc::new(run.upload(backend, moment))));
            run.step = manifest.step;
        }
        Ok(run)
    }

    /// A run that begins with an adapter that a client uploaded.
    fn load_uploaded(
        backend: &B,
        base: Arc<Base<B>>,
        expected: &RunSpec,
        dir: &Path,
        files: &UploadedAdapter,
    ) -> Result<Self, OpError> {
        let lora = expected.lora.as_ref();
        let lora =
            lora.ok_or_else(|| OpError::user("lora_config: an upload is an adapter; the rank must be positive"))?;
        let (config, rank) = (&base.whole().config, lora.rank as usize);
        let modules = ParamTable::adapted_modules(config, &anywhere(lora)).into_iter();
        let wanted = |module: AdaptedModule| ExpectedModule {
            names: read_names(config, &module),
            shapes: module.shapes(rank),
            may_be_absent: module.may_be_absent(),
        };
        let modules: Vec<ExpectedModule> = modules.map(wanted).collect();
        let (lora, mut masters) = placed(config, lora, read_uploaded(dir, files, lora, &modules)?);
        masters.extend(read_scalar_head(&base, expected, dir, ModelHead::Unembedding)?);
        Self::from_masters(backend, base, RunSpec { lora: Some(lora), ..expected.clone() }, masters)
    }

    /// A run that begins with exported weights, which say nothing about what trained them.
    fn load_export(backend: &B, base: Arc<Base<B>>, expected: &RunSpec, load: &LoadState) -> Result<Self, OpError> {
        if load.with_optimizer {
            return Err(OpError::user("optimizer: the checkpoint has no optimizer state; load only its weights"));
        }
        let has_head = load.dir.join(SCALAR_HEAD_FILE).exists();
        let stored = if has_head { ModelHead::Scalar } else { ModelHead::Unembedding };
        check_head(stored, expected.head, false)?;
        let (lora, mut masters) = match &expected.lora {
            None => (None, read_masters(&base, expected, &load.dir)?),
            Some(lora) => {
                let config = &base.whole().config;
                let (lora, masters) = placed(config, lora, read_lora(config, &anywhere(lora), &load.dir)?);
                (Some(lora), masters)
            }
        };
        masters.extend(read_scalar_head(&base, expected, &load.dir, stored)?);
        Self::from_masters(backend, base, RunSpec { lora, ..expected.clone() }, masters)
    }

    /// A run as [`super::writer::FrozenRun`] wrote all of it; its spec must agree with `expected`.
    pub(crate) fn restore(backend: &B, base: Arc<Base<B>>, expected: &RunSpec, dir: &Path) -> Result<Self, OpError> {
        let mut stored = read_run(dir).map_err(|error| unreadable(&error))?;
        check_spec(&stored.spec, expected)
            .and_then(|()| check_head(stored.spec.head, expected.head, true))
            .map_err(|error| OpError::server(error.message))?;
        let specs = base.whole_params(&stored.spec);
        let mut read = |kind: Kind| {
            let tensors = stored.tensors.remove(&kind);
            tensors.map(|mut tensors| specs.iter().map(|p| take(p, tensors.remove(&p.name))).collect()).transpose()
        };
        let masters: Vec<Vec<f32>> = read(Kind::Masters)?.ok_or_else(|| missing("masters"))?;
        let moments: [Option<Vec<Vec<f32>>>; 2] = [read(Kind::FirstMoments)?, read(Kind::SecondMoments)?];
        let grads: Option<Vec<Vec<f32>>> = read(Kind::Gradient)?;
        let mut run = Self::from_masters(backend, base, stored.spec, masters)?;
        run.moments = match moments {
            [Some(m), Some(v)] => Some([m, v].map(|moment| Arc::new(run.upload(backend, moment)))),
            [None, None] => None,
            _ => return Err(missing("one of the moments")),
        };
        let gradient = grads.map(|grads| run.accumulated(backend, run.upload(backend, grads)));
        (run.step, run.gradient) = (stored.step, gradient);
        Ok(run)
    }

    /// Uploads this replica's part of moments or of a gradient, from the arrays of a file.
    fn upload(&self, backend: &B, all: Vec<Vec<f32>>) -> B::Params {
        let whole = backend.upload_params(self.base.slices(&self.spec, all));
        if self.base.replicas.is_single() { whole } else { part_of(backend, &self.base.replicas, &whole) }
    }
}

fn check_spec(found: &RunSpec, expected: &RunSpec) -> Result<(), OpError> {
    if found.base_model != expected.base_model {
        return Err(OpError::user(format!(
            "path: the checkpoint's base model is {:?}, not {:?}",
            found.base_model, expected.base_model
        )));
    }
    let shape =
        |spec: &RunSpec| spec.lora.as_ref().map(|l| (l.rank, l.alpha, l.train_attn, l.train_mlp, l.train_unembed));
    let describe = |spec: &RunSpec| match &spec.lora {
        None => "all parameters".to_owned(),
        Some(l) => format!(
            "LoRA of rank {} and alpha {} (attn {}, mlp {}, unembed {})",
            l.rank, l.alpha, l.train_attn, l.train_mlp, l.train_unembed
        ),
    };
    if shape(found) != shape(expected) {
        return Err(OpError::user(format!(
            "path: the checkpoint's trained parameters are {}, the model's are {}",
            describe(found),
            describe(expected)
        )));
    }
    Ok(())
}

/// Whether weights with the head `stored` can be loaded into a model with the head `expected`: one with a scalar head may begin
/// with weights that have none, but not with the optimizer's state of such.
fn check_head(stored: ModelHead, expected: ModelHead, with_optimizer: bool) -> Result<(), OpError> {
    match (stored, expected) {
        (ModelHead::Scalar, ModelHead::Unembedding) => {
            Err(OpError::user("path: the checkpoint is of a model with a scalar head, and this one has none"))
        }
        (ModelHead::Unembedding, ModelHead::Scalar) if with_optimizer => Err(OpError::user(
            "optimizer: the checkpoint and its optimizer state are of a model without a scalar head; load only its \
             weights",
        )),
        _ => Ok(()),
    }
}

/// The parameters of the scalar head of a run of `spec`, if that has one: those in the folder, or zeros where the weights there
/// are of a model without one.
fn read_scalar_head<B: Backend>(
    base: &Base<B>,
    spec: &RunSpec,
    dir: &Path,
    stored: ModelHead,
) -> Result<Vec<Vec<f32>>, OpError> {
    if spec.head.is_unembedding() {
        return Ok(Vec::new());
    }
    let params = base.whole_params(spec);
    let own = &params[params.len() - SCALAR_HEAD_NAMES.len()..];
    if stored.is_unembedding() {
        return Ok(own.iter().map(|param| vec![0.0; param.len()]).collect());
    }
    let mut tensors = read_tensors(&dir.join(SCALAR_HEAD_FILE)).map_err(|error| unreadable(&error))?;
    own.iter().map(|param| take(param, tensors.remove(&param.name))).collect()
}

fn read_masters<B: Backend>(base: &Base<B>, spec: &RunSpec, dir: &Path) -> Result<Vec<Vec<f32>>, OpError> {
    match &spec.lora {
        None if has_own_form(&base.whole().config) => {
            let source = crate::load::load(dir).map_err(|error| unreadable(&error))?;
            let read = |(param, own): (&ParamSpec, &ParamSpec)| {
                let shape = source.tensors.shape(&param.name).ok_or_else(|| missing(&param.name))?;
                check_shape(param, &shape)?;
                interrupt::check().map_err(|_| interrupt::ended())?;
                base.model.shard.read(own, &*source.tensors).map_err(|error| unreadable(&error))
            };
            base.whole().table.specs.iter().zip(&base.model.table.specs).map(read).collect()
        }
        None => {
            let mut tensors = read_tensors(&dir.join(MODEL_FILE)).map_err(|error| unreadable(&error))?;
            let read = |(param, own): (&ParamSpec, &ParamSpec)| {
                let values = take(param, tensors.remove(&param.name))?;
                Ok(base.model.shard.slice(own, Cow::Owned(values)).into_owned())
            };
            base.whole().table.specs.iter().zip(&base.model.table.specs).map(read).collect()
        }
        Some(lora) => {
            let config = &base.whole().config;
            Ok(with_untrained(config, lora, read_lora(config, lora, dir)?))
        }
    }
}

/// A and B of each module of an adapter; empty where files may lack the module and do.
fn read_lora(config: &ModelConfig, lora: &LoraSpec, dir: &Path) -> Result<Vec<Vec<f32>>, OpError> {
    let mut stored = read_adapter(dir).map_err(|error| unreadable(&error))?;
    if stored.alpha != lora.alpha {
        let (found, expected, key) = (stored.alpha, lora.alpha, LoraSpec::ALPHA_KEY);
        return Err(OpError::user(format!(
            "path: lora_alpha of the checkpoint is {found}, that of the model is {expected}; user_metadata.{key} of a new \
             model sets it"
        )));
    }
    let mut masters: Vec<Vec<f32>> = Vec::new();
    for module in ParamTable::adapted_modules(config, lora) {
        match read_names(config, &module).iter().find_map(|name| stored.tensors.remove(name)) {
            Some(pair) => {
                check_shapes(&module, &pair, stored.rank, lora.rank as usize)?;
                masters.extend([pair.a, pair.b]);
            }
            None if module.may_be_absent() => masters.extend([Vec::new(), Vec::new()]),
            None => return Err(missing(&written_name(config, &module))),
        }
    }
    Ok(masters)
}

/// The spec with all modules that files of its adapter may be on.
fn anywhere(lora: &LoraSpec) -> LoraSpec {
    LoraSpec { latent_up: true, ..lora.clone() }
}

/// The spec of an adapter from files that do not name its placement, and its masters; `read` are those of [`anywhere`]. It is on
/// projections from latents only if the files are.
fn placed(config: &ModelConfig, lora: &LoraSpec, mut read: Vec<Vec<f32>>) -> (LoraSpec, Vec<Vec<f32>>) {
    let modules = ParamTable::adapted_modules(config, &anywhere(lora));
    let latent_up = modules.iter().zip(read.chunks_exact(2)).any(|(m, pair)| m.may_be_absent() && !pair[0].is_empty());
    let lora = LoraSpec { latent_up, ..lora.clone() };
    if !latent_up {
        let mut absent = modules.iter().flat_map(|module| [module.may_be_absent(); 2]);
        read.retain(|_| absent.next() == Some(false));
    }
    let masters = with_untrained(config, &lora, read);
    (lora, masters)
}

/// Masters of an adapter, in which those of absent modules are as in a run that never trained them.
fn with_untrained(config: &ModelConfig, lora: &LoraSpec, mut masters: Vec<Vec<f32>>) -> Vec<Vec<f32>> {
    for (index, spec) in ParamTable::of_adapter(config, lora).iter().enumerate() {
        if masters[index].is_empty() {
            masters[index] = initial_values(lora.seed, index as u64, spec);
        }
    }
    masters
}

fn read_moments(dir: &Path, specs: &[ParamSpec]) -> Result<[Vec<Vec<f32>>; 2], OpError> {
    let mut stored = read_optimizer(dir).map_err(|error| unreadable(&error))?;
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for param in specs {
        let moments = stored.remove(&param.name).ok_or_else(|| missing(&param.name))?;
        first.push(take(param, Some((moments.shape.clone(), moments.m)))?);
        second.push(take(param, Some((moments.shape, moments.v)))?);
    }
    Ok([first, second])
}

fn take(param: &ParamSpec, found: Option<(Vec<usize>, Vec<f32>)>) -> Result<Vec<f32>, OpError> {
    let (shape, values) = found.ok_or_else(|| missing(&param.name))?;
    check_shape(param, &shape).map(|()| values)
}

fn check_shape(param: &ParamSpec, found: &[usize]) -> Result<(), OpError> {
    if found == param.shape {
        return Ok(());
    }
    Err(OpError::server(format!("checkpoint tensor {} has shape {found:?}, not {:?}", param.name, param.shape)))
}

fn missing(name: &str) -> OpError {
    OpError::server(format!("checkpoint tensor {name} is missing"))
}

fn check_shapes(module: &AdaptedModule, pair: &AdapterTensors, rank: usize, expected: usize) -> Result<(), OpError> {
    if pair.shapes == module.shapes(expected) {
        return Ok(());
    }
    let extents = |[a, b]: &[Vec<usize>; 2]| {
        let [outputs, inputs] = [b.len().checked_sub(2).map_or(0, |at| b[at]), a.last().copied().unwrap_or(0)];
        let count = if a.len() == 3 { format!(" on {} experts", a[0].max(b[0])) } else { String::new() };
        format!("{outputs}x{inputs}{count}")
    };
    Err(OpError::user(format!(
        "checkpoint module {} is {} of rank {rank}, expected {} of rank {expected}",
        module.name,
        extents(&pair.shapes),
        extents(&module.shapes(expected)),
    )))
}

/// Bytes that the weights of a sampler checkpoint will take: of an adapter, about those of its file.
pub(crate) fn planned_bytes<B: Backend>(backend: &B, base: &Base<B>, dir: &Path) -> usize {
    if dir.join(CONFIG_FILE).exists() {
        return std::fs::metadata(dir.join(TENSORS_FILE)).map_or(0, |file| file.len() as usize);
    }
    Weights::planned_bytes(backend, base.config(), false)
}

/// Weights of a sampler checkpoint: a PEFT adapter for `base`, or a full model of its shape.
pub(super) fn load_sampler<B: Backend>(
    backend: &B,
    base: Arc<Base<B>>,
    dir: &Path,
) -> Result<SamplerWeights<B>, OpError> {
    if dir.join(SCALAR_HEAD_FILE).exists() {
        return Err(not_sampled("model_path"));
    }
    if dir.join(CONFIG_FILE).exists() {
        let adapter = load_adapter(backend, &base, dir)?;
        return Ok(SamplerWeights { weights: Arc::clone(&base.weights), adapter: Some(Arc::new(adapter)), base });
    }
    let source = crate::load::load(dir).map_err(|error| unreadable(&error))?;
    let specs = &base.whole().table.specs;
    let same_names = specs.iter().all(|param| source.tensors.shape(&param.name).as_ref() == Some(&param.shape));
    // These no run trains, and passes read those of the base model.
    let same_corrections = source.config.corrections().eq(base.whole().config.corrections());
    if !(same_names && same_corrections) {
        return Err(OpError::user(format!("model_path: the checkpoint is not of base model {:?}", base.name)));
    }
    let Model { shard, table: own, .. } = &*base.model;
    let mut read = |index: usize| {
        let param = &own.specs[index];
        let stopped = |source| LoadError::Io { path: param.name.clone(), source };
        interrupt::check().map_err(stopped)?;
        shard.read(param, &*source.tensors).map(Cow::Owned)
    };
    let weights = Weights::load(backend, &base.model, &mut read).map_err(|error: LoadError| unreadable(&error))?;
    Ok(SamplerWeights { weights: Arc::new(weights), adapter: None, base })
}

/// The refusal to sample from a model with a scalar head, which has no distribution over tokens.
pub(crate) fn not_sampled(field: &str) -> OpError {
    OpError::user(format!("{field}: the model has a scalar head (trainyard.head) and cannot be sampled from"))
}

fn load_adapter<B: Backend>(backend: &B, base: &Base<B>, dir: &Path) -> Result<Adapter<B>, OpError> {
    let stored = read_adapter(dir).map_err(|error| unreadable(&error))?;
    let (rank, alpha) = (stored.rank, stored.alpha);
    let mut unknown: BTreeSet<&String> = stored.tensors.keys().collect();
    let mut slices = BTreeMap::new();
    let every = LoraSpec { latent_up: true, ..LoraSpec::on_all(rank as u32, 0) };
    let own = base.own_params(Some(&every));
    for (module, own) in ParamTable::adapted_modules(&base.whole().config, &every).iter().zip(own.chunks_exact(2)) {
        let names = read_names(&base.whole().config, module);
        let Some((name, pair)) = names.iter().find_map(|name| stored.tensors.get_key_value(name)) else { continue };
        unknown.remove(name);
        check_shapes(module, pair, rank, rank)?;
        let slice = |param, all| base.model.shard.slice(param, Cow::Borrowed(all));
        slices.insert(module.name.clone(), [slice(&own[0], &pair.a), slice(&own[1], &pair.b)]);
    }
    let adapter = Adapter::build(backend, base.config(), rank, alpha, |module| {
        let pair = slices.get(&module.name).map(|[a, b]| [Source::Host(a), Source::Host(b)]);
        Ok::<_, OpError>(pair)
    })?;
    match unknown.first() {
        Some(name) => Err(OpError::user(format!("model_path: base model {:?} has no module {name}", base.name))),
        None => Ok(adapter),
    }
}
