//! Hostile values in `tokenizer.json`: refused by name, or an error of the call.
#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::json;
use trainyard_test_support::heap;
use trainyard_test_support::mutate::Corpus;

use super::*;

/// Bytes that reading a small file and using it may hold: compiled expressions and caches of the library.
const MOST_BYTES: usize = 256 << 20;
/// Texts that are encoded.
const TEXTS: [&str; 4] =
    ["", "hello w's  a1|b.", "<think> é\u{301} 日本 😀\r\n\n<|im_end|>x", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"];
/// Texts that the library or the checks treat specially.
const WORDS: [&str; 36] = [
    "type",
    "Sequence",
    "normalizers",
    "pretokenizers",
    "decoders",
    "processors",
    "Replace",
    "pattern",
    "String",
    "Regex",
    "content",
    "Prepend",
    "prepend",
    "FixedLength",
    "length",
    "Split",
    "behavior",
    "Isolated",
    "Removed",
    "Strip",
    "start",
    "stop",
    "ByteFallback",
    "BPEDecoder",
    "WordPiece",
    "Unigram",
    "Precompiled",
    "precompiled_charsmap",
    "SpecialToken",
    "ids",
    "unk_id",
    "continuing_subword_prefix",
    "(?=a)(a|aa)+$",
    "\\b|",
    "(a{1,1000}){1,1000}",
    "é",
];

fn corpus(name: &str) -> Value {
    let path = format!("{}/../tests/fuzz/tokenizer/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Reads a file of the corpus in which the value at `pointer` is another one.
fn with(name: &str, pointer: &str, value: Value) -> Result<TokenizerFile, LoadError> {
    let mut file = corpus(name);
    *file.pointer_mut(pointer).unwrap() = value;
    TokenizerFile::from_json(file.to_string().as_bytes())
}

fn refusal(name: &str, pointer: &str, value: Value) -> String {
    with(name, pointer, value).err().unwrap().to_string()
}

#[test]
fn values_that_the_library_does_not_survive_are_refused_by_name() {
    let replace = |pattern: Value, content: String| json!({"type": "Replace", "pattern": pattern, "content": content});
    let doubled = vec![replace(json!({"String": "a"}), "aa".to_owned()); 7];
    for (name, pointer, value, expected) in [
        (
            "word_level",
            "/pre_tokenizer/pretokenizers/2/length",
            json!(0),
            "tokenizer.json: pre_tokenizer.pretokenizers[2].length: expected at least 1, found 0",
        ),
        (
            "word_level",
            "/pre_tokenizer",
            json!({"type": "FixedLength", "length": 0}),
            "tokenizer.json: pre_tokenizer.length: expected at least 1, found 0",
        ),
        (
            "unigram",
            "/normalizer/normalizers/4/content",
            json!("x".repeat(65)),
            "tokenizer.json: normalizer.normalizers[4].content: the replacements make a text 65 times longer",
        ),
        (
            "unigram",
            "/normalizer",
            json!({"type": "Sequence", "normalizers": doubled}),
            "tokenizer.json: normalizer.normalizers[6].content: the replacements make a text 128 times longer",
        ),
        (
            "sentencepiece",
            "/decoder/decoders/0",
            replace(json!({"String": ""}), "x".repeat(100)),
            "tokenizer.json: decoder.decoders[0].content: the replacements make a text 100 times longer",
        ),
        (
            "sentencepiece",
            "/normalizer/normalizers/0/prepend",
            json!("x".repeat(1_025)),
            "tokenizer.json: normalizer.normalizers[0].prepend: expected at most 1024 bytes, found 1025",
        ),
        (
            "sentencepiece",
            "/post_processor/single",
            json!(vec![json!({"SpecialToken": {"id": "<s>", "type_id": 0}}); 1_025]),
            "tokenizer.json: post_processor.single: expected at most 1024 added tokens, found 1025",
        ),
        ("byte_level", "/model/dropout", json!(0.5), "tokenizer.json: model.dropout: expected null or 0, found 0.5"),
        (
            "prefixes",
            "/model/continuing_subword_prefix",
            json!("###"),
            "tokenizer.json: model.merges[0]: the right part must start with the continuing_subword_prefix \"###\"",
        ),
        (
            "prefixes",
            "/model",
            json!({"type": "BPE", "continuing_subword_prefix": "é", "vocab": {"a": 0, "b": 1}, "merges": ["a b"]}),
            "tokenizer.json: model.merges[0]: the right part must start with",
        ),
    ] {
        let message = refusal(name, pointer, value);
        assert!(message.starts_with(expected), "{message}");
    }
}

/// What real files contain.
#[test]
fn ordinary_values_are_read() {
    for (name, pointer, value) in [
        ("byte_level", "/model/dropout", json!(0.0)),
        ("unigram", "/normalizer/normalizers/4/content", json!("\u{2581}")),
        ("word_level", "/pre_tokenizer/pretokenizers/2/length", json!(1)),
        ("prefixes", "/model/continuing_subword_prefix", Value::Null),
    ] {
        let mut file = corpus(name);
        if name == "prefixes" {
            file["model"]["merges"] = json!([["a", "b"]]);
        }
        *file.pointer_mut(pointer).unwrap() = value;
        TokenizerFile::from_json(file.to_string().as_bytes()).unwrap();
    }
}

#[test]
fn truncation_and_padding_have_no_effect() {
    let file = with("sentencepiece", "/truncation/max_length", json!(1)).unwrap();
    assert_eq!(file.encode("ab abc abc abc", true).unwrap().len(), 8);
    let file = with("sentencepiece", "/padding/strategy", json!({"Fixed": 1_u64 << 40})).unwrap();
    assert_eq!(file.encode("a", false).unwrap().len(), 1);
    let mut file = corpus("sentencepiece");
    file["truncation"]["stride"] = json!(u64::MAX);
    assert!(TokenizerFile::from_json(file.to_string().as_bytes()).unwrap().encode("a b", true).is_ok());
}

/// `Strip` counts from the end of entries that are shorter.
#[test]
fn a_panic_of_the_library_is_an_error() {
    let file = with("prefixes", "/decoder", json!({"type": "Strip", "content": "a", "start": 0, "stop": 9})).unwrap();
    assert_eq!(file.decode(&[1], false).unwrap(), "b");
    let error = file.decode(&[0], false).unwrap_err().to_string();
    assert!(error.starts_with("tokenizer.json: the tokenizer library panicked decoding tokens"), "{error}");
    assert_eq!(file.decode_entry("a"), None);
    assert_eq!(file.decode(&[], false).unwrap(), "");
}

fn each(json: &[u8]) {
    let Ok(file) = TokenizerFile::from_json(json) else { return };
    for text in TEXTS {
        for framed in [false, true] {
            let Ok(tokens) = file.encode(text, framed) else { continue };
            assert!(tokens.len() < 200_000, "{}", tokens.len());
            let _ = (file.decode(&tokens, true), file.decode(&tokens, false));
            for token in tokens.iter().take(8) {
                let _ = file.entry(*token).map(|entry| file.decode_entry(&entry));
            }
        }
    }
    let _ = file.to_json();
}

#[test]
fn mutated_files() {
    Corpus::new("tokenizer").inputs(600).words(&WORDS).each_value(|value| {
        let json = value.to_string();
        let ((), peak) = heap::peak(|| each(json.as_bytes()));
        assert!(peak <= MOST_BYTES, "{peak} bytes held at once for {json}");
    });
    Corpus::new("tokenizer").inputs(300).words(&WORDS).each(each);
}
