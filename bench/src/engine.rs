//! The engine that is measured.

use std::error::Error;
use std::path::Path;

use trainyard_gpu_runtime::backend::{HostBackend, HostKernels};
use trainyard_gpu_runtime::config::{LoadError, ModelSource};
use trainyard_gpu_runtime::{CpuEngine, EngineOptions, Parallel, ParallelEngine};
use trainyard_protocol::{BaseModel, Engine};

use crate::flags::{BenchFlags, NamedModel};

/// Opens a model by its path or its id in the hub's cache.
pub type OpenModel = fn(&Path) -> Result<ModelSource, LoadError>;

/// The kernels that are measured.
///
/// # Errors
/// When the processor does not have them.
pub(crate) fn kernels(flags: &BenchFlags) -> Result<HostKernels, String> {
    let kernels = flags.kernels.unwrap_or_else(HostKernels::detect);
    match HostKernels::available().contains(&kernels) {
        true => Ok(kernels),
        false => Err(format!("--kernels: {} is not available on this machine", kernels.name())),
    }
}

/// An engine of one rank, or of several that share the threads.
pub(crate) enum BenchEngine {
    One(Box<CpuEngine>),
    Ranks(Box<ParallelEngine<HostBackend>>),
}

impl BenchEngine {
    pub(crate) fn engine(&self) -> &dyn Engine {
        match self {
            Self::One(engine) => &**engine,
            Self::Ranks(engine) => &**engine,
        }
    }

    pub(crate) fn engine_mut(&mut self) -> &mut dyn Engine {
        match self {
            Self::One(engine) => &mut **engine,
            Self::Ranks(engine) => &mut **engine,
        }
    }

    /// That of rank 0.
    pub(crate) fn backend(&self) -> &HostBackend {
        match self {
            Self::One(engine) => engine.backend(),
            Self::Ranks(engine) => engine.backend(),
        }
    }
}

/// An engine that serves one model.
pub(crate) fn load_engine(
    flags: &BenchFlags,
    model: &NamedModel,
    open: OpenModel,
    parallel: Parallel,
) -> Result<(BenchEngine, BaseModel), Box<dyn Error>> {
    let name = &model.name;
    let models = |_| match open(&model.path) {
        Ok(source) => Ok(vec![(name.clone(), source)]),
        Err(error) => Err(format!("--model {name}: {error}")),
    };
    // Each rank reads its own part.
    let mut ranks = (0..parallel.world()).map(models).collect::<Result<Vec<_>, _>>()?;
    let kernels = Some(kernels(flags)?);
    let microbatch_tokens = flags.microbatch.map(|rows| rows as usize);
    let options = EngineOptions {
        dtype: flags.dtype,
        threads: flags.threads,
        kernels,
        microbatch_tokens,
        parallel,
        ..EngineOptions::default()
    };
    let engine = match parallel.world() {
        1 => BenchEngine::One(Box::new(CpuEngine::new(ranks.pop().unwrap_or_default(), options)?)),
        _ => BenchEngine::Ranks(Box::new(ParallelEngine::new(ranks, options)?)),
    };
    let model = engine.engine().models().into_iter().next().ok_or("the engine serves no model")?;
    Ok((engine, model))
}
