//! Log-probabilities of sampler and trainer are bit-equal.

use trainyard_gpu_runtime::Dtype;
use trainyard_protocol::{Engine, Operation, SampleResult, SamplerSource, StopReason};

use crate::support::{Driver, datum, golden, lora, params, sample, sample_result, tokens};

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// Prompt and sampled log-probabilities of every sequence against a forward pass over the same tokens.
pub(crate) fn check<E: Engine>(driver: &mut Driver<E>, run: &str, prompt: &[i64], result: &SampleResult) {
    for sequence in &result.sequences {
        let mut all = prompt.to_vec();
        all.extend(sequence.tokens.iter().map(|t| i64::from(*t)));
        let forward = driver.forward(run, vec![datum(&all)]);
        let logprobs = &forward.outputs[0].logprobs;
        assert_eq!(
            bits(&logprobs[prompt.len() - 1..]),
            bits(&sequence.logprobs),
            "sampled, prompt of {}",
            prompt.len()
        );
        let prompt_logprobs = result.prompt_logprobs.as_ref().unwrap();
        assert!(prompt_logprobs[0].is_nan());
        assert_eq!(bits(&logprobs[..prompt.len() - 1]), bits(&prompt_logprobs[1..]), "prompt of {}", prompt.len());
    }
}

#[test]
fn logprobs_of_sampler_and_trainer_are_bit_equal() {
    for (family, full) in [
        ("llama", false),
        ("qwen3", false),
        ("mistral_swa", false),
        ("qwen2", true),
        ("qwen3_moe", false),
        ("gpt_oss", true),
        ("deepseek_v3", false),
        ("deepseek_v3", true),
        ("indexed/glm_moe_dsa", false),
        ("indexed/deepseek_v32", true),
        ("qwen3_5", false),
        ("qwen3_5", true),
        ("qwen3_5_moe", false),
        ("nemotron_h", false),
        ("nemotron_h", true),
        ("nemotron_h_latent", false),
        ("lfm2", false),
        ("granitemoehybrid", true),
        ("granitemoehybrid_moe", false),
    ] {
        for dtype in [Dtype::Bf16, Dtype::F32] {
            parity(&mut Driver::open(&golden(family), dtype), full);
        }
    }
}

/// Samples of many lengths, batched, from the base model and from a trained run.
pub(crate) fn parity<E: Engine>(d: &mut Driver<E>, full: bool) {
    d.create("run", if full { None } else { Some(lora(5, 1)) });
    d.create("base", Some(lora(1, 1)));
    for seed in 0..2 {
        d.forward_backward("run", vec![datum(&tokens(30, 512, seed))]);
        d.step("run", 1e-2);
    }
    d.snapshot("run", "snap");
    let mut requests = Vec::new();
    for (i, length) in [1, 2, 15, 31, 32, 33, 47, 64, 65, 100, 129, 300, 5, 5, 77, 3].into_iter().enumerate() {
        let prompt = tokens(length, 512, i + 10);
        let (source, run) = if i % 3 == 0 {
            (SamplerSource::Base { model: "m".into() }, "base")
        } else {
            (SamplerSource::Snapshot { key: "snap".into() }, "run")
        };
        let request = sample(source, prompt.clone(), 1 + i as u32 % 3, params(1 + 3 * i as u32, 1.0, i as u64));
        requests.push((d.start(Operation::Sample(Box::new(request))), prompt, run));
        // Other requests in the batch: some start while others decode.
        for _ in 0..i % 4 {
            d.tick();
        }
    }
    let results: Vec<_> = requests.iter().map(|(id, ..)| sample_result(d.take(id))).collect();
    for ((_, prompt, run), result) in requests.iter().zip(&results) {
        check(d, run, prompt, result);
    }
}

#[test]
fn training_does_not_change_a_snapshot() {
    let mut d = Driver::open(&golden("llama"), Dtype::F32);
    d.create("run", Some(lora(4, 3)));
    d.forward_backward("run", vec![datum(&tokens(40, 512, 1))]);
    d.step("run", 1e-2);
    d.snapshot("run", "snap");
    let request = || sample(SamplerSource::Snapshot { key: "snap".into() }, tokens(9, 512, 2), 2, params(12, 1.0, 7));
    let before = sample_result(d.run(Operation::Sample(Box::new(request()))));
    let id = d.start(Operation::Sample(Box::new(request())));
    d.forward_backward("run", vec![datum(&tokens(40, 512, 3))]);
    d.step("run", 1e-1);
    let during = sample_result(d.take(&id));
    let after = sample_result(d.run(Operation::Sample(Box::new(request()))));
    assert_eq!(before.sequences, during.sequences);
    assert_eq!(before.sequences, after.sequences);
    assert_ne!(before.sequences[0].tokens, before.sequences[1].tokens, "samples of a request differ");
}

#[test]
fn greedy_continuation_matches_pytorch() {
    use trainyard_gpu_runtime::load::load;
    for family in [
        "deepseek_v3",
        "gemma3",
        "gpt_oss",
        "granitemoehybrid",
        "granitemoehybrid_moe",
        "lfm2",
        "llama",
        "llama3_rope",
        "llama_tied",
        "mistral_swa",
        "nemotron_h",
        "nemotron_h_latent",
        "qwen2",
        "qwen3",
        "qwen3_5",
        "qwen3_5_moe",
        "qwen3_moe",
    ] {
        let dir = golden(family);
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(dir.join("golden.json")).unwrap()).unwrap();
        // The trained adapter as a PEFT folder, loaded as a sampler checkpoint.
        let peft = tempfile::tempdir().unwrap();
        write_peft(&dir.join("lora_after_adamw.safetensors"), peft.path());
        assert!(load(&dir).is_ok());
        let mut d = Driver::open(&dir, Dtype::F32);
        let source = SamplerSource::Checkpoint { base_model: "m".into(), dir: peft.path().to_owned() };
        let greedy = &json["greedy_after_adamw"];
        let prompt: Vec<i64> = serde_json::from_value(greedy["prompt"].clone()).unwrap();
        let expected: Vec<u32> = serde_json::from_value(greedy["tokens"].clone()).unwrap();
        let params = params(expected.len() as u32, 0.0, 0);
        let result = sample_result(d.run(Operation::Sample(Box::new(sample(source, prompt, 1, params)))));
        assert_eq!(result.sequences[0].tokens, expected, "{family}");
        assert_eq!(result.sequences[0].stop_reason, StopReason::Length);
        let logprobs: Vec<f32> = serde_json::from_value(greedy["logprobs"].clone()).unwrap();
        for (a, b) in result.sequences[0].logprobs.iter().zip(logprobs) {
            assert!((a - b).abs() < 5e-4, "{family}: {a} != {b}");
        }
    }
}

fn write_peft(from: &std::path::Path, to: &std::path::Path) {
    let bytes = std::fs::read(from).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let renamed: Vec<_> =
        file.tensors().into_iter().map(|(name, view)| (format!("base_model.model.{name}.weight"), view)).collect();
    safetensors::serialize_to_file(renamed, None, &to.join("adapter_model.safetensors")).unwrap();
    let config = serde_json::json!({
        "peft_type": "LORA", "r": 8, "lora_alpha": 32, "base_model_name_or_path": "m", "bias": "none",
        "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    });
    std::fs::write(to.join("adapter_config.json"), config.to_string()).unwrap();
}
