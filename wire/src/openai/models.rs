//! Response body of `GET models`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Models that the field `model` of a request may name.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ModelsResponse {
    /// Always the text `list`.
    pub object: String,
    /// Base models, then the caller's sampler checkpoints, newest first.
    pub data: Vec<ModelEntry>,
}

/// A base model or a sampler checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ModelEntry {
    /// Name of the base model, or path of the checkpoint.
    pub id: String,
    /// Always the text `model`.
    pub object: String,
    /// Time of the save, in seconds since 1970; 0 for base models.
    pub created: i64,
    /// `trainyard` for base models, `user` for checkpoints.
    pub owned_by: String,
    /// Base model of the checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Maximum length of prompt and completion together, in tokens.
    pub max_model_len: u64,
}
