//! Construction of the engine from the configured models.

use std::collections::BTreeMap;
use std::iter;
use std::time::Duration;

use trainyard_gpu_runtime::collective::{COMMUNICATOR_BYTES, CollectiveError, DeviceMemory, Rendezvous, communicators};
use trainyard_gpu_runtime::config::{LoadError, ModelFiles, ModelSource};
use trainyard_gpu_runtime::load::open;
use trainyard_gpu_runtime::{
    ConfiguredParts, CpuEngine, EngineOptions, FolderCopies, FollowError, Parallel, ParallelEngine, ProcessRank,
    RankFolders, WeightStorage,
};
use trainyard_protocol::{Engine, MemoryPlan};

use crate::config::{Config, NamedPath, RankConfig, VerifiedShare, WeightForm, size};
use crate::device::{self, DeviceError, dtype};
use crate::gpu::{self, Gpu};
use crate::linked::{Linked, one, several};
use crate::machine;

/// The engine's share of the machine's memory, unless it is configured: the rest is for requests, the store and the
/// system. Of a GPU it uses [`DeviceMemory::budget`].
const MACHINE_SHARE: (u64, u64) = (4, 5);
/// The time that a rank waits until the others have been started.
const RENDEZVOUS_PATIENCE: Duration = Duration::from_secs(600);
/// The time that a rank waits for another one in a collective, which may be reading a model. A rank that ended is
/// noticed sooner, by its heartbeat.
const COLLECTIVE_LIMIT: Duration = Duration::from_secs(3600);

/// A loaded engine and the files of its models that clients may read.
pub struct Loaded {
    /// The engine, ready to work.
    pub engine: Box<dyn Engine>,
    /// Tokenizer and configuration files by model name.
    pub files: BTreeMap<String, ModelFiles>,
    /// Makes the other ranks fetch folders; `None` unless ranks are processes.
    pub folders: Option<RankFolders>,
}

/// Error when building the engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The runtime can't serve a model.
    #[error("--model {name}: {source}")]
    Model {
        /// The name of the model.
        name: String,
        /// The error of the loader.
        source: LoadError,
    },
    /// The engine can't be built from the models.
    #[error(transparent)]
    Engine(#[from] LoadError),
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// What is free on the GPUs is not enough for the models.
    #[error(
        "--device: {} of the {} of a GPU are free, of which the engine would use {}: {source}",
        size::budget(memory.free),
        size::budget(memory.total),
        size::budget(memory.budget())
    )]
    DeviceMemory {
        /// Memory of the GPU that has the least.
        memory: DeviceMemory,
        /// The error of the loader.
        source: LoadError,
    },
    /// The other ranks did not connect.
    #[error("--rendezvous: {0}")]
    Rendezvous(#[from] CollectiveError),
    /// A rank that follows rank 0 failed.
    #[error(transparent)]
    Follow(#[from] FollowError),
}

/// Loads the configured models, which takes as long as reading and packing their weights. Waits for the other ranks
/// where ranks are processes.
pub fn build_engine(config: &Config) -> Result<Loaded, EngineError> {
    // Every rank of this process reads its own part.
    let ranks = (0..device::local_ranks(config)).map(|_| open_all(config)).collect::<Result<Vec<_>, _>>()?;
    let files =
        ranks.first().into_iter().flatten().map(|(name, source)| (name.clone(), source.files.clone())).collect();
    let (engine, folders) = link(ranks, config)?;
    Ok(Loaded { engine, files, folders })
}

/// Computes with rank 0 until that one ends. Reads folders of which rank 0 has a copy from `copies`. Calls `ready`
/// once the models are loaded.
///
/// # Errors
/// Fails if a model can't be loaded or a rank is lost.
pub fn follow(
    config: &Config,
    rank: &RankConfig,
    copies: &dyn FolderCopies,
    ready: impl FnOnce(),
) -> Result<(), EngineError> {
    let (models, found) = (open_all(config)?, device::open(config)?.pop());
    let joined = join(rank, config.parallel)?;
    match found {
        Some(found) => {
            let memory = smallest(std::slice::from_ref(&found))?;
            let options = gpu_options(config, memory, 1, &models)?;
            gpu::follow(joined, found, models, &options, copies, ready).map_err(|error| match error {
                FollowError::Load(error) => refused(config, memory, error),
                error => error.into(),
            })?;
        }
        None => joined.follow(models, &engine_options(config), copies, ready)?,
    }
    Ok(())
}

/// Connects to the other ranks.
fn join(rank: &RankConfig, layout: Parallel) -> Result<ProcessRank, EngineError> {
    let RankConfig { rank, world, rendezvous } = rank;
    tracing::info!(rank, world, %rendezvous, "waiting for the other ranks");
    Ok(ProcessRank::join(&Rendezvous {
        address: rendezvous.clone(),
        rank: *rank,
        world: *world,
        job: format!("trainyard {} {layout}", env!("CARGO_PKG_VERSION")),
        patience: RENDEZVOUS_PATIENCE,
        limit: COLLECTIVE_LIMIT,
    })?)
}

fn open_all(config: &Config) -> Result<Vec<(String, ModelSource)>, EngineError> {
    let open = |model: &NamedPath| match open(&model.path) {
        Ok(source) => Ok((model.name.clone(), source)),
        Err(source) => Err(EngineError::Model { name: model.name.clone(), source }),
    };
    config.models.iter().map(open).collect()
}

/// Joins the models that each rank has opened to an engine; also returns the handle that makes ranks in other
/// processes fetch folders.
fn link(
    mut ranks: Vec<Vec<(String, ModelSource)>>,
    config: &Config,
) -> Result<(Box<dyn Engine>, Option<RankFolders>), EngineError> {
    let gpus = device::open(config)?;
    let memory = smallest(&gpus)?;
    let options = match ranks.first() {
        Some(models) if !gpus.is_empty() => gpu_options(config, memory, gpus.len(), models)?,
        _ => engine_options(config),
    };
    let refused = |error| refused(config, memory, error);
    let mut gpus = gpus.into_iter();
    let only = if ranks.len() == 1 { ranks.pop() } else { None };
    let (engine, folders, device): Linked = match (only, &config.rank, gpus.next()) {
        (Some(only), Some(rank), found) => {
            let joined = join(rank, config.parallel)?;
            match found {
                Some(found) => gpu::lead(joined, found, only, &options).map_err(refused)?,
                None => several(joined.lead(only, &options)?),
            }
        }
        (Some(only), None, Some(found)) => gpu::engine(found, only, options).map_err(refused)?,
        (Some(only), None, None) => one(CpuEngine::new(only, options)?),
        (None, _, Some(first)) => {
            let gpus = iter::once(first).chain(gpus).collect();
            gpu::ranks(gpus, ranks, &options).map_err(refused)?
        }
        (None, _, None) => several(ParallelEngine::new(ranks, options)?),
    };
    tracing::info!(
        dtype = config.dtype.name(),
        layout = %config.parallel,
        threads = device.threads,
        kernels = device.kernels,
        "models are packed"
    );
    Ok((engine, folders))
}

/// The options of the engine on the processor.
pub(crate) fn engine_options(config: &Config) -> EngineOptions {
    let (share, of) = MACHINE_SHARE;
    let available = machine::memory_bytes().map(|bytes| bytes / of * share);
    options_within(config, available).divided_on_host(configured_parts(config))
}

/// Memory of the GPU of which the engine may use least; `None` without GPUs.
fn smallest(gpus: &[Gpu]) -> Result<Option<DeviceMemory>, DeviceError> {
    let memory = |found: &Gpu| {
        let (number, memory) = gpu::memory(found);
        memory.map_err(|source| DeviceError::Cuda { number, source })
    };
    let each = gpus.iter().map(memory).collect::<Result<Vec<_>, _>>()?;
    Ok(each.into_iter().min_by_key(|memory| memory.budget()))
}

/// An error of a loader on GPUs, with what is free there if that is what the budget follows from.
fn refused(config: &Config, memory: Option<DeviceMemory>, source: LoadError) -> EngineError {
    match memory {
        Some(memory) if config.memory_mib.is_none() && matches!(source, LoadError::Memory { .. }) => {
            EngineError::DeviceMemory { memory, source }
        }
        _ => source.into(),
    }
}

/// The options of the engine on `count` GPUs, of which the smallest one has this memory.
fn gpu_options(
    config: &Config,
    memory: Option<DeviceMemory>,
    count: usize,
    models: &[(String, ModelSource)],
) -> Result<EngineOptions, DeviceError> {
    if config.verify_samples.is_some_and(|share| share.per_million() > 0) {
        return Err(DeviceError::VerifiedSamples);
    }
    if let Some(memory) = memory {
        let (free, budget) = (size::budget(memory.free), size::budget(memory.budget()));
        tracing::info!(total = size::budget(memory.total), free, budget, "memory of the smallest GPU");
        if config.memory_mib.is_some_and(|mib| (mib_bytes(mib) / count.max(1)) as u64 > memory.free) {
            tracing::warn!(
                free,
                gpus = count,
                "--memory-mib is more than what is free on the GPUs: requests will fail"
            );
        }
    }
    // Of which NCCL takes some.
    let nccl = communicators(config.parallel.tp(), config.parallel.dp(), config.parallel.ep()) * COMMUNICATOR_BYTES;
    let available = memory.map(|memory| memory.budget().saturating_sub(nccl as u64) * count as u64);
    Ok(options_within(config, available).divided_on_gpus(models, count, configured_parts(config)))
}

/// The options with a memory budget: the configured one, else the bytes that are available.
fn options_within(config: &Config, available: Option<u64>) -> EngineOptions {
    let available = available.and_then(|bytes| usize::try_from(bytes).ok());
    EngineOptions {
        parallel: config.parallel,
        dtype: dtype(config),
        weights: config.weights.map_or(WeightStorage::Widened, WeightForm::storage),
        threads: config.threads,
        kernels: config.kernels,
        memory_bytes: config.memory_mib.map(mib_bytes).or(available),
        image_cache_bytes: config.images.cache,
        verified_per_million: config.verify_samples.map_or(0, VerifiedShare::per_million),
        ..EngineOptions::default()
    }
}

fn configured_parts(config: &Config) -> ConfiguredParts {
    ConfiguredParts {
        kv_bytes: config.kv_memory_mib.map(mib_bytes),
        activation_bytes: config.activation_memory_mib.map(mib_bytes),
        checkpoint_bytes: config.checkpoint_memory_mib.map(mib_bytes),
    }
}

fn mib_bytes(mib: usize) -> usize {
    mib.saturating_mul(1 << 20)
}

/// Describes the memory budget and its parts.
pub(crate) fn describe_memory(plan: &MemoryPlan) -> String {
    let MemoryPlan { budget, weights, activations, checkpoints, kv } = *plan;
    match budget {
        None => format!("no limit; models {}", size::budget(weights)),
        Some(budget) => format!(
            "{}: models {}, a training pass {}, checkpoints {}, keys and values at least {}, runs up to {}",
            size::budget(budget),
            size::budget(weights),
            size::budget(activations),
            size::budget(checkpoints),
            size::budget(kv),
            size::budget(plan.runs())
        ),
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use std::sync::Arc;

    use trainyard_gpu_runtime::loss::Preparer;
    use trainyard_protocol::{BaseModel, ModelExtents, Prepare, Vision};

    /// The extents of [`model`].
    pub(crate) const EXTENTS: ModelExtents = ModelExtents { vocab_size: 100, context: 64 };

    /// The model of the API's tests.
    pub(crate) fn model() -> BaseModel {
        BaseModel {
            name: "acme/tiny".to_owned(),
            arch: "llama".to_owned(),
            max_context_length: EXTENTS.context,
            vocab_size: EXTENTS.vocab_size,
            parameters: 1_000,
            vision: None,
        }
    }

    /// The same model with a vision tower: an image takes a token per 32 × 32 pixels, and token 90 stands for images.
    pub(crate) fn model_with_images() -> BaseModel {
        let preprocessor = r#"{"image_processor_type": "Qwen2VLImageProcessorFast", "patch_size": 16, "merge_size": 2,
            "temporal_patch_size": 2, "size": {"shortest_edge": 1024, "longest_edge": 1048576}}"#;
        let vision = Vision { preprocessor: preprocessor.to_owned(), image_token: 90, placeholders: vec![90, 91] };
        BaseModel { vision: Some(vision), ..model() }
    }

    /// A check of requests for an engine with that model.
    pub(crate) fn preparer() -> Arc<dyn Prepare> {
        preparer_of(&model())
    }

    /// A check of requests for an engine with a model.
    pub(crate) fn preparer_of(model: &BaseModel) -> Arc<dyn Prepare> {
        Arc::new(Preparer::new(std::slice::from_ref(model)))
    }
}
