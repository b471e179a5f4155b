//! The engine that is measured.

use std::error::Error;
use std::path::Path;

use trainyard_gpu_runtime::backend::HostKernels;
use trainyard_gpu_runtime::config::{LoadError, ModelSource};
use trainyard_gpu_runtime::{CpuEngine, EngineOptions};
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

/// An engine that serves one model.
pub(crate) fn load_engine(
    flags: &BenchFlags,
    model: &NamedModel,
    open: OpenModel,
) -> Result<(CpuEngine, BaseModel), Box<dyn Error>> {
    let name = &model.name;
    let source = open(&model.path).map_err(|error| format!("--model {name}: {error}"))?;
    let kernels = Some(kernels(flags)?);
    let microbatch_tokens = flags.microbatch.map(|rows| rows as usize);
    let options = EngineOptions {
        dtype: flags.dtype,
        threads: flags.threads,
        kernels,
        microbatch_tokens,
        ..EngineOptions::default()
    };
    let engine = CpuEngine::new(vec![(name.clone(), source)], options)?;
    let model = engine.models().into_iter().next().ok_or("the engine serves no model")?;
    Ok((engine, model))
}
