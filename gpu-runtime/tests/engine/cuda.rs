//! The engine on a simulated GPU, in processes that find the simulated libraries.

use std::path::{Path, PathBuf};

use cuda_sim_harness::Simulator;
use trainyard_gpu_runtime::backend::cuda::Cuda;
use trainyard_gpu_runtime::load::load;
use trainyard_gpu_runtime::{CudaEngine, Dtype, EngineOptions};
use trainyard_protocol::{
    Datum, Engine, ForwardBackwardResult, LoraSpec, ModelHead, OpError, Operation, Optimizer, RestoreRun, RunId,
    RunSpec, SampleResult, SamplerSource, SaveRun, SaveSampler, SaveTarget,
};
use trainyard_test_support::full::chosen;

use crate::images;
use crate::support::*;

/// Set in these processes.
const MARK: &str = "TRAINYARD_TEST_ENGINE_ON_SIMULATED_DEVICE";

/// Set where tests run on a GPU: see `make test-gpu`.
const ON_GPU: &str = "TRAINYARD_TEST_ON_GPU";

/// Calls `body` in a process of its own, in which a setting of the simulator holds; in this one on a GPU.
fn simulated<F: FnOnce()>(name: &str, setting: (&str, &str), body: F) {
    simulated_with(&format!("cuda::{name}"), &[setting], None, body);
}

/// Runs a test of any module on the simulator, with some settings, and without a function of a library.
pub(crate) fn simulated_with<F: FnOnce()>(
    test: &str,
    settings: &[(&str, &str)],
    without: Option<(&str, &str)>,
    body: F,
) {
    if [MARK, ON_GPU].into_iter().any(|name| std::env::var_os(name).is_some()) {
        return body();
    }
    let simulator = Simulator::new().unwrap();
    without.into_iter().for_each(|(library, symbol)| simulator.remove_symbol(library, symbol).unwrap());
    let mut program = simulator.command(std::env::current_exe().unwrap());
    program.args([test, "--exact", "--nocapture", "--test-threads", "1"]);
    let output = program.env(MARK, "1").envs(settings.iter().copied()).output().unwrap();
    let [text, report] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{report}");
}

fn open(family: &str, dtype: Dtype) -> Driver<CudaEngine> {
    let gpu = Cuda::open(0, dtype).unwrap();
    let options = EngineOptions { dtype, ..EngineOptions::default() };
    Driver::over(CudaEngine::on_gpu(gpu, vec![("m".into(), load(&golden(family)).unwrap())], options).unwrap())
}

fn examples(seed: usize) -> Vec<Datum> {
    [9, 5].into_iter().enumerate().map(|(i, length)| datum(&tokens(length, 512, 10 * seed + i))).collect()
}

/// Trains run `x`, with or without another run and a sample in its passes.
fn train(d: &mut Driver<CudaEngine>, with_others: bool) -> Vec<ForwardBackwardResult> {
    d.create("x", Some(lora(4, 1)));
    let mut others = Vec::new();
    if with_others {
        d.create("y", Some(lora(7, 2)));
        others.push(d.start(loss_op("y", examples(3), false)));
        let source = SamplerSource::Base { model: "m".into() };
        others.push(d.start(Operation::Sample(Box::new(sample(source, tokens(6, 512, 4), 1, params(3, 1.0, 5))))));
    }
    let own = d.start(loss_op("x", examples(1), false));
    let first = loss_result(d.take(&own));
    others.iter().for_each(|id| drop(d.take(id).unwrap()));
    d.step("x", 1e-2);
    vec![first, d.forward("x", examples(2))]
}

/// Log-probabilities of samples are those of a forward pass over the same tokens: within 2e-2, on average within 1e-3.
fn agree(d: &mut Driver<CudaEngine>, prompt: &[i64], result: &SampleResult) {
    for sequence in &result.sequences {
        let mut all = prompt.to_vec();
        all.extend(sequence.tokens.iter().map(|token| i64::from(*token)));
        let forward = d.forward("x", vec![datum(&all)]);
        let prompt_logprobs = result.prompt_logprobs.as_ref().unwrap();
        let sampled: Vec<f32> = prompt_logprobs[1..].iter().chain(&sequence.logprobs).copied().collect();
        let trained = &forward.outputs[0].logprobs;
        assert_eq!(sampled.len(), trained.len());
        let errors: Vec<f32> = sampled.iter().zip(trained).map(|(a, b)| (a - b).abs()).collect();
        assert!(errors.iter().all(|error| *error < 2e-2), "{errors:?}");
        assert!(errors.iter().sum::<f32>() / (errors.len() as f32) < 1e-3, "{errors:?}");
    }
}

/// The simulator reads it before its next allocation, launch or event.
fn fault_file() -> PathBuf {
    std::env::var_os("CUDASIM_FAULT_FILE").unwrap().into()
}

/// Makes the simulated device fail from now on as `fault` describes.
pub(crate) fn inject(fault: &str) {
    let written = fault_file().with_extension("new");
    std::fs::write(&written, fault).and_then(|()| std::fs::rename(written, fault_file())).unwrap();
}

/// Whether the device has read what was injected last.
pub(crate) fn is_injected() -> bool {
    !fault_file().exists()
}

fn restore(run: &str, dir: &Path) -> Operation {
    let (lora, head) = (Some(lora(4, 1)), ModelHead::Unembedding);
    let spec = RunSpec { base_model: "m".into(), lora, optimizer: Optimizer::AdamW, head };
    Operation::RestoreRun(RestoreRun { run: RunId::new(run), spec, dir: dir.to_owned() })
}

/// Images have equal bits alone and together, and samples behind them agree with the trainer.
#[test]
fn images_are_trained_and_sampled() {
    simulated("images_are_trained_and_sampled", ("CUDASIM_SEED", "5"), || {
        for (family, dtype) in chosen(&[("vision/qwen3_vl", Dtype::Bf16)], &[("vision/qwen3_5_vl", Dtype::F32)]) {
            let mut d = open(family, dtype);
            images::train(&mut d, family, Some(lora(4, 1)));
            images::equal_bits(&mut d, family);
            images::few_samples_agree(&mut d, family, 2e-2);
        }
    });
}

#[test]
fn a_run_trains_samples_and_resumes() {
    simulated("a_run_trains_samples_and_resumes", ("CUDASIM_SEED", "4"), || {
        let always = [("qwen3", Dtype::F32), ("qwen3_5", Dtype::Bf16), ("lfm2", Dtype::Bf16)];
        let others = [("qwen3", Dtype::Bf16), ("nemotron_h", Dtype::F32), ("granitemoehybrid", Dtype::Bf16)];
        for (family, dtype) in chosen(&always, &others) {
            let mut d = open(family, dtype);
            let trained = train(&mut d, false);
            d.snapshot("x", "snap");
            let source = SamplerSource::Snapshot { key: "snap".into() };
            let prompt = tokens(7, 512, 6);
            let mut controlled = params(4, 1.0, 8);
            (controlled.top_k, controlled.top_p) = (Some(20), 0.9);
            let request = sample(source, prompt.clone(), 2, controlled);
            let result = sample_result(d.run(Operation::Sample(Box::new(request))));
            assert_eq!(result.sequences.len(), 2);
            agree(&mut d, &prompt, &result);

            let folder = tempfile::tempdir().unwrap();
            let dir = folder.path().join("x");
            let target = SaveTarget { dir: dir.clone(), overwrite: false };
            d.run(Operation::SaveRun(SaveRun { run: RunId::new("x"), target })).unwrap();
            d.engine.unload_run(&RunId::new("x"));
            d.run(restore("x", &dir)).unwrap();
            assert_eq!(d.forward("x", examples(2)), trained[1], "{family}, {dtype:?}");
        }
    });
}

#[test]
fn decoding_is_launched_as_graphs_and_keeps_its_bits() {
    simulated("decoding_is_launched_as_graphs_and_keeps_its_bits", ("CUDASIM_SEED", "6"), || {
        // With attention and with states.
        chosen(&["qwen3", "lfm2"], &["nemotron_h", "qwen3_5"]).for_each(graphs_keep_bits);
    });
}

fn graphs_keep_bits(family: &str) {
    // Without memory that is reused no two passes do the same.
    let sampled = [0, 64 << 20].map(|activation_bytes| {
        let gpu = Cuda::open(0, Dtype::Bf16).unwrap();
        let options = EngineOptions { dtype: Dtype::Bf16, activation_bytes, ..EngineOptions::default() };
        let models = vec![("m".into(), load(&golden(family)).unwrap())];
        let mut d = Driver::over(CudaEngine::on_gpu(gpu, models, options).unwrap());
        d.create("x", Some(lora(4, 1)));
        d.snapshot("x", "snap");
        let of = |source, seed| sample(source, tokens(5, 512, seed), 2, params(24, 1.0, 8));
        let base = d.start(Operation::Sample(Box::new(of(SamplerSource::Base { model: "m".into() }, 6))));
        let own = d.start(Operation::Sample(Box::new(of(SamplerSource::Snapshot { key: "snap".into() }, 7))));
        let results = [base, own].map(|id| sample_result(d.take(&id)).sequences);
        (results, d.engine.backend().gpu().launched_graphs())
    });
    let [(plain, none), (with_graphs, launched)] = sampled;
    assert_eq!(none, 0);
    assert!(launched >= 4, "{family}: {launched}");
    assert_eq!(plain, with_graphs, "{family}");
}

#[test]
fn a_run_is_bit_equal_alone_and_with_others() {
    simulated("a_run_is_bit_equal_alone_and_with_others", ("CUDASIM_SEED", "5"), || {
        for family in chosen(&["qwen3", "nemotron_h"], &["qwen3_5", "lfm2"]) {
            let [alone, batched] = [false, true].map(|others| train(&mut open(family, Dtype::Bf16), others));
            assert_eq!(alone, batched, "{family}");
        }
    });
}

#[test]
fn a_request_beyond_the_devices_memory_fails_alone() {
    simulated("a_request_beyond_the_devices_memory_fails_alone", ("CUDASIM_MEMORY", "6000000"), || {
        let mut d = open("llama", Dtype::F32);
        d.create("x", Some(lora(4, 1)));
        d.create("y", Some(lora(4, 2)));
        let large = (0..20).map(|seed| datum(&tokens(400, 512, seed))).collect();
        let id = d.start(loss_op("x", large, false));
        let error = d.take(&id).unwrap_err();
        assert!(error.message.starts_with("out of device memory: "), "{error}");
        // The run whose request it was goes on as well: a pass changes none.
        for run in ["x", "y"] {
            d.forward_backward(run, examples(1));
            d.step(run, 1e-2);
        }
    });
}

/// Results of a run's requests of all kinds, to the bit, until one fails. They are text, in which all NaNs are equal.
fn requests_of_all_kinds(d: &mut Driver<CudaEngine>) -> Result<Vec<String>, OpError> {
    let spec = RunSpec {
        base_model: "m".into(),
        lora: Some(lora(4, 1)),
        optimizer: Optimizer::AdamW,
        head: ModelHead::Unembedding,
    };
    d.run(Operation::CreateRun { run: RunId::new("x"), spec })?;
    let train = loss_op("x", examples(1), false);
    let save = SaveSampler { run: RunId::new("x"), snapshot: Some("snap".into()), target: None };
    let source = SamplerSource::Snapshot { key: "snap".into() };
    let sample = sample(source, tokens(6, 512, 4), 1, params(3, 1.0, 5));
    let forward = loss_op("x", examples(2), true);
    let operations =
        [train, optim("x", 1e-2), Operation::SaveSampler(save), Operation::Sample(Box::new(sample)), forward];
    operations.into_iter().map(|operation| Ok(format!("{:?}", d.run(operation)?))).collect()
}

/// Drops what [`requests_of_all_kinds`] made.
fn forget(d: &mut Driver<CudaEngine>) {
    d.engine.unload_run(&RunId::new("x"));
    d.engine.drop_snapshot("snap");
}

#[test]
fn memory_that_runs_out_anywhere_fails_one_request_alone() {
    let file = std::env::temp_dir().join(format!("trainyard-engine-faults-{}", std::process::id()));
    let setting = ("CUDASIM_FAULT_FILE", file.to_str().unwrap());
    simulated("memory_that_runs_out_anywhere_fails_one_request_alone", setting, || {
        let mut d = open("llama", Dtype::F32);
        // The driver is asked for every slice.
        d.engine.backend().gpu().arena().limit_unused(0).unwrap();
        let expected = requests_of_all_kinds(&mut d).unwrap();
        forget(&mut d);
        let (mut failed, mut nth) = (0, 1);
        loop {
            // The second attempt, after free memory was released, fails as well.
            inject(&format!("allocation {nth} 2"));
            let found = requests_of_all_kinds(&mut d);
            forget(&mut d);
            inject("allocation 0");
            assert_eq!(requests_of_all_kinds(&mut d).unwrap(), expected, "after a failure at allocation {nth}");
            forget(&mut d);
            match found {
                Err(error) => assert!(error.message.starts_with("out of device memory: "), "{nth}: {error}"),
                Ok(found) => {
                    assert_eq!(found, expected);
                    break;
                }
            }
            (failed, nth) = (failed + 1, nth + nth / 2 + 1);
        }
        assert!(failed >= 6, "{failed} failures");
    });
}

#[test]
fn memory_that_runs_out_anywhere_in_a_first_step_loses_one_run_alone() {
    let file = std::env::temp_dir().join(format!("trainyard-step-faults-{}", std::process::id()));
    let setting = ("CUDASIM_FAULT_FILE", file.to_str().unwrap());
    simulated("memory_that_runs_out_anywhere_in_a_first_step_loses_one_run_alone", setting, || {
        let mut d = open("llama", Dtype::F32);
        d.engine.backend().gpu().arena().limit_unused(0).unwrap();
        // Steps of two runs at once, one with a gradient and one without; what a forward pass returns after them, where there is one.
        let mut steps = |fault: &str| {
            for (seed, run) in (0..).zip(["x", "y"]) {
                let adapter = LoraSpec { train_mlp: false, train_attn: false, ..LoraSpec::on_all(1, seed) };
                d.create(run, Some(adapter));
            }
            d.forward_backward("x", vec![datum(&tokens(5, 512, 1))]);
            inject(fault);
            let steps = ["x", "y"].map(|run| d.start(optim(run, 1e-2)));
            let steps = steps.map(|id| d.take(&id));
            assert!(is_injected());
            inject("allocation 0");
            let after = ["x", "y"].map(|run| {
                let forward = d.run(loss_op(run, vec![datum(&tokens(4, 512, 2))], true));
                d.engine.unload_run(&RunId::new(run));
                forward
            });
            (steps, after)
        };
        let (expected, logprobs) = steps("allocation 0");
        assert!(expected.iter().all(Result::is_ok));
        let mut lost = [0; 2];
        let mut nth = 1;
        loop {
            // The second attempt, after free memory was released, fails as well.
            let (found, after) = steps(&format!("allocation {nth} 2"));
            let failed: Vec<usize> = (0..2).filter(|run| found[*run].is_err()).collect();
            assert!(failed.len() < 2, "allocation {nth}: {found:?}");
            for run in 0..2 {
                if failed.contains(&run) {
                    let [step, pass] = [&found[run], &after[run]].map(|result| result.as_ref().unwrap_err());
                    assert!(step.message.starts_with("out of device memory: "), "{nth}: {step}");
                    assert!(pass.message.ends_with("is not loaded"), "{nth}: {pass}");
                    lost[run] += 1;
                } else {
                    assert_eq!((&found[run], &after[run]), (&expected[run], &logprobs[run]), "allocation {nth}");
                }
            }
            if failed.is_empty() && nth > 20 {
                break;
            }
            nth += 1;
        }
        // Two arrays: moments of both runs, and the gradient of the one without.
        assert_eq!(lost, [4, 6]);
    });
}

#[test]
fn a_lost_device_ends_the_engine() {
    simulated("a_lost_device_ends_the_engine", ("CUDASIM_FAIL_LAUNCH", "60"), || {
        let mut d = open("llama", Dtype::F32);
        d.create("x", Some(lora(4, 1)));
        d.start(loss_op("x", examples(1), false));
        for _ in 0..10 {
            d.engine.step();
        }
        let failure = d.engine.failure().unwrap();
        assert!(failure.message.contains("CUDA_ERROR_LAUNCH_FAILED"), "{failure}");
        assert!(d.engine.step().is_empty(), "nothing is left to compute");
    });
}
