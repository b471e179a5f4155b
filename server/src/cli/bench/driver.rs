//! Operations one after another, or several at once, on an engine that nobody else uses.

use std::collections::BTreeMap;
use std::error::Error;

use trainyard_gpu_runtime::CpuEngine;
use trainyard_gpu_runtime::rng::uniform;
use trainyard_protocol::{
    AdamParams, BaseModel, Completion, Datum, Engine, Flow, ForwardBackward, LoraSpec, OpResult, Operation, Optimizer,
    RequestId, RunId, RunSpec, Sample, SampleResult, SamplerSource, SamplingParams, SamplingSessionId, SaveSampler,
    Stop, Tensor,
};

/// Seed of the token ids.
const TOKENS: u64 = 20_260_101;

/// An engine with one model.
pub(super) struct Driver {
    engine: CpuEngine,
    flow: Flow,
    model: BaseModel,
    requests: u64,
    sequences: u64,
}

impl Driver {
    pub(super) fn new(engine: CpuEngine, model: BaseModel) -> Self {
        Self { engine, flow: Flow::new("bench"), model, requests: 0, sequences: 0 }
    }

    /// Token ids that no other call returns.
    pub(super) fn tokens(&mut self, length: usize) -> Vec<i64> {
        self.sequences += 1;
        let vocab = self.model.vocab_size as f64;
        (0..length as u64).map(|i| (uniform(TOKENS, self.sequences, i) * vocab) as i64).collect()
    }

    /// A next-token example of `length` random input tokens.
    pub(super) fn datum(&mut self, length: usize) -> Datum {
        let mut tokens = self.tokens(length + 1);
        let targets = tokens.split_off(1);
        tokens.extend_from_slice(&targets[..length - 1]);
        let inputs = [
            ("target_tokens".to_owned(), Tensor::i64(targets)),
            ("weights".to_owned(), Tensor::f32(vec![1.0; length])),
        ];
        Datum { tokens, loss_fn_inputs: BTreeMap::from(inputs) }
    }

    /// Creates a run whose adapter, if it has one, is no longer at its start.
    pub(super) fn create_trained(&mut self, run: &str, lora: Option<LoraSpec>) -> Result<(), Box<dyn Error>> {
        let spec = RunSpec { base_model: self.model.name.clone(), lora, optimizer: Optimizer::AdamW };
        let adapted = spec.lora.is_some();
        self.run_all([Operation::CreateRun { run: RunId::new(run), spec }])?;
        if adapted {
            let datum = self.datum(16);
            self.run_all([forward_backward(run, vec![datum])])?;
            self.run_all([optim_step(run, 0.01)])?;
        }
        Ok(())
    }

    /// Freezes a run's weights and returns where to sample from.
    pub(super) fn snapshot(&mut self, run: &str) -> Result<SamplerSource, Box<dyn Error>> {
        let save = SaveSampler { run: RunId::new(run), snapshot: Some(run.to_owned()), target: None };
        self.run_all([Operation::SaveSampler(save)])?;
        Ok(SamplerSource::Snapshot { key: run.to_owned() })
    }

    /// The model without an adapter.
    pub(super) fn base(&self) -> SamplerSource {
        SamplerSource::Base { model: self.model.name.clone() }
    }

    /// Frees a run and its snapshot.
    pub(super) fn forget(&mut self, run: &str) {
        self.engine.unload_run(&RunId::new(run));
        self.engine.drop_snapshot(run);
    }

    /// Starts all operations and works until all are done; their results in order.
    pub(super) fn run_all(
        &mut self,
        operations: impl IntoIterator<Item = Operation>,
    ) -> Result<Vec<OpResult>, Box<dyn Error>> {
        let mut ids = Vec::new();
        for operation in operations {
            self.requests += 1;
            let id = RequestId::new(format!("bench-{}", self.requests));
            self.engine.start(id.clone(), self.flow.clone(), operation);
            ids.push(id);
        }
        let mut done = BTreeMap::new();
        while !self.engine.is_idle() {
            for Completion { id, result, .. } in self.engine.step() {
                done.insert(id, result.map_err(|error| format!("the engine refused the workload: {error:?}"))?);
            }
        }
        ids.iter().map(|id| done.remove(id).ok_or_else(|| format!("{id} was not completed").into())).collect()
    }
}

/// Cross-entropy on `data`.
pub(super) fn forward_backward(run: &str, data: Vec<Datum>) -> Operation {
    Operation::ForwardBackward(ForwardBackward {
        run: RunId::new(run),
        data,
        loss_fn: "cross_entropy".to_owned(),
        loss_fn_config: BTreeMap::new(),
        forward_only: false,
    })
}

/// One AdamW step.
pub(super) fn optim_step(run: &str, learning_rate: f64) -> Operation {
    let params =
        AdamParams { learning_rate, beta1: 0.9, beta2: 0.95, eps: 1e-12, weight_decay: 0.01, grad_clip_norm: 1.0 };
    Operation::OptimStep { run: RunId::new(run), params }
}

/// A sample at temperature 1 of exactly `new` tokens.
pub(super) fn sample(source: SamplerSource, prompt: Vec<i64>, new: u32, prompt_logprobs: bool) -> Operation {
    let params = SamplingParams {
        max_tokens: Some(new),
        seed: 1,
        stop: Stop::Nothing,
        temperature: 1.0,
        top_k: None,
        top_p: 1.0,
    };
    Operation::Sample(Box::new(Sample {
        sampling_session: SamplingSessionId::new("bench"),
        source,
        prompt,
        num_samples: 1,
        params,
        prompt_logprobs,
        prompt_logprobs_last_n: None,
        topk_prompt_logprobs: 0,
        topk_sample_logprobs: 0,
        target_prompt_logprobs: None,
        prompt_alt_tokens_k: 0,
    }))
}

/// The sample that an operation returned.
pub(super) fn sampled(result: OpResult) -> Result<SampleResult, Box<dyn Error>> {
    match result {
        OpResult::Sample(result) => Ok(result),
        other => Err(format!("a sample returned {other:?}").into()),
    }
}
