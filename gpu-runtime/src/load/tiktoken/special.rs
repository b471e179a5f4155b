//! Tokens behind those with ranks: named by `added_tokens_decoder`, or reserved.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use super::errors::{CONFIG, malformed, quoted};
use crate::byte_chars::byte_of;
use crate::config::LoadError;

/// Ids that Kimi's class reserves behind the ranks.
const RESERVED: usize = 256;
/// Ids behind the ranks that may have a name: Moonlight's class reserves two more.
const NAMED: usize = RESERVED + 2;
/// Bytes of a name.
const MAX_NAME: usize = 256;

/// A token that is found in a text before all else, as a `tokenizer.json` has it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Added {
    pub(super) id: usize,
    pub(super) content: String,
    /// Whether decoding may skip it.
    pub(super) special: bool,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    normalized: bool,
}

impl Added {
    fn new(id: usize, content: String, special: bool) -> Self {
        Self { id, content, special, single_word: false, lstrip: false, rstrip: false, normalized: false }
    }
}

/// Returns the tokens behind `entries`, the ranked ones, without gaps: named ones, and `<|reserved_token_ID|>` for all others of
/// the 256 ids that the model of `vocab_size` tokens has.
///
/// # Errors
/// [`LoadError::Malformed`] with the id: outside these, without a name, or with the name of another token.
pub(super) fn added(
    config: &Map<String, Value>,
    entries: &[String],
    vocab_size: usize,
) -> Result<Vec<Added>, LoadError> {
    let base = entries.len();
    let mut named = named(config, base, vocab_size)?;
    let last = named.keys().next_back().map_or(0, |&id| id + 1);
    let end = vocab_size.min(base + RESERVED).max(last);
    let reserved = |id| Added::new(id, format!("<|reserved_token_{id}|>"), true);
    let all: Vec<Added> = (base..end).map(|id| named.remove(&id).unwrap_or_else(|| reserved(id))).collect();
    let mut seen: BTreeSet<&str> = entries.iter().map(String::as_str).collect();
    match all.iter().find(|added| !seen.insert(&added.content)) {
        Some(Added { id, content, .. }) => {
            Err(malformed(CONFIG, format!("added_tokens_decoder.{id}: {} is another token too", quoted(content))))
        }
        None => Ok(all),
    }
}

/// The tokens of `added_tokens_decoder` by id.
fn named(config: &Map<String, Value>, base: usize, vocab_size: usize) -> Result<BTreeMap<usize, Added>, LoadError> {
    const KEY: &str = "added_tokens_decoder";
    let mut named = BTreeMap::new();
    let tokens = match config.get(KEY) {
        None | Some(Value::Null) => return Ok(named),
        Some(tokens) => tokens.as_object().ok_or_else(|| malformed(CONFIG, format!("{KEY} is not an object")))?,
    };
    let end = vocab_size.min(base + NAMED);
    for (key, token) in tokens {
        let refused = |reason: &str| malformed(CONFIG, format!("{KEY}.{}: {reason}", key.escape_debug()));
        let id: usize = key.parse().map_err(|_| refused("expected a token id"))?;
        if !(base..end).contains(&id) {
            return Err(refused(&format!("expected an id from {base} to below {end}, behind the ranks")));
        }
        let content = token.get("content").and_then(Value::as_str);
        let content = content.filter(|content| (1..=MAX_NAME).contains(&content.len()));
        let content = content.ok_or_else(|| refused(&format!("expected a content of 1 to {MAX_NAME} bytes")))?;
        if !content.is_ascii() && content.chars().all(|character| byte_of(character).is_some()) {
            return Err(refused("its characters stand for other bytes in a byte-level vocabulary"));
        }
        let special = match token.get("special") {
            None => false,
            Some(special) => special.as_bool().ok_or_else(|| refused("special is not true or false"))?,
        };
        if named.insert(id, Added::new(id, content.to_owned(), special)).is_some() {
            return Err(refused("the id has two names"));
        }
    }
    Ok(named)
}
