//! Loads and inspects the engine that is measured.

use std::error::Error;

use trainyard_gpu_runtime::backend::cpu::{Blocking, GemmStats, Peaks};
use trainyard_gpu_runtime::backend::cuda::{Cuda, CudaDevice, measure_rates};
use trainyard_gpu_runtime::backend::{Backend, DeviceInfo, HostBackend, HostKernels};
use trainyard_gpu_runtime::load::open;
use trainyard_gpu_runtime::{ConfiguredParts, CpuEngine, CudaEngine, EngineOptions, Parallel, ParallelEngine};
use trainyard_protocol::{BaseModel, Engine};

use crate::choices::{BenchDevice, NamedModel};
use crate::flags::BenchFlags;
use crate::system;

/// Returns the kernels that are measured.
///
/// # Errors
/// The processor does not support them.
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
    Gpu(Box<CudaEngine>),
}

impl BenchEngine {
    pub(crate) fn engine(&self) -> &dyn Engine {
        match self {
            Self::One(engine) => &**engine,
            Self::Ranks(engine) => &**engine,
            Self::Gpu(engine) => &**engine,
        }
    }

    pub(crate) fn engine_mut(&mut self) -> &mut dyn Engine {
        match self {
            Self::One(engine) => &mut **engine,
            Self::Ranks(engine) => &mut **engine,
            Self::Gpu(engine) => &mut **engine,
        }
    }

    fn gpu(&self) -> Option<&CudaDevice> {
        match self {
            Self::Gpu(engine) => Some(engine.backend().gpu()),
            _ => None,
        }
    }

    /// Returns the device of rank 0.
    pub(crate) fn device(&self) -> DeviceInfo {
        match self {
            Self::One(engine) => engine.backend().device(),
            Self::Ranks(engine) => engine.backend().device(),
            Self::Gpu(engine) => engine.backend().device(),
        }
    }

    /// Returns the time that matrix multiplications have taken on rank 0; those of a GPU are not measured.
    pub(crate) fn gemm_stats(&self) -> Option<GemmStats> {
        match self {
            Self::One(engine) => Some(engine.backend().gemm_stats()),
            Self::Ranks(engine) => Some(engine.backend().gemm_stats()),
            Self::Gpu(_) => None,
        }
    }

    /// Describes how GEMMs are cut for the processor's caches, or the GPU by its name.
    ///
    /// # Errors
    /// The GPU is lost.
    pub(crate) fn describe(&self, flags: &BenchFlags) -> Result<String, Box<dyn Error>> {
        Ok(match self {
            Self::One(engine) => Blocking::detect(engine.backend().isa()).describe(flags.dtype),
            Self::Ranks(engine) => Blocking::detect(engine.backend().isa()).describe(flags.dtype),
            Self::Gpu(engine) => {
                let gpu = engine.backend().gpu();
                format!("{}, {} MiB", gpu.name()?, gpu.memory()?.total >> 20)
            }
        })
    }

    /// Returns the best rates of the machine. Those of the processor were measured before the engine was loaded; those
    /// of a GPU are measured with it.
    ///
    /// # Errors
    /// The GPU is lost.
    pub(crate) fn peaks(&self, cpu: Option<Peaks>) -> Result<Peaks, Box<dyn Error>> {
        match self.gpu() {
            None => cpu.ok_or_else(|| "the processor was not measured".into()),
            Some(gpu) => {
                let rates = measure_rates(gpu)?;
                Ok(Peaks { gemm_gflops: rates.matmul_flops / 1e9, read_gb_per_second: rates.device / 1e9 })
            }
        }
    }

    /// Resets the peak of memory.
    pub(crate) fn reset_peak_memory(&self) {
        match self.gpu() {
            Some(gpu) => gpu.arena().reset_peak(),
            None => system::reset_peak_memory(),
        }
    }

    /// Returns the peak memory in MiB, of the GPU or of the process.
    pub(crate) fn peak_memory(&self) -> Option<f64> {
        match self.gpu() {
            Some(gpu) => Some(gpu.arena().bytes().peak as f64 / f64::from(1 << 20)),
            None => system::peak_memory(),
        }
    }
}

/// Loads an engine that serves one model.
pub(crate) fn load_engine(
    flags: &BenchFlags,
    model: &NamedModel,
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
    let mut options = EngineOptions {
        dtype: flags.dtype,
        weights: flags.weights,
        threads: flags.threads,
        kernels,
        microbatch_tokens,
        parallel,
        ..EngineOptions::default()
    };
    let activation_bytes = flags.activation_memory_mib.map(|mib| (mib as usize) << 20);
    options.activation_bytes = activation_bytes.unwrap_or(options.activation_bytes);
    let engine = match (flags.device, parallel.world()) {
        (BenchDevice::Cuda(number), _) => {
            let gpu = Cuda::open(i32::from(number), flags.dtype)
                .map_err(|error| format!("--device: {}: {error}", flags.device))?;
            options.memory_bytes = usize::try_from(gpu.gpu().memory()?.budget()).ok();
            let models = ranks.pop().unwrap_or_default();
            let configured = ConfiguredParts { activation_bytes, ..ConfiguredParts::default() };
            let options = options.divided_on_gpus(&models, 1, configured);
            BenchEngine::Gpu(Box::new(CudaEngine::on_gpu(gpu, models, options)?))
        }
        (BenchDevice::Cpu, 1) => BenchEngine::One(Box::new(CpuEngine::new(ranks.pop().unwrap_or_default(), options)?)),
        (BenchDevice::Cpu, _) => BenchEngine::Ranks(Box::new(ParallelEngine::new(ranks, options)?)),
    };
    let model = engine.engine().models().into_iter().next().ok_or("the engine serves no model")?;
    Ok((engine, model))
}
