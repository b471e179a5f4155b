//! Reading runs and sampler weights from checkpoints and snapshots.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use trainyard_protocol::{LoadState, OpError, RunSpec};

use super::base::Base;
use super::run::{AccumulatedGradient, TrainingRun};
use super::sampler::SamplerWeights;
use crate::backend::{Backend, Source};
use crate::checkpoint::adapter::{CONFIG_FILE, TENSORS_FILE};
use crate::checkpoint::{
    AdapterTensors, Kind, MODEL_FILE, read_adapter, read_manifest, read_optimizer, read_run, read_tensors, unreadable,
};
use crate::config::LoadError;
use crate::model::{AdaptedModule, Adapter, ParamSpec, ParamTable, Weights};

impl<B: Backend> TrainingRun<B> {
    /// A run from a training checkpoint, whose spec must agree with `expected`, but for another name of the base model.
    pub(super) fn load(backend: &B, base: Arc<Base<B>>, expected: &RunSpec, load: &LoadState) -> Result<Self, OpError> {
        let LoadState { dir, with_optimizer, checkpoint_base, .. } = load;
        let mut manifest = read_manifest(dir).map_err(|error| unreadable(&error))?;
        if checkpoint_base.as_ref().is_some_and(|name| *name == manifest.spec.base_model) {
            manifest.spec.base_model.clone_from(&expected.base_model);
        }
        check_spec(&manifest.spec, expected)?;
        let masters = read_masters(&base, &manifest.spec, dir)?;
        let specs = base.table().trained(base.config(), manifest.spec.lora.as_ref());
        // The seed of the checkpoint, not of `expected`: the run continues its weights.
        let mut run = Self::from_masters(backend, base, manifest.spec, masters)?;
        if *with_optimizer && manifest.step > 0 {
            run.moments = Some(Arc::new(read_moments(dir, &specs)?.map(|moment| backend.upload_params(moment))));
            run.step = manifest.step;
        }
        Ok(run)
    }

    /// A run as [`super::checkpoint_writer::FrozenRun::save_run`] wrote it; its spec must agree with `expected`.
    pub(super) fn restore(backend: &B, base: Arc<Base<B>>, expected: &RunSpec, dir: &Path) -> Result<Self, OpError> {
        let mut stored = read_run(dir).map_err(|error| unreadable(&error))?;
        check_spec(&stored.spec, expected).map_err(|error| OpError::server(error.message))?;
        let specs = base.table().trained(base.config(), stored.spec.lora.as_ref());
        let mut read = |kind: Kind| {
            let tensors = stored.tensors.remove(&kind);
            tensors.map(|mut tensors| specs.iter().map(|p| take(p, tensors.remove(&p.name))).collect()).transpose()
        };
        let masters: Vec<Vec<f32>> = read(Kind::Masters)?.ok_or_else(|| missing("masters"))?;
        let moments: [Option<Vec<Vec<f32>>>; 2] = [read(Kind::FirstMoments)?, read(Kind::SecondMoments)?];
        let grads: Option<Vec<Vec<f32>>> = read(Kind::Gradient)?;
        let mut run = Self::from_masters(backend, base, stored.spec, masters)?;
        run.moments = match moments {
            [Some(m), Some(v)] => Some(Arc::new([m, v].map(|moment| backend.upload_params(moment)))),
            [None, None] => None,
            _ => return Err(missing("one of the moments")),
        };
        (run.step, run.gradient) =
            (stored.step, grads.map(|grads| AccumulatedGradient::new(backend, backend.upload_params(grads))));
        Ok(run)
    }
}

fn check_spec(found: &RunSpec, expected: &RunSpec) -> Result<(), OpError> {
    if found.base_model != expected.base_model {
        return Err(OpError::user(format!(
            "path: the checkpoint's base model is {:?}, not {:?}",
            found.base_model, expected.base_model
        )));
    }
    let shape = |spec: &RunSpec| spec.lora.as_ref().map(|l| (l.rank, l.train_attn, l.train_mlp, l.train_unembed));
    let describe = |spec: &RunSpec| match &spec.lora {
        None => "all parameters".to_owned(),
        Some(l) => {
            format!("LoRA of rank {} (attn {}, mlp {}, unembed {})", l.rank, l.train_attn, l.train_mlp, l.train_unembed)
        }
    };
    if shape(found) != shape(expected) {
        return Err(OpError::user(format!(
            "path: the checkpoint trains {}, the model {}",
            describe(found),
            describe(expected)
        )));
    }
    Ok(())
}

fn read_masters<B: Backend>(base: &Base<B>, spec: &RunSpec, dir: &Path) -> Result<Vec<Vec<f32>>, OpError> {
    match &spec.lora {
        None => {
            let mut tensors = read_tensors(&dir.join(MODEL_FILE)).map_err(|error| unreadable(&error))?;
            base.table().specs.iter().map(|param| take(param, tensors.remove(&param.name))).collect()
        }
        Some(lora) => {
            let mut stored = read_adapter(dir).map_err(|error| unreadable(&error))?;
            let mut masters = Vec::new();
            for AdaptedModule { name, extents, .. } in ParamTable::adapted_modules(base.config(), lora) {
                let pair = stored.tensors.remove(&name).ok_or_else(|| missing(&name))?;
                check_extents(&name, &pair, stored.rank, extents, lora.rank as usize)?;
                masters.extend([pair.a, pair.b]);
            }
            Ok(masters)
        }
    }
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
    match found {
        Some((shape, values)) if shape == param.shape => Ok(values),
        Some((shape, _)) => {
            Err(OpError::server(format!("checkpoint tensor {} has shape {shape:?}, not {:?}", param.name, param.shape)))
        }
        None => Err(missing(&param.name)),
    }
}

fn missing(name: &str) -> OpError {
    OpError::server(format!("checkpoint tensor {name} is missing"))
}

fn check_extents(
    name: &str,
    pair: &AdapterTensors,
    rank: usize,
    (n, k): (usize, usize),
    expected: usize,
) -> Result<(), OpError> {
    if (pair.out_features, pair.in_features, rank) == (n, k, expected) {
        return Ok(());
    }
    Err(OpError::user(format!(
        "checkpoint module {name} is {}x{} of rank {rank}, the model's is {n}x{k} of rank {expected}",
        pair.out_features, pair.in_features
    )))
}

/// Bytes that the weights of a sampler checkpoint will take: of an adapter, about those of its file.
pub(super) fn planned_bytes<B: Backend>(backend: &B, base: &Base<B>, dir: &Path) -> usize {
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
    if dir.join(CONFIG_FILE).exists() {
        let adapter = load_adapter(backend, &base, dir)?;
        return Ok(SamplerWeights { weights: Arc::clone(&base.weights), adapter: Some(Arc::new(adapter)), base });
    }
    let source = crate::load::load(dir).map_err(|error| unreadable(&error))?;
    let specs = &base.table().specs;
    let same_names = specs.iter().all(|param| source.tensors.shape(&param.name).as_ref() == Some(&param.shape));
    if !same_names {
        return Err(OpError::user(format!("model_path: the checkpoint is not of base model {:?}", base.name)));
    }
    let mut read = |index: usize| source.tensors.read(&specs[index].name).map(Cow::Owned);
    let weights = Weights::load(backend, &base.model, &mut read).map_err(|error: LoadError| unreadable(&error))?;
    Ok(SamplerWeights { weights: Arc::new(weights), adapter: None, base })
}

fn load_adapter<B: Backend>(backend: &B, base: &Base<B>, dir: &Path) -> Result<Adapter<B>, OpError> {
    let stored = read_adapter(dir).map_err(|error| unreadable(&error))?;
    let (rank, scale) = (stored.rank, stored.alpha / stored.rank as f32);
    let mut unknown: BTreeSet<&String> = stored.tensors.keys().collect();
    let adapter = Adapter::build(backend, base.config(), rank, scale, |module| {
        let Some(pair) = stored.tensors.get(&module.name) else { return Ok(None) };
        unknown.remove(&module.name);
        check_extents(&module.name, pair, rank, module.extents, rank)?;
        Ok(Some([Source::Host(&pair.a), Source::Host(&pair.b)]))
    })?;
    match unknown.first() {
        Some(name) => Err(OpError::user(format!("model_path: base model {:?} has no module {name}", base.name))),
        None => Ok(adapter),
    }
}
