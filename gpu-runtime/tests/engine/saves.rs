//! Checkpoints: training resumes bit for bit, samplers read what was saved.

use trainyard_gpu_runtime::Dtype;
use trainyard_protocol::{
    Engine, LoadState, LoraSpec, ModelHead, OpResult, Operation, Optimizer, RunId, RunSpec, SamplerSource, SaveSampler,
    SaveState, SaveTarget,
};

use crate::support::{Driver, datum, golden, lora, params, sample, sample_result, tokens};

pub(crate) fn target(dir: &std::path::Path) -> SaveTarget {
    SaveTarget { dir: dir.to_owned(), overwrite: false }
}

pub(crate) fn train<E: Engine>(d: &mut Driver<E>, run: &str, from: usize, to: usize) {
    for step in from..to {
        d.forward_backward(run, vec![datum(&tokens(40, 512, step)), datum(&tokens(7, 512, step + 50))]);
        d.step(run, 1e-2);
    }
}

pub(crate) fn load(run: &str, dir: &std::path::Path, with_optimizer: bool, lora: Option<LoraSpec>) -> Operation {
    let spec = RunSpec { base_model: "m".into(), lora, optimizer: Optimizer::AdamW, head: ModelHead::Unembedding };
    Operation::LoadState(LoadState {
        run: RunId::new(run),
        dir: dir.to_owned(),
        with_optimizer,
        create: Some(spec),
        checkpoint_base: None,
        uploaded: None,
    })
}

#[test]
fn training_resumes_bit_for_bit() {
    let families = ["qwen2", "qwen3_moe", "gpt_oss", "deepseek_v3"];
    let cases = families.into_iter().flat_map(|family| [(family, Some(lora(6, 5))), (family, None)]);
    for (family, adapter) in cases {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("weights/a");
        let mut d = Driver::open(&golden(family), Dtype::Bf16);
        d.create("x", adapter.clone());
        train(&mut d, "x", 0, 3);
        let save = SaveState { run: RunId::new("x"), target: target(&dir) };
        assert!(matches!(d.run(Operation::SaveState(save.clone())).unwrap(), OpResult::Saved(Some(_))));
        assert!(d.run(Operation::SaveState(save)).unwrap_err().message.contains("exists"));
        d.run(load("y", &dir, true, adapter.clone())).unwrap();
        d.run(load("fresh", &dir, false, adapter.clone())).unwrap();
        let probe = || vec![datum(&tokens(30, 512, 99))];
        assert_eq!(d.forward("x", probe()), d.forward("y", probe()));
        for run in ["x", "y", "fresh"] {
            train(&mut d, run, 3, 5);
        }
        assert_eq!(d.forward("x", probe()), d.forward("y", probe()));
        assert_ne!(d.forward("x", probe()), d.forward("fresh", probe()), "moments start afresh");
        // Another process reads the same.
        let mut other = Driver::open(&golden(family), Dtype::Bf16);
        other.run(load("z", &dir, true, adapter)).unwrap();
        train(&mut other, "z", 3, 5);
        assert_eq!(d.forward("x", probe()), other.forward("z", probe()));
    }
}

#[test]
fn a_checkpoint_of_another_shape_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("a");
    let mut d = Driver::open(&golden("llama"), Dtype::F32);
    d.create("x", Some(lora(6, 5)));
    d.run(Operation::SaveState(SaveState { run: RunId::new("x"), target: target(&dir) })).unwrap();
    let error = d.run(load("y", &dir, true, Some(lora(8, 5)))).unwrap_err();
    assert!(error.message.contains("rank 6") && error.message.contains("rank 8"), "{error}");
    assert!(d.run(load("y", &folder.path().join("nothing"), true, Some(lora(6, 5)))).is_err());
}

#[test]
fn a_sampler_checkpoint_samples_like_its_snapshot() {
    for adapter in [Some(lora(6, 5)), None] {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("sampler_weights/a");
        let mut d = Driver::open(&golden("llama_tied"), Dtype::Bf16);
        d.create("x", adapter);
        train(&mut d, "x", 0, 2);
        let save = SaveSampler { run: RunId::new("x"), snapshot: Some("s".into()), target: Some(target(&dir)) };
        d.run(Operation::SaveSampler(save)).unwrap();
        let sample_from =
            |source| Operation::Sample(Box::new(sample(source, tokens(20, 512, 1), 3, params(8, 0.8, 5))));
        let snapshot = sample_result(d.run(sample_from(SamplerSource::Snapshot { key: "s".into() })));
        let source = SamplerSource::Checkpoint { base_model: "m".into(), dir };
        assert_eq!(snapshot.sequences, sample_result(d.run(sample_from(source))).sequences);
    }
}
