//! Tensor parallel and expert parallel ranks behind the engine's trait: the guarantees of one rank hold on several, and files are the same.

use std::path::Path;

use trainyard_gpu_runtime::backend::HostBackend;
use trainyard_gpu_runtime::load::load as open;
use trainyard_gpu_runtime::{Dtype, EngineOptions, Parallel, ParallelEngine};
use trainyard_protocol::{
    Engine, ForwardBackwardResult, LoraSpec, ModelHead, OpResult, Operation, Optimizer, RestoreRun, RunId, RunSpec,
    SampledSequence, SamplerSource, SaveRun, SaveSampler, SaveSnapshot, SaveState,
};

use crate::equality::parity;
use crate::isolation;
use crate::saves::{load, target, train};
use crate::support::{Driver, datum, golden, lora, on_ranks, params, sample, sample_result, tokens};

/// Every file of a folder, by name.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| {
        (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap())
    };
    let mut files: Vec<_> = entries.map(read).collect();
    files.sort();
    files
}

fn assert_same_files(a: &Path, b: &Path) {
    let (a, b) = (files(a), files(b));
    assert_eq!(a.iter().map(|(name, _)| name).collect::<Vec<_>>(), b.iter().map(|(name, _)| name).collect::<Vec<_>>());
    for ((name, a), (_, b)) in a.iter().zip(&b) {
        assert!(a == b, "{name} differs");
    }
}

#[test]
fn logprobs_of_sampler_and_trainer_are_bit_equal_on_ranks() {
    for (family, layout, full, dtype) in [
        ("llama", "tp=2", false, Dtype::Bf16),
        ("qwen3", "tp=2", false, Dtype::F32),
        ("qwen2", "tp=2", true, Dtype::Bf16),
        ("gemma3", "tp=4", false, Dtype::F32),
        ("qwen3_moe", "ep=2", false, Dtype::Bf16),
        ("gpt_oss", "ep=2", true, Dtype::Bf16),
        ("deepseek_v3", "ep=2", false, Dtype::F32),
        ("gpt_oss", "tp=2", false, Dtype::Bf16),
        ("deepseek_v3", "tp=2,ep=2", true, Dtype::Bf16),
        ("indexed/glm_moe_dsa", "tp=2,ep=2", false, Dtype::Bf16),
    ] {
        parity(&mut on_ranks(family, layout, dtype), full);
    }
}

#[test]
fn a_run_on_ranks_is_bit_equal_alone_and_batched_with_others() {
    for (family, layout, full) in [
        ("qwen3", "tp=2", false),
        ("qwen3", "tp=2", true),
        ("gpt_oss", "ep=2", false),
        ("deepseek_v3", "ep=2", true),
        ("qwen3_moe", "tp=2,ep=2", false),
    ] {
        let alone = isolation::train(&mut on_ranks(family, layout, Dtype::Bf16), 0, full);
        let batched = isolation::train(&mut on_ranks(family, layout, Dtype::Bf16), 3, full);
        assert_eq!(alone, batched, "{family}, {layout}, full {full}");
    }
}

/// Results with their metrics of routing, and what is sampled greedily afterwards.
#[test]
fn expert_parallel_ranks_compute_the_bits_of_one() {
    for (family, layout, full) in
        [("qwen3_moe", "ep=4", false), ("gpt_oss", "ep=2", true), ("deepseek_v3", "ep=2", false)]
    {
        let one = outcome(&mut Driver::open(&golden(family), Dtype::Bf16), full);
        let shared = outcome(&mut on_ranks(family, layout, Dtype::Bf16), full);
        assert!(one.0.iter().all(|result| result.metrics.contains_key("e_max_violation:mean")));
        assert_eq!(one, shared, "{family}, {layout}");
    }
}

/// Results of training a run, of a last forward pass, and what the trained run samples greedily.
pub(crate) fn outcome<E: Engine>(d: &mut Driver<E>, full: bool) -> (Vec<ForwardBackwardResult>, Vec<SampledSequence>) {
    let (mut results, last) = isolation::train(d, 0, full);
    results.push(last);
    d.snapshot("x", "trained");
    let source = SamplerSource::Snapshot { key: "trained".into() };
    let request = sample(source, tokens(20, 512, 1), 1, params(24, 0.0, 1));
    (results, sample_result(d.run(Operation::Sample(Box::new(request)))).sequences)
}

#[test]
fn ranks_compute_what_one_computes() {
    for (family, layout, full) in [
        ("qwen2", "tp=2", false),
        ("qwen2", "tp=2", true),
        ("qwen3_moe", "tp=2", false),
        ("gpt_oss", "tp=2,ep=2", false),
        ("deepseek_v3", "tp=4", false),
    ] {
        let (one, greedy) = outcome(&mut Driver::open(&golden(family), Dtype::F32), full);
        let (results, sampled) = outcome(&mut on_ranks(family, layout, Dtype::F32), full);
        assert_eq!(sampled[0].tokens, greedy[0].tokens, "{family}, {layout}");
        for (found, expected) in results.iter().zip(&one) {
            for (found, expected) in found.outputs.iter().zip(&expected.outputs) {
                for (a, b) in found.logprobs.iter().zip(&expected.logprobs) {
                    assert!((a - b).abs() < 1e-4, "{a} != {b}");
                }
            }
        }
    }
}

/// Saves everything that can be saved of a run that has moments and a gradient, loads it elsewhere and saves it again.
pub(crate) fn moved<A: Engine, B: Engine>(from: &mut Driver<A>, to: &mut Driver<B>, adapter: Option<LoraSpec>) {
    let folder = tempfile::tempdir().unwrap();
    let dir = |name: &str| folder.path().join(name);
    from.create("x", adapter.clone());
    train(from, "x", 0, 2);
    from.forward_backward("x", vec![datum(&tokens(20, 512, 5))]);
    let state = |dir: &Path, run: &str| Operation::SaveState(SaveState { run: RunId::new(run), target: target(dir) });
    let whole = |dir: &Path, run: &str| Operation::SaveRun(SaveRun { run: RunId::new(run), target: target(dir) });
    from.run(state(&dir("state"), "x")).unwrap();
    from.run(whole(&dir("run"), "x")).unwrap();
    to.run(load("y", &dir("state"), true, adapter.clone())).unwrap();
    to.run(state(&dir("state again"), "y")).unwrap();
    assert_same_files(&dir("state"), &dir("state again"));
    let spec =
        RunSpec { base_model: "m".into(), lora: adapter, optimizer: Optimizer::AdamW, head: ModelHead::Unembedding };
    to.run(Operation::RestoreRun(RestoreRun { run: RunId::new("z"), dir: dir("run"), spec })).unwrap();
    to.run(whole(&dir("run again"), "z")).unwrap();
    assert_same_files(&dir("run"), &dir("run again"));
    // Both go on, and stay close.
    from.step("x", 1e-2);
    to.step("z", 1e-2);
    let probe = || vec![datum(&tokens(30, 512, 99))];
    let (a, b) = (from.forward("x", probe()), to.forward("z", probe()));
    for (a, b) in a.outputs[0].logprobs.iter().zip(&b.outputs[0].logprobs) {
        assert!((a - b).abs() < 2e-4, "{a} != {b}");
    }
}

#[test]
fn runs_move_between_layouts() {
    for adapter in [Some(lora(6, 5)), None] {
        let one = || Driver::open(&golden("qwen2"), Dtype::F32);
        moved(&mut on_ranks("qwen2", "tp=2", Dtype::F32), &mut one(), adapter.clone());
        moved(&mut one(), &mut on_ranks("qwen2", "tp=4", Dtype::F32), adapter.clone());
        moved(&mut on_ranks("qwen2", "tp=4", Dtype::F32), &mut on_ranks("qwen2", "tp=2", Dtype::F32), adapter.clone());
        for (family, from, to) in
            [("qwen3_moe", "ep=2", "tp=1"), ("gpt_oss", "tp=1", "ep=4"), ("deepseek_v3", "tp=2,ep=2", "ep=2")]
        {
            let of = |layout| on_ranks(family, layout, Dtype::F32);
            moved(&mut of(from), &mut of(to), adapter.clone());
        }
    }
}

#[test]
fn an_adapter_begins_with_the_same_values_on_every_layout() {
    let folder = tempfile::tempdir().unwrap();
    let save = |name: &str| {
        let (run, target) = (RunId::new("x"), target(&folder.path().join(name)));
        Operation::SaveState(SaveState { run, target })
    };
    let mut one = Driver::open(&golden("llama"), Dtype::F32);
    one.create("x", Some(lora(4, 7)));
    one.run(save("one")).unwrap();
    let mut two = on_ranks("llama", "tp=2", Dtype::F32);
    two.create("x", Some(lora(4, 7)));
    two.run(save("two")).unwrap();
    assert_same_files(&folder.path().join("one"), &folder.path().join("two"));
}

#[test]
fn samples_from_saved_weights_are_those_from_memory() {
    saved_weights(|| on_ranks("qwen3", "tp=2", Dtype::Bf16));
}

/// Samples from weights in memory and from each way of saving them.
pub(crate) fn saved_weights<E: Engine>(engine: impl Fn() -> Driver<E>) {
    for adapter in [Some(lora(5, 1)), None] {
        let folder = tempfile::tempdir().unwrap();
        let mut d = engine();
        d.create("x", adapter);
        train(&mut d, "x", 0, 2);
        let exported = folder.path().join("exported");
        let save = SaveSampler { run: RunId::new("x"), snapshot: Some("snap".into()), target: Some(target(&exported)) };
        assert!(matches!(d.run(Operation::SaveSampler(save)).unwrap(), OpResult::Saved(Some(_))));
        let stored = folder.path().join("stored");
        d.run(Operation::SaveSnapshot(SaveSnapshot { key: "snap".into(), target: target(&stored) })).unwrap();
        let mut take = |source: SamplerSource| {
            let request = sample(source, tokens(40, 512, 3), 2, params(12, 1.0, 7));
            sample_result(d.run(Operation::Sample(Box::new(request))))
        };
        let expected = take(SamplerSource::Snapshot { key: "snap".into() });
        for dir in [exported, stored] {
            let found = take(SamplerSource::Checkpoint { base_model: "m".into(), dir });
            assert_eq!(found.sequences, expected.sequences);
        }
        // A folder that is not there fails on all ranks, and they go on.
        let gone = SamplerSource::Checkpoint { base_model: "m".into(), dir: folder.path().join("gone") };
        let request = sample(gone, tokens(4, 512, 3), 1, params(1, 1.0, 7));
        assert!(d.run(Operation::Sample(Box::new(request))).is_err());
        d.forward("x", vec![datum(&tokens(9, 512, 1))]);
    }
}

#[test]
fn the_layout_is_part_of_the_numerics() {
    let two = on_ranks("llama", "tp=2", Dtype::F32);
    let one = Driver::open(&golden("llama"), Dtype::F32);
    let (two, one) = (two.engine.numerics().remove("m").unwrap(), one.engine.numerics().remove("m").unwrap());
    assert_eq!((two.layout.as_str(), one.layout.as_str()), ("tp=2", "single"));
    assert_eq!(two.weights, one.weights, "the same files");
    assert_ne!(two.arithmetic(), one.arithmetic());
    let four = on_ranks("gpt_oss", "tp=2,ep=2", Dtype::F32).engine.numerics().remove("m").unwrap();
    let one = Driver::open(&golden("gpt_oss"), Dtype::F32).engine.numerics().remove("m").unwrap();
    assert_eq!(four.layout, "tp=2,ep=2");
    assert_eq!(four.weights, one.weights, "each rank read its experts");
}

#[test]
fn models_are_described_as_a_whole() {
    let (two, one) = (on_ranks("llama", "tp=2", Dtype::F32), Driver::open(&golden("llama"), Dtype::F32));
    assert_eq!(two.engine.models(), one.engine.models());
    let weights = |plan: trainyard_protocol::MemoryPlan| plan.weights;
    let (two, one) = (weights(two.engine.memory().plan()), weights(one.engine.memory().plan()));
    assert!(two > one && two < 2 * one, "embedding and norms are on both ranks: {two}, {one}");
    let [all, attention, experts] = ["tp=1", "tp=2", "ep=2"].map(|layout| {
        let mut d = on_ranks("qwen3_moe", layout, Dtype::F32);
        d.create("x", None);
        let stats = d.engine.stats().memory;
        (weights(d.engine.memory().plan()), stats.runs)
    });
    assert!(
        all.0 < attention.0 && attention.0 < experts.0 && experts.0 < 2 * all.0,
        "attention is on both ranks of ep=2"
    );
    assert!(
        all.1 < attention.1 && attention.1 < experts.1 && experts.1 < 2 * all.1,
        "{all:?} {attention:?} {experts:?}"
    );
}

#[test]
fn a_layout_that_does_not_fit_is_refused_before_anything_loads() {
    let models = (0..3).map(|_| vec![("m".to_owned(), open(&golden("llama")).unwrap())]).collect();
    let options = EngineOptions { parallel: Parallel::with_tp(3).unwrap(), threads: 1, ..EngineOptions::default() };
    let refusal = ParallelEngine::<HostBackend>::new(models, options).err().unwrap().to_string();
    assert_eq!(refusal, "tp=3 does not fit the model: num_key_value_heads is 2, which 3 does not divide");
}
