//! Building the engine from the configured models.

use std::collections::BTreeMap;

use trainyard_gpu_runtime::config::{LoadError, ModelFiles, ModelSource};
use trainyard_gpu_runtime::load::load;
use trainyard_gpu_runtime::{CpuEngine, Dtype, EngineOptions};
use trainyard_protocol::Engine;

use crate::config::{ComputeType, Config};

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
        let source = load(&model.path).map_err(|source| EngineError::Model { name: model.name.clone(), source })?;
        files.insert(model.name.clone(), source.files.clone());
        models.push((model.name.clone(), source));
    }
    Ok(Loaded { engine: link(models, config)?, files })
}

fn link(models: Vec<(String, ModelSource)>, config: &Config) -> Result<Box<dyn Engine>, EngineError> {
    let dtype = match config.dtype {
        ComputeType::Bf16 => Dtype::Bf16,
        ComputeType::F32 => Dtype::F32,
    };
    let options = EngineOptions { dtype, threads: config.threads, ..EngineOptions::default() };
    let engine = CpuEngine::new(models, options)?;
    tracing::info!(
        dtype = config.dtype.name(),
        threads = engine.threads(),
        isa = engine.isa().name(),
        "models are packed"
    );
    Ok(Box::new(engine))
}
