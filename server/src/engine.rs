//! Building the engine from the configured models.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use trainyard_gpu_runtime::backend::Backend;
use trainyard_gpu_runtime::backend::cuda::Cuda;
use trainyard_gpu_runtime::collective::{CollectiveError, Rendezvous};
use trainyard_gpu_runtime::config::{LoadError, ModelFiles, ModelSource};
use trainyard_gpu_runtime::load::{load, locate};
use trainyard_gpu_runtime::{
    CpuEngine, CudaEngine, Dtype, EngineOptions, FolderCopies, FollowError, Parallel, ParallelEngine, ProcessRank,
    RankFolders,
};
use trainyard_protocol::{Engine, MemoryPlan};

use crate::config::{ComputeType, Config, NamedPath, RankConfig};
use crate::device::{self, DeviceError};
use crate::machine;

/// The engine's share of the machine's memory, unless it is configured: the rest is for requests, the store and the
/// system.
const MACHINE_SHARE: (u64, u64) = (4, 5);
/// How long a rank waits until the others have been started.
const RENDEZVOUS_PATIENCE: Duration = Duration::from_secs(600);
/// How long a rank waits for another one in a collective, which may be reading a model. One that is gone is noticed sooner, by its
/// heartbeat.
const COLLECTIVE_LIMIT: Duration = Duration::from_secs(3600);

/// A loaded engine and what clients may read of its models.
pub struct Loaded {
    /// Ready to work.
    pub engine: Box<dyn Engine>,
    /// Tokenizer and configuration files by model name.
    pub files: BTreeMap<String, ModelFiles>,
    /// What has the other ranks fetch folders, where they are processes.
    pub folders: Option<RankFolders>,
}

/// Why the engine cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A model is not what the runtime serves.
    #[error("--model {name}: {source}")]
    Model {
        /// Which.
        name: String,
        /// Why.
        source: LoadError,
    },
    /// The engine cannot be made of them.
    #[error(transparent)]
    Engine(#[from] LoadError),
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The other ranks did not come.
    #[error("--rendezvous: {0}")]
    Rendezvous(#[from] CollectiveError),
    /// A rank that follows rank 0 has to end.
    #[error(transparent)]
    Follow(#[from] FollowError),
}

/// Loads the configured models. Takes as long as reading and packing their weights takes. Waits for the other ranks, where these
/// are processes.
pub fn build_engine(config: &Config) -> Result<Loaded, EngineError> {
    // Every rank of this process reads its own part.
    let here = if config.rank.is_some() { 1 } else { config.parallel.world() };
    let ranks = (0..here).map(|_| open_all(config)).collect::<Result<Vec<_>, _>>()?;
    let files =
        ranks.first().into_iter().flatten().map(|(name, source)| (name.clone(), source.files.clone())).collect();
    let (engine, folders) = link(ranks, config)?;
    Ok(Loaded { engine, files, folders })
}

/// Computes with rank 0, until that one ends. Reads folders of which rank 0 has a copy from `copies`. Calls `ready` once the
/// models are loaded.
///
/// # Errors
/// Models that cannot be loaded, and ranks that are lost.
pub fn follow(
    config: &Config,
    rank: &RankConfig,
    copies: &dyn FolderCopies,
    ready: impl FnOnce(),
) -> Result<(), EngineError> {
    let models = open_all(config)?;
    Ok(join(rank, config.parallel)?.follow(models, &engine_options(config), copies, ready)?)
}

/// Waits for the other ranks.
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

/// Opens a model by its path or, from the hub cache, by its id.
///
/// # Errors
/// When it is not there, or not what the runtime serves.
pub fn open(path: &Path) -> Result<ModelSource, LoadError> {
    load(&location(path)?)
}

/// The folder or file of a model, by its path or, from the hub cache, by its id.
///
/// # Errors
/// When it is not there.
pub fn location(path: &Path) -> Result<PathBuf, LoadError> {
    locate(path, hub_cache().as_deref())
}

/// Where the Hugging Face tools keep downloads, by their variables.
fn hub_cache() -> Option<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("HF_HUB_CACHE")
        .or_else(|| variable("HF_HOME").map(|home| home.join("hub")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/huggingface/hub")))
}

/// The engine of models that each rank has opened, and what has ranks that are processes fetch folders.
fn link(
    mut ranks: Vec<Vec<(String, ModelSource)>>,
    config: &Config,
) -> Result<(Box<dyn Engine>, Option<RankFolders>), EngineError> {
    let gpu = device::open(config)?;
    let options = match &gpu {
        Some(gpu) => gpu_options(config, gpu)?,
        None => engine_options(config),
    };
    let mut folders = None;
    let (engine, device): (Box<dyn Engine>, _) = match (ranks.pop(), &config.rank, gpu) {
        (Some(only), Some(rank), _) => {
            let engine = join(rank, config.parallel)?.lead(only, &options)?;
            let device = engine.backend().device();
            folders = engine.folders().cloned();
            (Box::new(engine), device)
        }
        (Some(only), None, Some(gpu)) if ranks.is_empty() => {
            let engine = CudaEngine::on_gpu(gpu, only, options)?;
            let device = engine.backend().device();
            (Box::new(engine), device)
        }
        (Some(only), None, None) if ranks.is_empty() => {
            let engine = CpuEngine::new(only, options)?;
            let device = engine.backend().device();
            (Box::new(engine), device)
        }
        (last, ..) => {
            ranks.extend(last);
            let engine = ParallelEngine::new(ranks, options)?;
            let device = engine.backend().device();
            (Box::new(engine), device)
        }
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

/// Type of base weights and of the inputs of their GEMMs.
pub(crate) fn dtype(config: &Config) -> Dtype {
    match config.dtype {
        ComputeType::Bf16 => Dtype::Bf16,
        ComputeType::F32 => Dtype::F32,
    }
}

/// How the engine is to compute.
pub(crate) fn engine_options(config: &Config) -> EngineOptions {
    options_within(config, machine::memory_bytes())
}

/// The same on a GPU, whose memory it is then.
fn gpu_options(config: &Config, gpu: &Cuda) -> Result<EngineOptions, DeviceError> {
    let bytes = gpu.gpu().memory().map_err(|source| DeviceError::Cuda { device: config.device, source })?;
    Ok(options_within(config, Some(bytes as u64)))
}

fn options_within(config: &Config, memory: Option<u64>) -> EngineOptions {
    EngineOptions {
        parallel: config.parallel,
        dtype: dtype(config),
        threads: config.threads,
        kernels: config.kernels,
        ..memory_options(config, memory)
    }
}

/// The memory budget and its parts: as configured, else a share of what there is.
fn memory_options(config: &Config, memory: Option<u64>) -> EngineOptions {
    let defaults = EngineOptions::default();
    let configured = |mib: Option<usize>| mib.map(|mib| mib.saturating_mul(1 << 20));
    let memory_bytes = configured(config.memory_mib).or_else(|| {
        let (share, of) = MACHINE_SHARE;
        memory.and_then(|bytes| usize::try_from(bytes / of * share).ok())
    });
    let part = |mib: Option<usize>, default: usize, of_budget: usize| {
        configured(mib).unwrap_or_else(|| memory_bytes.map_or(default, |budget| default.min(budget / of_budget)))
    };
    EngineOptions {
        memory_bytes,
        kv_bytes: part(config.kv_memory_mib, defaults.kv_bytes, 4),
        activation_bytes: part(config.activation_memory_mib, defaults.activation_bytes, 8),
        checkpoint_bytes: part(config.checkpoint_memory_mib, defaults.checkpoint_bytes, 16),
        ..defaults
    }
}

/// The memory budget and its parts.
pub(crate) fn describe_memory(plan: &MemoryPlan) -> String {
    let MemoryPlan { budget, weights, activations, checkpoints, kv } = *plan;
    let mib = |bytes: u64| bytes >> 20;
    match budget {
        None => format!("no limit; models {} MiB", mib(weights)),
        Some(budget) => format!(
            "{} MiB: models {}, a training pass {}, checkpoints {}, keys and values at least {}, runs up to {}",
            mib(budget),
            mib(weights),
            mib(activations),
            mib(checkpoints),
            mib(kv),
            mib(plan.runs())
        ),
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use std::sync::Arc;

    use trainyard_gpu_runtime::loss::Preparer;
    use trainyard_protocol::{BaseModel, ModelExtents, Prepare};

    /// Of [`model`].
    pub(crate) const EXTENTS: ModelExtents = ModelExtents { vocab_size: 100, context: 64 };

    /// The model of the API's tests.
    pub(crate) fn model() -> BaseModel {
        BaseModel {
            name: "acme/tiny".to_owned(),
            arch: "llama".to_owned(),
            max_context_length: EXTENTS.context,
            vocab_size: EXTENTS.vocab_size,
            parameters: 1_000,
        }
    }

    /// What an engine with that model checks requests with.
    pub(crate) fn preparer() -> Arc<dyn Prepare> {
        Arc::new(Preparer::new(&[model()]))
    }
}
