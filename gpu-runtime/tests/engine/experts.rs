//! Models with experts: metrics of routing, and adapters on experts in files.

use std::path::Path;

use trainyard_gpu_runtime::Dtype;
use trainyard_protocol::{Engine, Operation, RunId, SamplerSource, SaveSampler, SaveTarget};

use crate::support::{Driver, datum, golden, lora, params, sample, sample_result, tokens};

#[test]
fn metrics_say_how_evenly_tokens_are_routed() {
    let names = |family: &str| {
        let mut d = Driver::open(&golden(family), Dtype::F32);
        d.create("x", Some(lora(4, 1)));
        let data = || vec![datum(&tokens(40, 512, 1)), datum(&tokens(30, 512, 2))];
        let (trained, forward) = (d.forward_backward("x", data()).metrics, d.forward("x", data()).metrics);
        assert_eq!(trained, forward, "a fresh adapter changes nothing");
        for (name, value) in &trained {
            let bounds = match name.as_str() {
                "e_frac_with_tokens:mean" => 0.5..=1.0,
                "e_frac_oversubscribed:mean" => 0.1..=0.9,
                "e_max_violation:mean" | "e_max_violation:max" => 0.0..=3.0,
                "e_min_violation:mean" => -1.0..=0.0,
                _ => continue,
            };
            assert!(bounds.contains(value), "{family}: {name} is {value}");
        }
        trained.into_keys().filter(|name| name.starts_with("e_")).collect::<Vec<_>>()
    };
    assert!(names("llama").is_empty());
    for family in ["qwen3_moe", "gpt_oss", "deepseek_v3"] {
        let expected = [
            "e_frac_oversubscribed:mean",
            "e_frac_with_tokens:mean",
            "e_max_violation:max",
            "e_max_violation:mean",
            "e_min_violation:mean",
        ];
        assert_eq!(names(family), expected);
    }
}

#[test]
fn adapters_on_experts_are_saved_in_the_layout_of_the_protocol() {
    for (family, adapter) in
        [("qwen3_moe", true), ("gpt_oss", true), ("gpt_oss", false), ("deepseek_v3", true), ("deepseek_v3", false)]
    {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("sampler_weights/a");
        let mut d = Driver::open(&golden(family), Dtype::Bf16);
        d.create("x", adapter.then(|| lora(6, 5)));
        for seed in 0..2 {
            d.forward_backward("x", vec![datum(&tokens(40, 512, seed))]);
            d.step("x", 1e-2);
        }
        let target = Some(SaveTarget { dir: dir.clone(), overwrite: false });
        d.run(Operation::SaveSampler(SaveSampler { run: RunId::new("x"), snapshot: Some("s".into()), target }))
            .unwrap();
        if adapter {
            let bytes = std::fs::read(dir.join("adapter_model.safetensors")).unwrap();
            let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
            let shape = |name: &str| {
                let prefix = "base_model.model.model.layers.1.mlp.experts";
                file.tensor(&format!("{prefix}.{name}.weight")).unwrap().shape().to_vec()
            };
            let experts = if family == "gpt_oss" { 4 } else { 8 };
            let width = if family == "deepseek_v3" { 32 } else { 48 };
            for module in ["w1", "w3"] {
                assert_eq!(shape(&format!("{module}.lora_A")), [1, 6, 64]);
                assert_eq!(shape(&format!("{module}.lora_B")), [experts, width, 6]);
            }
            assert_eq!((shape("w2.lora_A"), shape("w2.lora_B")), (vec![experts, 6, width], vec![1, 64, 6]));
        }
        let mut sample_from = |source| {
            let operation = Operation::Sample(Box::new(sample(source, tokens(20, 512, 1), 3, params(8, 0.8, 5))));
            sample_result(d.run(operation)).sequences
        };
        let snapshot = sample_from(SamplerSource::Snapshot { key: "s".into() });
        assert_eq!(snapshot, sample_from(SamplerSource::Checkpoint { base_model: "m".into(), dir }), "{family}");
    }
}

/// Latent attention and the MLP beside the experts, as PEFT names them.
#[test]
fn adapters_are_on_the_modules_of_latent_attention_that_have_them() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("a");
    let mut d = Driver::open(&golden("deepseek_v3"), Dtype::F32);
    d.create("x", Some(lora(6, 5)));
    d.forward_backward("x", vec![datum(&tokens(40, 512, 1))]);
    d.step("x", 1e-2);
    let target = Some(SaveTarget { dir: dir.clone(), overwrite: false });
    d.run(Operation::SaveSampler(SaveSampler { run: RunId::new("x"), snapshot: None, target })).unwrap();
    let bytes = std::fs::read(dir.join("adapter_model.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let attention = ["q_a_proj", "kv_a_proj_with_mqa", "o_proj"].map(|module| format!("self_attn.{module}"));
    let shared = ["gate_proj", "up_proj", "down_proj"].map(|module| format!("mlp.shared_experts.{module}"));
    for module in attention.iter().chain(&shared) {
        let of = |part: &str| file.tensor(&format!("base_model.model.model.layers.1.{module}.{part}.weight")).unwrap();
        assert_eq!((of("lora_A").shape()[0], of("lora_B").shape()[1]), (6, 6), "{module}");
        // A step moved all of them: B began with zeros.
        assert!(of("lora_B").data().iter().any(|byte| *byte != 0), "{module}");
    }
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.join("adapter_config.json")).unwrap()).unwrap();
    let names: Vec<String> = serde_json::from_value(json["target_modules"].clone()).unwrap();
    for module in ["q_a_proj", "kv_a_proj_with_mqa", "o_proj", "gate_proj", "w1", "lm_head"] {
        assert!(names.iter().any(|name| name == module), "{module} is not in {names:?}");
    }
    // As the hosted service places them.
    assert!(!names.iter().any(|name| name == "q_b_proj" || name == "kv_b_proj"), "{names:?}");
}

const CORRECTION: &str = "model.layers.1.mlp.gate.e_score_correction_bias";

/// The correction of a checkpoint's router.
fn correction(folder: &Path) -> Vec<u8> {
    let bytes = std::fs::read(folder.join("model.safetensors")).unwrap();
    safetensors::SafeTensors::deserialize(&bytes).unwrap().tensor(CORRECTION).unwrap().data().to_vec()
}

/// A model whose router prefers its second and fourth expert to all others.
fn corrected() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let from = golden("deepseek_v3");
    std::fs::copy(from.join("config.json"), folder.path().join("config.json")).unwrap();
    let bytes = std::fs::read(from.join("model.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let values: Vec<u8> = [0.0f32, 9.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let own = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![8], &values).unwrap();
    let tensors = file.tensors().into_iter().map(|(name, view)| {
        let view = if name == CORRECTION { own.clone() } else { view };
        (name, view)
    });
    safetensors::serialize_to_file(tensors.collect::<Vec<_>>(), None, &folder.path().join("model.safetensors"))
        .unwrap();
    folder
}

#[test]
fn corrections_decide_where_tokens_go_and_stay_with_the_weights() {
    let model = corrected();
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("a");
    let mut d = Driver::open(model.path(), Dtype::F32);
    d.create("x", None);
    for seed in 0..2 {
        let metrics = d.forward_backward("x", vec![datum(&tokens(40, 512, seed))]).metrics;
        // Two of eight experts have all tokens.
        assert_eq!((metrics["e_frac_with_tokens:mean"], metrics["e_max_violation:max"]), (0.25, 3.0));
        d.step("x", 1e-2);
    }
    let target = Some(SaveTarget { dir: dir.clone(), overwrite: false });
    d.run(Operation::SaveSampler(SaveSampler { run: RunId::new("x"), snapshot: None, target })).unwrap();
    assert_eq!(correction(&dir), correction(model.path()), "no step changes it");
    let sample_on = |d: &mut Driver| {
        let source = SamplerSource::Checkpoint { base_model: "m".into(), dir: dir.clone() };
        d.run(Operation::Sample(Box::new(sample(source, tokens(20, 512, 1), 1, params(4, 0.8, 5)))))
    };
    assert!(sample_on(&mut d).is_ok());
    let error = sample_on(&mut Driver::open(&golden("deepseek_v3"), Dtype::F32)).unwrap_err();
    assert!(error.message.contains("not of base model"), "{error}");
    let weights = |d: &Driver| d.engine.numerics().remove("m").unwrap().weights;
    assert_ne!(weights(&d), weights(&Driver::open(&golden("deepseek_v3"), Dtype::F32)), "the digest covers it");
}
