//! The real SmolLM2-135M-Instruct against reference numbers from PyTorch.

use std::path::{Path, PathBuf};

use serde_json::Value;
use trainyard_gpu_runtime::Dtype;
use trainyard_gpu_runtime::load::load;
use trainyard_protocol::{Operation, SamplerSource, SamplingControls, SamplingParams, Stop, StopReason};

use crate::support::{Driver, params, sample, sample_result};

pub(crate) fn model() -> PathBuf {
    let cached = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/SmolLM2-135M-Instruct.Q4_1.gguf");
    let path = std::env::var_os("TRAINYARD_TEST_MODEL").map_or(cached, PathBuf::from);
    assert!(path.exists(), "{} is missing: run `make model`", path.display());
    path
}

fn reference() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/smollm2.json");
    let json: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    json["items"].as_array().unwrap().clone()
}

/// Mean and largest error of prompt log-probabilities, and whether greedy tokens agree.
fn measure(d: &mut Driver, item: &Value) -> (f64, f64, bool) {
    let prompt: Vec<i64> = serde_json::from_value(item["tokens"].clone()).unwrap();
    let source = SamplerSource::Base { model: "m".into() };
    let result = sample_result(d.run(Operation::Sample(Box::new(sample(source, prompt, 1, params(32, 0.0, 0))))));
    let expected: Vec<Option<f64>> = serde_json::from_value(item["prompt_logprobs_f32"].clone()).unwrap();
    let errors: Vec<f64> = result.prompt_logprobs.unwrap()[1..]
        .iter()
        .zip(&expected[1..])
        .map(|(a, b)| (f64::from(*a) - b.unwrap()).abs())
        .collect();
    let greedy: Vec<u32> = serde_json::from_value(item["greedy_tokens"].clone()).unwrap();
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    (mean, errors.iter().fold(0.0, |m, e| m.max(*e)), greedy == result.sequences[0].tokens)
}

#[test]
fn f32_matches_the_reference() {
    let mut d = Driver::open(&model(), Dtype::F32);
    for item in reference() {
        let (_, largest, greedy) = measure(&mut d, &item);
        assert!(largest < 2e-3, "off by {largest} on {}", item["text"]);
        assert!(greedy, "greedy tokens differ on {}", item["text"]);
    }
}

#[test]
fn bf16_is_closer_than_pytorchs_bf16() {
    let mut d = Driver::open(&model(), Dtype::Bf16);
    let (mut ours, mut torchs) = (0.0, 0.0);
    for item in reference() {
        let (mean, _, _) = measure(&mut d, &item);
        let torch = item["torch_bf16_mean_abs_error"].as_f64().unwrap();
        let tokens = item["tokens"].as_array().unwrap().len() as f64 - 1.0;
        eprintln!("bf16 mean error {mean:.5}, PyTorch's {torch:.5}, ratio {:.3}", mean / torch);
        ours += mean * tokens;
        torchs += torch * tokens;
    }
    assert!(ours <= 0.4 * torchs, "mean error per token is {:.3} of PyTorch's", ours / torchs);
}

#[test]
fn texts_follow_a_json_schema() {
    let schema = r#"{"type": "object", "properties": {"name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 120}, "city": {"enum": ["Bern", "Zürich"]}},
        "required": ["name", "age", "city"], "additionalProperties": false}"#;
    let tokenizer = tokenizers::Tokenizer::from_bytes(&load(&model()).unwrap().files["tokenizer.json"]).unwrap();
    let prompt: Vec<i64> = serde_json::from_value(reference()[0]["tokens"].clone()).unwrap();
    let d = &mut Driver::open(&model(), Dtype::Bf16);
    let mut texts = Vec::new();
    for (stop, temperature) in [(Stop::Default, 0.0), (Stop::Default, 1.5), (Stop::Nothing, 1.0)] {
        let controls = SamplingControls { json_schema: Some(schema.to_owned()), ..Default::default() };
        let params = SamplingParams { stop, controls, ..params(120, temperature, 7) };
        let request = sample(SamplerSource::Base { model: "m".into() }, prompt.clone(), 3, params);
        for sequence in sample_result(d.run(Operation::Sample(Box::new(request)))).sequences {
            let text = tokenizer.decode(&sequence.tokens, true).unwrap();
            assert_eq!(sequence.stop_reason, StopReason::Stop, "{text}");
            let value: Value = serde_json::from_str(&text).unwrap();
            assert!(value["name"].as_str().is_some_and(|name| name.chars().count() <= 12), "{text}");
            assert!(value["age"].as_u64().is_some_and(|age| age <= 120), "{text}");
            assert!(value["city"] == "Bern" || value["city"] == "Zürich", "{text}");
            assert_eq!(value.as_object().map(serde_json::Map::len), Some(3), "{text}");
            assert!(sequence.logprobs.iter().all(|logprob| logprob.is_finite() && *logprob <= 0.0));
            texts.push(text);
        }
    }
    texts.sort();
    texts.dedup();
    assert!(texts.len() > 3, "{texts:?}");
}
