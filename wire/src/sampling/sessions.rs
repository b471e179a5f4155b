//! Sampling sessions: their creation, clones and description.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Request body of `create_sampling_session`. If both models are set, the base model must be the checkpoint's or
/// another name of its weights.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CreateSamplingSessionRequest {
    /// Id of the client's session.
    pub session_id: String,
    /// Number of the sampling session within the session.
    #[schema(minimum = 0)]
    pub sampling_session_seq_id: i64,
    /// Base model to sample from.
    #[serde(default)]
    pub base_model: Option<String>,
    /// Path of a sampler checkpoint to sample from.
    #[serde(default)]
    pub model_path: Option<String>,
}

/// Response body of `create_sampling_session`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateSamplingSessionResponse {
    /// Id of the sampling session: `<session>:sample:<n>`.
    pub sampling_session_id: String,
}

/// Request body of `join_sampling_session`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JoinSamplingSessionRequest {
    /// Id of the sampling session whose client was cloned.
    pub sampling_session_id: String,
}

/// Response body of `join_sampling_session`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JoinSamplingSessionResponse {
    /// Number of the clone, from 1. Its `seq_id` start at 10^9 times this number.
    #[schema(minimum = 1)]
    pub client_counter: i64,
}

/// Response body of `samplers/{id}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SamplerResponse {
    /// Id of the sampling session.
    pub sampler_id: String,
    /// Name of the base model.
    pub base_model: String,
    /// Path of the checkpoint; absent for a base model and for a sampler in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_path: Option<String>,
}
