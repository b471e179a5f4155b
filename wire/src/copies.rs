//! `copy_weights`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::bounds;

/// Body of `copy_weights`: with `session_id` and `model_seq_id` that run holds the copy, otherwise the run of a new session.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CopyWeightsRequest {
    /// The checkpoint, of any kind.
    pub source_path: String,
    /// The session of the run that holds the copy.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Counts that session's models.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub model_seq_id: Option<i64>,
    /// The project of the new session.
    #[serde(default, deserialize_with = "bounds::text")]
    pub destination_project_id: Option<String>,
    /// Seconds until the copy is deleted; never when null, whenever the source is.
    #[serde(default)]
    #[schema(minimum = 3600, maximum = 315_360_000)]
    pub ttl_seconds: Option<i64>,
    /// A key of a tenant that may read the checkpoint; the header `x-tinker-weights-access-token` is taken first.
    #[serde(default)]
    pub weights_access_token: Option<String>,
}

/// Answer of `copy_weights`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CopyWeightsResponse {
    /// The copy.
    pub tinker_path: String,
}
