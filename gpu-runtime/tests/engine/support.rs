//! A driver for engines under test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use trainyard_gpu_runtime::backend::HostBackend;
use trainyard_gpu_runtime::load::load;
use trainyard_gpu_runtime::loss::prepare_batch;
use trainyard_gpu_runtime::{CpuEngine, Dtype, EngineOptions, ParallelEngine};
use trainyard_protocol::{
    AdamParams, Completion, Datum, Engine, ForwardBackward, ForwardBackwardResult, LoraSpec, ModelExtents, ModelHead,
    OpError, OpResult, Operation, Optimizer, RawBatch, RequestId, RunId, RunSpec, Sample, SampleOperation,
    SampleResult, SamplerSource, SamplingParams, SessionId, Stop, TenantShare, Tensor,
};

pub(crate) fn golden(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(family)
}

pub(crate) struct Driver<E = CpuEngine> {
    pub(crate) engine: E,
    next: usize,
    done: BTreeMap<RequestId, Result<OpResult, OpError>>,
}

impl Driver {
    pub(crate) fn open(path: &Path, dtype: Dtype) -> Self {
        let options = EngineOptions { dtype, threads: 2, ..EngineOptions::default() };
        Self::with_options(path, options)
    }

    pub(crate) fn with_options(path: &Path, options: EngineOptions) -> Self {
        Self::over(CpuEngine::new(vec![("m".into(), load(path).unwrap())], options).unwrap())
    }
}

/// An engine of several ranks.
pub(crate) type RankDriver = Driver<ParallelEngine<HostBackend>>;

/// Options of an engine with a layout, two threads on each rank.
pub(crate) fn layout_options(layout: &str, dtype: Dtype) -> EngineOptions {
    EngineOptions { parallel: layout.parse().unwrap(), dtype, threads: 2, ..EngineOptions::default() }
}

/// A golden model on the ranks of a layout.
pub(crate) fn on_ranks(family: &str, layout: &str, dtype: Dtype) -> RankDriver {
    Driver::on_layout(&golden(family), layout_options(layout, dtype))
}

/// A golden model on one rank.
pub(crate) fn on_one_rank(family: &str, dtype: Dtype) -> Driver {
    Driver::open(&golden(family), dtype)
}

impl RankDriver {
    /// Makes a driver for the ranks of a layout.
    pub(crate) fn on_layout(path: &Path, options: EngineOptions) -> Self {
        let models = (0..options.parallel.world()).map(|_| vec![("m".into(), load(path).unwrap())]).collect();
        Self::over(ParallelEngine::new(models, options).unwrap())
    }
}

impl<E: Engine> Driver<E> {
    pub(crate) fn over(engine: E) -> Self {
        Self { engine, next: 0, done: BTreeMap::new() }
    }

    pub(crate) fn start(&mut self, operation: Operation) -> RequestId {
        self.start_for(TenantShare::new("t"), operation)
    }

    pub(crate) fn start_for(&mut self, share: TenantShare, operation: Operation) -> RequestId {
        self.next += 1;
        let id = RequestId::new(format!("r{:04}", self.next));
        self.engine.start(id.clone(), share, operation);
        id
    }

    pub(crate) fn forget(&mut self, id: &RequestId) {
        self.done.remove(id);
    }

    /// Whether a request has completed.
    pub(crate) fn is_done(&self, id: &RequestId) -> bool {
        self.done.contains_key(id)
    }

    /// Executes an operation; what is in progress may go on after it, such as saves.
    pub(crate) fn run_beside(&mut self, operation: Operation) -> Result<OpResult, OpError> {
        let id = self.start(operation);
        while !self.is_done(&id) {
            self.tick();
        }
        self.done.remove(&id).expect("completed")
    }

    pub(crate) fn tick(&mut self) {
        let done = self.engine.step();
        assert_eq!(self.engine.failure(), None);
        for Completion { id, result, .. } in done {
            assert!(self.done.insert(id, result).is_none(), "completed twice");
        }
    }

    pub(crate) fn drain(&mut self) {
        while !self.engine.is_idle() {
            self.tick();
        }
    }

    pub(crate) fn take(&mut self, id: &RequestId) -> Result<OpResult, OpError> {
        self.drain();
        self.done.remove(id).expect("completed")
    }

    pub(crate) fn run(&mut self, operation: Operation) -> Result<OpResult, OpError> {
        let id = self.start(operation);
        self.take(&id)
    }

    pub(crate) fn create(&mut self, run: &str, lora: Option<LoraSpec>) {
        let spec = RunSpec { base_model: "m".into(), lora, optimizer: Optimizer::AdamW, head: ModelHead::Unembedding };
        self.run(Operation::CreateRun { run: RunId::new(run), spec }).unwrap();
    }

    /// A pass over examples that are checked against the engine's model.
    pub(crate) fn loss_op(&self, run: &str, loss: &str, data: Vec<Datum>, forward_only: bool) -> Operation {
        prepared_op((&self.engine.models()[0]).into(), run, loss, data, forward_only)
    }

    pub(crate) fn forward(&mut self, run: &str, data: Vec<Datum>) -> ForwardBackwardResult {
        let operation = self.loss_op(run, "cross_entropy", data, true);
        loss_result(self.run(operation))
    }

    pub(crate) fn forward_backward(&mut self, run: &str, data: Vec<Datum>) -> ForwardBackwardResult {
        let operation = self.loss_op(run, "cross_entropy", data, false);
        loss_result(self.run(operation))
    }

    pub(crate) fn step(&mut self, run: &str, learning_rate: f64) {
        self.run(optim(run, learning_rate)).unwrap();
    }

    pub(crate) fn snapshot(&mut self, run: &str, key: &str) {
        let save = trainyard_protocol::SaveSampler { run: RunId::new(run), snapshot: Some(key.into()), target: None };
        self.run(Operation::SaveSampler(save)).unwrap();
    }
}

pub(crate) fn optim(run: &str, learning_rate: f64) -> Operation {
    let params =
        AdamParams { learning_rate, beta1: 0.9, beta2: 0.95, eps: 1e-12, weight_decay: 0.01, grad_clip_norm: 1.0 };
    Operation::OptimStep { run: RunId::new(run), params }
}

/// Extents of every model under `tests/golden`.
const EXTENTS: ModelExtents = ModelExtents { vocab_size: 512, context: 512 };

/// Cross-entropy on a model under `tests/golden`.
pub(crate) fn loss_op(run: &str, data: Vec<Datum>, forward_only: bool) -> Operation {
    prepared_op(EXTENTS, run, "cross_entropy", data, forward_only)
}

fn prepared_op(extents: ModelExtents, run: &str, loss: &str, data: Vec<Datum>, forward_only: bool) -> Operation {
    let batch = RawBatch {
        data,
        loss_fn: loss.into(),
        loss_fn_config: BTreeMap::new(),
        custom_loss: None,
        decoded: Default::default(),
    };
    let batch = prepare_batch(&batch, extents).unwrap();
    Operation::ForwardBackward(ForwardBackward { run: RunId::new(run), batch, forward_only })
}

pub(crate) fn loss_result(result: Result<OpResult, OpError>) -> ForwardBackwardResult {
    match result.unwrap() {
        OpResult::ForwardBackward(result) => result,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn sample_result(result: Result<OpResult, OpError>) -> SampleResult {
    match result.unwrap() {
        OpResult::Sample(result) => result,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn lora(rank: u32, seed: u64) -> LoraSpec {
    LoraSpec::on_all(rank, seed)
}

/// Tokens that depend on a seed.
pub(crate) fn tokens(n: usize, vocab: usize, seed: usize) -> Vec<i64> {
    (0..n).map(|i| ((i * 7919 + seed * 104_729 + i * i * 31) % vocab) as i64).collect()
}

/// A datum for next-token prediction.
pub(crate) fn datum(tokens: &[i64]) -> Datum {
    let targets = tokens[1..].to_vec();
    let weights = (0..targets.len()).map(|i| if i % 3 == 0 { 0.0 } else { 0.5 }).collect();
    Datum {
        tokens: tokens[..tokens.len() - 1].to_vec(),
        loss_fn_inputs: BTreeMap::from([
            ("target_tokens".into(), Tensor::i64(targets)),
            ("weights".into(), Tensor::f32(weights)),
        ]),
        images: Vec::new(),
    }
}

pub(crate) fn params(max_tokens: u32, temperature: f32, seed: u64) -> SamplingParams {
    SamplingParams {
        max_tokens: Some(max_tokens),
        seed,
        stop: Stop::Nothing,
        temperature,
        top_k: None,
        top_p: 1.0,
        controls: Default::default(),
    }
}

pub(crate) fn sample(
    source: SamplerSource,
    prompt: Vec<i64>,
    num_samples: u32,
    params: SamplingParams,
) -> SampleOperation {
    let sample = Sample {
        prompt,
        num_samples,
        params,
        prompt_logprobs: true,
        prompt_logprobs_last_n: None,
        topk_prompt_logprobs: 0,
        topk_sample_logprobs: 0,
        target_prompt_logprobs: None,
        prompt_alt_tokens_k: 0,
        images: Vec::new(),
    };
    SampleOperation { session: SessionId::new("s"), source, sample, images: Default::default() }
}
