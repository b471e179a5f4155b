//! The engine: runs, training microbatches and continuous batching over one processor.

mod base;
mod control;
mod fair;
mod fault;
mod queues;
mod run;
mod sampler;
mod saves;
mod train;

use std::collections::BTreeMap;
use std::sync::Arc;

use trainyard_protocol::{
    BaseModel, Completion, Engine, Flow, LoadState, OpError, OpResult, Operation, RequestId, RunId, RunSpec,
    SamplerSource,
};

use crate::config::{LoadError, ModelSource};
use crate::kernels::packed::Dtype;
use crate::kernels::{Cpu, Isa};
use base::Base;
use control::Control;
use fault::guarded;
use run::Run;
use sampler::{Sampler, SamplerWeights};
use train::Trainer;

/// Decoding steps between two training microbatches when both are waiting.
const DECODES_PER_MICROBATCH: usize = 16;
/// Sampler checkpoints kept in memory.
const CACHED_CHECKPOINTS: usize = 64;

/// How an engine computes.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Type of base weights and of the inputs of their products.
    pub dtype: Dtype,
    /// Threads; 0 is one per core.
    pub threads: usize,
    /// Bytes of keys and values that samples and the prefix cache may hold together.
    pub kv_bytes: usize,
    /// Rows of a training microbatch; a longer example is a microbatch of its own.
    pub microbatch_tokens: usize,
    /// Bytes that a training pass may hold. Microbatches shrink to fit; an example that alone is too long keeps fewer
    /// activations and computes the rest again, which changes no bit. One that does not fit even so runs all the same.
    pub activation_bytes: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { dtype: Dtype::Bf16, threads: 0, kv_bytes: 2 << 30, microbatch_tokens: 256, activation_bytes: 1 << 30 }
    }
}

/// An engine on the processor's cores.
pub struct CpuEngine {
    cpu: Cpu,
    bases: Vec<Arc<Base>>,
    runs: BTreeMap<RunId, Run>,
    trainer: Trainer,
    sampler: Sampler,
    /// In-memory sampler snapshots by key.
    snapshots: BTreeMap<String, SamplerWeights>,
    /// Sampler checkpoints by folder, most recently used last.
    checkpoints: Vec<(std::path::PathBuf, SamplerWeights)>,
    control: Control,
    /// Whether the last step was for a control operation: batches wait for one at most.
    controlled: bool,
    done: Vec<Completion>,
    decodes: usize,
}

impl CpuEngine {
    /// Packs the models' weights. Names are those that clients use.
    pub fn new(models: Vec<(String, ModelSource)>, options: EngineOptions) -> Result<Self, LoadError> {
        Self::on(Cpu::new(options.threads), models, options)
    }

    /// As [`CpuEngine::new`] with a given processor view: tests choose the instruction set.
    pub fn on(cpu: Cpu, models: Vec<(String, ModelSource)>, options: EngineOptions) -> Result<Self, LoadError> {
        let bases = models
            .into_iter()
            .map(|(name, source)| Base::new(&cpu, name, source, options.dtype).map(Arc::new))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            trainer: Trainer::new(options.microbatch_tokens, options.activation_bytes),
            sampler: Sampler::new(options.kv_bytes),
            cpu,
            bases,
            runs: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            checkpoints: Vec::new(),
            control: Control::new(),
            controlled: false,
            done: Vec::new(),
            decodes: 0,
        })
    }

    /// The instruction set in use.
    pub fn isa(&self) -> Isa {
        self.cpu.isa()
    }

    /// Threads in use.
    pub fn threads(&self) -> usize {
        self.cpu.pool.threads()
    }

    fn base(&self, name: &str) -> Result<Arc<Base>, OpError> {
        self.bases.iter().find(|base| base.name == name).cloned().ok_or_else(|| {
            let served: Vec<_> = self.bases.iter().map(|base| base.name.as_str()).collect();
            OpError::user(format!("base_model {name:?} is not served; served models: {}", served.join(", ")))
        })
    }

    fn finish(&mut self, id: RequestId, result: Result<OpResult, OpError>) {
        self.done.push(Completion::new(id, result));
    }

    fn run_mut(&mut self, id: &RunId) -> Result<&mut Run, OpError> {
        self.runs.get_mut(id).ok_or_else(|| unknown_run(id))
    }

    fn create_run(&mut self, id: RunId, spec: RunSpec) -> Result<OpResult, OpError> {
        let base = self.base(&spec.base_model)?;
        let run = Run::new(&self.cpu, base, spec)?;
        self.runs.insert(id, run);
        Ok(OpResult::RunReady)
    }

    fn load_state(&mut self, load: LoadState) -> Result<OpResult, OpError> {
        match load.create {
            Some(spec) => {
                let base = self.base(&spec.base_model)?;
                let run = Run::load(&self.cpu, base, &spec, &load.dir, load.with_optimizer)?;
                self.runs.insert(load.run, run);
            }
            None => {
                let (base, spec) = {
                    let run = self.run_mut(&load.run)?;
                    (Arc::clone(&run.base), run.spec.clone())
                };
                let loaded = Run::load(&self.cpu, base, &spec, &load.dir, load.with_optimizer)?;
                self.runs.insert(load.run, loaded);
            }
        }
        Ok(OpResult::RunReady)
    }

    fn control(&mut self, operation: Operation) -> Result<OpResult, OpError> {
        match operation {
            Operation::CreateRun { run, spec } => self.create_run(run, spec),
            Operation::LoadState(load) => self.load_state(load),
            Operation::OptimStep { run, params } => {
                let run = self.runs.get_mut(&run).ok_or_else(|| unknown_run(&run))?;
                run.optim_step(&self.cpu, &params)
            }
            Operation::SaveState(save) => self.run_mut(&save.run)?.save_state(&save.target),
            Operation::SaveExternal(save) => self.run_mut(&save.run)?.save_weights(&save.target),
            Operation::SaveSampler(save) => {
                let run = self.run_mut(&save.run)?;
                let files = save.target.as_ref().map(|target| run.save_weights(target)).transpose()?;
                if let Some(key) = save.snapshot {
                    let weights = run.sampler_weights();
                    self.snapshots.insert(key, weights);
                }
                match files {
                    Some(saved) => Ok(saved),
                    None => Ok(OpResult::Saved(None)),
                }
            }
            Operation::ForwardBackward(_) | Operation::Sample(_) => {
                Err(OpError::server("a batched operation reached the control queue"))
            }
        }
    }

    fn resolve(&mut self, source: &SamplerSource) -> Result<SamplerWeights, OpError> {
        match source {
            SamplerSource::Base { model } => Ok(SamplerWeights::of_base(self.base(model)?)),
            SamplerSource::Snapshot { key } => {
                self.snapshots.get(key).cloned().ok_or_else(|| {
                    OpError::user("the sampling session's weights are gone; save them for sampling again")
                })
            }
            SamplerSource::Checkpoint { base_model, dir } => {
                let at = self.checkpoints.iter().position(|(cached, _)| cached == dir);
                let weights = match at {
                    Some(at) => self.checkpoints.remove(at).1,
                    None => saves::load_sampler(&self.cpu, self.base(base_model)?, dir)?,
                };
                if self.checkpoints.len() >= CACHED_CHECKPOINTS {
                    self.checkpoints.remove(0);
                }
                self.checkpoints.push((dir.clone(), weights.clone()));
                Ok(weights)
            }
        }
    }

    /// Executes the next control operation.
    fn control_step(&mut self) {
        for (id, operation) in self.control.next(|_| true) {
            let run = operation.run().cloned();
            let completion = match guarded("control operation", || self.control(operation)) {
                Ok(result) => Completion::new(id, result),
                Err(fault) => {
                    run.iter().for_each(|run| self.drop_run(run));
                    Completion { lost_run: run, ..Completion::new(id, Err(fault.error())) }
                }
            };
            self.done.push(completion);
        }
        // The operation may have replaced the last weights of which something is cached.
        self.sampler.settle();
    }

    fn drop_run(&mut self, run: &RunId) {
        self.runs.remove(run);
        self.sampler.settle();
        if self.runs.is_empty() {
            self.cpu.trim();
        }
    }

    /// A decoding step or a microbatch.
    fn batch_step(&mut self) {
        let (train, sample) = (!self.trainer.is_idle(), !self.sampler.is_idle());
        if sample && (!train || self.decodes < DECODES_PER_MICROBATCH) {
            self.decodes += 1;
            self.sample_step();
        } else if train {
            self.decodes = 0;
            self.train_step();
        }
    }

    fn train_step(&mut self) {
        let finished = self.trainer.step(&self.cpu, &mut self.runs);
        self.done.extend(finished);
    }

    fn sample_step(&mut self) {
        let finished = self.sampler.step(&self.cpu);
        self.done.extend(finished);
    }
}

fn unknown_run(id: &RunId) -> OpError {
    OpError::server(format!("model {id} is not loaded"))
}

impl Engine for CpuEngine {
    fn models(&self) -> Vec<BaseModel> {
        self.bases.iter().map(|base| base.describe()).collect()
    }

    fn start(&mut self, id: RequestId, flow: Flow, operation: Operation) {
        let started = match operation {
            Operation::ForwardBackward(request) => match self.runs.get(&request.run) {
                Some(run) => self.trainer.start(id.clone(), flow, run, request),
                None => Err(unknown_run(&request.run)),
            },
            Operation::Sample(request) => self
                .resolve(&request.source)
                .and_then(|weights| self.sampler.start(id.clone(), flow, weights, *request)),
            other => {
                self.control.push(&flow, id.clone(), other);
                Ok(())
            }
        };
        if let Err(error) = started {
            self.finish(id, Err(error));
        }
    }

    fn step(&mut self) -> Vec<Completion> {
        if self.done.is_empty() {
            let batched = !self.trainer.is_idle() || !self.sampler.is_idle();
            self.controlled = !self.control.is_empty() && !(self.controlled && batched);
            if self.controlled {
                self.control_step();
            } else {
                self.batch_step();
            }
        }
        std::mem::take(&mut self.done)
    }

    fn is_idle(&self) -> bool {
        self.control.is_empty() && self.done.is_empty() && self.trainer.is_idle() && self.sampler.is_idle()
    }

    fn cancel(&mut self, id: &RequestId) -> bool {
        self.sampler.cancel(id)
    }

    fn unload_run(&mut self, run: &RunId) {
        self.trainer.forget(run);
        self.drop_run(run);
    }

    fn drop_snapshot(&mut self, key: &str) {
        self.snapshots.remove(key);
        self.sampler.settle();
    }
}
