//! Tokenizers in a `tiktoken.model`, which has tokens and their ranks. How texts are split, and which ids special tokens have,
//! is in the model's code; for the classes that are known here, a `tokenizer.json` is made of it.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use self::errors::{CONFIG, RANKS, malformed, quoted};
use self::merges::{Merge, merges};
use self::ranks::Ranks;
use self::special::{Added, added};
use super::bpe::{KIMI_K2, byte_level, split};
use crate::byte_chars::chars;
use crate::config::{LoadError, ModelFiles};

mod errors;
mod merges;
mod ranks;
mod special;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

/// Bytes of a `tokenizer_config.json` that are parsed.
const MAX_CONFIG: usize = 1 << 25;

/// Classes of tokenizers whose pattern and special tokens are known: those of Kimi-K2 and its successors, and of Moonlight.
const CLASSES: [&str; 2] = ["tokenization_kimi.TikTokenTokenizer", "tokenization_moonshot.TikTokenTokenizer"];

/// Makes the `tokenizer.json` of a model of `vocab_size` tokens whose files have a `tiktoken.model` in its place; `None` if
/// they have not, or have both.
///
/// # Errors
/// [`LoadError::Malformed`] with the file and the line or key; [`LoadError::Unsupported`] if the class of the tokenizer is
/// another one than those of Kimi and Moonlight.
pub fn tokenizer_of_ranks(files: &ModelFiles, vocab_size: usize) -> Result<Option<Vec<u8>>, LoadError> {
    let Some(text) = files.get(RANKS).filter(|_| !files.contains_key("tokenizer.json")) else { return Ok(None) };
    let config = config(files)?;
    check_class(&config)?;
    let ranks = Ranks::read(text, vocab_size)?;
    let merges = merges(&ranks)?;
    let chars = chars();
    let entries: Vec<String> =
        ranks.tokens().map(|token| token.iter().map(|&byte| chars[usize::from(byte)]).collect()).collect();
    let added = added(&config, &entries, vocab_size)?;
    let json = TokenizerJson {
        version: "1.0",
        added_tokens: &added,
        pre_tokenizer: serde_json::json!({"type": "Sequence", "pretokenizers": [split(KIMI_K2), byte_level(false)]}),
        post_processor: byte_level(false),
        decoder: byte_level(false),
        model: Bpe { kind: "BPE", ignore_merges: true, vocab: Vocabulary(&entries), merges: Merges(&entries, &merges) },
    };
    serde_json::to_vec(&json).map(Some).map_err(|error| malformed(RANKS, error.to_string()))
}

fn config(files: &ModelFiles) -> Result<Map<String, Value>, LoadError> {
    let text = files.get(CONFIG).ok_or_else(|| {
        malformed(RANKS, format!("it needs {CONFIG}, which names the class of the tokenizer and its special tokens"))
    })?;
    if text.len() > MAX_CONFIG {
        return Err(malformed(CONFIG, format!("{} bytes, at most {MAX_CONFIG}", text.len())));
    }
    super::json::read(text).map_err(|error| malformed(CONFIG, error.to_string()))
}

/// Refuses classes that split texts in a way that is not known.
fn check_class(config: &Map<String, Value>) -> Result<(), LoadError> {
    let mapped = match config.get("auto_map").and_then(|map| map.get("AutoTokenizer")) {
        Some(Value::Array(classes)) => classes.first().and_then(Value::as_str),
        Some(class) => class.as_str(),
        None => None,
    };
    // Other repositories may have the code: `owner/name--module.Class`.
    let class = mapped.map(|class| class.rsplit_once("--").map_or(class, |(_, class)| class));
    match class.or_else(|| config.get("tokenizer_class").and_then(Value::as_str)) {
        Some(class) if CLASSES.contains(&class) => Ok(()),
        other => {
            let class = other.map_or_else(|| "no class".to_owned(), |class| format!("the class {}", quoted(class)));
            let supported = CLASSES.join(", ");
            Err(LoadError::Unsupported(format!(
                "{RANKS} with {class} of tokenizer in auto_map of {CONFIG} (supported: {supported})"
            )))
        }
    }
}

/// The parts of a `tokenizer.json`; normalizer, truncation and padding are absent.
#[derive(Serialize)]
struct TokenizerJson<'a> {
    version: &'static str,
    added_tokens: &'a [Added],
    pre_tokenizer: Value,
    post_processor: Value,
    decoder: Value,
    model: Bpe<'a>,
}

#[derive(Serialize)]
struct Bpe<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    /// A piece of text that is a token is that token, whatever its merges are.
    ignore_merges: bool,
    vocab: Vocabulary<'a>,
    merges: Merges<'a>,
}

/// The tokens by rank, written as an object.
struct Vocabulary<'a>(&'a [String]);

impl Serialize for Vocabulary<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().enumerate().map(|(rank, token)| (token, rank)))
    }
}

/// Tokens by rank and merges of two of them, written as pairs of texts.
struct Merges<'a>(&'a [String], &'a [Merge]);

impl Serialize for Merges<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = |rank: u32| &self.0[rank as usize];
        serializer.collect_seq(self.1.iter().map(|merge| [text(merge.left), text(merge.right)]))
    }
}
