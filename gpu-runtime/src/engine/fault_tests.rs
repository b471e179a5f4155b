//! Inputs that make kernels panic, injected after validation: only their request fails, other requests in the batch give
//! the same bits.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use trainyard_protocol::{
    AdamParams, Category, Datum, Engine as _, ForwardBackward, LoadState, LoraSpec, ModelExtents, ModelHead, Optimizer,
    PromptTargets, RawBatch, RunSpec, Sample, SampleOperation, SamplerSource, SamplingParams, SaveState, SaveTarget,
    SessionId, Stop, Tensor,
};

use super::*;
use crate::load::load;
use crate::loss::prepare_batch;

/// A token that no vocabulary has.
const BAD: u32 = u32::MAX;

pub(super) fn engine() -> CpuEngine {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/llama");
    let options = EngineOptions { threads: 2, microbatch_tokens: Some(256), ..EngineOptions::default() };
    CpuEngine::new(vec![("m".into(), load(&path).unwrap())], options).unwrap()
}

pub(super) fn id(name: &str) -> RequestId {
    RequestId::new(name)
}

pub(super) fn start(engine: &mut CpuEngine, name: &str, operation: Operation) {
    engine.start(id(name), TenantShare::new(name), operation);
}

pub(super) fn drain(engine: &mut CpuEngine) -> BTreeMap<String, Completion> {
    let mut done = BTreeMap::new();
    for _ in 0..10_000 {
        if engine.is_idle() {
            return done;
        }
        done.extend(engine.step().into_iter().map(|c| (c.id.to_string(), c)));
    }
    panic!("the engine does not become idle");
}

pub(super) fn create(engine: &mut CpuEngine, run: &str, seed: u64) {
    let lora = LoraSpec::on_all(4, seed);
    let spec =
        RunSpec { base_model: "m".into(), lora: Some(lora), optimizer: Optimizer::AdamW, head: ModelHead::Unembedding };
    start(engine, run, Operation::CreateRun { run: RunId::new(run), spec });
    assert!(drain(engine)[run].result.is_ok());
}

pub(super) fn pass(run: &str, datums: i64) -> Operation {
    let datum = |i: i64| {
        let tokens: Vec<i64> = (0..20).map(|t| (t * 7 + i * 31) % 512).collect();
        let inputs = [
            ("target_tokens".to_owned(), Tensor::i64(tokens.clone())),
            ("weights".to_owned(), Tensor::f32(vec![1.0; 20])),
        ];
        Datum { tokens, loss_fn_inputs: BTreeMap::from(inputs), images: Vec::new() }
    };
    let batch = RawBatch {
        data: (0..datums).map(datum).collect(),
        loss_fn: "cross_entropy".into(),
        loss_fn_config: BTreeMap::new(),
        custom_loss: None,
        decoded: Default::default(),
    };
    let batch = prepare_batch(&batch, ModelExtents { vocab_size: 512, context: 512 }).unwrap();
    Operation::ForwardBackward(ForwardBackward { run: RunId::new(run), batch, forward_only: false })
}

pub(super) fn optim(run: &str) -> Operation {
    let params =
        AdamParams { learning_rate: 1e-2, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.0, grad_clip_norm: 0.0 };
    Operation::OptimStep { run: RunId::new(run), params }
}

pub(super) fn ask(prompt: i64) -> Operation {
    let params = SamplingParams {
        max_tokens: Some(12),
        seed: 4,
        stop: Stop::Nothing,
        temperature: 1.0,
        top_k: None,
        top_p: 1.0,
        controls: Default::default(),
    };
    let sample = Sample {
        prompt: (0..prompt).map(|t| t * 3 % 512).collect(),
        num_samples: 2,
        params,
        prompt_logprobs: true,
        prompt_logprobs_last_n: None,
        topk_prompt_logprobs: 0,
        topk_sample_logprobs: 0,
        target_prompt_logprobs: Some(PromptTargets {
            shape: [prompt as usize - 1, 2],
            ids: (0..2 * (prompt - 1)).map(|cell| cell % 7 - 1).collect(),
            sparse: None,
        }),
        prompt_alt_tokens_k: 0,
        images: Vec::new(),
    };
    Operation::Sample(Box::new(SampleOperation {
        session: SessionId::new("s"),
        source: SamplerSource::Base { model: "m".into() },
        sample,
        images: Default::default(),
    }))
}

fn assert_internal_error(completion: &Completion, run: Option<&str>) {
    let error = completion.result.clone().unwrap_err();
    assert_eq!(error.category, Category::Server);
    assert!(error.message.contains("internal error") && !error.message.contains("out of "), "{error}");
    assert_eq!(completion.lost_run, run.map(RunId::new));
}

/// Two steps of runs `a` and `c` beside `b`, whose second request has a bad datum at index `poison`.
fn train(poison: Option<usize>) -> (Vec<String>, Option<Completion>) {
    let mut engine = engine();
    let runs = ["a", "b", "c"];
    (0..).zip(runs).for_each(|(seed, run)| create(&mut engine, run, seed));
    let (mut seen, mut failed) = (Vec::new(), None);
    for step in 0..2 {
        for (run, datums) in runs.into_iter().zip([40, 25, 17]) {
            start(&mut engine, run, pass(run, datums));
        }
        if let (1, Some(at)) = (step, poison) {
            engine.trainer.poison(&id("b"), at, BAD);
        }
        let mut done = drain(&mut engine);
        if step == 1 && poison.is_some() {
            failed = done.remove("b");
        } else {
            assert!(done.values().all(|c| c.result.is_ok()));
        }
        seen.extend(["a", "c"].map(|run| format!("{:?}", done[run].result)));
        for run in ["a", "c"] {
            start(&mut engine, run, optim(run));
        }
        let done = drain(&mut engine);
        seen.extend(["a", "c"].map(|run| format!("{:?}", done[run].result)));
    }
    for run in ["a", "c"] {
        start(&mut engine, run, pass(run, 3));
        seen.push(format!("{:?}", drain(&mut engine)[run].result));
    }
    assert_eq!(engine.runs.contains_key(&RunId::new("b")), poison.is_none());
    (seen, failed)
}

#[test]
fn a_training_request_that_panics_fails_alone() {
    let (undisturbed, _) = train(None);
    for at in [0, 24] {
        let (seen, failed) = train(Some(at));
        assert_eq!(seen, undisturbed);
        assert_internal_error(&failed.unwrap(), Some("b"));
    }
}

#[test]
fn a_sample_that_panics_fails_alone() {
    let run = |poison: bool, steps: usize| {
        let mut engine = engine();
        for (name, prompt) in [("a", 70), ("b", 40), ("c", 33)] {
            start(&mut engine, name, ask(prompt));
        }
        let mut done = BTreeMap::new();
        for _ in 0..steps {
            done.extend(engine.step().into_iter().map(|c| (c.id.to_string(), c)));
        }
        if poison {
            engine.sampler.poison(&id("b"), BAD);
        }
        done.extend(drain(&mut engine));
        done
    };
    let undisturbed = run(false, 0);
    // In the prompt, where the restart panics too; in a sequence after some steps, whose restart samples a valid token.
    for (steps, repeats) in [(0, true), (6, false)] {
        let done = run(true, steps);
        for name in ["a", "c"] {
            assert_eq!(format!("{:?}", done[name].result), format!("{:?}", undisturbed[name].result), "{steps}");
        }
        if repeats {
            assert_internal_error(&done["b"], None);
        } else {
            assert_eq!(format!("{:?}", done["b"].result), format!("{:?}", undisturbed["b"].result));
        }
    }
}

#[test]
fn an_optimizer_step_that_panics_fails_alone() {
    let steps = |poison: bool| {
        let mut engine = engine();
        for (seed, run) in (0..).zip(["a", "b", "c"]) {
            create(&mut engine, run, seed);
            start(&mut engine, run, pass(run, 4));
        }
        drain(&mut engine);
        if poison {
            engine.runs.get_mut(&RunId::new("b")).unwrap().poison();
        }
        for run in ["a", "b", "c"] {
            start(&mut engine, run, optim(run));
        }
        let mut done = engine.step();
        assert_eq!(done.len(), 3, "one step executes them all");
        done.sort_by(|a, b| a.id.cmp(&b.id));
        let after: Vec<_> = ["a", "c"]
            .map(|run| {
                start(&mut engine, run, pass(run, 3));
                format!("{:?}", drain(&mut engine)[run].result)
            })
            .into();
        (done, after, engine.runs.len())
    };
    let (undisturbed, expected, all) = steps(false);
    let (done, after, remaining) = steps(true);
    assert_eq!((after, all, remaining), (expected, 3, 2));
    assert_eq!((&done[0], &done[2]), (&undisturbed[0], &undisturbed[2]));
    assert!(done[1].result.as_ref().unwrap_err().message.contains("internal error"));
    assert_eq!(done[1].lost_run, Some(RunId::new("b")));
}

#[test]
fn stats_count_tokens_and_report_held_memory() {
    let mut engine = engine();
    create(&mut engine, "a", 1);
    start(&mut engine, "a", pass("a", 30));
    drain(&mut engine);
    start(&mut engine, "s", ask(70));
    drain(&mut engine);
    let stats = engine.stats();
    // 12 examples of 20 tokens fit into a microbatch of 256.
    assert_eq!((stats.microbatches, stats.microbatch_tokens, stats.microbatch_capacity), (3, 600, 768));
    assert_eq!((stats.prompt_tokens, stats.sampled_tokens), (70, 24));
    assert!(stats.sampling_passes >= 12);
    assert_eq!((stats.loaded_runs, stats.active_samples, stats.kv_limit), (1, 0, 2 << 30));
    assert!(stats.kv_bytes > 0, "the prompt's full blocks stay in the cache");
}

/// Optimizer steps that nobody waits for do not begin; one that somebody waits for takes the others along.
#[test]
fn abandoned_steps_change_nothing() {
    let results = |gone: &'static [&'static str]| {
        let mut engine = engine();
        for (seed, run) in [(1, "a"), (2, "b")] {
            create(&mut engine, run, seed);
            start(&mut engine, run, pass(run, 3));
            assert!(drain(&mut engine)[run].result.is_ok());
        }
        engine.ask_when_abandoned(Arc::new(move |id: &RequestId| gone.contains(&id.as_str())));
        ["a", "b"].iter().for_each(|run| start(&mut engine, run, optim(run)));
        let steps = drain(&mut engine);
        ["1", "2"].iter().zip(["a", "b"]).for_each(|(id, run)| start(&mut engine, id, optim(run)));
        let again = drain(&mut engine);
        start(&mut engine, "3", pass("a", 3));
        let after = drain(&mut engine);
        (steps, format!("{again:?}"), format!("{after:?}"))
    };
    let (steps, again, after) = results(&["a", "b"]);
    for run in ["a", "b"] {
        let error = steps[run].result.as_ref().map(drop).unwrap_err();
        assert!(error.message.contains("its session ended"), "{error}");
        assert!(steps[run].lost_run.is_none());
    }
    let (shared, other, _) = results(&["a"]);
    assert!(["a", "b"].iter().all(|run| shared[*run].result.is_ok()));
    // The gradient was still there.
    assert_ne!(again, other);
    let mut undisturbed = engine();
    create(&mut undisturbed, "a", 1);
    for operation in [pass("a", 3), optim("a")] {
        start(&mut undisturbed, "a", operation);
        assert!(drain(&mut undisturbed)["a"].result.is_ok());
    }
    start(&mut undisturbed, "3", pass("a", 3));
    assert_eq!(format!("{:?}", drain(&mut undisturbed)), after);
}

/// A load ends between tensors, and its run stays as it was; a save that waits for another one is never written.
#[test]
fn abandoned_loads_and_saves_end_within_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = engine();
    create(&mut engine, "a", 1);
    for operation in [pass("a", 3), optim("a")] {
        start(&mut engine, "a", operation);
        assert!(drain(&mut engine)["a"].result.is_ok());
    }
    let target = |name: &str| SaveTarget { dir: folder.path().join(name), overwrite: false };
    let save = |name: &str| Operation::SaveState(SaveState { run: RunId::new("a"), target: target(name) });
    start(&mut engine, "first", save("first"));
    start(&mut engine, "second", save("second"));
    assert!(engine.step().is_empty());
    engine.cancel(&[id("second")].into());
    assert_eq!(drain(&mut engine).into_keys().collect::<Vec<_>>(), ["first"]);
    start(&mut engine, "third", save("third"));
    engine.step();
    engine.cancel(&[id("third")].into());
    assert!(drain(&mut engine).is_empty(), "a cancelled request has no completion");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name == "first" || name == "third"), "{left:?}");

    // Another pass makes the run differ from its checkpoint.
    for operation in [pass("a", 2), optim("a")] {
        start(&mut engine, "a", operation);
        assert!(drain(&mut engine)["a"].result.is_ok());
    }
    let asked = Arc::new(Mutex::new((0, usize::MAX)));
    let count = Arc::clone(&asked);
    engine.ask_when_abandoned(Arc::new(move |id: &RequestId| {
        let (questions, until) = &mut *count.lock().unwrap();
        *questions += usize::from(id.as_str() == "load");
        id.as_str() == "load" && *questions > *until
    }));
    let load = || {
        Operation::LoadState(LoadState {
            run: RunId::new("a"),
            dir: target("first").dir,
            with_optimizer: true,
            create: None,
            checkpoint_base: None,
            uploaded: None,
        })
    };
    let bits = |engine: &mut CpuEngine| {
        start(engine, "bits", pass("a", 2));
        let result = drain(engine).remove("bits").unwrap().result;
        start(engine, "zero", optim("a"));
        assert!(drain(engine)["zero"].result.is_ok());
        format!("{result:?}")
    };
    for until in [0, 3, 40] {
        *asked.lock().unwrap() = (0, until);
        start(&mut engine, "load", load());
        let error = drain(&mut engine)["load"].result.as_ref().map(drop).unwrap_err().message.clone();
        assert!(error.contains("its session ended"), "{error}");
        assert_eq!(asked.lock().unwrap().0, until + 1, "it reads on");
    }
    let kept = bits(&mut engine);
    *asked.lock().unwrap() = (0, usize::MAX);
    start(&mut engine, "load", load());
    assert!(drain(&mut engine)["load"].result.is_ok());
    assert_ne!(bits(&mut engine), kept);
}

/// Requests that nobody waits for end within their pass. Their run stays as it was, and so does a pass that they share.
#[test]
fn abandoned_requests_end_within_their_pass() {
    let abandoned = Arc::new(Mutex::new(BTreeSet::new()));
    let mut engine = engine();
    let asked = Arc::clone(&abandoned);
    engine.ask_when_abandoned(Arc::new(move |id: &RequestId| asked.lock().unwrap().contains(id.as_str())));
    create(&mut engine, "a", 1);
    create(&mut engine, "b", 2);
    let run = |engine: &mut CpuEngine, requests: [&str; 2], gone: &[&str]| {
        *abandoned.lock().unwrap() = gone.iter().map(|id| (*id).to_owned()).collect();
        start(engine, requests[0], pass("a", 3));
        start(engine, requests[1], pass("b", 3));
        drain(engine)
    };
    let expected = run(&mut engine, ["a1", "b1"], &[]);
    let alone = run(&mut engine, ["a2", "b2"], &["a2", "b2"]);
    for id in ["a2", "b2"] {
        let error = alone[id].result.as_ref().map(drop).unwrap_err();
        assert!(error.message.contains("its session ended"), "{error}");
        assert!(alone[id].lost_run.is_none());
    }
    let shared = run(&mut engine, ["a3", "b3"], &["a3"]);
    let outputs = |done: &BTreeMap<String, Completion>, id: &str| match &done[id].result {
        Ok(OpResult::ForwardBackward(result)) => format!("{:?}", result.outputs),
        other => panic!("{other:?}"),
    };
    assert_eq!(outputs(&shared, "b3"), outputs(&expected, "b1"));
}
