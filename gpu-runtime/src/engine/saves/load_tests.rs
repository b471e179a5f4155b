//! Samples from checkpoint folders while the engine has other work.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::mpsc::channel;

use tempfile::TempDir;
use trainyard_protocol::{
    Completion, Engine as _, ModelHead, OpResult, Operation, Optimizer, RunId, RunSpec, Sample, SampleOperation,
    SampleResult, SamplerSource, SamplingParams, SaveSampler, SaveTarget, SessionId, Stop,
};

use super::*;
use crate::engine::fault_tests::{drain, engine, id, optim, pass, start};
use crate::engine::{CpuEngine, EngineOptions};
use crate::load::load;

fn sample(source: SamplerSource, max_tokens: u32) -> Operation {
    let params = SamplingParams {
        max_tokens: Some(max_tokens),
        seed: 3,
        stop: Stop::Nothing,
        temperature: 1.0,
        top_k: None,
        top_p: 1.0,
        controls: Default::default(),
    };
    let sample = Sample {
        prompt: (0..20).map(|t| t * 3 % 512).collect(),
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

fn of_folder(dir: &Path, max_tokens: u32) -> Operation {
    sample(SamplerSource::Checkpoint { base_model: "m".into(), dir: dir.to_owned() }, max_tokens)
}

fn of_base() -> Operation {
    sample(SamplerSource::Base { model: "m".into() }, 30)
}

fn result(completion: &Completion) -> &SampleResult {
    match &completion.result {
        Ok(OpResult::Sample(result)) => result,
        other => panic!("{other:?}"),
    }
}

/// A run of all parameters, saved for sampling after each of two steps.
fn checkpoints(engine: &mut CpuEngine) -> (TempDir, [PathBuf; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let dirs = ["first", "second"].map(|name| folder.path().join(name));
    let spec =
        RunSpec { base_model: "m".into(), lora: None, optimizer: Optimizer::AdamW, head: ModelHead::Unembedding };
    let mut run = |operation| {
        start(engine, "r", operation);
        drain(engine)["r"].result.clone().unwrap()
    };
    run(Operation::CreateRun { run: RunId::new("a"), spec });
    for dir in &dirs {
        run(pass("a", 2));
        run(optim("a"));
        let target = Some(SaveTarget { dir: dir.clone(), overwrite: false });
        run(Operation::SaveSampler(SaveSampler { run: RunId::new("a"), snapshot: None, target }));
    }
    engine.unload_run(&RunId::new("a"));
    (folder, dirs)
}

#[test]
fn the_engine_goes_on_while_a_checkpoint_is_read() {
    let mut engine = engine();
    let folder = tempfile::tempdir().unwrap();
    let adapter = serde_json::json!({"peft_type": "LORA", "r": 2, "lora_alpha": 32, "target_modules": ["q_proj"]});
    std::fs::write(folder.path().join("adapter_config.json"), adapter.to_string()).unwrap();
    let tensors = folder.path().join("adapter_model.safetensors");
    // Whoever opens it waits until somebody writes into it.
    assert!(Command::new("mkfifo").arg(&tensors).status().unwrap().success());
    let (go_on, asked) = channel();
    let writer = std::thread::spawn(move || {
        // An engine that waits for the folder gets on after a while, and fails the assertion.
        let _ = asked.recv_timeout(Duration::from_secs(60));
        drop(std::fs::OpenOptions::new().write(true).open(tensors));
    });
    start(&mut engine, "checkpoint", of_folder(folder.path(), 4));
    start(&mut engine, "base", of_base());
    let mut done = Vec::new();
    while done.is_empty() {
        done.extend(engine.step().into_iter().map(|completion| completion.id));
    }
    assert_eq!((done, engine.is_idle()), (vec![id("base")], false));
    go_on.send(()).unwrap();
    // The written files are not an adapter.
    assert!(drain(&mut engine)["checkpoint"].result.is_err());
    writer.join().unwrap();
}

#[test]
fn weights_that_samples_use_count_and_the_next_checkpoint_waits_for_them() {
    let options = EngineOptions {
        threads: 2,
        memory_bytes: Some(64 << 20),
        kv_bytes: 4 << 20,
        activation_bytes: 4 << 20,
        // There is room for one copy of all parameters all the same.
        checkpoint_bytes: 1,
        ..EngineOptions::default()
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/llama");
    let mut engine = CpuEngine::new(vec![("m".into(), load(&path).unwrap())], options).unwrap();
    let (_folder, [first, second]) = checkpoints(&mut engine);
    let mut alone = BTreeMap::new();
    for (name, dir) in [("a", &first), ("b", &second)] {
        start(&mut engine, name, of_folder(dir, 30));
        alone.extend(drain(&mut engine).iter().map(|(id, completion)| (id.clone(), result(completion).clone())));
    }
    assert_ne!(alone["a"], alone["b"]);
    start(&mut engine, "a", of_folder(&first, 30));
    let mut order = Vec::new();
    // Else "c" would join the load for "a".
    while !engine.checkpoints.is_idle() {
        order.extend(engine.step());
    }
    for (name, dir) in [("b", &second), ("c", &first)] {
        start(&mut engine, name, of_folder(dir, 30));
    }
    start(&mut engine, "base", of_base());
    let limit = engine.memory().plan().checkpoints;
    while !engine.is_idle() {
        order.extend(engine.step());
        let held = engine.stats().memory.checkpoints;
        assert!(held <= limit, "{held} of {limit}");
    }
    let names: Vec<&str> = order.iter().map(|completion| completion.id.as_str()).collect();
    let place = |name| names.iter().position(|other| *other == name).unwrap();
    assert!(place("a") < place("b") && place("b") < place("c"), "{names:?}");
    for completion in order.iter().filter(|completion| completion.id != id("base")) {
        let name = if completion.id == id("b") { "b" } else { "a" };
        assert_eq!(result(completion), &alone[name]);
    }
}

#[test]
fn a_sample_that_waits_for_its_checkpoint_can_be_cancelled() {
    let mut engine = engine();
    let (_folder, [first, second]) = checkpoints(&mut engine);
    for (name, dir) in [("a", &first), ("b", &second), ("c", &second)] {
        start(&mut engine, name, of_folder(dir, 4));
    }
    engine.cancel(&BTreeSet::from([id("b"), id("c")]));
    let done = drain(&mut engine);
    assert_eq!(done.keys().collect::<Vec<_>>(), ["a"]);
    assert!(engine.is_idle());
}

#[test]
fn a_checkpoint_beyond_all_memory_is_refused_with_the_numbers() {
    let engine = engine();
    let (base, backend) = (Arc::clone(&engine.bases[0]), Arc::clone(&engine.backend));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("adapter_config.json"), "{}").unwrap();
    std::fs::File::create(folder.path().join("adapter_model.safetensors")).unwrap().set_len(9 << 20).unwrap();
    let mut loads = CheckpointLoads::new(2 << 20, true);
    let Operation::Sample(operation) = of_base() else { panic!() };
    let share = TenantShare::new("t");
    loads.push(base, folder.path().into(), CheckpointSample { id: id("a"), share, operation: *operation });
    let resolved = loads.advance(&backend, Duration::ZERO);
    let [(_, Err(error))] = &resolved[..] else { panic!("{} samples", resolved.len()) };
    assert!(error.message.contains("needs 9 MiB") && error.message.contains("at most 2 MiB"), "{error}");
    assert!(loads.is_idle());
}
