//! Text to tokens and back.

use std::collections::BTreeMap;

use crate::byte_chars::byte_of;
use crate::config::LoadError;
use crate::tokenizer_file::TokenizerFile;

/// Result of encoding and decoding a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// Number of tokens of the text.
    pub tokens: usize,
    /// Text that the tokens are decoded to.
    pub text: String,
    /// Number of entries of the vocabulary, added ones included.
    pub vocabulary: usize,
}

/// Encodes a text with a `tokenizer.json`, without special tokens, and decodes it again.
///
/// # Errors
/// [`LoadError::Malformed`] if the tokenizer can't be read, or fails to encode or decode.
pub fn round_trip(json: &[u8], text: &str) -> Result<RoundTrip, LoadError> {
    let tokenizer = TokenizerFile::from_json(json)?;
    let tokens = tokenizer.encode(text, false)?;
    let text = tokenizer.decode(&tokens, false)?;
    Ok(RoundTrip { tokens: tokens.len(), text, vocabulary: tokenizer.vocabulary() })
}

/// A model's tokenizer, for clients that send text.
pub struct TextTokenizer {
    tokenizer: TokenizerFile,
    /// Whether the text of tokens is the concatenation of their bytes.
    byte_level: bool,
    /// Added tokens that do not stand for text.
    special: BTreeMap<u32, String>,
}

impl TextTokenizer {
    /// Reads a `tokenizer.json`, without its truncation and padding: both would change a text.
    ///
    /// # Errors
    /// [`LoadError::Malformed`] if the file can't be read, or has values that make the tokenizer library panic.
    pub fn from_json(json: &[u8]) -> Result<Self, LoadError> {
        let tokenizer = TokenizerFile::from_json(json)?;
        Ok(Self { byte_level: tokenizer.is_byte_level(), special: tokenizer.special(), tokenizer })
    }

    /// Returns the tokens of a text. `framed` adds the special tokens that the tokenizer puts around a text, such as
    /// one for its beginning.
    ///
    /// # Errors
    /// [`LoadError::Malformed`] if the tokenizer can't encode it.
    pub fn encode(&self, text: &str, framed: bool) -> Result<Vec<u32>, LoadError> {
        self.tokenizer.encode(text, framed)
    }

    /// Returns the text of tokens without special ones; unknown ids are skipped, and incomplete UTF-8 becomes U+FFFD.
    /// If the decoder fails, the text consists of the vocabulary's entries.
    pub fn decode(&self, tokens: &[u32]) -> String {
        self.tokenizer.decode(tokens, true).unwrap_or_else(|error| {
            tracing::warn!(%error, "the tokenizer cannot decode");
            tokens.iter().filter_map(|&token| self.tokenizer.entry(token)).collect()
        })
    }

    /// Returns the id of a token by its text.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.tokenizer.id(token)
    }

    /// Returns the text of a special token.
    pub fn special(&self, token: u32) -> Option<&str> {
        self.special.get(&token).map(String::as_str)
    }

    /// Returns whether [`TextTokenizer::decode`] is the concatenation of [`TextTokenizer::bytes`], read as UTF-8.
    pub fn is_byte_level(&self) -> bool {
        self.byte_level
    }

    /// Returns the bytes of one token, special or not; empty for an unknown id.
    pub fn bytes(&self, token: u32) -> Vec<u8> {
        let Some(entry) = self.tokenizer.entry(token) else { return Vec::new() };
        if self.special.contains_key(&token) {
            return entry.into_bytes();
        }
        if self.byte_level {
            return entry.chars().map(byte_of).collect::<Option<_>>().unwrap_or_else(|| entry.into_bytes());
        }
        if let Some(byte) = fallback_byte(&entry) {
            return vec![byte];
        }
        // SentencePiece writes a space so; a decoder by itself would strip the leading one.
        if entry.contains('\u{2581}') {
            return entry.replace('\u{2581}', " ").into_bytes();
        }
        self.tokenizer.decode_entry(&entry).unwrap_or(entry).into_bytes()
    }
}

/// The byte of an entry such as `<0x0A>`.
fn fallback_byte(entry: &str) -> Option<u8> {
    let digits = entry.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() == 2 { u8::from_str_radix(digits, 16).ok() } else { None }
}
