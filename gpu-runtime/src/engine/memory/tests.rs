//! The memory budget: predictions against what an engine holds, and the division of a budget.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;

use proptest::prelude::*;
use trainyard_protocol::{
    Engine as _, LoraSpec, ModelHead, Operation, Optimizer, RequestId, RunId, Sample, SampleOperation, SamplerSource,
    SamplingParams, SaveSampler, SessionId, Stop, TenantShare,
};

use super::*;
use crate::Dtype;
use crate::engine::CpuEngine;
use crate::engine::fault_tests::{drain, optim, pass, start};
use crate::load::load;

fn options(memory_bytes: Option<usize>) -> EngineOptions {
    EngineOptions {
        threads: 2,
        memory_bytes,
        kv_bytes: 4 << 20,
        activation_bytes: 4 << 20,
        checkpoint_bytes: 1 << 20,
        ..EngineOptions::default()
    }
}

fn engine(family: &str, options: EngineOptions) -> Result<CpuEngine, LoadError> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(family);
    CpuEngine::new(vec![("m".into(), load(&path).unwrap())], options)
}

/// A budget that leaves `runs` bytes for runs.
fn budget_for(runs: u64) -> usize {
    let plan = engine("llama", options(None)).unwrap().memory().plan();
    (plan.weights + plan.activations + plan.checkpoints + plan.kv + runs) as usize
}

fn spec(rank: Option<u32>) -> RunSpec {
    let lora = rank.map(|rank| LoraSpec::on_all(rank, 1));
    RunSpec { base_model: "m".into(), lora, optimizer: Optimizer::AdamW, head: ModelHead::Unembedding }
}

fn run_operation(engine: &mut CpuEngine, operation: Operation) {
    start(engine, "r", operation);
    drain(engine)["r"].result.clone().unwrap();
}

fn create(engine: &mut CpuEngine, run: &str, rank: Option<u32>) {
    run_operation(engine, Operation::CreateRun { run: RunId::new(run), spec: spec(rank) });
}

fn snapshot(run: &str, key: &str) -> Operation {
    Operation::SaveSampler(SaveSampler { run: RunId::new(run), snapshot: Some(key.into()), target: None })
}

fn sample(source: SamplerSource, prompt: usize) -> Operation {
    let params = SamplingParams {
        max_tokens: Some(4),
        seed: 3,
        stop: Stop::Nothing,
        temperature: 1.0,
        top_k: None,
        top_p: 1.0,
        controls: Default::default(),
    };
    let sample = Sample {
        prompt: (0..prompt as i64).map(|t| t * 3 % 512).collect(),
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
    Operation::Sample(Box::new(SampleOperation {
        session: SessionId::new("s"),
        source,
        sample,
        images: Default::default(),
    }))
}

fn base_source() -> SamplerSource {
    SamplerSource::Base { model: "m".into() }
}

#[test]
fn what_a_run_takes_is_known_before_it_is_created() {
    for family in
        ["llama", "llama_tied", "qwen2", "gemma3", "qwen3_moe", "gpt_oss", "deepseek_v3", "indexed/glm_moe_dsa"]
    {
        for dtype in [Dtype::Bf16, Dtype::F32] {
            for rank in [None, Some(1), Some(16)] {
                let mut engine = engine(family, EngineOptions { dtype, ..options(None) }).unwrap();
                let planned = engine.memory().run(&spec(rank)).unwrap();
                create(&mut engine, "a", rank);
                let mut most = 0;
                let steps = ["pass", "pass", "optim", "snapshot", "pass", "pass", "optim", "pass"];
                for step in steps {
                    match step {
                        "pass" => start(&mut engine, "r", pass("a", 8)),
                        "optim" => start(&mut engine, "r", optim("a")),
                        _ => start(&mut engine, "r", snapshot("a", "key")),
                    }
                    while !engine.is_idle() {
                        engine.step();
                        most = most.max(engine.stats().memory.runs);
                    }
                }
                let what = format!("{family} {dtype:?} {rank:?}");
                assert!(most <= planned.bytes, "{what}: {most} of {}", planned.bytes);
                assert!(most * 5 / 4 > planned.bytes, "{what}: {most} is far from {}", planned.bytes);
                assert_eq!(engine.stats().memory.snapshots, planned.snapshot_bytes, "{what}");
                if rank.is_some() {
                    let weights = engine.bases[0].weights.bytes(engine.backend()) as u64;
                    let planned = engine.memory().plan().weights;
                    assert!(weights <= planned && weights * 3 / 2 > planned, "{what}: weights {weights} of {planned}");
                }
            }
        }
    }
}

#[test]
fn a_budget_that_leaves_nothing_for_runs_is_refused_with_the_numbers() {
    let error = engine("llama", options(Some(budget_for(0)))).err().unwrap().to_string();
    let plan = engine("llama", options(None)).unwrap().memory().plan();
    for bytes in [budget_for(0) as u64, plan.weights, 4 << 20, 1 << 20] {
        assert!(error.contains(&bytes.to_string()), "{bytes} is not in {error}");
    }
    let plan = engine("llama", options(Some(budget_for(5)))).unwrap().memory().plan();
    assert_eq!(plan.runs(), 5);
}

#[test]
fn names_of_the_same_files_share_their_weights() {
    let golden = |family: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(family);
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(golden("llama").canonicalize().unwrap(), &link).unwrap();
    let copy = folder.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    for file in ["config.json", "model.safetensors"] {
        std::fs::copy(golden("llama").join(file), copy.join(file)).unwrap();
    }
    let models = |paths: &[&Path]| -> Vec<(String, crate::config::ModelSource)> {
        paths.iter().enumerate().map(|(at, path)| (format!("m{at}"), load(path).unwrap())).collect()
    };
    let [one, other] = ["llama", "qwen2"].map(golden);
    let engine = |paths: &[&Path]| CpuEngine::new(models(paths), options(None)).unwrap();
    let single = engine(&[&one]).memory().plan().weights;
    let shared = engine(&[&one, &link, &one]);
    assert!(shared.bases.iter().all(|base| Arc::ptr_eq(&base.weights, &shared.bases[0].weights)));
    assert_eq!((shared.memory().plan().weights, shared.models().len()), (single, 3));
    let apart = engine(&[&one, &copy, &other]);
    assert!(!Arc::ptr_eq(&apart.bases[0].weights, &apart.bases[1].weights));
    assert!(apart.memory().plan().weights > 2 * single);
}

#[test]
fn keys_and_values_get_what_runs_leave() {
    let planned = engine("llama", options(None)).unwrap().memory().run(&spec(None)).unwrap().bytes;
    let mut engine = engine("llama", options(Some(budget_for(planned)))).unwrap();
    let sampled = |engine: &mut CpuEngine| {
        start(engine, "r", sample(base_source(), 200));
        format!("{:?}", drain(engine)["r"].result)
    };
    let before = sampled(&mut engine);
    assert_eq!(engine.stats().kv_limit, 4 << 20);
    create(&mut engine, "a", None);
    let stats = engine.stats();
    assert_eq!(stats.kv_limit, 1 << 20, "the part that runs never get");
    assert!(stats.kv_bytes <= stats.kv_limit);
    assert_eq!(sampled(&mut engine), before);
    engine.unload_run(&RunId::new("a"));
    assert_eq!(sampled(&mut engine), before);
    assert_eq!(engine.stats().kv_limit, 4 << 20);
}

#[test]
fn a_dropped_snapshot_counts_until_its_samples_end() {
    let mut engine = engine("llama", options(None)).unwrap();
    create(&mut engine, "a", Some(4));
    run_operation(&mut engine, snapshot("a", "key"));
    start(&mut engine, "s", sample(SamplerSource::Snapshot { key: "key".into() }, 20));
    engine.step();
    let held = engine.stats().memory.snapshots;
    engine.drop_snapshot("key");
    engine.step();
    assert_eq!((engine.stats().memory.snapshots, engine.is_idle()), (held, false));
    drain(&mut engine);
    engine.step();
    assert_eq!(engine.stats().memory.snapshots, 0);
}

/// A random event in the life of an engine.
#[derive(Clone, Debug)]
enum Event {
    Create { run: usize, rank: Option<u32> },
    Pass(usize),
    Optim(usize),
    Snapshot(usize),
    Sample { snapshot: Option<usize>, prompt: usize },
    Unload(usize),
    DropSnapshot(usize),
    Steps(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let run = 0..5_usize;
    let event = prop_oneof![
        (run.clone(), prop_oneof![Just(None), (1..24_u32).prop_map(Some)])
            .prop_map(|(run, rank)| Event::Create { run, rank }),
        run.clone().prop_map(Event::Pass),
        run.clone().prop_map(Event::Optim),
        run.clone().prop_map(Event::Snapshot),
        (proptest::option::of(run.clone()), 1..120_usize)
            .prop_map(|(snapshot, prompt)| Event::Sample { snapshot, prompt }),
        run.clone().prop_map(Event::Unload),
        run.prop_map(Event::DropSnapshot),
        (1..8_usize).prop_map(Event::Steps),
    ];
    proptest::collection::vec(event, 1..40)
}

/// Applies an event if the planned runs and snapshots allow it.
fn apply(engine: &mut CpuEngine, at: usize, event: &Event) {
    let memory = engine.memory();
    let planned = |engine: &CpuEngine| {
        let runs: u64 = engine.runs.values().map(|run| run.planned.bytes).sum();
        runs + engine.stats().memory.snapshots
    };
    let fits = |engine: &CpuEngine, bytes| planned(engine) + bytes <= memory.plan().runs();
    let name = |run: &usize| RunId::new(format!("run{run}"));
    let loaded = |engine: &CpuEngine, run: &usize| engine.runs.contains_key(&name(run));
    let operation = match event {
        Event::Create { run, rank } if !loaded(engine, run) => {
            let needed = memory.run(&spec(*rank)).unwrap().bytes;
            fits(engine, needed).then(|| Operation::CreateRun { run: name(run), spec: spec(*rank) })
        }
        Event::Pass(run) => loaded(engine, run).then(|| pass(name(run).as_str(), 3)),
        Event::Optim(run) => loaded(engine, run).then(|| optim(name(run).as_str())),
        Event::Snapshot(run) => {
            let needed = engine.runs.get(&name(run)).map(|run| run.planned.snapshot_bytes);
            let fitting = needed.filter(|needed| fits(engine, *needed));
            fitting.map(|_| snapshot(name(run).as_str(), &format!("key{run}")))
        }
        Event::Sample { snapshot, prompt } => {
            let of = |run| SamplerSource::Snapshot { key: format!("key{run}") };
            Some(sample(snapshot.map_or_else(base_source, of), *prompt))
        }
        _ => None,
    };
    match (event, operation) {
        // One at a time: what two of them need is not counted before they are executed.
        (Event::Create { .. } | Event::Snapshot(_), Some(operation)) => {
            drain(engine);
            start(engine, "r", operation);
            drain(engine);
        }
        (Event::Unload(run), _) => engine.unload_run(&name(run)),
        (Event::DropSnapshot(run), _) => engine.drop_snapshot(&format!("key{run}")),
        (Event::Steps(steps), _) => (0..*steps).for_each(|_| drop(engine.step())),
        (_, Some(operation)) => {
            engine.start(RequestId::new(format!("{at}")), TenantShare::new("t"), operation);
        }
        (_, None) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn what_is_held_never_exceeds_the_budget_and_nothing_is_leaked(events in events()) {
        let full = engine("llama", options(None)).unwrap().memory().run(&spec(None)).unwrap().bytes;
        let budget = budget_for(full * 2);
        let mut engine = engine("llama", options(Some(budget))).unwrap();
        for (at, event) in events.iter().enumerate() {
            apply(&mut engine, at, event);
            let stats = engine.stats();
            prop_assert!(stats.memory.total() <= stats.memory_budget, "{event:?}: {:?}", stats.memory);
            prop_assert_eq!(stats.memory_budget, budget as u64);
        }
        drain(&mut engine);
        for run in 0..5 {
            engine.unload_run(&RunId::new(format!("run{run}")));
            engine.drop_snapshot(&format!("key{run}"));
        }
        engine.step();
        let held = engine.stats().memory;
        prop_assert_eq!((held.runs, held.snapshots, held.checkpoints), (0, 0, 0));
    }
}
