//! Tokenizer files made from GGUF metadata.

use candle_core::quantized::gguf_file::Value;
use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer as _, Tokenizer};

use super::gguf::write_llama;
use crate::config::{LoadError, ModelFiles};
use crate::load::load;

type Metadata = Vec<(String, Value)>;

fn string(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn strings(items: &[&str]) -> Value {
    Value::Array(items.iter().map(|item| string(item)).collect())
}

fn key(name: &str, value: Value) -> (String, Value) {
    (format!("tokenizer.ggml.{name}"), value)
}

fn files(metadata: &[(String, Value)]) -> Result<ModelFiles, LoadError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    write_llama(&path, metadata);
    load(&path).map(|source| source.files)
}

fn tokenizer(metadata: &[(String, Value)]) -> Tokenizer {
    Tokenizer::from_bytes(&files(metadata).unwrap()["tokenizer.json"]).unwrap()
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
    tokenizer.encode(text, true).unwrap().get_tokens().to_vec()
}

/// Byte-level BPE over a few characters, one control and one user-defined token.
fn bpe(pre: &str) -> Metadata {
    let tokens = [
        "<s>", "</s>", "a", "b", "1", "2", "3", "4", "Ġ", ".", "ab", "12", "123", "1234", "Ġab", "<tool>", "é", "Ã",
        "©",
    ];
    let kinds = tokens.iter().map(|token| {
        Value::I32(match *token {
            "<s>" | "</s>" => 3,
            "<tool>" => 4,
            _ => 1,
        })
    });
    vec![
        key("model", string("gpt2")),
        key("pre", string(pre)),
        key("tokens", strings(&tokens)),
        key("token_type", Value::Array(kinds.collect())),
        key("merges", strings(&["a b", "Ġ ab", "1 2", "12 3", "123 4"])),
        key("bos_token_id", Value::U32(0)),
        key("eos_token_id", Value::U32(1)),
    ]
}

#[test]
fn pre_tokenizers_split_numbers_as_their_models_do() {
    let cases = [
        ("smollm", "ab ab1234", &["ab", "Ġab", "1", "2", "3", "4"][..]),
        ("gpt-2", "ab ab1234", &["ab", "Ġab", "1234"]),
        ("qwen2", "ab ab1234", &["ab", "Ġab", "1", "2", "3", "4"]),
        ("llama-bpe", "ab ab1234", &["<s>", "ab", "Ġab", "123", "4"]),
        ("lfm2", "ab ab1234", &["<s>", "ab", "Ġab", "123", "4"]),
        ("refact", "ab ab1234", &["ab", "Ġab", "1", "2", "3", "4"]),
        ("qwen35", "ab ab1234", &["ab", "Ġab", "1", "2", "3", "4"]),
        ("tekken", "ab ab1234", &["<s>", "ab", "Ġab", "1", "2", "3", "4"]),
        ("dbrx", "ab ab1234", &["ab", "Ġab", "123", "4"]),
        ("kimi-k2", "ab ab1234", &["ab", "Ġab", "123", "4"]),
        ("gpt-4o", "ab ab1234", &["ab", "Ġab", "123", "4"]),
        ("deepseek-v3", "ab ab1234", &["ab", "Ġab", "123", "4"]),
        ("default", "ab ab1234.", &["ab", "Ġab", "123", "4", "."]),
    ];
    for (pre, text, expected) in cases {
        let tokenizer = tokenizer(&bpe(pre));
        assert_eq!(encode(&tokenizer, text), expected, "{pre}");
        let ids = tokenizer.encode(text, false).unwrap().get_ids().to_vec();
        assert_eq!(tokenizer.decode(&ids, true).unwrap(), text, "{pre}");
    }
}

#[test]
fn pre_tokenizers_split_words_as_their_models_do() {
    let cases = [
        ("gpt-4o", "HelloWorld don't 12345/\n", &["Hello", "World", " don't", " ", "123", "45", "/\n"][..]),
        ("qwen2", "नमस्ते", &["नमस", "\u{94d}त", "\u{947}"]),
        ("qwen35", "नमस्ते I'm 12", &["नमस्ते", " I", "'m", " ", "1", "2"]),
        ("tekken", "HelloWorld don't 12/\n", &["Hello", "World", " don", "'t", " ", "1", "2", "/\n"]),
        ("dbrx", "HelloWorld I'm 1234", &["HelloWorld", " I", "'m", " ", "123", "4"]),
        ("kimi-k2", "中文abc a中b don't 1234/\n", &["中文", "abc", " a", "中", "b", " don't", " ", "123", "4", "/\n"]),
        ("deepseek-v3", "中文abc 12345 .net !", &["中文", "abc", " ", "123", "45", " .", "net", " !"]),
    ];
    for (pre, text, expected) in cases {
        let tokenizer = tokenizer(&bpe(pre));
        let mut pieces = PreTokenizedString::from(text);
        tokenizer.get_pre_tokenizer().unwrap().pre_tokenize(&mut pieces).unwrap();
        let places = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte);
        let found: Vec<_> = places.into_iter().map(|(_, (start, end), _)| &text[start..end]).collect();
        assert_eq!(found, expected, "{pre}");
    }
}

#[test]
fn added_tokens_are_found_and_only_control_tokens_are_skipped() {
    let tokenizer = tokenizer(&bpe("gpt-2"));
    let ids = tokenizer.encode("a<tool>b</s>", false).unwrap().get_ids().to_vec();
    assert_eq!(ids, [2, 15, 3, 1]);
    assert_eq!(tokenizer.decode(&ids, true).unwrap(), "a<tool>b");
    assert_eq!(tokenizer.decode(&ids, false).unwrap(), "a<tool>b</s>");
}

/// A token that its merges do not make is found where it is a whole word, in tokenizers that look words up first.
#[test]
fn words_that_are_tokens_need_no_merges() {
    let tokens = |pre: &str| {
        let mut metadata = bpe(pre);
        metadata.retain(|(key, _)| key != "tokenizer.ggml.merges");
        metadata.push(key("merges", strings(&["1 2"])));
        metadata.push(key("add_bos_token", Value::Bool(false)));
        encode(&tokenizer(&metadata), "ab")
    };
    for pre in ["llama-bpe", "tekken", "kimi-k2"] {
        assert_eq!(tokens(pre), ["ab"], "{pre}");
    }
    for pre in ["qwen2", "qwen35", "gpt-4o", "dbrx"] {
        assert_eq!(tokens(pre), ["a", "b"], "{pre}");
    }
}

#[test]
fn text_is_composed_before_qwen_splits_it() {
    let decomposed = "e\u{301}";
    for (pre, expected) in [("qwen2", &["é"][..]), ("qwen35", &["é"]), ("gpt-4o", &[])] {
        let tokenizer = tokenizer(&bpe(pre));
        let found = tokenizer.get_normalizer().map(|normalizer| {
            let mut text = tokenizers::NormalizedString::from(decomposed);
            tokenizers::Normalizer::normalize(normalizer, &mut text).unwrap();
            text.get().to_owned()
        });
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{pre}");
    }
}

#[test]
fn special_tokens_are_added_as_the_file_says() {
    let mut metadata = bpe("gpt-2");
    metadata.push(key("add_bos_token", Value::Bool(true)));
    metadata.push(key("add_eos_token", Value::Bool(true)));
    assert_eq!(encode(&tokenizer(&metadata), "ab"), ["<s>", "ab", "</s>"]);
    let mut metadata = bpe("llama-bpe");
    metadata.push(key("add_bos_token", Value::Bool(false)));
    assert_eq!(encode(&tokenizer(&metadata), "ab"), ["ab"]);
}

/// SentencePiece: unknown, begin, end, 256 bytes, then pieces with scores.
fn sentencepiece() -> Metadata {
    let pieces = [("▁", -1.0), ("a", -2.0), ("b", -3.0), ("c", -4.0), ("bc", -0.5), ("ab", -0.7), ("▁a", -0.9)];
    let bytes: Vec<String> = (0..=255).map(|byte| format!("<0x{byte:02X}>")).collect();
    let mut tokens = vec!["<unk>", "<s>", "</s>"];
    tokens.extend(bytes.iter().map(String::as_str));
    tokens.extend(pieces.iter().map(|(piece, _)| *piece));
    let kinds = (0..tokens.len()).map(|id| match id {
        0 => 2,
        1 | 2 => 3,
        3..=258 => 6,
        _ => 1,
    });
    let scores = (0..259).map(|_| 0.0).chain(pieces.iter().map(|(_, score)| *score));
    vec![
        key("model", string("llama")),
        key("tokens", strings(&tokens)),
        key("token_type", Value::Array(kinds.map(Value::I32).collect())),
        key("scores", Value::Array(scores.map(Value::F32).collect())),
    ]
}

#[test]
fn sentencepiece_merges_follow_the_scores() {
    let tokenizer = tokenizer(&sentencepiece());
    // "bc" scores best, so "ab" never forms.
    assert_eq!(encode(&tokenizer, "abc ab"), ["<s>", "▁a", "bc", "▁", "ab"]);
    assert_eq!(encode(&tokenizer, "é"), ["<s>", "▁", "<0xC3>", "<0xA9>"]);
    let ids = tokenizer.encode("abc é", true).unwrap().get_ids().to_vec();
    assert_eq!(tokenizer.decode(&ids, true).unwrap(), "abc é");
}

#[test]
fn sentencepiece_without_a_space_prefix_adds_none() {
    let mut metadata = sentencepiece();
    metadata.push(key("add_space_prefix", Value::Bool(false)));
    assert_eq!(encode(&tokenizer(&metadata), "abc"), ["<s>", "a", "bc"]);
}

#[test]
fn what_is_unsupported_is_refused_by_name() {
    let refusal = |metadata: &[(String, Value)]| files(metadata).unwrap_err().to_string();
    // Those of newer families that their files do not describe: whether words are looked up first, or what is put before a text.
    for pre in ["chameleon", "smaug-bpe", "glm4", "pixtral"] {
        let found = refusal(&bpe(pre));
        assert!(found.contains(&format!("GGUF pre-tokenizer {pre:?} (supported: default, gpt-2, ")), "{found}");
    }
    let with = |name: &str, value: Value| {
        let mut metadata = bpe("gpt-2");
        metadata.retain(|(found, _)| *found != format!("tokenizer.ggml.{name}"));
        metadata.push(key(name, value));
        refusal(&metadata)
    };
    assert!(with("model", string("bert")).contains("GGUF tokenizer \"bert\""));
    assert!(with("bos_token_id", Value::U32(99)).contains("bos_token_id is 99, outside the vocabulary"));
    assert!(with("tokens", strings(&["a", "a"])).contains("has \"a\" twice"));
    assert!(with("tokens", strings(&["a", "b"])).contains("differ in length"));
    assert!(with("tokens", Value::U32(1)).contains("tokenizer.ggml.tokens is not a list"));
    assert!(with("merges", strings(&["ab"])).contains("tokenizer.ggml.merges has \"ab\""));
    let many: Vec<String> = (0..513).map(|id| id.to_string()).collect();
    let many = strings(&many.iter().map(String::as_str).collect::<Vec<_>>());
    let metadata = [key("model", string("gpt2")), key("tokens", many)];
    assert!(refusal(&metadata).contains("513 tokens for 512 rows"));
}

#[test]
fn a_file_without_a_tokenizer_gives_configuration_alone() {
    let files = files(&[]).unwrap();
    assert_eq!(files.keys().collect::<Vec<_>>(), ["config.json", "generation_config.json"]);
}

#[test]
fn ids_without_a_token_are_left_out() {
    let with = |name: &str, id: u32| {
        let mut metadata = bpe("gpt-2");
        metadata.retain(|(found, _)| *found != format!("tokenizer.ggml.{name}"));
        metadata.push(key(name, Value::U32(id)));
        let files = files(&metadata).unwrap();
        let json = |file: &str| serde_json::from_slice::<serde_json::Value>(&files[file]).unwrap();
        (json("tokenizer_config.json"), json("generation_config.json"))
    };
    let (tokenizer, generation) = with("padding_token_id", 2);
    assert_eq!((&tokenizer["pad_token"], &generation["pad_token_id"]), (&"a".into(), &2.into()));
    for id in [u32::MAX, 512] {
        let (tokenizer, generation) = with("padding_token_id", id);
        assert!(tokenizer.get("pad_token").is_none() && generation.get("pad_token_id").is_none(), "{id}");
        assert_eq!((&tokenizer["eos_token"], &generation["eos_token_id"]), (&"</s>".into(), &serde_json::json!([1])));
    }
    let (tokenizer, generation) = with("eos_token_id", u32::MAX);
    assert!(tokenizer.get("eos_token").is_none(), "{tokenizer}");
    assert_eq!(generation["eos_token_id"], serde_json::json!([]));
}
