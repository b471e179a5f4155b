//! Snapshots of runs and of sampler weights, written by the save thread, restore bit for bit.

use std::path::Path;

use trainyard_gpu_runtime::Dtype;
use trainyard_protocol::{
    Category, Engine, ForwardBackwardResult, LoraSpec, ModelHead, OpResult, Operation, Optimizer, RestoreRun, RunId,
    RunSpec, SamplerSource, SaveRun, SaveSnapshot, SaveTarget,
};

use crate::support::*;

fn target(dir: &Path) -> SaveTarget {
    SaveTarget { dir: dir.to_owned(), overwrite: false }
}

fn save(run: &str, dir: &Path) -> Operation {
    Operation::SaveRun(SaveRun { run: RunId::new(run), target: target(dir) })
}

fn restore(run: &str, dir: &Path, lora: Option<LoraSpec>) -> Operation {
    let spec = RunSpec { base_model: "m".into(), lora, optimizer: Optimizer::AdamW, head: ModelHead::Unembedding };
    Operation::RestoreRun(RestoreRun { run: RunId::new(run), spec, dir: dir.to_owned() })
}

fn pass(d: &mut Driver, run: &str, seed: usize) -> ForwardBackwardResult {
    d.forward_backward(run, vec![datum(&tokens(40, 512, seed)), datum(&tokens(7, 512, seed + 50))])
}

/// Trains `steps` steps and accumulates a gradient for the next one.
fn begin(d: &mut Driver, run: &str, steps: usize) {
    for step in 0..steps {
        pass(d, run, step);
        d.step(run, 1e-2);
    }
    pass(d, run, 100);
}

/// Finishes that step and takes another one; returns all results as text.
fn resume(d: &mut Driver, run: &str) -> String {
    let norm = d.run(optim(run, 1e-2)).unwrap();
    let loss = pass(d, run, 7);
    let next = d.run(optim(run, 1e-2)).unwrap();
    format!("{norm:?} {loss:?} {next:?} {:?}", d.forward(run, vec![datum(&tokens(30, 512, 99))]))
}

#[test]
fn a_run_resumes_in_another_engine_from_the_middle_of_a_step() {
    for dtype in [Dtype::Bf16, Dtype::F32] {
        for (adapter, steps) in [(Some(lora(6, 5)), 3), (Some(lora(16, 8)), 0), (None, 2)] {
            let folder = tempfile::tempdir().unwrap();
            let dir = folder.path().join("runs/x");
            let mut d = Driver::open(&golden("qwen2"), dtype);
            d.create("x", adapter.clone());
            begin(&mut d, "x", steps);
            d.run(save("x", &dir)).unwrap();
            let undisturbed = resume(&mut d, "x");
            d.engine.unload_run(&RunId::new("x"));
            d.run(restore("x", &dir, adapter.clone())).unwrap();
            assert_eq!(resume(&mut d, "x"), undisturbed, "{adapter:?}");
            let mut other = Driver::open(&golden("qwen2"), dtype);
            other.run(restore("y", &dir, adapter)).unwrap();
            assert_eq!(resume(&mut other, "y"), undisturbed);
        }
    }
}

#[test]
fn a_run_may_be_trained_and_unloaded_while_it_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let mut d = Driver::open(&golden("llama"), Dtype::Bf16);
    for (i, adapter) in [Some(lora(6, 5)), None].into_iter().enumerate() {
        let dir = folder.path().join(i.to_string());
        d.create("x", adapter.clone());
        begin(&mut d, "x", 1);
        let saved = d.start(save("x", &dir));
        // The copy is taken by this step.
        d.tick();
        let undisturbed = resume(&mut d, "x");
        d.engine.unload_run(&RunId::new("x"));
        assert!(
            matches!(d.take(&saved).unwrap(), OpResult::Saved(Some(files)) if files.dir == dir && files.size_bytes > 0)
        );
        d.run(restore("x", &dir, adapter)).unwrap();
        assert_eq!(resume(&mut d, "x"), undisturbed);
    }
}

#[test]
fn a_save_that_fails_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("x");
    let mut d = Driver::open(&golden("llama"), Dtype::Bf16);
    d.create("x", Some(lora(6, 5)));
    begin(&mut d, "x", 1);
    std::fs::write(folder.path().join("file"), "").unwrap();
    let error = d.run(save("x", &folder.path().join("file/x"))).unwrap_err();
    assert_eq!(error.category, Category::Server);
    d.run(save("x", &dir)).unwrap();
    assert!(d.run(save("x", &dir)).unwrap_err().message.contains("exists already"));
    assert!(d.engine.is_idle());
    d.run(restore("y", &dir, Some(lora(6, 5)))).unwrap();
    assert_eq!(resume(&mut d, "x"), resume(&mut d, "y"));
}

#[test]
fn damaged_and_foreign_snapshots_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("x");
    let mut d = Driver::open(&golden("llama"), Dtype::Bf16);
    d.create("x", Some(lora(6, 5)));
    begin(&mut d, "x", 1);
    d.run(save("x", &dir)).unwrap();
    let before = d.forward("x", vec![datum(&tokens(30, 512, 99))]);
    let refused = |d: &mut Driver, lora| {
        let error = d.run(restore("x", &dir, lora)).unwrap_err();
        assert_eq!(error.category, Category::Server);
        error.message
    };
    assert!(refused(&mut d, Some(lora(8, 5))).contains("rank 6"));
    assert!(refused(&mut d, None).contains("all parameters"));
    for file in ["masters", "first_moments", "second_moments", "gradient"] {
        let path = dir.join(format!("{file}.safetensors"));
        let bytes = std::fs::read(&path).unwrap();
        let mut flipped = bytes.clone();
        flipped[bytes.len() - 1] ^= 1;
        for damaged in [&flipped[..], &bytes[..bytes.len() / 2], &[]] {
            std::fs::write(&path, damaged).unwrap();
            let message = refused(&mut d, Some(lora(6, 5)));
            assert!(message.contains(file) && message.contains("damaged"), "{message}");
        }
        std::fs::write(&path, bytes).unwrap();
    }
    // A failed restore does not change the loaded run.
    assert_eq!(d.forward("x", vec![datum(&tokens(30, 512, 99))]), before);
    std::fs::remove_file(dir.join("run.json")).unwrap();
    assert!(refused(&mut d, Some(lora(6, 5))).contains("run.json"));
}

#[test]
fn a_snapshot_on_disk_samples_like_the_one_in_memory() {
    for (family, dtype) in [("llama_tied", Dtype::Bf16), ("qwen2", Dtype::Bf16), ("qwen3", Dtype::F32)] {
        for adapter in [Some(lora(6, 5)), None] {
            let folder = tempfile::tempdir().unwrap();
            let dir = folder.path().join("s");
            let mut d = Driver::open(&golden(family), dtype);
            d.create("x", adapter);
            begin(&mut d, "x", 2);
            d.snapshot("x", "key");
            let ask = |source| Operation::Sample(Box::new(sample(source, tokens(20, 512, 1), 3, params(8, 0.8, 5))));
            let expected = sample_result(d.run(ask(SamplerSource::Snapshot { key: "key".into() })));
            let write = SaveSnapshot { key: "key".into(), target: target(&dir) };
            d.run(Operation::SaveSnapshot(write.clone())).unwrap();
            d.engine.drop_snapshot("key");
            let error = d.run(Operation::SaveSnapshot(write)).unwrap_err();
            assert!(error.message.contains("key"), "{error}");
            let source = SamplerSource::Checkpoint { base_model: "m".into(), dir };
            let mut found = sample_result(d.run(ask(source)));
            found.prompt_cache_hit_tokens = expected.prompt_cache_hit_tokens;
            assert_eq!(format!("{found:?}"), format!("{expected:?}"));
        }
    }
}

#[test]
fn sampling_continues_while_a_save_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut d = Driver::open(&golden("llama"), Dtype::Bf16);
    d.create("x", None);
    begin(&mut d, "x", 1);
    let saves: Vec<_> = (0..8).map(|i| d.start(save("x", &folder.path().join(i.to_string())))).collect();
    let base = SamplerSource::Base { model: "m".into() };
    let other = d.start(Operation::Sample(Box::new(sample(base, tokens(20, 512, 1), 1, params(1, 1.0, 5)))));
    (0..3).for_each(|_| d.tick());
    assert!(d.is_done(&other));
    assert!(!d.engine.is_idle() && !d.is_done(&saves[7]));
    // Nothing else to do: a step waits for the save instead of spinning.
    let (mut steps, began) = (0u32, std::time::Instant::now());
    while !d.engine.is_idle() {
        d.tick();
        steps += 1;
    }
    let most = 100 + began.elapsed().as_millis() as u32;
    assert!(steps <= most, "{steps} steps, expected at most {most}");
    for id in saves {
        d.take(&id).unwrap();
    }
}
