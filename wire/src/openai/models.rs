//! `GET models`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What may be named in the field `model`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ModelsResponse {
    /// `list`.
    pub object: String,
    /// The base models, then the caller's sampler checkpoints, newest first.
    pub data: Vec<ModelEntry>,
}

/// A base model or a sampler checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ModelEntry {
    /// Its name or path.
    pub id: String,
    /// `model`.
    pub object: String,
    /// Seconds since 1970; 0 of base models.
    pub created: i64,
    /// `trainyard` for base models, `user` for checkpoints.
    pub owned_by: String,
    /// The base model of a checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Most tokens of prompt and completion together.
    pub max_model_len: u64,
}
