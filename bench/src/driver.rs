//! Runs operations one after another, or several at once, on an engine without other users.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use trainyard_gpu_runtime::Parallel;
use trainyard_gpu_runtime::backend::cpu::GemmStats;
use trainyard_gpu_runtime::rng::uniform;
use trainyard_protocol::{
    AdamParams, BaseModel, Completion, Datum, ForwardBackward, LoraSpec, ModelHead, OpError, OpResult, Operation,
    Optimizer, Prepare, RawBatch, RequestId, RunId, RunSpec, Sample, SampleOperation, SampleResult, SamplerSource,
    SamplingParams, SaveSampler, SessionId, Stop, TenantShare, Tensor,
};

use super::engine::BenchEngine;

/// Seed of the token ids.
const TOKENS: u64 = 20_260_101;

/// An engine with one model.
pub(super) struct Driver {
    engine: BenchEngine,
    layout: Parallel,
    preparer: Arc<dyn Prepare>,
    share: TenantShare,
    model: BaseModel,
    requests: u64,
    sequences: u64,
}

impl Driver {
    pub(super) fn new(engine: BenchEngine, model: BaseModel, layout: Parallel) -> Self {
        let preparer = engine.engine().preparer();
        Self { engine, layout, preparer, share: TenantShare::new("bench"), model, requests: 0, sequences: 0 }
    }

    /// Returns the seconds that rank 0 has spent in collectives, and the bytes that it sent in them.
    pub(super) fn collectives(&self) -> (f64, u64) {
        let stats = self.engine.engine().stats();
        (stats.collective_nanoseconds as f64 / 1e9, stats.collective_bytes)
    }

    /// Returns the engine that is driven.
    pub(super) fn bench_engine(&self) -> &BenchEngine {
        &self.engine
    }

    /// Returns the time that matrix multiplications have taken on rank 0; those of a GPU are not measured.
    pub(super) fn gemm(&self) -> Option<GemmStats> {
        self.engine.gemm_stats()
    }

    pub(super) fn layout(&self) -> Parallel {
        self.layout
    }

    /// Returns the number of threads of rank 0.
    pub(super) fn threads(&self) -> usize {
        self.engine.device().threads
    }

    /// Returns token ids that differ from those of all other calls.
    pub(super) fn tokens(&mut self, length: usize) -> Vec<i64> {
        self.sequences += 1;
        let vocab = self.model.vocab_size as f64;
        (0..length as u64).map(|i| (uniform(TOKENS, self.sequences, i) * vocab) as i64).collect()
    }

    /// Returns a next-token example of `length` random input tokens.
    pub(super) fn datum(&mut self, length: usize) -> Datum {
        let mut tokens = self.tokens(length + 1);
        let targets = tokens.split_off(1);
        tokens.extend_from_slice(&targets[..length - 1]);
        let inputs = [
            ("target_tokens".to_owned(), Tensor::i64(targets)),
            ("weights".to_owned(), Tensor::f32(vec![1.0; length])),
        ];
        Datum { tokens, loss_fn_inputs: BTreeMap::from(inputs), images: Vec::new() }
    }

    /// Creates a run. If the run has an adapter, one step moves it away from its initial zeros.
    pub(super) fn create_trained(&mut self, run: &str, lora: Option<LoraSpec>) -> Result<(), Box<dyn Error>> {
        let spec = RunSpec {
            base_model: self.model.name.clone(),
            lora,
            optimizer: Optimizer::AdamW,
            head: ModelHead::Unembedding,
        };
        let adapted = spec.lora.is_some();
        self.run_all([Operation::CreateRun { run: RunId::new(run), spec }])?;
        if adapted {
            let datum = self.datum(16);
            let pass = self.forward_backward(run, vec![datum])?;
            self.run_all([pass])?;
            self.run_all([optim_step(run, 0.01)])?;
        }
        Ok(())
    }

    /// Returns a pass of cross-entropy over `data`, checked as at its submission.
    pub(super) fn forward_backward(&self, run: &str, data: Vec<Datum>) -> Result<Operation, OpError> {
        let batch = RawBatch {
            data,
            loss_fn: "cross_entropy".to_owned(),
            loss_fn_config: BTreeMap::new(),
            custom_loss: None,
            decoded: Default::default(),
        };
        let batch = self.preparer.prepare(&self.model.name, batch)?;
        Ok(Operation::ForwardBackward(ForwardBackward { run: RunId::new(run), batch, forward_only: false }))
    }

    /// A training pass over `data` and an optimizer step.
    pub(super) fn training_step(
        &self,
        run: &str,
        data: Vec<Datum>,
        learning_rate: f64,
    ) -> Result<Vec<Operation>, OpError> {
        Ok(vec![self.forward_backward(run, data)?, optim_step(run, learning_rate)])
    }

    /// Freezes a run's weights and returns them as a source to sample from.
    pub(super) fn snapshot(&mut self, run: &str) -> Result<SamplerSource, Box<dyn Error>> {
        let save = SaveSampler { run: RunId::new(run), snapshot: Some(run.to_owned()), target: None };
        self.run_all([Operation::SaveSampler(save)])?;
        Ok(SamplerSource::Snapshot { key: run.to_owned() })
    }

    /// Returns the model without an adapter as a source to sample from.
    pub(super) fn base(&self) -> SamplerSource {
        SamplerSource::Base { model: self.model.name.clone() }
    }

    /// Frees a run and its snapshot.
    pub(super) fn forget(&mut self, run: &str) {
        self.engine.engine_mut().unload_run(&RunId::new(run));
        self.engine.engine_mut().drop_snapshot(run);
    }

    /// Starts all operations and works until all are done. Returns their results in order.
    pub(super) fn run_all(
        &mut self,
        operations: impl IntoIterator<Item = Operation>,
    ) -> Result<Vec<OpResult>, Box<dyn Error>> {
        let results = self.run_chains(operations.into_iter().map(|operation| vec![operation]))?;
        Ok(results.into_iter().flatten().collect())
    }

    /// Starts the first operation of every chain, and each further one when the one before it is done, as a server does
    /// with the requests of a run. Works until all are done and returns the results in order.
    pub(super) fn run_chains(
        &mut self,
        chains: impl IntoIterator<Item = Vec<Operation>>,
    ) -> Result<Vec<Vec<OpResult>>, Box<dyn Error>> {
        let mut chains: Vec<_> = chains.into_iter().map(Vec::into_iter).collect();
        let mut results: Vec<Vec<OpResult>> = chains.iter().map(|_| Vec::new()).collect();
        let mut running = BTreeMap::new();
        for (i, chain) in chains.iter_mut().enumerate() {
            running.extend(chain.next().map(|operation| (self.start(operation), i)));
        }
        while !self.engine.engine().is_idle() {
            let done = self.engine.engine_mut().step();
            if let Some(error) = self.engine.engine().failure() {
                return Err(format!("the engine cannot go on: {error}").into());
            }
            for Completion { id, result, .. } in done {
                let i = running.remove(&id).ok_or_else(|| format!("{id} was not started"))?;
                results[i].push(result.map_err(|error| format!("the engine refused the workload: {error:?}"))?);
                running.extend(chains[i].next().map(|operation| (self.start(operation), i)));
            }
        }
        match running.into_keys().next() {
            Some(id) => Err(format!("{id} was not completed").into()),
            None => Ok(results),
        }
    }

    fn start(&mut self, operation: Operation) -> RequestId {
        self.requests += 1;
        let id = RequestId::new(format!("bench-{}", self.requests));
        self.engine.engine_mut().start(id.clone(), self.share.clone(), operation);
        id
    }
}

/// Returns a step of AdamW.
pub(super) fn optim_step(run: &str, learning_rate: f64) -> Operation {
    let params =
        AdamParams { learning_rate, beta1: 0.9, beta2: 0.95, eps: 1e-12, weight_decay: 0.01, grad_clip_norm: 1.0 };
    Operation::OptimStep { run: RunId::new(run), params }
}

/// Returns a sample at temperature 1 of exactly `new` tokens.
pub(super) fn sample(source: SamplerSource, prompt: Vec<i64>, new: u32, prompt_logprobs: bool) -> Operation {
    let params = SamplingParams {
        max_tokens: Some(new),
        seed: 1,
        stop: Stop::Nothing,
        temperature: 1.0,
        top_k: None,
        top_p: 1.0,
        controls: Default::default(),
    };
    let sample = Sample {
        prompt,
        num_samples: 1,
        params,
        prompt_logprobs,
        prompt_logprobs_last_n: None,
        topk_prompt_logprobs: 0,
        topk_sample_logprobs: 0,
        target_prompt_logprobs: None,
        prompt_alt_tokens_k: 0,
        images: Vec::new(),
    };
    Operation::Sample(Box::new(SampleOperation {
        session: SessionId::new("bench"),
        source,
        sample,
        images: Default::default(),
    }))
}

/// Returns the sample of an operation's result.
pub(super) fn sampled(result: OpResult) -> Result<SampleResult, Box<dyn Error>> {
    match result {
        OpResult::Sample(result) => Ok(result),
        other => Err(format!("a sample returned {other:?}").into()),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::path::Path;

    use trainyard_gpu_runtime::load::load;
    use trainyard_gpu_runtime::{CpuEngine, EngineOptions};
    use trainyard_protocol::Engine;

    use super::*;

    #[test]
    fn a_run_steps_when_its_pass_is_done() -> Result<(), Box<dyn Error>> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/llama");
        // Each run needs a microbatch of its own.
        let options = EngineOptions { threads: 1, microbatch_tokens: Some(8), ..EngineOptions::default() };
        let engine = CpuEngine::new(vec![("m".to_owned(), load(&path)?)], options)?;
        let model = engine.models().into_iter().next().ok_or("no model")?;
        let mut driver = Driver::new(BenchEngine::One(Box::new(engine)), model, Parallel::default());
        let lora = LoraSpec { train_unembed: false, ..LoraSpec::on_all(2, 1) };
        let runs = ["a", "b", "c"];
        for run in runs {
            driver.create_trained(run, Some(lora.clone()))?;
        }
        let data: Vec<_> = runs.iter().map(|_| driver.datum(8)).collect();
        let chain = |(run, datum): (&&str, &Datum)| driver.training_step(run, vec![datum.clone()], 0.1);
        let chains = runs.iter().zip(&data).map(chain).collect::<Result<Vec<_>, _>>()?;
        let results = driver.run_chains(chains)?;
        for results in results {
            assert!(matches!(&results[..], [OpResult::ForwardBackward(_), OpResult::OptimStep { .. }]));
        }
        Ok(())
    }
}
