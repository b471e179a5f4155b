//! Model inputs in JSON, of samples and of training examples.

use serde::{Deserialize, Deserializer, Serialize};
use trainyard_protocol::OpError;
use trainyard_protocol::limits::MAX_CHUNKS;
use utoipa::ToSchema;

use super::json;

/// A model input, piece by piece.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ModelInput {
    /// The pieces, in order; empty ones are allowed.
    #[serde(deserialize_with = "chunks")]
    pub chunks: Vec<InputChunk>,
}

/// A piece of a model input. Only `encoded_text` is supported.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct InputChunk {
    /// `encoded_text`; `image`, `image_asset_pointer` and `dmel` are refused.
    #[serde(rename = "type", default = "encoded_text")]
    pub kind: String,
    /// Token ids of `encoded_text`.
    #[serde(default)]
    pub tokens: Option<Vec<i64>>,
}

fn chunks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<InputChunk>, D::Error> {
    let bounds =
        json::Bounds { most: MAX_CHUNKS, noun: "chunks", most_parts: MAX_CHUNKS, parts: |_| 0, parts_noun: "parts" };
    bounds.read(deserializer)
}

fn encoded_text() -> String {
    "encoded_text".to_owned()
}

impl ModelInput {
    /// All tokens; `field` is the input's path for errors.
    pub fn tokens(self, field: &str) -> Result<Vec<i64>, OpError> {
        let mut all = Vec::new();
        for (index, chunk) in self.chunks.into_iter().enumerate() {
            let at = || format!("{field}.chunks[{index}]");
            if chunk.kind != "encoded_text" {
                let message = format!("{}: {:?} chunks are not supported by this model", at(), chunk.kind);
                return Err(OpError::user(message));
            }
            let tokens = chunk.tokens.ok_or_else(|| OpError::user(format!("{}: missing field `tokens`", at())))?;
            if all.is_empty() {
                all = tokens;
            } else {
                all.extend(tokens);
            }
        }
        Ok(all)
    }
}
