//! The real test model: configuration, weights and the tokenizer made from its metadata.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};

use serde_json::Value;
use tokenizers::Tokenizer;
use trainyard_gpu_runtime::config::{ModelSource, RopeScaling};
use trainyard_gpu_runtime::load::load;

const NAME: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn model() -> ModelSource {
    let given = std::env::var_os("TRAINYARD_TEST_MODEL").map(PathBuf::from);
    let path = given.unwrap_or_else(|| workspace().join(".cache").join(NAME));
    assert!(path.is_file(), "the test model is not at {}: run `make model`", path.display());
    load(&path).unwrap()
}

fn text(source: &ModelSource, name: &str) -> String {
    String::from_utf8(source.files[name].clone()).unwrap()
}

#[test]
fn the_configuration_is_smollm2s() {
    let source = model();
    let config = &source.config;
    assert_eq!(
        (config.arch, config.num_layers(), config.hidden_size, config.intermediate_size),
        ("llama", 30, 576, 1536)
    );
    assert_eq!((config.num_heads, config.num_kv_heads, config.head_dim, config.vocab_size), (9, 3, 64, 49152));
    assert_eq!((config.max_position_embeddings, config.rms_norm_eps, config.ropes[0].theta), (8192, 1e-5, 1e5));
    assert_eq!((&config.ropes[0].scaling, &config.eos_token_ids[..]), (&RopeScaling::None, &[2][..]));
    assert!(config.tie_word_embeddings);
    let json: Value = serde_json::from_str(&text(&source, "config.json")).unwrap();
    assert_eq!((&json["model_type"], &json["rms_norm_eps"]), (&"llama".into(), &1e-5.into()));
}

#[test]
fn weights_are_dequantized() {
    let source = model();
    let embedding = source.tensors.read("model.embed_tokens.weight").unwrap();
    assert_eq!(embedding.len(), 49152 * 576);
    let query = source.tensors.read("model.layers.29.self_attn.q_proj.weight").unwrap();
    let mean_square = query.iter().map(|v| v * v).sum::<f32>() / query.len() as f32;
    assert!((1e-4..1.0).contains(&mean_square), "{mean_square}");
}

#[test]
fn the_tokenizer_encodes_and_decodes_as_the_reference() {
    let tokenizer = Tokenizer::from_bytes(text(&model(), "tokenizer.json")).unwrap();
    let golden = std::fs::read(workspace().join("tests/golden/smollm2.json")).unwrap();
    let golden: Value = serde_json::from_slice(&golden).unwrap();
    for item in golden["items"].as_array().unwrap() {
        let text = item["text"].as_str().unwrap();
        let ids = |key: &str| -> Vec<u32> { serde_json::from_value(item[key].clone()).unwrap() };
        assert_eq!(tokenizer.encode(text, true).unwrap().get_ids(), ids("tokens"), "{text}");
        assert_eq!(tokenizer.decode(&ids("tokens"), false).unwrap(), text);
        assert_eq!(tokenizer.decode(&ids("greedy_tokens"), false).unwrap(), item["greedy_text"].as_str().unwrap());
    }
}

#[test]
fn special_tokens_and_the_chat_template_are_kept() {
    let source = model();
    let config: Value = serde_json::from_str(&text(&source, "tokenizer_config.json")).unwrap();
    assert_eq!((&config["bos_token"], &config["eos_token"]), (&"<|im_start|>".into(), &"<|im_end|>".into()));
    assert_eq!((&config["add_bos_token"], &config["model_max_length"]), (&false.into(), &8192.into()));
    assert!(config["chat_template"].as_str().unwrap().contains("<|im_start|>assistant"));
    assert_eq!(config["added_tokens_decoder"].as_object().unwrap().len(), 17);
    let roles: Value = serde_json::from_str(&text(&source, "special_tokens_map.json")).unwrap();
    assert_eq!(roles["pad_token"], "<|im_end|>");
}
