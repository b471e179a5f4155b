//! Building the engine from the configured models.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use trainyard_gpu_runtime::backend::Backend;
use trainyard_gpu_runtime::config::{LoadError, ModelFiles, ModelSource};
use trainyard_gpu_runtime::load::{load, locate};
use trainyard_gpu_runtime::{CpuEngine, Dtype, EngineOptions};
use trainyard_protocol::{Engine, MemoryPlan};

use crate::config::{ComputeType, Config};
use crate::machine;

/// The engine's share of the machine's memory, unless it is configured: the rest is for requests, the store and the
/// system.
const MACHINE_SHARE: (u64, u64) = (4, 5);

/// A loaded engine and what clients may read of its models.
pub struct Loaded {
    /// Ready to work.
    pub engine: Box<dyn Engine>,
    /// Tokenizer and configuration files by model name.
    pub files: BTreeMap<String, ModelFiles>,
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
}

/// Loads the configured models. Takes as long as reading and packing their weights takes.
pub fn build_engine(config: &Config) -> Result<Loaded, EngineError> {
    let mut models = Vec::with_capacity(config.models.len());
    let mut files = BTreeMap::new();
    for model in &config.models {
        let source = open(&model.path).map_err(|source| EngineError::Model { name: model.name.clone(), source })?;
        files.insert(model.name.clone(), source.files.clone());
        models.push((model.name.clone(), source));
    }
    Ok(Loaded { engine: link(models, config)?, files })
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

fn link(models: Vec<(String, ModelSource)>, config: &Config) -> Result<Box<dyn Engine>, EngineError> {
    let engine = CpuEngine::new(models, engine_options(config))?;
    let device = engine.backend().device();
    tracing::info!(
        dtype = config.dtype.name(),
        threads = device.threads,
        kernels = device.kernels,
        "models are packed"
    );
    Ok(Box::new(engine))
}

/// How the engine is to compute.
pub(crate) fn engine_options(config: &Config) -> EngineOptions {
    let dtype = match config.dtype {
        ComputeType::Bf16 => Dtype::Bf16,
        ComputeType::F32 => Dtype::F32,
    };
    EngineOptions { dtype, threads: config.threads, ..memory_options(config) }
}

/// The memory budget and its parts: as configured, else a share of what the machine has.
fn memory_options(config: &Config) -> EngineOptions {
    let defaults = EngineOptions::default();
    let configured = |mib: Option<usize>| mib.map(|mib| mib.saturating_mul(1 << 20));
    let memory_bytes = configured(config.memory_mib).or_else(|| {
        let (share, of) = MACHINE_SHARE;
        machine::memory_bytes().and_then(|bytes| usize::try_from(bytes / of * share).ok())
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
