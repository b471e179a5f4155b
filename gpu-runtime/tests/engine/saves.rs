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
    let families = ["qwen2", "qwen3_moe", "gpt_oss", "deepseek_v3", "kimi_k25", "phi3"];
    let cases = families.into_iter().flat_map(|family| [(family, Some(lora(6, 5))), (family, None)]);
    for (family, adapter) in cases.chain([("llama_tied", Some(scaled(50.0)))]) {
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
    let error = d.run(load("y", &dir, true, Some(scaled(64.0)))).unwrap_err();
    assert!(error.message.contains("alpha 32 ") && error.message.contains("alpha 64 "), "{error}");
    assert!(d.run(load("y", &folder.path().join("nothing"), true, Some(lora(6, 5)))).is_err());
}

#[test]
fn a_sampler_checkpoint_samples_like_its_snapshot() {
    for adapter in [Some(lora(6, 5)), Some(scaled(32.0 * 6f32.sqrt())), None] {
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

/// An adapter with another scale.
fn scaled(alpha: f32) -> LoraSpec {
    LoraSpec { alpha, ..lora(6, 5) }
}

/// A copy of a saved adapter with twice its alpha and half its B, which computes the same.
fn copy_with_twice_alpha(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir(to).unwrap();
    let config = std::fs::read_to_string(from.join("adapter_config.json")).unwrap();
    let doubled = config.replace("\"lora_alpha\": 64", "\"lora_alpha\": 128");
    assert_ne!(config, doubled);
    std::fs::write(to.join("adapter_config.json"), doubled).unwrap();
    let bytes = std::fs::read(from.join("adapter_model.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let halved = |data: &[u8]| -> Vec<u8> {
        data.as_chunks().0.iter().flat_map(|&bytes| (f32::from_le_bytes(bytes) / 2.0).to_le_bytes()).collect()
    };
    let tensors: Vec<_> = file.tensors().into_iter().collect();
    let data: Vec<Vec<u8>> = tensors
        .iter()
        .map(|(name, view)| if name.contains(".lora_B.") { halved(view.data()) } else { view.data().to_vec() })
        .collect();
    let views = tensors.iter().zip(&data).map(|((name, view), data)| {
        (name, safetensors::tensor::TensorView::new(safetensors::Dtype::F32, view.shape().to_vec(), data).unwrap())
    });
    std::fs::write(to.join("adapter_model.safetensors"), safetensors::serialize(views, None).unwrap()).unwrap();
}

#[test]
fn the_scale_of_an_adapter_is_that_of_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, twice) = (folder.path().join("a"), folder.path().join("b"));
    let mut d = Driver::open(&golden("llama_tied"), Dtype::Bf16);
    d.create("x", Some(scaled(64.0)));
    d.create("plain", Some(lora(6, 5)));
    let probe = || vec![datum(&tokens(30, 512, 99))];
    assert_eq!(d.forward("x", probe()), d.forward("plain", probe()), "B is zero");
    for run in ["x", "plain"] {
        train(&mut d, run, 0, 2);
    }
    assert_ne!(d.forward("x", probe()), d.forward("plain", probe()));
    let save = SaveSampler { run: RunId::new("x"), snapshot: None, target: Some(target(&dir)) };
    d.run(Operation::SaveSampler(save)).unwrap();
    copy_with_twice_alpha(&dir, &twice);
    let [saved, doubled] = [&dir, &twice].map(|dir| {
        let source = SamplerSource::Checkpoint { base_model: "m".into(), dir: dir.clone() };
        let operation = sample(source, tokens(20, 512, 1), 3, params(8, 0.8, 5));
        sample_result(d.run(Operation::Sample(Box::new(operation)))).sequences
    });
    assert_eq!(saved, doubled);
    // Exported weights continue in a run of their scale alone.
    let error = d.run(load("y", &dir, false, Some(lora(6, 5)))).unwrap_err();
    assert_eq!(
        error.message,
        "path: lora_alpha of the checkpoint is 64, that of the model is 32; user_metadata.trainyard.lora_alpha of a new \
         model sets it"
    );
    d.run(load("y", &dir, false, Some(scaled(64.0)))).unwrap();
    d.run(load("z", &twice, false, Some(scaled(128.0)))).unwrap();
    assert_eq!(d.forward("y", probe()), d.forward("z", probe()));
}

/// A copy of a saved adapter: pairs on projections from latents with B zero, or without these pairs, as the hosted service has
/// adapters.
fn copy_adapter(from: &std::path::Path, to: &std::path::Path, with_latents: bool) {
    std::fs::create_dir(to).unwrap();
    std::fs::copy(from.join("adapter_config.json"), to.join("adapter_config.json")).unwrap();
    let bytes = std::fs::read(from.join("adapter_model.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let is_latent = |name: &str| name.contains(".q_b_proj.") || name.contains(".kv_b_proj.");
    let mut tensors = Vec::new();
    for (name, view) in file.tensors().into_iter().filter(|(name, _)| with_latents || !is_latent(name)) {
        let mut data = view.data().to_vec();
        if is_latent(&name) && name.contains(".lora_B.") {
            data.fill(0);
        }
        tensors.push((name, view.shape().to_vec(), data));
    }
    let view = |shape: &[usize], data| {
        safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.to_vec(), data).unwrap()
    };
    let views: Vec<_> = tensors.iter().map(|(name, shape, data)| (name.as_str(), view(shape, data))).collect();
    std::fs::write(to.join("adapter_model.safetensors"), safetensors::serialize(views, None).unwrap()).unwrap();
}

/// Names of a saved adapter's tensors.
fn tensor_names(dir: &std::path::Path) -> Vec<String> {
    let bytes = std::fs::read(dir.join("adapter_model.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    file.names().into_iter().map(str::to_owned).collect()
}

/// An adapter that is also on projections from latents, which new runs are not.
fn on_all_of_attention() -> LoraSpec {
    LoraSpec { latent_up: true, ..lora(6, 5) }
}

#[test]
fn training_of_the_former_placement_on_latents_continues() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("a");
    let mut d = Driver::open(&golden("deepseek_v3"), Dtype::Bf16);
    d.create("x", Some(on_all_of_attention()));
    train(&mut d, "x", 0, 3);
    d.run(Operation::SaveState(SaveState { run: RunId::new("x"), target: target(&dir) })).unwrap();
    // As older releases write it, which do not know the placement.
    let manifest = std::fs::read_to_string(dir.join("trainyard.json")).unwrap();
    assert!(manifest.contains("train_attn") && !manifest.contains("latent_up"), "{manifest}");
    // New runs have the other placement; the checkpoint's wins.
    d.run(load("y", &dir, true, Some(lora(6, 5)))).unwrap();
    for run in ["x", "y"] {
        train(&mut d, run, 3, 5);
    }
    let probe = || vec![datum(&tokens(30, 512, 99))];
    assert_eq!(d.forward("x", probe()), d.forward("y", probe()));
    let again = folder.path().join("again");
    d.run(Operation::SaveState(SaveState { run: RunId::new("y"), target: target(&again) })).unwrap();
    assert!(tensor_names(&again).iter().any(|name| name.contains(".q_b_proj.")));
}

#[test]
fn adapters_show_by_their_modules_where_they_are_on_latents() {
    let folder = tempfile::tempdir().unwrap();
    let [saved, lacking, zero] = ["saved", "lacking", "zero"].map(|name| folder.path().join(name));
    let mut d = Driver::open(&golden("deepseek_v3"), Dtype::F32);
    d.create("x", Some(on_all_of_attention()));
    train(&mut d, "x", 0, 2);
    let save = |run: &str, dir: &std::path::Path| {
        Operation::SaveSampler(SaveSampler { run: RunId::new(run), snapshot: None, target: Some(target(dir)) })
    };
    d.run(save("x", &saved)).unwrap();
    copy_adapter(&saved, &lacking, false);
    copy_adapter(&saved, &zero, true);
    for (run, dir) in [("same", &saved), ("lacking", &lacking), ("zero", &zero)] {
        d.run(load(run, dir, false, Some(lora(6, 5)))).unwrap();
    }
    let probe = || vec![datum(&tokens(30, 512, 99))];
    assert_eq!(d.forward("same", probe()), d.forward("x", probe()));
    let found = d.forward("lacking", probe());
    assert_eq!(found, d.forward("zero", probe()));
    assert_ne!(found, d.forward("x", probe()), "the pairs matter");
    for (run, has_pairs) in [("same", true), ("zero", true), ("lacking", false)] {
        train(&mut d, run, 2, 3);
        let again = folder.path().join(format!("{run} again"));
        d.run(save(run, &again)).unwrap();
        let names = tensor_names(&again);
        for module in [".q_b_proj.", ".kv_b_proj."] {
            assert_eq!(names.iter().any(|name| name.contains(module)), has_pairs, "{run} {module}");
        }
        assert!(names.iter().any(|name| name.contains(".kv_a_proj_with_mqa.")));
    }
    // A new run writes what the hosted service does.
    d.create("new", Some(lora(6, 5)));
    let dir = folder.path().join("new");
    d.run(save("new", &dir)).unwrap();
    assert_eq!(tensor_names(&dir).len(), tensor_names(&lacking).len());
}
