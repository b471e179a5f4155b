//! Small tokenizers for tests.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use serde_json::{Value, json};

use super::texts::ModelText;

/// The end token of [`byte_level`].
pub(crate) const EOS: u32 = 256;

fn special(id: u32, content: &str) -> Value {
    json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
        "special": true})
}

/// The printable stand-in of a byte in byte-level vocabularies.
fn stand_in(byte: u8) -> char {
    let prints = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let rank = (0..byte).filter(|&byte| !prints(byte)).count() as u32;
    if prints(byte) { char::from(byte) } else { char::from_u32(0x100 + rank).unwrap() }
}

/// A `tokenizer.json` whose ids below 256 are bytes; 256 is `<|end|>`.
pub(crate) fn byte_level_json() -> Value {
    let mut vocabulary: serde_json::Map<String, Value> =
        (0..=255u8).map(|byte| (stand_in(byte).to_string(), byte.into())).collect();
    vocabulary.insert("<|end|>".to_owned(), EOS.into());
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [special(EOS, "<|end|>")],
        "normalizer": null, "post_processor": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocabulary, "merges": []},
    })
}

fn model_text(tokenizer: &Value, config: &Value) -> Arc<ModelText> {
    let content = |value: &Value| Some(bytes::Bytes::from(value.to_string()));
    let file = |name: &str| match name {
        "tokenizer.json" => content(tokenizer),
        "tokenizer_config.json" => content(config),
        _ => None,
    };
    Arc::new(ModelText::read("test", file).unwrap())
}

/// The byte-level tokenizer of tests, without a chat template.
pub(crate) fn byte_level() -> Arc<ModelText> {
    model_text(&byte_level_json(), &json!({}))
}

/// The byte-level tokenizer of tests with a chat template and an end token.
pub(crate) fn with_template(template: &str) -> Arc<ModelText> {
    model_text(&byte_level_json(), &json!({"chat_template": template, "eos_token": "<|end|>"}))
}

/// Ids: 3 is `▁hello`, 4 is `▁world`, 5 and 6 are the bytes of é.
pub(crate) fn sentence_piece() -> Arc<ModelText> {
    let vocabulary = json!({"<unk>": 0, "<s>": 1, "</s>": 2, "▁hello": 3, "▁world": 4, "<0xC3>": 5, "<0xA9>": 6});
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [special(0, "<unk>"), special(1, "<s>"), special(2, "</s>")],
        "normalizer": null, "post_processor": null, "pre_tokenizer": null,
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ]},
        "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "vocab": vocabulary, "merges": []},
    });
    model_text(&tokenizer, &json!({}))
}
