//! Ranks on several simulated GPUs, which exchange by the simulated NCCL.

use std::time::{Duration, Instant};

use trainyard_gpu_runtime::backend::cuda::Cuda;
use trainyard_gpu_runtime::load::load;
use trainyard_gpu_runtime::{Dtype, EngineOptions, ParallelEngine};
use trainyard_protocol::{
    Datum, Engine, ForwardBackwardResult, Operation, RunId, SampledSequence, SamplerSource, SaveRun, SaveState,
    SaveTarget,
};

use crate::cuda::simulated_with;
use crate::support::*;

pub(crate) fn gpu(rank: usize, dtype: Dtype) -> Cuda {
    Cuda::open(i32::try_from(rank).unwrap(), dtype).unwrap()
}

fn try_open(family: &str, layout: &str, limit: Option<Duration>) -> Result<Driver<ParallelEngine<Cuda>>, String> {
    let dtype = Dtype::F32;
    let options = EngineOptions { parallel: layout.parse().unwrap(), dtype, ..EngineOptions::default() };
    let ranks = 0..options.parallel.world();
    let models = ranks.clone().map(|_| vec![("m".into(), load(&golden(family)).unwrap())]).collect();
    let gpus = ranks.map(|rank| limit.into_iter().fold(gpu(rank, dtype), Cuda::with_rank_limit)).collect();
    ParallelEngine::on_gpus(gpus, models, &options).map(Driver::over).map_err(|error| error.to_string())
}

pub(crate) fn open(family: &str, layout: &str) -> Driver<ParallelEngine<Cuda>> {
    try_open(family, layout, None).unwrap()
}

pub(crate) fn examples(seed: usize) -> Vec<Datum> {
    [7, 5, 6].into_iter().enumerate().map(|(i, length)| datum(&tokens(length, 512, 10 * seed + i))).collect()
}

/// Results before and after an optimizer step, and what the trained run samples greedily.
pub(crate) type Outcome = (Vec<ForwardBackwardResult>, Vec<SampledSequence>);

pub(crate) fn outcome<E: Engine>(d: &mut Driver<E>, full: bool) -> Outcome {
    d.create("x", (!full).then(|| lora(4, 1)));
    let first = d.forward_backward("x", examples(1));
    d.step("x", 1e-2);
    let last = d.forward("x", examples(1));
    d.snapshot("x", "trained");
    let source = SamplerSource::Snapshot { key: "trained".into() };
    let request = sample(source, tokens(5, 512, 1), 1, params(2, 0.0, 1));
    (vec![first, last], sample_result(d.run(Operation::Sample(Box::new(request)))).sequences)
}

/// Several ranks compute what one rank computes, except for the order of sums, and the same bits each time.
fn as_one(family: &str, layouts: &[&str], full: bool) {
    let (expected, greedy) = outcome(&mut open(family, "tp=1"), full);
    for layout in layouts {
        let (found, sampled) = outcome(&mut open(family, layout), full);
        assert_eq!(sampled[0].tokens, greedy[0].tokens, "{family}, {layout}");
        for (found, expected) in found.iter().zip(&expected) {
            for (found, expected) in found.outputs.iter().zip(&expected.outputs) {
                for (a, b) in found.logprobs.iter().zip(&expected.logprobs) {
                    assert!((a - b).abs() < 1e-4, "{family}, {layout}: {a} != {b}");
                }
            }
        }
        let again = outcome(&mut open(family, layout), full);
        assert_eq!((found, sampled), again, "{family}, {layout}");
    }
}

fn with_devices(test: &str, devices: &str, body: impl FnOnce()) {
    simulated_with(&format!("cuda_ranks::{test}"), &[("CUDASIM_DEVICES", devices), ("CUDASIM_SEED", "6")], None, body);
}

#[test]
fn tensor_parallel_ranks_compute_what_one_computes() {
    with_devices("tensor_parallel_ranks_compute_what_one_computes", "2", || as_one("qwen3", &["tp=2"], false));
}

#[test]
fn replicas_compute_what_one_computes() {
    with_devices("replicas_compute_what_one_computes", "2", || {
        as_one("llama", &["dp=2"], true);
        // Requests of one round: the same bits, with parameters whole and divided.
        assert_eq!(outcome(&mut open("llama", "dp=2,zero=3"), true), outcome(&mut open("llama", "dp=2"), true));
    });
}

#[test]
fn expert_parallel_ranks_compute_what_one_computes() {
    with_devices("expert_parallel_ranks_compute_what_one_computes", "2", || as_one("qwen3_moe", &["ep=2"], false));
}

#[test]
fn saves_of_ranks_take_no_memory_of_a_device() {
    with_devices("saves_of_ranks_take_no_memory_of_a_device", "2", || {
        for (layout, full) in [("tp=2", false), ("dp=2", false), ("dp=2,zero=3", true)] {
            let mut d = open("llama", layout);
            d.create("x", (!full).then(|| lora(4, 1)));
            d.forward_backward("x", examples(1));
            d.step("x", 1e-2);
            d.forward_backward("x", examples(2));
            let folder = tempfile::tempdir().unwrap();
            let target = |name: &str| SaveTarget { dir: folder.path().join(name), overwrite: false };
            let run = || RunId::new("x");
            let (run, state) =
                (SaveRun { run: run(), target: target("run") }, SaveState { run: run(), target: target("state") });
            let used = |d: &Driver<ParallelEngine<Cuda>>| d.engine.backend().gpu().arena().bytes();
            d.engine.backend().gpu().arena().reset_peak();
            let before = used(&d);
            for save in [Operation::SaveRun(run), Operation::SaveState(state)] {
                d.run(save).unwrap();
            }
            assert_eq!((used(&d).peak, used(&d).used), (before.used, before.used), "{layout}");
        }
    });
}

#[test]
fn four_ranks_compute_what_one_computes() {
    with_devices("four_ranks_compute_what_one_computes", "4", || {
        as_one("llama", &["tp=2,dp=2"], false);
        as_one("gpt_oss", &["tp=2,ep=2"], false);
    });
}

/// Starts a pass on two ranks, with some settings of the simulator, and returns why they ended.
fn ends(test: &str, settings: &[(&str, &str)], check: impl FnOnce(String)) {
    let common = [("CUDASIM_DEVICES", "2"), ("CUDASIM_NCCL_TIMEOUT_MS", "3000")];
    simulated_with(&format!("cuda_ranks::{test}"), &[&common, settings].concat(), None, || {
        let mut d = try_open("llama", "tp=2", Some(Duration::from_secs(5))).unwrap();
        let began = Instant::now();
        d.create("x", Some(lora(4, 1)));
        d.start(loss_op("x", examples(1), false));
        while d.engine.failure().is_none() {
            assert!(began.elapsed() < Duration::from_secs(60) && !d.engine.is_idle(), "the ranks go on");
            d.engine.step();
        }
        assert!(d.engine.step().is_empty(), "nothing is left to compute");
        check(d.engine.failure().unwrap().message);
        drop(d);
        assert!(began.elapsed() < Duration::from_secs(60), "the ranks end");
    });
}

#[test]
fn a_rank_whose_collectives_fail_ends_all() {
    ends("a_rank_whose_collectives_fail_ends_all", &[("CUDASIM_NCCL_DIE", "1:4")], |failure| {
        // Of the two, the one that noticed it first.
        let named = failure.contains("rank 0 of 2: ") || failure.contains("rank 1 of 2: ");
        assert!(failure.contains("all_gather failed: ") && named, "{failure}");
    });
}

#[test]
fn a_rank_whose_device_fails_ends_all() {
    ends("a_rank_whose_device_fails_ends_all", &[("CUDASIM_FAIL_LAUNCH", "90")], |failure| {
        assert!(failure.contains("CUDA_ERROR_LAUNCH_FAILED") || failure.contains("of 2: "), "{failure}");
    });
}

#[test]
fn a_rank_that_is_silent_ends_all() {
    let settings = [("CUDASIM_NCCL_HANG", "1:4"), ("CUDASIM_NCCL_TIMEOUT_MS", "60000")];
    ends("a_rank_that_is_silent_ends_all", &settings, |failure| {
        assert!(failure.contains("all_gather failed: not finished after 5 s: a rank is missing"), "{failure}");
    });
}

#[test]
fn ranks_without_their_library_are_refused() {
    let (test, without) = ("cuda_ranks::ranks_without_their_library_are_refused", ("libnccl.so.2", "ncclSend"));
    simulated_with(test, &[("CUDASIM_DEVICES", "2")], Some(without), || {
        let refused = try_open("llama", "tp=2", None).err().unwrap();
        assert!(refused.contains("rank 0 of 2: libnccl lacks the function ncclSend: it is too old"), "{refused}");
    });
}
