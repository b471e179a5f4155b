//! Writing runs and sampler snapshots to folders; independent of the engine, so that another thread can do it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use trainyard_protocol::{LoraSpec, OpError, OpResult, RunSpec, SaveTarget};

use crate::backend::{Backend, ChunkSink, Params};
use crate::checkpoint::{
    AdapterModule, Elements, Kind, MODEL_FILE, Manifest, MomentsRef, NamedTensor, SCALAR_HEAD_FILE, is_known_to_peft,
    kept_tensors, stored_tensors, write_adapter, write_atomically, write_manifest, write_model_files, write_optimizer,
    write_run, write_tensors, written_name,
};
use crate::engine::base::Base;
use crate::engine::sampler::SamplerWeights;
use crate::model::{Adapter, ParamSpec, ParamTable, Projection, SCALAR_HEAD_NAMES};

/// How another thread reads what a backend has, as it was when this was made.
pub(crate) struct Reads<B: Backend> {
    pub(crate) backend: Arc<B>,
    pub(crate) fence: B::Fence,
}

/// Arrays of a run, one for each parameter.
pub(crate) enum Arrays<B: Backend> {
    /// Arrays shared with the run, which are read while files are written. The run copies them before it changes them
    /// (copy-on-write).
    Shared(Arc<Reads<B>>, Arc<B::Params>),
    /// Gathered from ranks, on the host.
    Gathered(Vec<Vec<f32>>),
}

impl<B: Backend> Arrays<B> {
    pub(crate) fn each(&self) -> Vec<Array<'_, B>> {
        match self {
            Self::Shared(reads, params) => {
                let lens = params.lens().into_iter().enumerate();
                lens.map(|(index, count)| Array::Shared { reads, params, index, count }).collect()
            }
            Self::Gathered(all) => all.iter().map(|values| Array::Gathered(values)).collect(),
        }
    }
}

/// One array of [`Arrays`].
pub(crate) enum Array<'a, B: Backend> {
    Shared { reads: &'a Reads<B>, params: &'a B::Params, index: usize, count: usize },
    Gathered(&'a [f32]),
}

impl<B: Backend> Elements for Array<'_, B> {
    fn count(&self) -> usize {
        match self {
            Self::Shared { count, .. } => *count,
            Self::Gathered(values) => values.len(),
        }
    }

    fn for_each_chunk(&self, sink: &mut ChunkSink<'_>) -> io::Result<()> {
        match self {
            Self::Shared { reads: Reads { backend, fence }, params, index, .. } => {
                backend.read_params(params, *index, fence, sink)
            }
            Self::Gathered(values) => sink(values),
        }
    }

    fn whole(&self) -> io::Result<Cow<'_, [f32]>> {
        Ok(match self {
            Self::Shared { reads: Reads { backend, fence }, params, index, .. } => {
                backend.param_to_host(params, *index, fence)
            }
            Self::Gathered(values) => Cow::Borrowed(values),
        })
    }
}

/// Parts of a run that a save contains: each kind contains those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Contents {
    /// The trained parameters, for sampling and for other programs.
    Weights,
    /// The weights, and the optimizer's moments for further training.
    State,
    /// The complete state, including the accumulated gradient, for recovery.
    Run,
}

/// The state of a run at one point in time, as files have it, or as much of it as the save needs.
pub(crate) struct FrozenRun<B: Backend> {
    pub(crate) base: Arc<Base<B>>,
    pub(crate) spec: RunSpec,
    pub(crate) contents: Contents,
    pub(crate) masters: Arrays<B>,
    pub(crate) moments: Option<[Arrays<B>; 2]>,
    pub(crate) gradient: Option<Arrays<B>>,
    pub(crate) step: u64,
}

impl<B: Backend> FrozenRun<B> {
    /// Writes it in the format of its contents.
    pub(crate) fn save(&self, target: &SaveTarget) -> Result<OpResult, OpError> {
        match self.contents {
            Contents::Weights => self.save_weights(target),
            Contents::State => self.save_state(target),
            Contents::Run => self.save_run(target),
        }
    }

    /// Writes weights, moments and step count.
    fn save_state(&self, target: &SaveTarget) -> Result<OpResult, OpError> {
        let saved = write_atomically(target, |dir| {
            self.write_weights(dir)?;
            if let Some([m, v]) = &self.moments {
                let (m, v) = (m.each(), v.each());
                let moments = self.params().into_iter().zip(&m).zip(&v);
                write_optimizer(dir, moments.map(|((p, m), v)| MomentsRef { name: p.name, shape: p.shape, m, v }))?;
            }
            write_manifest(dir, &Manifest { spec: self.spec.clone(), step: self.step })
        })?;
        Ok(OpResult::Saved(Some(saved)))
    }

    /// Writes only weights: a PEFT adapter, or a Hugging Face folder; and the scalar head, if there is one.
    fn save_weights(&self, target: &SaveTarget) -> Result<OpResult, OpError> {
        let saved = write_atomically(target, |dir| self.write_weights(dir))?;
        Ok(OpResult::Saved(Some(saved)))
    }

    /// Writes everything, for recovery.
    fn save_run(&self, target: &SaveTarget) -> Result<OpResult, OpError> {
        let params = self.params();
        let mut values = BTreeMap::from([(Kind::Masters, self.masters.each())]);
        if let Some([m, v]) = &self.moments {
            values.extend([(Kind::FirstMoments, m.each()), (Kind::SecondMoments, v.each())]);
        }
        values.extend(self.gradient.as_ref().map(|gradient| (Kind::Gradient, gradient.each())));
        let tensors = values.iter().map(|(kind, values)| (*kind, named(&params, values))).collect();
        let saved = write_atomically(target, |dir| write_run(dir, &self.spec, self.step, &tensors))?;
        Ok(OpResult::Saved(Some(saved)))
    }

    fn params(&self) -> Vec<ParamSpec> {
        self.base.whole_params(&self.spec)
    }

    fn write_weights(&self, dir: &Path) -> Result<(), OpError> {
        let masters = self.masters.each();
        match &self.spec.lora {
            None => write_full(dir, &self.base, &masters),
            Some(lora) => write_lora(dir, &self.base, lora, &masters),
        }?;
        if self.spec.head.is_unembedding() {
            return Ok(());
        }
        // They come after all others.
        let own = masters.len() - SCALAR_HEAD_NAMES.len();
        write_tensors(&dir.join(SCALAR_HEAD_FILE), &named(&self.params()[own..], &masters[own..]))
    }
}

/// Sampler weights for a save, as files have them.
pub(crate) enum FrozenSnapshot<B: Backend> {
    /// Weights in memory, which are read while files are written.
    Held(Reads<B>, SamplerWeights<B>),
    /// Gathered from ranks: the base model, the adapter's spec if it is one, and the values.
    Gathered(Arc<Base<B>>, Option<LoraSpec>, Vec<Vec<f32>>),
}

impl<B: Backend> FrozenSnapshot<B> {
    /// The snapshot on the rank that writes files; `None` on the others. All ranks call it.
    pub(crate) fn new(backend: &Arc<B>, weights: SamplerWeights<B>) -> Option<Self> {
        let reads = Reads { backend: Arc::clone(backend), fence: backend.fence() };
        if weights.base.is_alone() {
            return Some(Self::Held(reads, weights));
        }
        if weights.base.replicas.rank() > 0 {
            return None;
        }
        // The weights do not leave the engine's thread: when they are freed, they are freed on all ranks alike.
        let (lora, own) = values(&reads, &weights);
        let all = weights.base.gather(lora.as_ref(), |index| Cow::Borrowed(&own[index]))?;
        Some(Self::Gathered(weights.base, lora, all))
    }

    /// Writes them in the format of [`Contents::Weights`]. Rounding is idempotent: reading them returns the same bits.
    pub(crate) fn save(&self, target: &SaveTarget) -> Result<OpResult, OpError> {
        let write = |dir: &Path, base: &Base<B>, lora: Option<&LoraSpec>, values: &[Vec<f32>]| match lora {
            Some(lora) => write_lora(dir, base, lora, values),
            None => write_full(dir, base, values),
        };
        let saved = write_atomically(target, |dir| match self {
            Self::Held(reads, weights) => {
                let (lora, own) = values(reads, weights);
                write(dir, &weights.base, lora.as_ref(), &own)
            }
            Self::Gathered(base, lora, all) => write(dir, base, lora.as_ref(), all),
        })?;
        Ok(OpResult::Saved(Some(saved)))
    }
}

/// The adapter's spec, if the weights are one, and what this rank has of the values.
fn values<B: Backend>(reads: &Reads<B>, weights: &SamplerWeights<B>) -> (Option<LoraSpec>, Vec<Vec<f32>>) {
    let Reads { backend, fence } = reads;
    match &weights.adapter {
        Some(adapter) => (Some(spec_of(adapter)), adapter.to_host(backend, fence)),
        None => (None, weights.weights.to_host(backend, fence)),
    }
}

/// The spec of an adapter, derived from its shape; the seed is unknown and 0.
fn spec_of<B: Backend>(adapter: &Adapter<B>) -> LoraSpec {
    LoraSpec {
        alpha: adapter.alpha,
        train_unembed: adapter.unembed.is_some(),
        train_mlp: adapter.adapts(|projection| !projection.is_attention()),
        train_attn: adapter.adapts(Projection::is_attention),
        latent_up: adapter.adapts(Projection::is_latent_up),
        ..LoraSpec::on_all(adapter.rank as u32, 0)
    }
}

fn named<'a, T>(params: &[ParamSpec], values: &'a [T]) -> Vec<NamedTensor<'a, T>> {
    params.iter().zip(values).map(|(p, values)| (p.name.clone(), p.shape.clone(), values)).collect()
}

fn write_full<B: Backend>(dir: &Path, base: &Base<B>, masters: &[impl Elements]) -> Result<(), OpError> {
    write_model_files(dir, &base.files)?;
    let (whole, path) = (base.whole(), dir.join(MODEL_FILE));
    let mut stored = stored_tensors(&whole.config, &whole.table.specs, masters);
    stored.extend(kept_tensors(&whole.config, &base.tensors));
    let tensors: Vec<NamedTensor<'_, _>> =
        stored.iter().map(|(name, shape, v)| (name.clone(), shape.clone(), v)).collect();
    write_tensors(&path, &tensors)
}

fn write_lora<B: Backend>(
    dir: &Path,
    base: &Base<B>,
    lora: &LoraSpec,
    masters: &[impl Elements],
) -> Result<(), OpError> {
    let config = &base.whole().config;
    let modules = ParamTable::adapted_modules(config, lora);
    let names: Vec<String> = modules.iter().map(|module| written_name(config, module)).collect();
    let written = modules.iter().zip(&names).zip(masters.chunks_exact(2)).map(|((module, name), pair)| AdapterModule {
        name,
        shapes: module.shapes(lora.rank as usize),
        a: &pair[0],
        b: &pair[1],
    });
    let is_for_peft = modules.iter().all(|module| is_known_to_peft(config, module));
    write_adapter(dir, &base.name, lora, &target_modules(&names), is_for_peft, written)
}

/// Names by which PEFT finds modules: their last parts, in the order of `modules`.
fn target_modules(modules: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in modules.iter().filter_map(|module| module.rsplit('.').next()) {
        if names.iter().all(|known| known != name) {
            names.push(name.to_owned());
        }
    }
    names
}
