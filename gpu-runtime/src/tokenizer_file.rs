//! A `tokenizer.json` and the library that executes it.
//!
//! The library trusts its file: some values make it panic, and a few bytes can stand for gigabytes of text. Values that
//! are known to do so are refused by name when the file is read. Any other panic is caught and becomes an error of the
//! call.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use tokenizers::{Decoder, DecoderWrapper, Tokenizer};

use crate::config::LoadError;
use crate::fault::guarded;

/// How many times longer all replacements together may make a text.
const MAX_GROWTH: usize = 64;
/// Maximum length of a text that is put before another one, in bytes.
const MAX_PREPENDED: usize = 1_024;
/// Maximum number of tokens that a template puts around a text.
const MAX_FRAME: usize = 1_024;

/// A tokenizer whose calls do not panic. It neither truncates nor pads.
pub(crate) struct TokenizerFile(Tokenizer);

impl TokenizerFile {
    /// Reads the content of a `tokenizer.json`.
    pub(crate) fn from_json(json: &[u8]) -> Result<Self, LoadError> {
        check(json).map_err(malformed)?;
        let mut tokenizer = caught("reading the file", || Tokenizer::from_bytes(json))?;
        // Both would change a text.
        tokenizer.with_truncation(None).map_err(malformed)?;
        tokenizer.with_padding(None);
        Ok(Self(tokenizer))
    }

    /// Returns the tokens of a text. `framed` adds what the tokenizer puts around a text.
    pub(crate) fn encode(&self, text: &str, framed: bool) -> Result<Vec<u32>, LoadError> {
        caught("encoding a text", || self.0.encode_fast(text, framed)).map(|encoded| encoded.get_ids().to_vec())
    }

    /// Returns the text of tokens.
    pub(crate) fn decode(&self, tokens: &[u32], skip_special: bool) -> Result<String, LoadError> {
        // `BPEDecoder` counts the tokens before the last one.
        if tokens.is_empty() {
            return Ok(String::new());
        }
        caught("decoding tokens", || self.0.decode(tokens, skip_special))
    }

    /// Returns what the decoder makes of one entry of the vocabulary.
    pub(crate) fn decode_entry(&self, entry: &str) -> Option<String> {
        let decoder = self.0.get_decoder()?;
        caught("decoding an entry", || decoder.decode(vec![entry.to_owned()])).ok()
    }

    /// Returns whether the decoder maps characters to bytes.
    pub(crate) fn is_byte_level(&self) -> bool {
        matches!(self.0.get_decoder(), Some(DecoderWrapper::ByteLevel(_)))
    }

    /// Returns the added tokens that do not stand for text.
    pub(crate) fn special(&self) -> BTreeMap<u32, String> {
        let added = self.0.get_added_tokens_decoder();
        added.into_iter().filter(|(_, token)| token.special).map(|(id, token)| (id, token.content)).collect()
    }

    /// Returns the number of entries of the vocabulary, with those that were added.
    pub(crate) fn vocabulary(&self) -> usize {
        self.0.get_vocab_size(true)
    }

    /// Returns the entry of a token.
    pub(crate) fn entry(&self, token: u32) -> Option<String> {
        self.0.id_to_token(token)
    }

    /// Returns the token of an entry.
    pub(crate) fn id(&self, entry: &str) -> Option<u32> {
        self.0.token_to_id(entry)
    }

    /// Returns the content of the file.
    pub(crate) fn to_json(&self) -> Result<Value, LoadError> {
        let text = caught("writing the file", || self.0.to_string(false))?;
        serde_json::from_str(&text).map_err(malformed)
    }
}

fn malformed(reason: impl ToString) -> LoadError {
    LoadError::Malformed { path: "tokenizer.json".to_owned(), reason: reason.to_string() }
}

fn caught<T>(what: &str, call: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, LoadError> {
    match guarded("tokenizer.json", call) {
        Ok(result) => result.map_err(malformed),
        Err(_) => Err(malformed(format!("the tokenizer library panicked {what}; the server's log has the details"))),
    }
}

/// Parts of the file that are checked.
#[derive(Deserialize)]
struct Parts {
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    post_processor: Value,
    #[serde(default)]
    decoder: Value,
    model: Option<Model>,
}

#[derive(Deserialize)]
struct Model {
    dropout: Option<f64>,
    continuing_subword_prefix: Option<String>,
}

#[derive(Deserialize)]
struct Merges {
    model: MergesOfModel,
}

#[derive(Deserialize)]
struct MergesOfModel {
    #[serde(default)]
    merges: Vec<Value>,
}

/// Checks the values that the library takes as they are.
fn check(json: &[u8]) -> Result<(), String> {
    let parts: Parts = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    check_growth("normalizer", &parts.normalizer)?;
    check_growth("decoder", &parts.decoder)?;
    each_object("pre_tokenizer", &parts.pre_tokenizer, &mut |path, object| match object.get("length") {
        Some(Value::Number(length)) if length.as_u64() == Some(0) => {
            Err(format!("{path}.length: expected at least 1, found 0"))
        }
        _ => Ok(()),
    })?;
    each_object("post_processor", &parts.post_processor, &mut check_frame)?;
    let Some(model) = parts.model else { return Ok(()) };
    if let Some(dropout) = model.dropout.filter(|&dropout| dropout != 0.0) {
        return Err(format!(
            "model.dropout: expected null or 0, found {dropout}: equal texts would have different tokens"
        ));
    }
    match model.continuing_subword_prefix {
        Some(prefix) if !prefix.is_empty() => check_merges(json, &prefix),
        _ => Ok(()),
    }
}

type Object = serde_json::Map<String, Value>;

/// Calls `check` with a part of the file and with all objects within it, and their paths.
fn each_object(
    path: &str,
    value: &Value,
    check: &mut dyn FnMut(&str, &Object) -> Result<(), String>,
) -> Result<(), String> {
    match value {
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(index, item)| each_object(&format!("{path}[{index}]"), item, check))
        }
        Value::Object(members) => {
            check(path, members)?;
            members.iter().try_for_each(|(name, member)| each_object(&format!("{path}.{name}"), member, check))
        }
        _ => Ok(()),
    }
}

/// Refuses replacements that multiply the length of a text, and long texts before it.
fn check_growth(path: &str, part: &Value) -> Result<(), String> {
    let mut growth = 1_usize;
    each_object(path, part, &mut |path, object| {
        if let Some(prepended) = object.get("prepend").and_then(Value::as_str)
            && prepended.len() > MAX_PREPENDED
        {
            let found = prepended.len();
            return Err(format!("{path}.prepend: expected at most {MAX_PREPENDED} bytes, found {found}"));
        }
        let (Some(pattern), Some(content)) = (object.get("pattern"), object.get("content").and_then(Value::as_str))
        else {
            return Ok(());
        };
        // A regular expression may match one byte, or nothing.
        let shortest = pattern.get("String").and_then(Value::as_str).map_or(1, |text| text.len().max(1));
        growth = growth.saturating_mul(content.len().div_ceil(shortest).max(1));
        match growth {
            0..=MAX_GROWTH => Ok(()),
            _ => Err(format!(
                "{path}.content: the replacements make a text {growth} times longer; at most {MAX_GROWTH} times is allowed"
            )),
        }
    })
}

/// Refuses templates with many tokens around a text.
fn check_frame(path: &str, object: &Object) -> Result<(), String> {
    let Some(tokens) = object.get("special_tokens").and_then(Value::as_object) else { return Ok(()) };
    let ids = |piece: &Value| {
        let name = piece.get("SpecialToken").and_then(|token| token.get("id")).and_then(Value::as_str);
        name.and_then(|name| tokens.get(name)?.get("ids")?.as_array()).map_or(0, Vec::len)
    };
    for template in ["single", "pair"] {
        let pieces = object.get(template).and_then(Value::as_array);
        let added = pieces.map_or(0, |pieces| pieces.iter().map(ids).sum::<usize>());
        if added > MAX_FRAME {
            return Err(format!("{path}.{template}: expected at most {MAX_FRAME} added tokens, found {added}"));
        }
    }
    Ok(())
}

/// Refuses merges whose right part lacks the prefix, which the library cuts off.
fn check_merges(json: &[u8], prefix: &str) -> Result<(), String> {
    let file: Merges = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    for (index, merge) in file.model.merges.iter().enumerate() {
        let right = match merge {
            Value::String(pair) => pair.split_once(' ').map(|(_, right)| right),
            pair => pair.get(1).and_then(Value::as_str),
        };
        if right.is_some_and(|right| !right.starts_with(prefix)) {
            return Err(format!(
                "model.merges[{index}]: the right part must start with the continuing_subword_prefix {prefix:?}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "tokenizer_file_tests.rs"]
mod tests;
