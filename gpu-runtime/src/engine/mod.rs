//! The engine: runs, training microbatches and continuous batching over one processor.

mod base;
mod control;
mod execute;
mod fair;
mod fault;
mod loads;
mod queues;
mod run;
mod sampler;
mod saver;
mod saves;
mod step;
mod train;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use trainyard_protocol::{
    BaseModel, Completion, Engine, EngineStats, Flow, OpError, OpResult, Operation, RequestId, RunId, SamplerSource,
};

use crate::config::{LoadError, ModelSource};
use crate::kernels::meter::Products;
use crate::kernels::packed::Dtype;
use crate::kernels::{Cpu, Isa};
use base::Base;
use control::Control;
use run::Run;
use sampler::{Recent, Sampler, SamplerWeights};
use saver::Saver;
use train::Trainer;

/// Decoding steps between two training microbatches when both are waiting.
const DECODES_PER_MICROBATCH: usize = 16;
/// How long a step waits for a save when there is nothing else to do.
const SAVE_WAIT: Duration = Duration::from_millis(2);

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
    /// Bytes of sampler checkpoints that stay in memory for the next sample from them; the one used last always does.
    pub checkpoint_bytes: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            dtype: Dtype::Bf16,
            threads: 0,
            kv_bytes: 2 << 30,
            microbatch_tokens: 256,
            activation_bytes: 1 << 30,
            checkpoint_bytes: 1 << 30,
        }
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
    /// Sampler checkpoints that were used last.
    checkpoints: Recent,
    control: Control,
    /// Whether the last step was for a control operation: batches wait for one at most.
    controlled: bool,
    saver: Saver,
    /// The snapshot that exists once the save that is being written is.
    after_save: Option<(String, SamplerWeights)>,
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
        cpu.limit_unused(options.activation_bytes);
        Ok(Self {
            trainer: Trainer::new(options.microbatch_tokens, options.activation_bytes),
            sampler: Sampler::new(options.kv_bytes),
            cpu,
            bases,
            runs: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            checkpoints: Recent::new(options.checkpoint_bytes),
            control: Control::new(),
            controlled: false,
            saver: Saver::default(),
            after_save: None,
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

    /// What products took since the start, on all threads.
    pub fn products(&self) -> Products {
        self.cpu.meter.read()
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

    fn run(&self, id: &RunId) -> Result<&Run, OpError> {
        self.runs.get(id).ok_or_else(|| unknown_run(id))
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
                if let Some(weights) = self.checkpoints.get(dir) {
                    return Ok(weights);
                }
                let weights = loads::load_sampler(&self.cpu, self.base(base_model)?, dir)?;
                self.checkpoints.put(dir.clone(), weights.clone());
                Ok(weights)
            }
        }
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
            // As often as between two microbatches: decoding shall not drive their buffers away.
            if self.decodes.is_multiple_of(DECODES_PER_MICROBATCH) {
                self.cpu.next_pass();
            }
        } else if train {
            self.decodes = 0;
            self.train_step();
            self.cpu.next_pass();
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
        self.collect_save(Duration::ZERO);
        if self.done.is_empty() {
            let batched = !self.trainer.is_idle() || !self.sampler.is_idle();
            let ready = self.control.has(|operation| self.is_ready(operation));
            self.controlled = ready && !(self.controlled && batched);
            if self.controlled {
                self.control_step();
            } else if batched {
                self.batch_step();
            } else {
                self.collect_save(SAVE_WAIT);
            }
        }
        std::mem::take(&mut self.done)
    }

    fn is_idle(&self) -> bool {
        let saved = self.control.is_empty() && self.saver.is_idle();
        saved && self.done.is_empty() && self.trainer.is_idle() && self.sampler.is_idle()
    }

    fn cancel(&mut self, id: &RequestId) -> bool {
        self.sampler.cancel(id)
    }

    fn unload_run(&mut self, run: &RunId) {
        self.control.forget(run);
        self.trainer.forget(run);
        self.drop_run(run);
    }

    fn drop_snapshot(&mut self, key: &str) {
        self.snapshots.remove(key);
        self.sampler.settle();
    }

    fn stats(&self) -> EngineStats {
        let trained = self.trainer.stats();
        EngineStats {
            microbatches: trained.passes,
            microbatch_tokens: trained.tokens,
            microbatch_capacity: trained.capacity,
            loaded_runs: self.runs.len() as u64,
            ..self.sampler.stats()
        }
    }
}

#[cfg(test)]
#[path = "fault_tests.rs"]
pub(in crate::engine) mod fault_tests;

#[cfg(test)]
#[path = "finite_tests.rs"]
mod finite_tests;
