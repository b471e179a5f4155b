//! The parts of a `tokenizer.json` in which the kinds of tokenizers differ.

use serde_json::Value;

/// The parts of a `tokenizer.json` in which the two kinds differ.
pub(super) struct Pipeline {
    pub(super) normalizer: Value,
    pub(super) pre_tokenizer: Value,
    /// Processors that run before the one that adds special tokens.
    pub(super) post_processors: Vec<Value>,
    pub(super) decoder: Value,
    pub(super) model: Value,
}
