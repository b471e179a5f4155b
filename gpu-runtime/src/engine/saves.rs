//! Writing runs and sampler snapshots to folders, on the engine's thread or another one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use trainyard_protocol::{LoraSpec, OpError, OpResult, RunSpec, SaveTarget};

use super::base::Base;
use super::run::params;
use super::sampler::SamplerWeights;
use crate::checkpoint::{
    AdapterModule, Kind, MODEL_FILE, Manifest, MomentsRef, NamedTensor, write_adapter, write_atomically,
    write_manifest, write_model_files, write_optimizer, write_run, write_tensors,
};
use crate::model::{Adapter, Gradients, Module, ParamSpec, Weights};

/// A run as it was at some moment. It shares what the run has; the run copies what it changes.
pub(super) struct Frozen {
    pub(super) base: Arc<Base>,
    pub(super) spec: RunSpec,
    pub(super) masters: Arc<Gradients>,
    pub(super) moments: Option<Arc<[Gradients; 2]>>,
    pub(super) grads: Option<Arc<Gradients>>,
    pub(super) step: u64,
}

impl Frozen {
    /// Writes weights, moments and step count.
    pub(super) fn save_state(&self, target: &SaveTarget) -> Result<OpResult, OpError> {
        let saved = write_atomically(target, |dir| {
            self.write_weights(dir)?;
            if let Some([m, v]) = self.moments.as_deref() {
                let moments = self.params().into_iter().zip(m).zip(v);
                write_optimizer(dir, moments.map(|((p, m), v)| MomentsRef { name: p.name, shape: p.shape, m, v }))?;
            }
            write_manifest(dir, &Manifest { spec: self.spec.clone(), step: self.step })
        })?;
        Ok(OpResult::Saved(Some(saved)))
    }

    /// Writes weights alone: a PEFT adapter, or a Hugging Face folder.
    pub(super) fn save_weights(&self, target: &SaveTarget) -> Result<OpResult, OpError> {
        let saved = write_atomically(target, |dir| self.write_weights(dir))?;
        Ok(OpResult::Saved(Some(saved)))
    }

    /// Writes everything, for recovery.
    pub(super) fn save_run(&self, target: &SaveTarget) -> Result<OpResult, OpError> {
        let params = self.params();
        let named = |values| named(&params, values);
        let mut tensors = BTreeMap::from([(Kind::Masters, named(&self.masters))]);
        if let Some([m, v]) = self.moments.as_deref() {
            tensors.extend([(Kind::FirstMoments, named(m)), (Kind::SecondMoments, named(v))]);
        }
        if let Some(grads) = self.grads.as_deref() {
            tensors.insert(Kind::Gradient, named(grads));
        }
        let saved = write_atomically(target, |dir| write_run(dir, &self.spec, self.step, &tensors))?;
        Ok(OpResult::Saved(Some(saved)))
    }

    fn params(&self) -> Vec<ParamSpec> {
        params(&self.base, self.spec.lora.as_ref())
    }

    fn write_weights(&self, dir: &Path) -> Result<(), OpError> {
        match &self.spec.lora {
            None => write_full(dir, &self.base, &self.masters),
            Some(lora) => write_lora(dir, &self.base, lora, &self.masters),
        }
    }
}

/// Writes sampler weights as [`Frozen::save_weights`] writes a run's. Rounding what was rounded before changes nothing:
/// who reads it gets the bits that these weights have.
pub(super) fn save_snapshot(weights: &SamplerWeights, target: &SaveTarget) -> Result<OpResult, OpError> {
    let base = &weights.base;
    let saved = write_atomically(target, |dir| match &weights.adapter {
        Some(adapter) => write_lora(dir, base, &spec_of(adapter), &adapter.params_of()),
        None => write_full(dir, base, &Weights::params(&weights.weights)),
    })?;
    Ok(OpResult::Saved(Some(saved)))
}

/// What tells the shape of an adapter; the seed is lost.
fn spec_of(adapter: &Adapter) -> LoraSpec {
    let adapts = |attention: bool| {
        let on = |layer: &[Option<_>; 7]| {
            Module::ALL.iter().any(|m| m.is_attention() == attention && layer[*m as usize].is_some())
        };
        adapter.layers.first().is_some_and(on)
    };
    LoraSpec {
        rank: adapter.rank as u32,
        seed: 0,
        train_unembed: adapter.unembed.is_some(),
        train_mlp: adapts(false),
        train_attn: adapts(true),
    }
}

fn named<'a>(params: &[ParamSpec], values: &'a Gradients) -> Vec<NamedTensor<'a>> {
    params.iter().zip(values).map(|(p, values)| (p.name.clone(), p.shape.clone(), &values[..])).collect()
}

fn write_full(dir: &Path, base: &Base, masters: &Gradients) -> Result<(), OpError> {
    write_model_files(dir, &base.files)?;
    write_tensors(&dir.join(MODEL_FILE), &named(&base.layout.specs, masters))
}

fn write_lora(dir: &Path, base: &Base, lora: &LoraSpec, masters: &Gradients) -> Result<(), OpError> {
    let modules = Adapter::modules(&base.config, lora);
    let written = modules.iter().zip(masters.chunks_exact(2)).map(|((name, (n, k)), pair)| AdapterModule {
        name,
        in_features: *k,
        out_features: *n,
        a: &pair[0],
        b: &pair[1],
    });
    write_adapter(dir, &base.name, lora, &target_modules(lora), written)
}

/// Names by which PEFT finds the adapted modules.
fn target_modules(lora: &LoraSpec) -> Vec<String> {
    let name = |m: &Module| m.name().rsplit('.').next().unwrap_or_default().to_owned();
    let mut names: Vec<String> = Module::ALL
        .iter()
        .filter(|m| if m.is_attention() { lora.train_attn } else { lora.train_mlp })
        .map(name)
        .collect();
    if lora.train_unembed {
        names.push("lm_head".to_owned());
    }
    names
}
