//! Base models that an engine has loaded.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use trainyard_protocol::{BaseModel, CallMarks, OpError, Vision};

use super::WeightStorage;
use super::fingerprint::Fingerprint;
use super::load_progress::LoadProgress;
use super::rank_groups::RankGroups;
use crate::backend::{Backend, IndexerOps, PlannedPart};
use crate::blocks::{BLOCK, BlockFormat};
use crate::checkpoint::SharedSource;
use crate::collective::{Ranks, slice_of};
use crate::config::{LoadError, ModelConfig, ModelFiles, ModelSource, VisionConfig, WeightFiles};
use crate::grammar::{Grammar, GrammarCompiler};
use crate::interrupt;
use crate::load::pack;
use crate::loss::ImageRules;
use crate::model::zero::replicas::own_part;
use crate::model::{Model, ParamSpec, ParamValue, TrainedParams, Weights, WholeModel};
use crate::parallel::Parallel;
use crate::stop::Detokenizer;
use crate::vision::Tower;

/// A base model: packed weights, shared by every run and sampler on it, and with other names of the same files.
pub(super) struct Base<B: Backend> {
    pub(super) name: String,
    pub(super) model: Arc<Model<B>>,
    pub(super) weights: Arc<Weights<B>>,
    pub(super) files: ModelFiles,
    pub(super) detokenizer: Option<Arc<Detokenizer>>,
    /// Made when the first schema comes.
    grammars: OnceLock<Result<GrammarCompiler, OpError>>,
    /// Source of the unrounded weights, which full-parameter runs start from.
    pub(super) tensors: SharedSource,
    weight_files: WeightFiles,
    /// The vision tower, in models that take images here.
    pub(super) tower: Option<Arc<Tower<B>>>,
    /// Rules for images of requests.
    pub(super) images: ImageRules,
    /// Whether some weights are in the blocks of their file.
    pub(super) is_in_blocks: bool,
    /// Digest of the weights.
    pub(super) fingerprint: Arc<str>,
    /// Ranks that hold the same part of the model, one of each replica.
    pub(super) replicas: Ranks,
    /// How all ranks share models and runs.
    pub(super) layout: Parallel,
}

/// The models as a backend computes them: without indexers, contexts end where a choice of positions would begin.
pub(super) fn on_device<B: Backend>(models: Vec<(String, ModelSource)>) -> Vec<(String, ModelSource)> {
    let own = |(name, source): (String, ModelSource)| {
        if B::Family::HAS_INDEXERS || source.config.indexer.is_none() {
            return (name, source);
        }
        let config = source.config.without_indexer();
        tracing::warn!(
            model = name,
            context = config.max_position_embeddings,
            "{}: a longer context needs the indexer, which is not available on this device; the context ends at index_topk",
            config.arch
        );
        (name, ModelSource { config, ..source })
    };
    models.into_iter().map(own).collect()
}

/// The models with their weights in the form that `storage` asks for.
pub(super) fn packed(models: Vec<(String, ModelSource)>, storage: WeightStorage) -> Vec<(String, ModelSource)> {
    let WeightStorage::Packed(form) = storage else { return models };
    let own = |(name, source): (String, ModelSource)| {
        let source = pack(&name, source, form);
        (name, source)
    };
    models.into_iter().map(own).collect()
}

/// Loads the tower of a model, if it has one. Every rank holds the whole tower, and rank 0 adds it to the fingerprint.
fn load_tower<B: Backend>(
    backend: &B,
    name: &str,
    source: &ModelSource,
    ranks: &Ranks,
    fingerprint: &mut Fingerprint,
) -> Result<Option<Arc<Tower<B>>>, LoadError> {
    let Some(config) = &source.config.vision else { return Ok(None) };
    let mut seen = |name: &str, values: &[f32]| {
        if ranks.rank() == 0 {
            fingerprint.add(name, values);
        }
    };
    let tower = Tower::load(backend, config, &*source.tensors, &mut seen)?;
    tracing::info!(model = name, bytes = tower.bytes(), "the vision tower is loaded");
    Ok(Some(Arc::new(tower)))
}

/// Whether weights can be held in this form.
fn check_storage<B: Backend>(backend: &B, storage: WeightStorage, ranks: &Ranks) -> Result<(), LoadError> {
    if storage == WeightStorage::Widened {
        return Ok(());
    }
    let any = PlannedPart { outputs: BLOCK, format: Some(BlockFormat::Q8_0) };
    if backend.planned_block_bytes(&[any], BLOCK).is_none() {
        let device = backend.device().kernels;
        return Err(LoadError::Blocks(format!(
            "the device ({device}) dequantizes them; only the processor keeps quantized blocks"
        )));
    }
    if !ranks.is_single() {
        return Err(LoadError::Blocks(format!(
            "{} ranks share the model, which needs dequantized weights",
            ranks.world()
        )));
    }
    Ok(())
}

/// What clients need to know of a tower.
fn vision_of(config: &VisionConfig) -> Vision {
    Vision {
        preprocessor: config.preprocessor.clone(),
        image_token: config.image_token,
        placeholders: config.placeholders.clone(),
    }
}

impl<B: Backend> Base<B> {
    /// Packs the part of this rank of the weights of `source`, unless one of `others` has them.
    pub(super) fn new(
        backend: &B,
        name: String,
        source: ModelSource,
        groups: &RankGroups,
        others: &[Arc<Self>],
        storage: WeightStorage,
    ) -> Result<Self, LoadError> {
        check_storage(backend, storage, &groups.model)?;
        let ranks = &groups.all;
        let mut is_in_blocks = false;
        let is_same =
            |base: &&Arc<Self>| base.weight_files == source.weight_files && base.whole().config == source.config;
        let (weights, tower, fingerprint) = match others.iter().find(is_same) {
            Some(base) => {
                is_in_blocks = base.is_in_blocks;
                (Arc::clone(&base.weights), base.tower.clone(), Arc::clone(&base.fingerprint))
            }
            None => {
                if let Some(refusal) = Model::refusal(backend, &source.config) {
                    return Err(LoadError::Unsupported(refusal));
                }
                let mut fingerprint = Fingerprint::default();
                let mut seen = |name: &str, values: &[f32]| {
                    if ranks.rank() == 0 {
                        fingerprint.add(name, values);
                    }
                };
                let model = Model::new(backend, &source.config, groups.model.clone(), groups.layout)?;
                let mut model = model.with_indexers(backend, &*source.tensors, &mut seen)?;
                model.tensor_ranks = groups.tensor.clone();
                let model = Arc::new(model);
                let mut progress =
                    LoadProgress::begin(&name, model.table.specs.iter().filter(|spec| spec.len() > 0).count());
                let mut read = |index: usize| -> Result<ParamValue<'static, B>, LoadError> {
                    let spec = &model.table.specs[index];
                    progress.read(source.tensors.bytes_read());
                    let kept = match storage {
                        WeightStorage::Blocks | WeightStorage::Packed(_) => source.tensors.read_blocks(&spec.name)?,
                        WeightStorage::Widened => None,
                    };
                    if let Some(blocks) = kept {
                        is_in_blocks = true;
                        if ranks.rank() == 0 {
                            fingerprint.add(&spec.name, &blocks.values(0..blocks.rows()));
                        }
                        return Ok(ParamValue::Blocks(blocks));
                    }
                    let values = model.shard.read(spec, &*source.tensors)?;
                    // The digest is of all elements: each rank of the first replica adds those that it counts.
                    if groups.replicas.rank() == 0 && model.shard.counts(spec) && !values.is_empty() {
                        let elements = source.tensors.shape(&spec.name).map_or(0, |shape| shape.iter().product());
                        fingerprint.add_runs(&spec.name, elements, model.shard.runs(spec, elements), &values);
                    }
                    Ok(ParamValue::Host(Cow::Owned(values)))
                };
                let weights = Weights::from_values(backend, &model, &mut read)?;
                progress.end(source.tensors.bytes_read());
                for (name, values) in model.whole.config.corrections() {
                    fingerprint.add(&name, values);
                }
                let tower = load_tower(backend, &name, &source, ranks, &mut fingerprint)?;
                fingerprint.merge(ranks)?;
                if storage == WeightStorage::Blocks && !is_in_blocks {
                    tracing::warn!(
                        model = %name,
                        "none of the model's weights are in a block format that --weights file keeps; they are dequantized"
                    );
                }
                (Arc::new(weights), tower, fingerprint.text().into())
            }
        };
        let detokenizer = source.files.get("tokenizer.json").and_then(|json| {
            let unreadable = |error: &LoadError| {
                let path = source.path.display();
                tracing::warn!(model = %name, %path, %error, "the model's tokenizer can't be read; it is served without text");
            };
            Detokenizer::from_json(json).inspect_err(unreadable).ok()
        });
        let vision = tower.as_ref().and(source.config.vision.as_ref()).map(vision_of);
        Ok(Self {
            images: ImageRules::of(&name, vision),
            tower,
            name,
            is_in_blocks,
            model: Arc::clone(&weights.model),
            weights,
            files: source.files,
            detokenizer: detokenizer.map(Arc::new),
            grammars: OnceLock::new(),
            tensors: Mutex::new(source.tensors),
            weight_files: source.weight_files,
            fingerprint,
            replicas: groups.replicas.clone(),
            layout: groups.layout,
        })
    }

    /// Whether this rank holds the whole model and is the only replica.
    pub(super) fn is_alone(&self) -> bool {
        self.model.ranks.is_single() && self.replicas.is_single()
    }

    pub(super) fn config(&self) -> &ModelConfig {
        &self.model.config
    }

    /// The model as files have it, whatever part of it this rank holds.
    pub(super) fn whole(&self) -> &WholeModel {
        &self.model.whole
    }

    /// Specs of everything that a run of the whole model trains, as files have it.
    pub(super) fn whole_params<'a>(&self, what: impl Into<TrainedParams<'a>>) -> Vec<ParamSpec> {
        let WholeModel { config, table } = self.whole();
        table.trained(config, what)
    }

    /// Specs of everything that a run trains on this rank.
    pub(super) fn own_params<'a>(&self, what: impl Into<TrainedParams<'a>>) -> Vec<ParamSpec> {
        self.model.table.trained(self.config(), what)
    }

    /// This rank's parts of everything that a run trains.
    pub(super) fn slices<'a>(&self, what: impl Into<TrainedParams<'a>>, values: Vec<Vec<f32>>) -> Vec<Vec<f32>> {
        let params = self.own_params(what);
        let slice = |(param, all)| self.model.shard.slice(param, Cow::Owned(all)).into_owned();
        params.iter().zip(values).map(slice).collect()
    }

    /// This replica's parts of the arrays of a run that trains all parameters. The arrays are whole, this rank's parts,
    /// or already this replica's parts.
    pub(super) fn own_parts<'a>(&self, what: impl Into<TrainedParams<'a>>, arrays: Vec<Vec<f32>>) -> Vec<Vec<f32>> {
        let of = |(param, values): (&ParamSpec, Vec<f32>)| {
            let own = slice_of(param.len(), self.replicas.world(), self.replicas.rank());
            if values.len() == own.len() {
                return values;
            }
            own_part(&self.replicas, &self.model.shard.slice(param, Cow::Owned(values)))
        };
        self.own_params(what).iter().zip(arrays).map(of).collect()
    }

    /// Gathers everything that a run trains from the parts of the first replica's ranks, which call it together. Only
    /// rank 0 gets a result. Other replicas hold the same parameters.
    pub(super) fn gather<'a, 'v>(
        &self,
        what: impl Into<TrainedParams<'a>>,
        mut part: impl FnMut(usize) -> Cow<'v, [f32]>,
    ) -> Option<Vec<Vec<f32>>> {
        if self.replicas.rank() > 0 {
            return None;
        }
        let Model { ranks, shard, .. } = &*self.model;
        let params = self.own_params(what);
        // Every rank takes part in every gather, whatever came of the last one.
        let all: Vec<_> = params.iter().enumerate().map(|(i, param)| shard.gather(ranks, param, part(i))).collect();
        all.into_iter().collect()
    }

    pub(super) fn describe(&self) -> BaseModel {
        let config = self.config();
        BaseModel {
            name: self.name.clone(),
            arch: config.arch.to_owned(),
            max_context_length: config.max_position_embeddings,
            vocab_size: config.vocab_size,
            parameters: self.whole().table.elements() as u64,
            vision: self.images.vision().cloned(),
        }
    }

    /// The grammar of texts that follow a JSON schema, or of calls that do.
    ///
    /// # Errors
    /// The user's, when the schema is refused or the model has no tokenizer.
    pub(super) fn grammar(&self, schema: &str, marks: Option<&CallMarks>) -> Result<Grammar, OpError> {
        let compiler = self.grammars.get_or_init(|| {
            let detokenizer = self.detokenizer.as_ref().ok_or_else(|| {
                OpError::user("sampling_params.json_schema: this model has no tokenizer.json that can be read")
            })?;
            GrammarCompiler::new(detokenizer, self.config().vocab_size, &self.config().eos_token_ids)
        });
        let compiler = compiler.as_ref().map_err(Clone::clone)?;
        match marks {
            Some(marks) => compiler.compile_calls(schema, marks),
            None => compiler.compile(schema),
        }
    }

    /// Whether replicas divide the parameters of runs that train `what`.
    pub(super) fn divides<'a>(&self, what: impl Into<TrainedParams<'a>>) -> bool {
        self.layout.divides_parameters() && !self.replicas.is_single() && what.into().lora.is_none()
    }

    /// Reads this rank's parts of all parameters in f32, as the files have them; if replicas divide them, this
    /// replica's parts of these.
    pub(super) fn read_masters(&self) -> Result<Vec<Vec<f32>>, OpError> {
        let tensors = self.tensors.lock().unwrap_or_else(PoisonError::into_inner);
        let read = self.model.table.specs.iter().map(|param| {
            interrupt::check().map_err(|_| interrupt::ended())?;
            let own = self.model.shard.read(param, &**tensors).map_err(|error| self.unreadable(&error))?;
            Ok(if self.layout.divides_parameters() { own_part(&self.replicas, &own) } else { own })
        });
        read.collect()
    }

    fn unreadable(&self, error: &LoadError) -> OpError {
        OpError::server(format!("base model {} cannot be read: {error}", self.name))
    }

    /// Packs `masters`, parameters of the same model in f32.
    pub(super) fn pack(&self, backend: &B, masters: &B::Params) -> Result<Weights<B>, OpError> {
        Weights::from_params(backend, &self.model, masters).map_err(|error| OpError::server(error.to_string()))
    }
}

#[cfg(test)]
#[path = "block_weights_tests.rs"]
mod block_weights_tests;
