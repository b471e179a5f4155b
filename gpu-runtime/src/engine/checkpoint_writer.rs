//! Writing runs and sampler snapshots to folders; independent of the engine, so that another thread can do it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use trainyard_protocol::{LoraSpec, OpError, OpResult, RunSpec, SaveTarget};

use super::base::Base;
use super::sampler::SamplerWeights;
use crate::backend::{Backend, Params};
use crate::checkpoint::{
    AdapterModule, Kind, MODEL_FILE, Manifest, MomentsRef, NamedTensor, write_adapter, write_atomically,
    write_manifest, write_model_files, write_optimizer, write_run, write_tensors,
};
use crate::model::{Adapter, ParamSpec, ParamTable, Projection};

/// The state of a run at one point in time. It shares tensors with the run, which copies what it changes (copy-on-write).
pub(super) struct FrozenRun<B: Backend> {
    pub(super) base: Arc<Base<B>>,
    pub(super) spec: RunSpec,
    pub(super) masters: Arc<B::Params>,
    pub(super) moments: Option<Arc<[B::Params; 2]>>,
    pub(super) grads: Option<Arc<B::Params>>,
    pub(super) step: u64,
}

impl<B: Backend> FrozenRun<B> {
    /// Writes weights, moments and step count.
    pub(super) fn save_state(&self, target: &SaveTarget) -> Result<OpResult, OpError> {
        let saved = write_atomically(target, |dir| {
            self.write_weights(dir)?;
            if let Some([m, v]) = self.moments.as_deref() {
                let (m, v) = (host::<B::Params>(m), host::<B::Params>(v));
                let moments = self.params().into_iter().zip(&m).zip(&v);
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
        let mut values = BTreeMap::from([(Kind::Masters, host::<B::Params>(&self.masters))]);
        if let Some([m, v]) = self.moments.as_deref() {
            values.extend([(Kind::FirstMoments, host::<B::Params>(m)), (Kind::SecondMoments, host::<B::Params>(v))]);
        }
        if let Some(grads) = self.grads.as_deref() {
            values.insert(Kind::Gradient, host::<B::Params>(grads));
        }
        let tensors = values.iter().map(|(kind, values)| (*kind, named(&params, values))).collect();
        let saved = write_atomically(target, |dir| write_run(dir, &self.spec, self.step, &tensors))?;
        Ok(OpResult::Saved(Some(saved)))
    }

    fn params(&self) -> Vec<ParamSpec> {
        self.base.table().trained(self.base.config(), self.spec.lora.as_ref())
    }

    fn write_weights(&self, dir: &Path) -> Result<(), OpError> {
        let masters = host::<B::Params>(&self.masters);
        match &self.spec.lora {
            None => write_full(dir, &self.base, &masters),
            Some(lora) => write_lora(dir, &self.base, lora, &masters),
        }
    }
}

/// Writes sampler weights in the format of [`FrozenRun::save_weights`]. Rounding is idempotent: reading them returns the
/// same bits.
pub(super) fn save_snapshot<B: Backend>(
    backend: &B,
    weights: &SamplerWeights<B>,
    target: &SaveTarget,
) -> Result<OpResult, OpError> {
    let base = &weights.base;
    let saved = write_atomically(target, |dir| match &weights.adapter {
        Some(adapter) => write_lora(dir, base, &spec_of(adapter), &adapter.to_host(backend)),
        None => write_full(dir, base, &weights.weights.to_host(backend)),
    })?;
    Ok(OpResult::Saved(Some(saved)))
}

/// The spec of an adapter, derived from its shape; the seed is unknown and 0.
fn spec_of<B: Backend>(adapter: &Adapter<B>) -> LoraSpec {
    LoraSpec {
        rank: adapter.rank as u32,
        seed: 0,
        train_unembed: adapter.unembed.is_some(),
        train_mlp: adapter.adapts(|projection| !projection.is_attention()),
        train_attn: adapter.adapts(Projection::is_attention),
    }
}

/// The elements of each parameter.
fn host<P: Params>(params: &P) -> Vec<Cow<'_, [f32]>> {
    (0..params.len()).map(|index| params.host(index)).collect()
}

fn named<'a>(params: &[ParamSpec], values: &'a [impl AsRef<[f32]>]) -> Vec<NamedTensor<'a>> {
    params.iter().zip(values).map(|(p, values)| (p.name.clone(), p.shape.clone(), values.as_ref())).collect()
}

fn write_full<B: Backend>(dir: &Path, base: &Base<B>, masters: &[impl AsRef<[f32]>]) -> Result<(), OpError> {
    write_model_files(dir, &base.files)?;
    write_tensors(&dir.join(MODEL_FILE), &named(&base.table().specs, masters))
}

fn write_lora<B: Backend>(
    dir: &Path,
    base: &Base<B>,
    lora: &LoraSpec,
    masters: &[impl AsRef<[f32]>],
) -> Result<(), OpError> {
    let modules = ParamTable::adapted_modules(base.config(), lora);
    let written = modules.iter().zip(masters.chunks_exact(2)).map(|(module, pair)| AdapterModule {
        name: &module.name,
        in_features: module.extents.1,
        out_features: module.extents.0,
        a: pair[0].as_ref(),
        b: pair[1].as_ref(),
    });
    write_adapter(dir, &base.name, lora, &target_modules(lora), written)
}

/// Names by which PEFT finds the adapted modules.
fn target_modules(lora: &LoraSpec) -> Vec<String> {
    let name = |p: Projection| p.module().rsplit('.').next().unwrap_or_default().to_owned();
    let mut names: Vec<String> =
        Projection::ALL.into_iter().filter(|projection| projection.is_adapted(lora)).map(name).collect();
    if lora.train_unembed {
        names.push("lm_head".to_owned());
    }
    names
}
