//! Sampling sessions.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Body of `create_sampling_session`. With both, the base model is the checkpoint's or another name of its weights.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CreateSamplingSessionRequest {
    /// The client's session.
    pub session_id: String,
    /// Counts the session's sampling sessions.
    #[schema(minimum = 0)]
    pub sampling_session_seq_id: i64,
    /// A base model to sample from.
    #[serde(default)]
    pub base_model: Option<String>,
    /// A sampler checkpoint to sample from.
    #[serde(default)]
    pub model_path: Option<String>,
}

/// Answer of `create_sampling_session`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateSamplingSessionResponse {
    /// `<session>:sample:<n>`.
    pub sampling_session_id: String,
}

/// Body of `join_sampling_session`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JoinSamplingSessionRequest {
    /// The sampling session of the client that was cloned.
    pub sampling_session_id: String,
}

/// Answer of `join_sampling_session`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JoinSamplingSessionResponse {
    /// The clone's number, from 1; its `seq_id` begin with 10^9 times this.
    #[schema(minimum = 1)]
    pub client_counter: i64,
}

/// Answer of `samplers/{id}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SamplerResponse {
    /// The sampling session.
    pub sampler_id: String,
    /// Its base model.
    pub base_model: String,
    /// Its checkpoint, unless it samples from a base model or from memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_path: Option<String>,
}
