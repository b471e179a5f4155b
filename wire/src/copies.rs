//! Copies of checkpoints: `copy_weights`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::bounds;

/// Request body of `copy_weights`. The copy belongs to the run that `session_id` and `model_seq_id` identify, or, if
/// they are absent, to the run of a new session.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CopyWeightsRequest {
    /// Path of the checkpoint, which may be of any kind.
    pub source_path: String,
    /// Session of the run that holds the copy.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Number of the run's model within the session.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub model_seq_id: Option<i64>,
    /// Project of the new session.
    #[serde(default, deserialize_with = "bounds::text")]
    pub destination_project_id: Option<String>,
    /// Seconds until the copy is deleted. By default it is kept, even if the source expires.
    #[serde(default)]
    #[schema(minimum = 3600, maximum = 315_360_000)]
    pub ttl_seconds: Option<i64>,
    /// A key of a tenant that may read the checkpoint. The header `x-tinker-weights-access-token` takes precedence.
    #[serde(default)]
    pub weights_access_token: Option<String>,
}

/// Response body of `copy_weights`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CopyWeightsResponse {
    /// Path of the copy.
    pub tinker_path: String,
}
