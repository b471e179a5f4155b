//! Runs with a scalar head: values, batch invariance, checkpoints and snapshots, what is refused.

use std::collections::BTreeMap;
use std::path::Path;

use trainyard_gpu_runtime::loss::prepare_batch;
use trainyard_gpu_runtime::{Dtype, EngineOptions};
use trainyard_protocol::{
    Category, Datum, Engine, ForwardBackward, ForwardBackwardResult, LoadState, LoraSpec, LossConfig, LossConfigValue,
    ModelHead, OpError, Operation, Optimizer, RawBatch, RestoreRun, RunId, RunSpec, SamplerSource, SaveExternal,
    SaveRun, SaveSampler, SaveState, Tensor,
};

use crate::saves::target;
use crate::support::{Driver, datum, golden, lora, loss_op, loss_result, on_ranks, optim, params, sample, tokens};

fn spec(adapter: Option<LoraSpec>, head: ModelHead) -> RunSpec {
    RunSpec { base_model: "m".into(), lora: adapter, optimizer: Optimizer::AdamW, head }
}

pub(crate) fn create<E: Engine>(d: &mut Driver<E>, run: &str, adapter: Option<LoraSpec>) {
    let spec = spec(adapter, ModelHead::Scalar);
    d.run(Operation::CreateRun { run: RunId::new(run), spec }).unwrap();
}

/// An example with returns and old values.
fn example(length: usize, seed: usize) -> Datum {
    let of = |k: usize| (0..length).map(|i| ((i * 7 + seed * 3 + k * 5) % 11) as f32 / 5.0 - 1.0).collect();
    let inputs = [("returns", of(1)), ("old_values", of(2)), ("weights", of(3))];
    let inputs = inputs.map(|(name, values): (&str, Vec<f32>)| (name.to_owned(), Tensor::f32(values)));
    Datum { tokens: tokens(length, 512, seed), loss_fn_inputs: inputs.into(), images: Vec::new() }
}

fn batch(seed: usize, count: usize) -> Vec<Datum> {
    (0..count).map(|i| example(2 + (i * 13 + seed * 7) % 70, seed * 100 + i)).collect()
}

fn mse<E: Engine>(d: &Driver<E>, run: &str, data: Vec<Datum>) -> Operation {
    let config: LossConfig = BTreeMap::from([("value_clip".to_owned(), LossConfigValue::Number(0.4))]);
    let batch = RawBatch {
        data,
        loss_fn: "value_mse".into(),
        loss_fn_config: config,
        custom_loss: None,
        decoded: Default::default(),
    };
    let batch = prepare_batch(&batch, (&d.engine.models()[0]).into()).unwrap();
    Operation::ForwardBackward(ForwardBackward { run: RunId::new(run), batch, forward_only: false })
}

/// Trains run `x` for some steps, batched with `others` busy runs, with heads and without; then the values of a probe.
pub(crate) fn train<E: Engine>(
    d: &mut Driver<E>,
    steps: std::ops::Range<usize>,
    others: usize,
) -> Vec<ForwardBackwardResult> {
    let mut results = Vec::new();
    for step in steps {
        let mut ids = Vec::new();
        for o in 0..others {
            let (run, own) = (format!("o{o}"), batch(step * 10 + o, 5));
            ids.push(d.start(match o % 2 {
                0 => mse(d, &run, own),
                _ => loss_op(&run, vec![datum(&tokens(30, 512, step))], false),
            }));
        }
        let own = d.start(mse(d, "x", batch(step, 9)));
        results.push(loss_result(d.take(&own)));
        for id in ids {
            d.take(&id).unwrap();
        }
        d.step("x", 1e-2);
    }
    results.push(probe(d, "x"));
    results
}

/// Values: `cross_entropy` without weights returns them as it returns log-probabilities.
fn probe<E: Engine>(d: &mut Driver<E>, run: &str) -> ForwardBackwardResult {
    d.forward(run, vec![datum(&tokens(30, 512, 99)), datum(&tokens(2, 512, 5))])
}

#[test]
fn values_begin_at_zero_and_are_fitted_to_returns() {
    let mut d = Driver::open(&golden("llama"), Dtype::Bf16);
    create(&mut d, "x", Some(lora(6, 9)));
    assert!(probe(&mut d, "x").outputs.iter().flat_map(|output| &output.logprobs).all(|value| *value == 0.0));
    let error = |d: &mut Driver| {
        let constant = |length: usize| Datum {
            tokens: tokens(length, 512, length),
            loss_fn_inputs: [("returns".to_owned(), Tensor::f32(vec![0.7; length]))].into(),
            images: Vec::new(),
        };
        let pass = d.loss_op("x", "value_mse", [3, 40, 17].map(constant).into(), false);
        let loss = loss_result(d.run(pass)).metrics["loss:sum"];
        d.step("x", 1e-2);
        loss
    };
    let losses: Vec<f64> = (0..30).map(|_| error(&mut d)).collect();
    assert!(losses[29] < losses[0] / 3.0, "{losses:?}");
}

#[test]
fn cross_entropy_is_linear_in_values() {
    let mut d = Driver::open(&golden("llama"), Dtype::F32);
    create(&mut d, "x", Some(lora(6, 9)));
    train(&mut d, 0..2, 0);
    let found = probe(&mut d, "x");
    let data = [datum(&tokens(30, 512, 99)), datum(&tokens(2, 512, 5))];
    let mut sum = 0.0;
    for (output, datum) in found.outputs.iter().zip(&data) {
        let trainyard_protocol::TensorValues::F32(weights) = &datum.loss_fn_inputs["weights"].values else {
            panic!("weights are floats")
        };
        sum -= output.logprobs.iter().zip(weights).map(|(v, w)| f64::from(v * w)).sum::<f64>();
    }
    assert!((found.metrics["loss:sum"] - sum).abs() < 1e-4 && sum.abs() > 1e-3, "{sum}");
}

#[test]
fn a_run_is_bit_equal_alone_and_batched_with_others() {
    for adapter in [Some(lora(6, 9)), None] {
        for dtype in [Dtype::Bf16, Dtype::F32] {
            let train_with = |others: usize, options: EngineOptions| {
                let mut d = Driver::with_options(&golden("qwen3"), EngineOptions { dtype, threads: 2, ..options });
                create(&mut d, "x", adapter.clone());
                for o in 0..others {
                    match o % 2 {
                        0 => create(&mut d, &format!("o{o}"), Some(lora(4, o as u64))),
                        _ => d.create(&format!("o{o}"), Some(lora(4, o as u64))),
                    }
                }
                train(&mut d, 0..3, others)
            };
            let alone = train_with(0, EngineOptions::default());
            assert_eq!(alone, train_with(3, EngineOptions::default()), "{adapter:?}, {dtype:?}");
            let small = EngineOptions { microbatch_tokens: Some(1), ..EngineOptions::default() };
            assert_eq!(alone, train_with(0, small), "{adapter:?}, {dtype:?}, in microbatches");
            let recomputed = EngineOptions { activation_bytes: 0, ..EngineOptions::default() };
            assert_eq!(alone, train_with(0, recomputed), "{adapter:?}, {dtype:?}, recomputed");
        }
    }
}

fn load(run: &str, dir: &Path, with_optimizer: bool, spec: RunSpec) -> Operation {
    Operation::LoadState(LoadState {
        run: RunId::new(run),
        dir: dir.to_owned(),
        with_optimizer,
        create: Some(spec),
        checkpoint_base: None,
        uploaded: None,
    })
}

/// Takes the same steps with a run of any name.
fn resume<E: Engine>(d: &mut Driver<E>, run: &str) -> String {
    let first = d.run(mse(d, run, batch(7, 5))).unwrap();
    let norm = d.run(optim(run, 1e-2)).unwrap();
    format!("{first:?} {norm:?} {:?}", probe(d, run))
}

#[test]
fn training_resumes_to_the_bit_from_checkpoints_and_snapshots() {
    for adapter in [Some(lora(6, 5)), None] {
        let folder = tempfile::tempdir().unwrap();
        let dir = |name: &str| folder.path().join(name);
        let mut d = Driver::open(&golden("qwen2"), Dtype::Bf16);
        create(&mut d, "x", adapter.clone());
        train(&mut d, 0..2, 0);
        let (run, scalar) = (RunId::new("x"), spec(adapter.clone(), ModelHead::Scalar));
        d.run(Operation::SaveState(SaveState { run: run.clone(), target: target(&dir("state")) })).unwrap();
        d.run(Operation::SaveExternal(SaveExternal { run: run.clone(), target: target(&dir("export")) })).unwrap();
        let values = probe(&mut d, "x");
        // A snapshot has the gradient of a step that is not finished.
        let pass = mse(&d, "x", batch(50, 4));
        d.run(pass).unwrap();
        d.run(Operation::SaveRun(SaveRun { run: run.clone(), target: target(&dir("run")) })).unwrap();
        let undisturbed = resume(&mut d, "x");

        let mut other = Driver::open(&golden("qwen2"), Dtype::Bf16);
        let restore = RestoreRun { run: RunId::new("y"), spec: scalar.clone(), dir: dir("run") };
        other.run(Operation::RestoreRun(restore)).unwrap();
        assert_eq!(resume(&mut other, "y"), undisturbed);
        other.run(load("z", &dir("state"), true, scalar.clone())).unwrap();
        assert_eq!(probe(&mut other, "z"), values);
        let pass = mse(&other, "z", batch(50, 4));
        other.run(pass).unwrap();
        assert_eq!(resume(&mut other, "z"), undisturbed);
        other.run(load("e", &dir("export"), false, scalar)).unwrap();
        assert_eq!(probe(&mut other, "e"), values);
    }
}

#[test]
fn a_head_may_begin_on_weights_without_one_and_not_the_reverse() {
    let folder = tempfile::tempdir().unwrap();
    let dir = |name: &str| folder.path().join(name);
    let mut d = Driver::open(&golden("llama"), Dtype::F32);
    d.create("plain", Some(lora(6, 5)));
    d.forward_backward("plain", vec![datum(&tokens(30, 512, 1))]);
    d.step("plain", 1e-2);
    create(&mut d, "scalar", Some(lora(6, 5)));
    for run in ["plain", "scalar"] {
        d.run(Operation::SaveState(SaveState { run: RunId::new(run), target: target(&dir(run)) })).unwrap();
        let export = dir(&format!("{run} export"));
        d.run(Operation::SaveExternal(SaveExternal { run: RunId::new(run), target: target(&export) })).unwrap();
    }
    let [plain, scalar] = [ModelHead::Unembedding, ModelHead::Scalar].map(|head| spec(Some(lora(6, 5)), head));
    for name in ["plain", "plain export"] {
        d.run(load("y", &dir(name), false, scalar.clone())).unwrap();
        assert!(probe(&mut d, "y").outputs.iter().flat_map(|output| &output.logprobs).all(|value| *value == 0.0));
    }
    // The adapter is that of the checkpoint: the values differ from those on a fresh one once the head has moved.
    let mut moved = |run: &str| {
        let pass = mse(&d, run, batch(1, 3));
        d.run(pass).unwrap();
        d.step(run, 1e-2);
        probe(&mut d, run)
    };
    assert_ne!(moved("y"), moved("scalar"));
    let refused = |d: &mut Driver, operation| -> OpError {
        let error = d.run(operation).unwrap_err();
        assert_eq!(error.category, Category::User);
        error
    };
    let state = refused(&mut d, load("z", &dir("plain"), true, scalar)).message;
    assert!(
        state.contains("optimizer: the checkpoint and its optimizer state are of a model without a scalar head"),
        "{state}"
    );
    for name in ["scalar", "scalar export"] {
        let wrong = refused(&mut d, load("z", &dir(name), false, plain.clone())).message;
        assert!(wrong.contains("path: the checkpoint is of a model with a scalar head"), "{wrong}");
    }
}

#[test]
fn what_has_no_meaning_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut d = Driver::open(&golden("llama"), Dtype::F32);
    create(&mut d, "x", Some(lora(6, 5)));
    d.create("plain", Some(lora(6, 5)));
    train(&mut d, 0..1, 0);
    let before = probe(&mut d, "x");
    let refused = |d: &mut Driver, operation| {
        let error: OpError = d.run(operation).unwrap_err();
        assert_eq!(error.category, Category::User);
        error.message
    };
    let mut policy = datum(&tokens(9, 512, 1));
    for name in ["logprobs", "advantages"] {
        policy.loss_fn_inputs.insert(name.into(), Tensor::f32(vec![-1.0; 8]));
    }
    let ppo = d.loss_op("x", "ppo", vec![policy], false);
    assert!(refused(&mut d, ppo).starts_with("loss_fn: ppo needs log-probabilities"));
    let values = mse(&d, "plain", batch(1, 2));
    assert!(refused(&mut d, values).starts_with("loss_fn: value_mse needs values"));
    let wide = Tensor { shape: vec![4, 2], ..Tensor::i64(vec![1; 8]) };
    let wide = Datum {
        tokens: vec![1; 4],
        loss_fn_inputs: BTreeMap::from([("target_tokens".to_owned(), wide)]),
        images: Vec::new(),
    };
    let wide = d.loss_op("x", "cross_entropy", vec![wide], true);
    assert!(refused(&mut d, wide).contains("target_tokens: has shape [4, 2]; a model with a scalar head"));

    let sampler = |snapshot: Option<&str>, dir: Option<&Path>| {
        let (snapshot, target) = (snapshot.map(str::to_owned), dir.map(target));
        Operation::SaveSampler(SaveSampler { run: RunId::new("x"), snapshot, target })
    };
    let dir = folder.path().join("a");
    for operation in [sampler(Some("s"), None), sampler(None, Some(&dir))] {
        assert!(refused(&mut d, operation).contains("model_id: the model has a scalar head"));
    }
    d.run(Operation::SaveState(SaveState { run: RunId::new("x"), target: target(&dir) })).unwrap();
    let source = SamplerSource::Checkpoint { base_model: "m".into(), dir };
    let from_checkpoint = Operation::Sample(Box::new(sample(source, tokens(9, 512, 1), 1, params(2, 1.0, 1))));
    assert!(refused(&mut d, from_checkpoint).contains("model_path: the model has a scalar head"));
    assert_eq!(probe(&mut d, "x"), before);
}

#[test]
fn ranks_compute_what_one_computes_and_write_the_same_files() {
    for adapter in [Some(lora(6, 5)), None] {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("a");
        let mut one = Driver::open(&golden("qwen2"), Dtype::F32);
        let mut two = on_ranks("qwen2", "tp=2", Dtype::F32);
        create(&mut one, "x", adapter.clone());
        create(&mut two, "x", adapter.clone());
        let (expected, found) = (train(&mut one, 0..3, 0), train(&mut two, 0..3, 0));
        let values = |results: &[ForwardBackwardResult]| -> Vec<f32> {
            results.iter().flat_map(|result| &result.outputs).flat_map(|output| output.logprobs.clone()).collect()
        };
        for (a, b) in values(&found).into_iter().zip(values(&expected)) {
            assert!((a - b).abs() < 1e-4, "{a} != {b}");
        }
        two.run(Operation::SaveState(SaveState { run: RunId::new("x"), target: target(&dir) })).unwrap();
        one.run(load("y", &dir, true, spec(adapter, ModelHead::Scalar))).unwrap();
        resume(&mut one, "y");
        resume(&mut two, "x");
        let (a, b) = (probe(&mut one, "y"), probe(&mut two, "x"));
        for (a, b) in values(&[a]).into_iter().zip(values(&[b])) {
            assert!((a - b).abs() < 2e-4, "{a} != {b}");
        }
    }
}
