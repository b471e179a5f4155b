//! The models that runs adapt.

use serde::{Deserialize, Serialize};

use crate::Vision;

/// A base model that the engine serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseModel {
    /// The name that clients use.
    pub name: String,
    /// The family, e.g. `llama`.
    pub arch: String,
    /// Maximum number of tokens of a prompt and its completion together.
    pub max_context_length: usize,
    /// Size of the vocabulary: token ids are below it.
    pub vocab_size: usize,
    /// Number of parameters of the base model.
    pub parameters: u64,
    /// Rules for images; absent in models without a vision tower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vision: Option<Vision>,
}
