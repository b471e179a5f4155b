#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use trainyard_protocol::{LoraSpec, Sample, SampleResult, SamplingParams, Stop};

use super::task::StreamTarget;
use super::*;
use crate::backend::{HostBackend, KV_BLOCK as BLOCK};
use crate::engine::WeightStorage;
use crate::engine::base::Base;
use crate::engine::rank_groups::RankGroups;
use crate::load::load;
use crate::model::{Adapter, ParamTable};
use crate::rng::uniform;

#[path = "session_tests.rs"]
mod sessions;
#[path = "widths_tests.rs"]
mod widths_tests;

/// A model of the golden tests.
pub(super) fn base(family: &str) -> Arc<Base<HostBackend>> {
    base_with_context(family, None)
}

/// The same with a context of another length.
fn base_with_context(family: &str, context: Option<usize>) -> Arc<Base<HostBackend>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(family);
    let mut source = load(&path).unwrap();
    source.config.max_position_embeddings = context.unwrap_or(source.config.max_position_embeddings);
    Arc::new(
        Base::new(&HostBackend::new(1), family.into(), source, &RankGroups::default(), &[], WeightStorage::Widened)
            .unwrap(),
    )
}

/// An adapter that changes every projection.
pub(super) fn adapter(base: &Base<HostBackend>, seed: u64) -> Arc<Adapter<HostBackend>> {
    let spec = LoraSpec::on_all(4, seed);
    let params = ParamTable::of_adapter(base.config(), &spec);
    let values = |(i, len)| (0..len as u64).map(|p| (uniform(seed, i, p) as f32 - 0.5) * 0.1).collect();
    let masters = (0u64..).zip(params.iter().map(crate::model::ParamSpec::len)).map(values).collect();
    let backend = HostBackend::new(1);
    let masters = backend.upload_params(masters);
    Arc::new(Adapter::from_params(&backend, base.config(), &spec, &masters))
}

/// Tokens that begin with `shared` tokens of stream 0 and continue with those of another stream.
fn prompt(shared: usize, stream: u64, len: usize) -> Vec<i64> {
    let token = |i: usize| (uniform(3, if i < shared { 0 } else { stream }, i as u64) * 512.0) as i64;
    (0..len).map(token).collect()
}

fn request(prompt: Vec<i64>, num_samples: u32, max_tokens: u32) -> Sample {
    let params = SamplingParams {
        max_tokens: Some(max_tokens),
        seed: prompt.len() as u64,
        stop: Stop::Nothing,
        temperature: 1.0,
        top_k: None,
        top_p: 1.0,
        controls: Default::default(),
    };
    Sample {
        prompt,
        num_samples,
        params,
        prompt_logprobs: false,
        prompt_logprobs_last_n: None,
        topk_prompt_logprobs: 0,
        topk_sample_logprobs: 2,
        target_prompt_logprobs: None,
        prompt_alt_tokens_k: 0,
        images: Vec::new(),
    }
}

fn operation(session: &str, sample: Sample) -> SampleOperation {
    let source = SamplerSource::Base { model: "m".into() };
    SampleOperation { session: SessionId::new(session), source, sample, images: Default::default() }
}

fn id(at: usize) -> RequestId {
    RequestId::new(format!("{at:04}"))
}

fn result(completion: Completion) -> SampleResult {
    match completion.result {
        Ok(OpResult::Sample(result)) => result,
        other => panic!("{other:?}"),
    }
}

/// Drives a sampler and watches its budget.
struct SamplerDriver {
    backend: HostBackend,
    sampler: Sampler<HostBackend>,
    /// Rows computed so far.
    rows: usize,
    done: BTreeMap<RequestId, SampleResult>,
}

impl SamplerDriver {
    fn new(kv_bytes: usize) -> Self {
        Self { backend: HostBackend::new(1), sampler: Sampler::new(kv_bytes), rows: 0, done: BTreeMap::new() }
    }

    fn start(&mut self, at: usize, weights: &SamplerWeights<HostBackend>, request: Sample) {
        self.start_in("s", at, weights, request);
    }

    fn start_in(&mut self, session: &str, at: usize, weights: &SamplerWeights<HostBackend>, sample: Sample) {
        self.sampler
            .start(id(at), TenantShare::new("t"), weights.clone(), PreparedSample::text(operation(session, sample)))
            .unwrap();
    }

    /// Starts a request of a share, in a session of its own.
    fn start_for(&mut self, share: TenantShare, at: usize, weights: &SamplerWeights<HostBackend>, sample: Sample) {
        self.sampler
            .start(id(at), share, weights.clone(), PreparedSample::text(operation(&format!("of {at}"), sample)))
            .unwrap();
    }

    fn held(&self) -> usize {
        self.sampler.cache.bytes() + self.sampler.own_bytes()
    }

    /// One pass; the rows of it that extend prompts.
    fn step(&mut self) -> usize {
        self.sampler.note_shares(std::iter::empty());
        let parts = self.sampler.prepare();
        self.rows += parts.iter().map(|part| part.positions.len()).sum::<usize>();
        self.sampler.run(&self.backend, &parts);
        self.check();
        for completion in self.sampler.finish() {
            self.done.insert(completion.id.clone(), result(completion));
        }
        self.check();
        parts.iter().filter(|part| part.target == StreamTarget::Prompt).map(|part| part.positions.len()).sum()
    }

    fn steps(&mut self, count: usize) {
        for _ in 0..count {
            self.step();
        }
    }

    /// Only the last remaining sequence may exceed the budget.
    fn check(&self) {
        let running: usize = self.sampler.active.iter().map(|task| task.targets().count()).sum();
        assert!(self.held() <= self.sampler.kv_bytes || running <= 1, "{running} sequences hold {}", self.held());
    }

    fn drain(&mut self) {
        while !self.sampler.is_idle() {
            self.step();
        }
    }
}

/// The result of a request that shares nothing with others. It is text, in which equal bits, and all NaNs, are equal.
fn alone(weights: &SamplerWeights<HostBackend>, request: Sample) -> String {
    let mut driver = SamplerDriver::new(0);
    driver.start(0, weights, request);
    driver.drain();
    assert_eq!(driver.held(), 0);
    format!("{:?}", driver.done[&id(0)])
}

const LARGE: usize = 1 << 30;

#[test]
fn a_shared_prompt_is_computed_once() {
    let weights = SamplerWeights::of_base(base("llama"));
    for len in [2 * BLOCK, 3 * BLOCK + 5] {
        let mut driver = SamplerDriver::new(LARGE);
        (0..8).for_each(|at| driver.start(at, &weights, request(prompt(len, 0, len), 1, 1)));
        driver.drain();
        // All but the first compute what is after the last full block, or the last row.
        let tail = if len % BLOCK == 0 { 1 } else { len % BLOCK };
        assert_eq!(driver.rows, len + 7 * tail);
        let first = format!("{:?}", driver.done[&id(0)]);
        assert!(driver.done.values().all(|result| format!("{result:?}") == first));
        assert_eq!(first, alone(&weights, request(prompt(len, 0, len), 1, 1)));
    }
}

#[test]
fn a_conversation_reuses_its_blocks() {
    let base = base("mistral_swa");
    let weights = SamplerWeights { adapter: Some(adapter(&base, 1)), ..SamplerWeights::of_base(base) };
    let mut driver = SamplerDriver::new(LARGE);
    driver.start(0, &weights, request(prompt(0, 1, 70), 1, 40));
    driver.drain();
    let mut second = prompt(0, 1, 70);
    second.extend(driver.done[&id(0)].sequences[0].tokens.iter().map(|token| i64::from(*token)));
    second.extend(prompt(0, 2, 9));
    let before = driver.rows;
    driver.start(1, &weights, request(second.clone(), 1, 1));
    driver.drain();
    // 109 tokens have keys and values after the first request: three full blocks.
    assert_eq!(driver.rows - before, second.len() - 3 * BLOCK);
    assert_eq!(format!("{:?}", driver.done[&id(1)]), alone(&weights, request(second.clone(), 1, 1)));
    // Other weights, and prompts whose log-probabilities are wanted, compute everything.
    let plain = SamplerWeights { adapter: None, ..weights.clone() };
    let scored = Sample { prompt_logprobs: true, ..request(second.clone(), 1, 1) };
    for (at, weights, request) in [(2, &plain, request(second.clone(), 1, 1)), (3, &weights, scored.clone())] {
        let before = driver.rows;
        driver.start(at, weights, request);
        driver.drain();
        assert_eq!(driver.rows - before, second.len());
    }
    assert_eq!(format!("{:?}", driver.done[&id(3)]), alone(&weights, scored));
    // Dropped weights release everything.
    drop((plain, weights));
    driver.sampler.evict_unused();
    assert_eq!(driver.held(), 0);
}

#[test]
fn models_with_states_continue_from_kept_ones() {
    for family in ["qwen3_5", "lfm2"] {
        continues_from_kept_states(family);
    }
}

fn continues_from_kept_states(family: &str) {
    let weights = SamplerWeights::of_base(base_with_context(family, Some(2048)));
    let mut driver = SamplerDriver::new(LARGE);
    driver.start(0, &weights, request(prompt(0, 1, 70), 2, 40));
    driver.drain();
    let mut conversation = prompt(0, 1, 70);
    conversation.extend(driver.done[&id(0)].sequences[0].tokens.iter().map(|token| i64::from(*token)));
    let steps = [
        // The state after the last full block of the first prompt.
        (conversation, 2 * BLOCK),
        (prompt(0, 2, 1100), 0),
        // The same prompt, then one that leaves it between two kept states.
        (prompt(0, 2, 1100), 1100 / BLOCK * BLOCK),
        ([&prompt(0, 2, 1050)[..], &prompt(0, 3, 30)].concat(), 1024),
        ([&prompt(0, 2, 500)[..], &prompt(0, 3, 30)].concat(), 0),
    ];
    for (at, (prompt, reused)) in (1..).zip(steps) {
        let before = driver.rows;
        driver.start(at, &weights, request(prompt.clone(), 1, 1));
        driver.drain();
        assert_eq!(driver.rows - before, prompt.len() - reused, "{family}, request {at}");
        assert_eq!(format!("{:?}", driver.done[&id(at)]), alone(&weights, request(prompt, 1, 1)));
    }
    drop(weights);
    driver.sampler.evict_unused();
    assert_eq!(driver.held(), 0);
}

#[test]
fn last_prompt_logprobs_need_the_last_rows() {
    let weights = SamplerWeights::of_base(base("llama"));
    let mut driver = SamplerDriver::new(LARGE);
    driver.start(0, &weights, request(prompt(0, 1, 100), 1, 1));
    driver.drain();
    let scored = Sample { prompt_logprobs: true, prompt_logprobs_last_n: Some(30), ..request(prompt(0, 1, 100), 1, 1) };
    let before = driver.rows;
    driver.start(1, &weights, scored.clone());
    driver.drain();
    // Row 69 scores position 70. It is within a block that is there already.
    assert_eq!(driver.rows - before, 31);
    assert_eq!(format!("{:?}", driver.done[&id(1)]), alone(&weights, scored));
}

#[test]
fn a_prompt_that_fills_the_context_is_scored() {
    let base = base("llama");
    let context = base.config().max_position_embeddings;
    let weights = SamplerWeights::of_base(base);
    let scored = |len: usize| Sample { prompt_logprobs: true, ..request(prompt(0, 1, len), 1, 1) };
    let mut driver = SamplerDriver::new(LARGE);
    driver.start(0, &weights, scored(context));
    driver.start(1, &weights, scored(context - 1));
    driver.drain();
    let logprobs = |at: usize| driver.done[&id(at)].prompt_logprobs.clone().unwrap();
    let (whole, shorter) = (logprobs(0), logprobs(1));
    assert_eq!((whole.len(), whole.iter().filter(|value| value.is_finite()).count()), (context, context - 1));
    let bits = |values: &[f32]| values[1..].iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&whole)[..context - 2], bits(&shorter)[..]);
    assert_eq!(driver.done[&id(0)].sequences[0].tokens.len(), 1);
}

#[test]
fn prefill_is_limited_while_sequences_decode() {
    let weights = SamplerWeights::of_base(base("llama"));
    let mut driver = SamplerDriver::new(LARGE);
    driver.start(0, &weights, request(prompt(0, 1, 300), 1, 30));
    assert_eq!(driver.step(), 256);
    assert_eq!(driver.step(), 44);
    driver.start(1, &weights, request(prompt(0, 2, 200), 1, 1));
    driver.start(2, &weights, request(prompt(0, 3, 40), 1, 1));
    // Two prompts wait for one sequence: 128 rows, oldest first.
    let rows: Vec<usize> = (0..3).map(|_| driver.step()).collect();
    assert_eq!(rows, [128, 72 + 40, 0]);
    assert_eq!(driver.rows, 300 + 240 + 3);
}

#[test]
fn an_adapter_is_one_group() {
    let base = base("llama");
    let plain = SamplerWeights::of_base(Arc::clone(&base));
    let adapted = [1, 2].map(|seed| SamplerWeights { adapter: Some(adapter(&base, seed)), ..plain.clone() });
    let mut driver = SamplerDriver::new(LARGE);
    for at in 0..9 {
        let weights = [&adapted[0], &plain, &adapted[1]][at % 3];
        driver.start(at, weights, request(prompt(0, at as u64, 10), 1, 3));
    }
    for _ in 0..2 {
        let tasks: Vec<usize> = driver.sampler.prepare().iter().map(|part| part.task).collect();
        assert_eq!(tasks, [0, 3, 6, 1, 4, 7, 2, 5, 8]);
        driver.step();
    }
}

#[test]
fn weights_take_turns() {
    let weights = ["llama", "mistral_swa", "qwen3"].map(|family| SamplerWeights::of_base(base(family)));
    let mut driver = SamplerDriver::new(LARGE);
    for at in 0..7 {
        let of = [0, 0, 1, 0, 2, 0, 0][at];
        driver.start(at, &weights[of], request(prompt(0, at as u64, 10), 1, 5));
    }
    let mut finished = Vec::new();
    while !driver.sampler.is_idle() {
        let before = driver.done.len();
        driver.step();
        finished.push(driver.done.len() - before);
    }
    // Five passes each, one after the other: the first of a model's computes the prompts and samples.
    assert_eq!(finished, [[0; 12].as_slice(), &[5, 1, 1]].concat());
    assert!(driver.sampler.weights_rotation.is_empty());
}

#[test]
fn a_request_is_preempted_when_the_kv_budget_is_exceeded() {
    let weights = SamplerWeights::of_base(base("llama"));
    let block = weights.base.model.kv_block_bytes;
    // Each grows to 10 blocks; they are admitted with reservations of 5 + 5.
    let mut driver = SamplerDriver::new(12 * block);
    let requests: Vec<_> = (1..3).map(|stream| request(prompt(0, stream, 20), 1, 300)).collect();
    for (at, request) in requests.iter().enumerate() {
        driver.start(at, &weights, request.clone());
    }
    let mut waited = false;
    while !driver.sampler.is_idle() {
        driver.step();
        waited |= driver.sampler.waiting.iter_mut().any(|task| task.id == id(1));
    }
    assert!(waited);
    for (at, request) in requests.into_iter().enumerate() {
        assert_eq!(format!("{:?}", driver.done[&id(at)]), alone(&weights, request));
    }
}

#[test]
fn a_request_that_exceeds_the_budget_decodes_some_sequences_at_a_time() {
    let weights = SamplerWeights::of_base(base("llama"));
    let block = weights.base.model.kv_block_bytes;
    // Ten sequences of up to 7 blocks, of which one is shared: three begin in 16 blocks, and two fit to the end.
    let large = request(prompt(0, 1, 40), 10, 170);
    let whole = alone(&weights, large.clone());
    for (budget, most) in [(1, 1), (16, 3), (60, 10), (1 << 16, 10)] {
        let mut driver = SamplerDriver::new(budget * block);
        driver.start(0, &weights, large.clone());
        let mut widest = 0;
        while !driver.sampler.is_idle() {
            driver.step();
            let running = driver.sampler.active.iter().map(|task| task.targets().count()).max();
            widest = widest.max(running.unwrap_or(0));
        }
        assert_eq!(widest, most, "{budget} blocks");
        assert_eq!(format!("{:?}", driver.done[&id(0)]), whole);
    }
}

#[test]
fn sequences_beyond_the_limit_wait_for_others_to_end() {
    let weights = SamplerWeights::of_base(base("llama"));
    let mut driver = SamplerDriver::new(LARGE);
    driver.start(0, &weights, request(prompt(0, 1, 40), 300, 3));
    while !driver.sampler.is_idle() {
        assert!(driver.sampler.prepare().len() <= 256);
        driver.step();
    }
    assert_eq!(format!("{:?}", driver.done[&id(0)]), alone(&weights, request(prompt(0, 1, 40), 300, 3)));
}

#[test]
fn more_rows_than_a_logits_buffer_give_the_same_bits() {
    let base = base("llama");
    let plain = SamplerWeights::of_base(Arc::clone(&base));
    let adapted = [1, 2].map(|seed| SamplerWeights { adapter: Some(adapter(&base, seed)), ..plain.clone() });
    let of = |at: usize| [&adapted[0], &plain, &adapted[1]][at % 3];
    let request = |at: usize| request(prompt(0, at as u64, 3 + at % 5), 1, 2);
    let mut driver = SamplerDriver::new(LARGE);
    (0..2 * LOGIT_ROWS + 5).for_each(|at| driver.start(at, of(at), request(at)));
    driver.drain();
    for (at, result) in driver.done.values().enumerate().step_by(7) {
        assert_eq!(format!("{result:?}"), alone(of(at), request(at)));
    }
}

#[test]
fn candidates_have_a_limit() {
    let weights = SamplerWeights::of_base(base("llama"));
    let mut driver = SamplerDriver::new(LARGE);
    let mut refused = |max_tokens| {
        let request = Sample { topk_sample_logprobs: 1_024, ..request(vec![1], 1_024, max_tokens) };
        let operation = operation("s", request);
        let started =
            driver.sampler.start(id(0), TenantShare::new("t"), weights.clone(), PreparedSample::text(operation));
        started.map_err(|error| error.message)
    };
    let message = "num_samples * max_tokens * topk_sample_logprobs: 1024 * 5 * 1024 is more than 4194304";
    assert_eq!(refused(5), Err(message.to_owned()));
    assert_eq!(refused(4), Ok(()));
}

#[test]
fn cancelled_requests_release_their_blocks() {
    let weights = SamplerWeights::of_base(base("llama"));
    let mut driver = SamplerDriver::new(LARGE);
    (0..4).for_each(|at| driver.start(at, &weights, request(prompt(40, at as u64, 290), 2, 20)));
    driver.step();
    assert_eq!(driver.sampler.take_admitted(), [id(0), id(1)], "the others' prompts are for later passes");
    driver.sampler.cancel(&(0..3).map(id).collect());
    driver.drain();
    assert_eq!(driver.done.len(), 1);
    assert_eq!(driver.sampler.own_bytes(), 0);
    assert_eq!(format!("{:?}", driver.done[&id(3)]), alone(&weights, request(prompt(40, 3, 290), 2, 20)));
}

#[derive(Clone, Debug)]
enum Action {
    Start { weights: usize, request: Box<Sample> },
    Step(usize),
    Cancel(usize),
}

fn action() -> impl Strategy<Value = Action> {
    let start = (0usize..5, 0usize..5, 0u64..3, 1usize..150, 1u32..4, 1u32..70, 0u32..6).prop_map(
        |(weights, shared, stream, len, samples, new, outputs)| {
            let mut request = request(prompt(shared * 20, stream, len), samples, new);
            request.prompt_logprobs = outputs == 1 || (outputs == 2 && len > 1);
            request.prompt_logprobs_last_n = (outputs == 2 && len > 1).then_some(1 + len as u32 / 4);
            request.topk_prompt_logprobs = u32::from(outputs == 3) * 2;
            request.prompt_alt_tokens_k = u32::from(outputs == 4) * 2;
            if outputs == 5 {
                request.params.temperature = 0.0;
            }
            Action::Start { weights, request: Box::new(request) }
        },
    );
    prop_oneof![4 => start, 4 => (1usize..40).prop_map(Action::Step), 1 => (0usize..8).prop_map(Action::Cancel)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn batching_and_cache_change_no_bits(
        actions in prop::collection::vec(action(), 1..14),
        blocks in prop_oneof![Just(0usize), 4usize..30, Just(1 << 16)],
    ) {
        let (llama, swa, hybrid) = (base("llama"), base("mistral_swa"), base("qwen3_5"));
        let indexed = base("indexed/glm_moe_dsa");
        let weights = [
            SamplerWeights::of_base(Arc::clone(&llama)),
            SamplerWeights { adapter: Some(adapter(&llama, 1)), ..SamplerWeights::of_base(llama) },
            SamplerWeights::of_base(swa),
            SamplerWeights::of_base(hybrid),
            SamplerWeights { adapter: Some(adapter(&indexed, 2)), ..SamplerWeights::of_base(indexed) },
        ];
        let block = weights[0].base.model.kv_block_bytes;
        let mut driver = SamplerDriver::new(blocks * block);
        let mut started = Vec::new();
        let mut cancelled = Vec::new();
        for action in actions {
            match action {
                Action::Start { weights: w, request } => {
                    let share = TenantShare::new(["t", "u"][started.len() % 2]);
                    driver.start_for(share, started.len(), &weights[w], (*request).clone());
                    started.push((w, *request));
                }
                Action::Step(steps) => {
                    for _ in 0..steps {
                        driver.step();
                    }
                }
                Action::Cancel(at) => {
                    driver.sampler.cancel(&[id(at)].into());
                    cancelled.push(at);
                }
            }
        }
        driver.drain();
        prop_assert_eq!(driver.sampler.own_bytes(), 0);
        for (at, (w, request)) in started.into_iter().enumerate() {
            match driver.done.get(&id(at)) {
                Some(result) => prop_assert_eq!(format!("{result:?}"), alone(&weights[w], request)),
                None => prop_assert!(cancelled.contains(&at)),
            }
        }
    }
}
