//! Mutations of small models of every form. Most change a header, since the files have little else.

use std::fs;
use std::path::Path;

use serde_json::json;
use trainyard_test_support::mutate::Corpus;

use super::attempt;

/// The model whose weights are in `tests/fuzz/safetensors`.
fn write_config(folder: &Path) {
    let config = json!({
        "model_type": "llama", "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "vocab_size": 16,
        "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
        "tie_word_embeddings": true, "eos_token_id": 2,
    });
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
}

#[test]
fn mutated_gguf_files() {
    const WORDS: [&str; 12] = [
        "GGUF",
        "llama",
        "gpt2",
        "general.architecture",
        "general.alignment",
        "llama.block_count",
        "llama.rope.dimension_count",
        "tokenizer.ggml.tokens",
        "tokenizer.ggml.merges",
        "blk.0.attn_q.weight",
        "\u{1}\0\0\0\0\0\0\0",
        "\t\0\0\0\u{8}\0\0\0",
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let mut loaded = 0;
    Corpus::new("gguf").words(&WORDS).each(|input| {
        fs::write(&path, input).unwrap();
        loaded += usize::from(attempt(&path, input.len()).is_ok());
    });
    assert!(loaded > 10, "{loaded}: the corpus loads, and so do some mutations");
}

#[test]
fn mutated_safetensors_files() {
    const WORDS: [&str; 12] = [
        "\"F32\"",
        "\"BF16\"",
        "\"data_offsets\":",
        "\"shape\":",
        "\"dtype\":",
        "__metadata__",
        "model.norm.weight",
        "[0,",
        "18446744073709551615",
        "{",
        "}",
        ",",
    ];
    let folder = tempfile::tempdir().unwrap();
    write_config(folder.path());
    let path = folder.path().join("model.safetensors");
    let mut loaded = 0;
    Corpus::new("safetensors").words(&WORDS).each(|input| {
        fs::write(&path, input).unwrap();
        loaded += usize::from(attempt(folder.path(), input.len()).is_ok());
    });
    assert!(loaded > 10, "{loaded}: the corpus loads, and so do some mutations");
}

/// A header whose values are wrong, in front of data that is right.
#[test]
fn mutated_safetensors_headers() {
    const WORDS: [&str; 8] = ["F32", "F16", "I64", "dtype", "shape", "data_offsets", "__metadata__", "lm_head.weight"];
    let folder = tempfile::tempdir().unwrap();
    write_config(folder.path());
    Corpus::new("safetensors_headers").words(&WORDS).each_value(|header| {
        let header = header.to_string();
        let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 4_096]].concat();
        fs::write(folder.path().join("model.safetensors"), &bytes).unwrap();
        let _ = attempt(folder.path(), bytes.len());
    });
}

#[test]
fn mutated_configurations() {
    const WORDS: [&str; 12] = [
        "llama",
        "qwen2",
        "qwen3",
        "gemma3_text",
        "mistral",
        "rope_scaling",
        "rope_type",
        "llama3",
        "sliding_window",
        "layer_types",
        "hidden_act",
        "vocab_size",
    ];
    let weights = crate::load::tests::golden("llama").join("model.safetensors");
    let folder = tempfile::tempdir().unwrap();
    fs::copy(&weights, folder.path().join("model.safetensors")).unwrap();
    let size = fs::metadata(&weights).unwrap().len() as usize;
    Corpus::new("model_config").inputs(1_000).words(&WORDS).each_value(|config| {
        fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
        let _ = attempt(folder.path(), size);
    });
}
