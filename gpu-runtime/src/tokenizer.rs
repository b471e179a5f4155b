//! A look at a tokenizer, before it is used.

use tokenizers::Tokenizer;

use crate::config::LoadError;

/// What became of a text that was encoded and decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// How many tokens it was.
    pub tokens: usize,
    /// What they are decoded to.
    pub text: String,
    /// Entries of the vocabulary, with those that were added.
    pub vocabulary: usize,
}

/// Encodes a text with a `tokenizer.json`, without special tokens, and decodes it again.
///
/// # Errors
/// [`LoadError::Malformed`] when the tokenizer can't be read, or can't do that.
pub fn round_trip(json: &[u8], text: &str) -> Result<RoundTrip, LoadError> {
    let malformed = |reason: String| LoadError::Malformed { path: "tokenizer.json".to_owned(), reason };
    let tokenizer = Tokenizer::from_bytes(json).map_err(|error| malformed(error.to_string()))?;
    let encoded = tokenizer.encode(text, false).map_err(|error| malformed(error.to_string()))?;
    let text = tokenizer.decode(encoded.get_ids(), false).map_err(|error| malformed(error.to_string()))?;
    Ok(RoundTrip { tokens: encoded.len(), text, vocabulary: tokenizer.get_vocab_size(true) })
}
