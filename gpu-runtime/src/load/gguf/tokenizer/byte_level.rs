//! Byte-level BPE (`tokenizer.ggml.model` = `gpt2`), with the pre-tokenizer that the file names.

use serde_json::{Value, json};

use super::pipeline::Pipeline;
use super::vocabulary::{Vocabulary, merges};
use crate::config::LoadError;
use crate::load::bpe::{KIMI_K2, byte_level, split};
use crate::load::gguf::metadata::GgufFile;

/// GPT-2's pattern for splitting text.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// Llama 3's pattern: up to three digits together.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Qwen2's pattern: digits one by one.
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Qwen3.5's pattern: as Qwen2's, but marks belong to words.
const QWEN35: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*",
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
);

/// Mistral's pattern since its Tekken tokenizers: words by their capitals, digits one by one.
const TEKKEN: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);

/// GPT-4o's pattern, also of gpt-oss: words by their capitals, up to three digits together.
const GPT4O: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);

/// DeepSeek-V3's patterns, one after the other: digits, Chinese and Japanese, all else.
const DEEPSEEK_V3: [&str; 3] = [
    r"\p{N}{1,3}",
    "[\u{4e00}-\u{9fa5}\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+",
    concat!(
        r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"##,
        r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
];

pub(super) fn pipeline(file: &GgufFile, vocabulary: &Vocabulary<'_>) -> Result<Pipeline, LoadError> {
    let pre = file.text("tokenizer.ggml.pre")?.unwrap_or("default");
    let pre_tokenizer = pre_tokenizer(pre)?;
    let is_composed = is_qwen(pre) || pre == "qwen35";
    // A word that is a token is that token, whatever its merges are.
    let ignores_merges = is_llama3(pre) || matches!(pre, "tekken" | "kimi-k2");
    let merges = merges(file)?.ok_or_else(|| file.malformed("metadata key tokenizer.ggml.merges is missing"))?;
    Ok(Pipeline {
        normalizer: if is_composed { json!({"type": "NFC"}) } else { Value::Null },
        pre_tokenizer,
        post_processors: vec![byte_level(false)],
        decoder: byte_level(false),
        model: json!({
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": false,
            "byte_fallback": false,
            "ignore_merges": ignores_merges,
            "vocab": vocabulary.ids(),
            "merges": merges,
        }),
    })
}

/// The pre-tokenizer that llama.cpp has under this name.
fn pre_tokenizer(name: &str) -> Result<Value, LoadError> {
    let steps = match name {
        "gpt-2" => return Ok(byte_level(true)),
        // Refact, StarCoder and Granite 3 split as SmolLM does.
        "smollm" | "refact" | "starcoder" => {
            vec![json!({"type": "Digits", "individual_digits": true}), byte_level(true)]
        }
        // DBRX has Llama 3's pattern; so do Phi-4 and OLMo.
        "dbrx" => vec![split(LLAMA3), byte_level(false)],
        "qwen35" => vec![split(QWEN35), byte_level(false)],
        "tekken" => vec![split(TEKKEN), byte_level(false)],
        "kimi-k2" => vec![split(KIMI_K2), byte_level(false)],
        name if is_llama3(name) => vec![split(LLAMA3), byte_level(false)],
        name if is_qwen(name) => vec![split(QWEN2), byte_level(false)],
        "gpt-4o" => vec![split(GPT4O), byte_level(false)],
        "deepseek-v3" => DEEPSEEK_V3.map(split).into_iter().chain([byte_level(false)]).collect(),
        "default" => vec![
            split(r"[\p{P}\$\+<=>\^~\|]+"),
            split(GPT2),
            split(r"\p{N}+"),
            split("[0-9][0-9][0-9]"),
            byte_level(false),
        ],
        other => {
            const SUPPORTED: &str = "default, gpt-2, smollm, refact, starcoder, llama-bpe, lfm2, qwen2, qwen35, gpt-4o, deepseek-v3, kimi-k2, tekken, dbrx";
            return Err(LoadError::Unsupported(format!("GGUF pre-tokenizer {other:?} (supported: {SUPPORTED})")));
        }
    };
    Ok(json!({"type": "Sequence", "pretokenizers": steps}))
}

fn is_llama3(pre: &str) -> bool {
    matches!(pre, "llama-bpe" | "llama3" | "llama-v3" | "lfm2")
}

fn is_qwen(pre: &str) -> bool {
    matches!(pre, "qwen2" | "deepseek-r1-qwen")
}
