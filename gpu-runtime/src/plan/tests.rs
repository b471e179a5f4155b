//! Predictions against what engines count.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::path::Path;

use trainyard_protocol::{
    AdamParams, Datum, Engine, ForwardBackward, LoraSpec, ModelHead, Operation, Optimizer, RawBatch, RequestId, RunId,
    RunSpec, Sample, SampleOperation, SamplerSource, SamplingParams, SessionId, Stop, TenantShare, Tensor,
};
use trainyard_test_support::full::chosen;

use super::*;
use crate::backend::{Backend, Dtype, HostBackend, MatrixRole};
use crate::collective::{CollectiveKind, CollectiveUse, communicators};
use crate::load::load;
use crate::load::tests::families;
use crate::{EngineOptions, Parallel, ParallelEngine};

/// Tokens of an example.
const TOKENS: usize = 24;
/// Examples of a request.
const EXAMPLES: usize = 4;

fn golden(family: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(family)
}

/// Golden models that this version shares among ranks.
fn shared_families(tp: usize) -> Vec<(String, ModelConfig)> {
    let layout = PlannedLayout { tp, ..PlannedLayout::default() };
    let all = families().into_iter().map(|family| (load(&golden(&family)).unwrap().config, family));
    all.filter(|(config, _)| layout.refusal(config).is_none()).map(|(config, family)| (family, config)).collect()
}

fn host(memory_bytes: u64) -> Device {
    Device::host(Host { memory_bytes, flops: 1e11, bandwidth: 1e10 })
}

const NETWORK: Network = Network { per_node: 8, between: LinkKind::Nvlink };

fn adapter() -> LoraSpec {
    LoraSpec::on_all(4, 1)
}

fn work(lora: Option<LoraSpec>) -> Workload {
    Workload {
        dtype: Dtype::Bf16,
        blocks: std::collections::BTreeMap::new(),
        kernels: None,
        lora,
        microbatch_tokens: EXAMPLES * TOKENS,
        microbatches: 1,
        context: 64,
        sequences: 1,
    }
}

/// An engine of `tp` ranks with passes of `microbatch` tokens.
fn engine(family: &str, tp: usize, microbatch: usize) -> ParallelEngine<HostBackend> {
    let options = EngineOptions {
        parallel: Parallel::with_tp(tp).unwrap(),
        threads: tp,
        microbatch_tokens: Some(microbatch),
        ..EngineOptions::default()
    };
    let models = (0..tp).map(|_| vec![("m".to_owned(), load(&golden(family)).unwrap())]).collect();
    ParallelEngine::new(models, options).unwrap()
}

/// Whether training stores transposes of base weights, as processors do that multiply pairs of bf16.
fn stores_transposes() -> bool {
    let backend = HostBackend::new(1).with_dtype(Dtype::Bf16);
    let bytes = |trains| backend.planned_matrix_bytes(64, 64, MatrixRole::Base, trains);
    bytes(true) > bytes(false)
}

fn run(engine: &mut ParallelEngine<HostBackend>, operation: Operation) -> u64 {
    let mut most = 0;
    engine.start(RequestId::new("r"), TenantShare::new("t"), operation);
    while !engine.is_idle() {
        for done in engine.step() {
            done.result.unwrap();
        }
        most = most.max(engine.stats().memory.runs);
    }
    assert_eq!(engine.failure(), None);
    most
}

fn create(lora: Option<LoraSpec>) -> Operation {
    let spec = RunSpec { base_model: "m".into(), lora, optimizer: Optimizer::AdamW, head: ModelHead::Unembedding };
    Operation::CreateRun { run: RunId::new("a"), spec }
}

fn pass(engine: &ParallelEngine<HostBackend>) -> Operation {
    let vocab = engine.models()[0].vocab_size as i64;
    let datum = |i: i64| {
        let tokens: Vec<i64> = (0..TOKENS as i64).map(|t| (t * 7 + i * 31) % vocab).collect();
        let inputs = [
            ("target_tokens".to_owned(), Tensor::i64(tokens.clone())),
            ("weights".to_owned(), Tensor::f32(vec![1.0; TOKENS])),
        ];
        Datum { tokens, loss_fn_inputs: BTreeMap::from(inputs), images: Vec::new() }
    };
    let data = (0..EXAMPLES as i64).map(datum).collect();
    let batch = RawBatch {
        data,
        loss_fn: "cross_entropy".into(),
        loss_fn_config: BTreeMap::new(),
        custom_loss: None,
        decoded: Default::default(),
    };
    let batch = engine.preparer().prepare("m", batch).unwrap();
    Operation::ForwardBackward(ForwardBackward { run: RunId::new("a"), batch, forward_only: false })
}

fn optim() -> Operation {
    let params =
        AdamParams { learning_rate: 1e-3, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.0, grad_clip_norm: 0.0 };
    Operation::OptimStep { run: RunId::new("a"), params }
}

/// `new` tokens after a prompt.
fn sample(prompt: usize, new: u32) -> Operation {
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
        prompt: (0..prompt as i64).collect(),
        num_samples: 1,
        params,
        prompt_logprobs: false,
        prompt_logprobs_last_n: None,
        topk_prompt_logprobs: 0,
        topk_sample_logprobs: 0,
        target_prompt_logprobs: None,
        prompt_alt_tokens_k: 0,
        images: Vec::new(),
    };
    let source = SamplerSource::Base { model: "m".into() };
    Operation::Sample(Box::new(SampleOperation {
        session: SessionId::new("s"),
        source,
        sample,
        images: Default::default(),
    }))
}

/// Bytes that rank 0 sent, by kind.
fn counted(sent: CollectiveUse) -> Sent {
    CollectiveKind::ALL.into_iter().map(|kind| (kind.name(), sent.sent(kind))).collect()
}

fn predicted(moved: &[Moved], times: impl Fn(&Moved) -> u64) -> Sent {
    let of = |kind| moved.iter().filter(|moved| moved.kind == kind).map(|moved| times(moved) * moved.bytes).sum();
    CollectiveKind::ALL.into_iter().map(|kind| (kind.name(), of(kind))).collect()
}

type Sent = BTreeMap<&'static str, u64>;

/// All is the same to the byte, but rows of experts, which are gathered: these depend on where tokens go, and one of `ranks` ranks
/// may have them all.
fn assert_same(config: &ModelConfig, ranks: usize, counted: &Sent, predicted: &Sent, what: &str) {
    if !config.has_experts() {
        return assert_eq!(counted, predicted, "{what}");
    }
    let without = |sent: &Sent| {
        let mut sent = sent.clone();
        let gathered = sent.remove(CollectiveKind::AllGather.name());
        (sent, gathered.unwrap_or(0) as f64)
    };
    let ((counted, gathered), (predicted, expected)) = (without(counted), without(predicted));
    assert_eq!(counted, predicted, "{what}");
    assert!(gathered <= expected * ranks as f64, "{what}: {gathered} gathered, {expected} predicted");
}

#[test]
fn ranks_send_what_is_predicted() {
    for tp in [2, 4] {
        let families = shared_families(tp);
        let (experts, dense): (Vec<_>, Vec<_>) = families.iter().partition(|(_, config)| config.has_experts());
        assert!(experts.len() >= 3 && dense.len() >= 6);
        for (family, config) in families {
            for lora in [Some(adapter()), None] {
                let layout = PlannedLayout { tp, ..PlannedLayout::default() };
                let plan = plan(&config, layout, &host(1 << 40), &NETWORK, &work(lora.clone())).unwrap();
                assert_eq!((plan.saved_blocks, &plan.refusal), (plan.blocks, &None));
                let mut engine = engine(&family, tp, EXAMPLES * TOKENS);
                run(&mut engine, create(lora.clone()));
                let request = pass(&engine);
                let before = engine.collectives();
                run(&mut engine, request);
                let sent = engine.collectives().since(&before);
                let what = format!("{family}, {tp} ranks, {lora:?}");
                assert_same(&config, tp, &counted(sent), &predicted(&plan.training_moved, |_| 1), &what);
                // All but a few bytes that say whose turn it is.
                let by_kind: u64 = counted(sent).values().sum();
                assert!(sent.bytes_sent - by_kind < 1000, "{what}: {sent:?}");
                let before = engine.collectives();
                run(&mut engine, sample(9, 8));
                let sent = engine.collectives().since(&before);
                // Each row of a prompt and each token but the last passes once; logits are those of sampled tokens.
                let times = |moved: &Moved| if moved.purpose == "logits" { 8 } else { 9 + 8 - 1 };
                assert_same(&config, tp, &counted(sent), &predicted(&plan.decoding_moved, times), &what);
            }
        }
    }
}

#[test]
fn blocks_that_are_recomputed_are_exchanged_again() {
    let config = load(&golden("llama")).unwrap().config;
    let layout = PlannedLayout { tp: 2, ..PlannedLayout::default() };
    let of = |memory| plan(&config, layout, &host(memory), &NETWORK, &work(None)).unwrap();
    let (all, none) = (of(1 << 40), of(0));
    assert_eq!((all.saved_blocks, none.saved_blocks, all.exceeds_by), (all.blocks, 0, None));
    assert!(none.exceeds_by.is_some_and(|bytes| bytes == none.memory.total()));
    let rows = |plan: &Plan| plan.training_moved[0].clone();
    // Two sums of a block's forward pass, and two of its backward pass.
    assert_eq!((all.repeated_blocks, none.repeated_blocks), (0, 1));
    assert_eq!((rows(&all).calls, rows(&none).calls), (4 * all.blocks, 6 * all.blocks + 2));
    assert_eq!(rows(&none).bytes * 8, rows(&all).bytes * 14);
    assert!(none.memory.activations < all.memory.activations);
}

#[test]
fn ranks_hold_what_is_predicted() {
    // Four ranks hold what two do, in smaller parts.
    for tp in chosen(&[1, 2], &[4]) {
        for (family, config) in shared_families(tp) {
            for lora in [Some(adapter()), None] {
                let layout = PlannedLayout { tp, ..PlannedLayout::default() };
                let plan = plan(&config, layout, &host(1 << 40), &NETWORK, &work(lora.clone())).unwrap();
                // An example at a time, so that a request in progress is seen.
                let mut engine = engine(&family, tp, TOKENS);
                let what = format!("{family}, {tp} ranks, {lora:?}");
                // The engine's own plan is what it admits runs by.
                let Operation::CreateRun { spec, .. } = create(lora.clone()) else { panic!("a run") };
                let planned = engine.memory().run(&spec).unwrap().bytes;
                assert_eq!(plan.memory.run() * tp as u64, planned, "{what}");
                let weights = (plan.memory.base_weights * tp as u64, engine.stats().memory.weights);
                // It keeps room for transposes of base weights, which runs of all parameters do without.
                let spared = lora.is_none() && stores_transposes();
                let as_planned = if spared { weights.0 < weights.1 } else { weights.0 == weights.1 };
                assert!(as_planned, "{what}: {weights:?}");
                run(&mut engine, create(lora));
                let mut most = 0;
                for step in 0..5 {
                    let operation = if step == 2 { optim() } else { pass(&engine) };
                    most = most.max(run(&mut engine, operation));
                }
                let (held, predicted) = (most as f64, (plan.memory.run() * tp as u64) as f64);
                assert!((held / predicted - 1.0).abs() < 0.1, "{what}: {held} held, {predicted} predicted");
            }
        }
    }
}

#[test]
fn the_forms_of_devices_take_as_much_as_their_elements() {
    let config = named_shape("llama-3.1-8b").unwrap().unwrap();
    let of = |device: &str, layout: &str| {
        plan(&config, layout.parse().unwrap(), &Device::named(device).unwrap(), &NETWORK, &work(Some(adapter())))
            .unwrap()
    };
    let single = of("h200", "tp=1");
    // Rotary tables are besides.
    let near = |found: u64, expected: f64| assert!((found as f64 / expected - 1.0).abs() < 0.03, "{found}, {expected}");
    near(single.memory.base_weights, 2.0 * 8.03e9);
    // 32 layers, 8 key heads of 128 elements, keys and values, in 16 bits.
    assert_eq!(single.memory.kv, 64 * 32 * 8 * 128 * 2 * 2);
    let shared = of("h200", "tp=8");
    // With the rotary tables, which every rank has: 131,072 positions of 128 elements.
    near(shared.memory.base_weights, 2.0 * 8.03e9 / 8.0 + 131_072.0 * 128.0 * 4.0);
    assert!(shared.training.compute < single.training.compute);
}

/// Pieces of 16 MiB: of a rank for the others, of these, and a rank's sums; and what NCCL has for each communicator.
#[test]
fn exchanges_of_devices_take_memory() {
    let config = named_shape("llama-3.1-8b").unwrap().unwrap();
    let of = |layout: &str, device: &Device| {
        plan(&config, layout.parse().unwrap(), device, &NETWORK, &work(Some(adapter()))).unwrap().memory.exchanges
    };
    let h200 = Device::named("h200").unwrap();
    assert_eq!(of("tp=1", &h200), 0);
    assert_eq!(of("tp=2", &h200), (40 << 20) + (512 << 20));
    // Either communicator has two ranks.
    assert_eq!(of("tp=2,dp=2", &h200), (40 << 20) + (1024 << 20));
    assert_eq!(of("tp=4", &h200), (36 << 20) + (512 << 20));
    assert_eq!(of("tp=2", &host(1 << 40)), 0);
    assert_eq!(
        [(1, 1, 1), (2, 1, 1), (1, 1, 2), (2, 2, 2)].map(|(tp, dp, ep)| communicators(tp, dp, ep)),
        [0, 1, 1, 3]
    );
}

#[test]
fn replicas_share_the_state_of_a_run() {
    let config = named_shape("llama-3.1-8b").unwrap().unwrap();
    let device = Device::named("h200").unwrap();
    let of = |layout: &str| plan(&config, layout.parse().unwrap(), &device, &NETWORK, &work(None)).unwrap();
    let (one, four, all) = (of("dp=1"), of("dp=4"), of("dp=4,zero=3"));
    assert_eq!(four.memory.moments * 4, one.memory.moments);
    assert!(four.memory.masters > one.memory.masters, "a replica updates its part");
    assert_eq!(all.memory.masters * 4, one.memory.masters);
    assert!(all.memory.run() * 10 <= one.memory.run() * 4);
    assert_eq!((four.tokens_per_step, one.tokens_per_step), (4 * EXAMPLES * TOKENS, EXAMPLES * TOKENS));
    let kinds: Vec<_> = four.training_moved.iter().map(|moved| (moved.axis, moved.kind)).collect();
    assert_eq!(kinds, [(Axis::Dp, CollectiveKind::ReduceScatter), (Axis::Dp, CollectiveKind::AllGather)]);
}

/// Weights and gradients of one unit at a time decide, whatever else ranks of the replicas do. The replicas also
/// exchange the outcome of each pass.
#[test]
fn replicas_that_divide_parameters_send_and_hold_what_is_predicted() {
    for (layout, family) in [
        ("dp=2,zero=3", "llama_tied"),
        ("dp=4,zero=3", "qwen2"),
        ("tp=2,dp=2,zero=3", "gemma3"),
        ("dp=2,zero=3", "qwen3_moe"),
    ] {
        let config = load(&golden(family)).unwrap().config;
        let of_replica = Workload { microbatch_tokens: EXAMPLES * TOKENS / 2, ..work(None) };
        let plan = plan(&config, layout.parse().unwrap(), &host(1 << 40), &NETWORK, &of_replica).unwrap();
        assert_eq!(plan.refusal, None);
        let parallel: Parallel = layout.parse().unwrap();
        let options = EngineOptions { parallel, threads: 1, ..EngineOptions::default() };
        let models = (0..parallel.world()).map(|_| vec![("m".to_owned(), load(&golden(family)).unwrap())]).collect();
        let mut engine = ParallelEngine::new(models, options).unwrap();
        let Operation::CreateRun { spec, .. } = create(None) else { panic!("a run") };
        let planned = engine.memory().run(&spec).unwrap().bytes;
        assert_eq!(plan.memory.run() * parallel.world() as u64, planned, "{family}, {layout}");
        run(&mut engine, create(None));
        let request = pass(&engine);
        let before = engine.collectives();
        run(&mut engine, request);
        let sent = engine.collectives().since(&before);
        let (counted, predicted) = (counted(sent), predicted(&plan.training_moved, |_| 1));
        let what = format!("{family}, {layout}: {counted:?} {predicted:?}");
        let reduce_scatter = CollectiveKind::ReduceScatter.name();
        assert_eq!(counted[reduce_scatter], predicted[reduce_scatter], "{what}");
        // Each of two replicas computes half of the examples.
        assert_eq!(counted["all-reduce"], predicted["all-reduce"], "{what}");
        // Besides weights: results of the examples, a few hundred bytes for each.
        let besides = counted["all-gather"].checked_sub(predicted["all-gather"]);
        assert!(besides.is_some_and(|bytes| bytes < 40_000), "{what}");
    }
}

/// A round is of whole examples.
#[test]
fn long_microbatches_are_several_rounds() {
    let config = named_shape("llama-3.1-8b").unwrap().unwrap();
    let device = Device::named("h200").unwrap();
    let gathered = |tokens: usize, context: usize| {
        let work = Workload { microbatch_tokens: tokens, context, ..work(None) };
        let plan = plan(&config, "dp=4,zero=3".parse().unwrap(), &device, &NETWORK, &work).unwrap();
        plan.training_moved.iter().map(|moved| moved.bytes).collect::<Vec<_>>()
    };
    let one = gathered(1024, 1024);
    assert_eq!((gathered(96, 64), gathered(4096, 4096)), (one.clone(), one.clone()));
    assert_eq!(gathered(4096, 1024), one.iter().map(|bytes| 4 * bytes).collect::<Vec<_>>());
    assert_eq!(gathered(2100, 700), one.iter().map(|bytes| 3 * bytes).collect::<Vec<_>>());
}

#[test]
fn ranks_share_experts() {
    let config = named_shape("qwen3-235b-a22b").unwrap().unwrap();
    let device = Device::named("h200").unwrap();
    let of = |layout: &str| plan(&config, layout.parse().unwrap(), &device, &NETWORK, &work(Some(adapter()))).unwrap();
    let (one, eight) = (of("ep=1"), of("ep=8"));
    assert!(one.exceeds_by.is_some() && eight.exceeds_by.is_none());
    let experts = 2 * 94 * 128 * 3 * 1536 * 4096u64;
    let difference = one.memory.base_weights - eight.memory.base_weights;
    assert_eq!(difference, experts / 8 * 7, "routers and the rest are on every rank");
    assert!(
        eight.training_moved.iter().any(|moved| moved.axis == Axis::Replica && moved.purpose == "rows within blocks")
    );
    // Attention is computed by every rank, experts by one.
    assert!(eight.training.compute < one.training.compute && eight.training.compute * 8.0 > one.training.compute);
}

#[test]
fn what_limits_is_named() {
    let config = named_shape("llama-3.1-70b").unwrap().unwrap();
    let device = Device::named("h200").unwrap();
    let slow = Network { per_node: 1, between: LinkKind::Network(1e9) };
    let many = Workload { microbatch_tokens: 16384, sequences: 4, context: 4096, ..work(Some(adapter())) };
    let fast = plan(&config, "tp=8".parse().unwrap(), &device, &NETWORK, &many).unwrap();
    assert_eq!((fast.training.limit, fast.decoding.limit), (Limit::Compute, Limit::MemoryBandwidth));
    let slow = plan(&config, "tp=8".parse().unwrap(), &device, &slow, &many).unwrap();
    assert_eq!((slow.training.limit, slow.decoding.limit), (Limit::Interconnect, Limit::Interconnect));
    assert!(slow.training_tokens_per_second < fast.training_tokens_per_second);
    assert_eq!(slow.memory, fast.memory);
}

#[test]
fn what_cannot_be_planned_is_named() {
    let config = named_shape("llama-3.1-8b").unwrap().unwrap();
    let refusal = |layout: &str, work: &Workload| {
        let device = Device::named("h100").unwrap();
        plan(&config, layout.parse().unwrap(), &device, &NETWORK, work).unwrap_err().to_string()
    };
    let good = work(Some(adapter()));
    assert!(refusal("tp=3", &good).starts_with("tp=3 does not fit the model: num_"));
    assert_eq!(refusal("ep=2", &good), "ep=2 does not fit the model: it has no experts");
    let of = |work: Workload| refusal("tp=1", &work);
    assert_eq!(of(Workload { sequences: 0, ..good.clone() }), "the number of sequences must be at least 1");
    assert_eq!(of(Workload { microbatches: 0, ..good.clone() }), "the number of microbatches must be at least 1");
    let long = of(Workload { context: 1 << 20, ..good.clone() });
    assert_eq!(long, "a context of 1048576 tokens exceeds the model's 131072");
}

#[test]
fn keys_of_indexers_count_and_gpus_end_where_they_would_choose() {
    let config = load(&golden("indexed/glm_moe_dsa")).unwrap().config;
    let of = |config: &ModelConfig, device: &Device, context| {
        let work = Workload { context, ..work(Some(adapter())) };
        plan(config, PlannedLayout::default(), device, &NETWORK, &work)
    };
    let (cpu, gpu) = (host(1 << 30), Device::named("h100").unwrap());
    let indexed = of(&config, &cpu, 512).unwrap().memory;
    let dense = ModelConfig { indexer: None, ..config.clone() };
    let without = of(&dense, &cpu, 512).unwrap().memory;
    // Keys of 16 elements in two blocks, and the matrices that make these, queries and weights of heads.
    assert_eq!(indexed.kv - without.kv, 512 * 2 * 16 * 4);
    assert!(indexed.base_weights - without.base_weights >= 2 * 2 * (256 * 24 + 2 * 16 * 64));
    // Choices of the 96 rows of a microbatch.
    assert!(indexed.activations > without.activations);
    assert_eq!(of(&config, &gpu, 17).unwrap_err().to_string(), "a context of 17 tokens exceeds the model's 16");
    assert_eq!(of(&config, &gpu, 16).unwrap().memory.kv, of(&dense, &gpu, 16).unwrap().memory.kv);
}
