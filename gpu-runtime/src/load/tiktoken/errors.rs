//! Files of a tokenizer with ranks, and what is wrong with them.

use crate::config::LoadError;

/// The file with tokens and ranks.
pub(super) const RANKS: &str = "tiktoken.model";
/// The file that names the class and the special tokens.
pub(super) const CONFIG: &str = "tokenizer_config.json";

/// Returns the error of a file of the tokenizer.
pub(super) fn malformed(file: &str, reason: impl Into<String>) -> LoadError {
    LoadError::Malformed { path: file.to_owned(), reason: reason.into() }
}

/// Returns the beginning of a text of a file, for errors.
pub(super) fn quoted(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
