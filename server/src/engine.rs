//! Construction of the engine from the configured models.

use std::collections::BTreeMap;
use std::iter;
use std::time::Duration;

use trainyard_gpu_runtime::collective::{COMMUNICATOR_BYTES, CollectiveError, Rendezvous, communicators};
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
/// system.
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
            let options = gpu_options(config, std::slice::from_ref(&found), &models)?;
            gpu::follow(joined, found, models, &options, copies, ready)?;
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
    let options = match ranks.first() {
        Some(models) if !gpus.is_empty() => gpu_options(config, &gpus, models)?,
        _ => engine_options(config),
    };
    let mut gpus = gpus.into_iter();
    let only = if ranks.len() == 1 { ranks.pop() } else { None };
    let (engine, folders, device): Linked = match (only, &config.rank, gpus.next()) {
        (Some(only), Some(rank), found) => {
            let joined = join(rank, config.parallel)?;
            match found {
                Some(found) => gpu::lead(joined, found, only, &options)?,
                None => several(joined.lead(only, &options)?),
            }
        }
        (Some(only), None, Some(found)) => gpu::engine(found, only, options)?,
        (Some(only), None, None) => one(CpuEngine::new(only, options)?),
        (None, _, Some(first)) => {
            let gpus = iter::once(first).chain(gpus).collect();
            gpu::ranks(gpus, ranks, &options)?
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
    options_within(config, machine::memory_bytes()).divided_on_host(configured_parts(config))
}

/// The options of the engine on GPUs; the smallest GPU limits the memory.
fn gpu_options(config: &Config, gpus: &[Gpu], models: &[(String, ModelSource)]) -> Result<EngineOptions, DeviceError> {
    if config.verify_samples.is_some_and(|share| share.per_million() > 0) {
        return Err(DeviceError::VerifiedSamples);
    }
    let bytes = |found: &Gpu| {
        let (number, memory) = gpu::memory(found);
        memory.map_err(|source| DeviceError::Cuda { number, source })
    };
    let each = gpus.iter().map(bytes).collect::<Result<Vec<_>, _>>()?;
    // Of which NCCL takes some.
    let nccl = communicators(config.parallel.tp(), config.parallel.dp(), config.parallel.ep()) * COMMUNICATOR_BYTES;
    let memory = each.iter().min().map(|bytes| (bytes.saturating_sub(nccl) * gpus.len()) as u64);
    Ok(options_within(config, memory).divided_on_gpus(models, gpus.len(), configured_parts(config)))
}

/// The options with a memory budget: the configured one, else a share of `memory`.
fn options_within(config: &Config, memory: Option<u64>) -> EngineOptions {
    let (share, of) = MACHINE_SHARE;
    let available = memory.and_then(|bytes| usize::try_from(bytes / of * share).ok());
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
