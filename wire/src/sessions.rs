//! Sessions of clients: `create_session`, `session_heartbeat` and `sessions`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

use super::bounds;
use super::json::{self, Metadata};

/// Request body of `create_session`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct CreateSessionRequest {
    /// Labels for the session.
    #[serde(default, deserialize_with = "bounds::tags")]
    pub tags: Vec<String>,
    /// Metadata to store with the session.
    #[serde(default, deserialize_with = "bounds::metadata")]
    #[schema(value_type = Object)]
    pub user_metadata: Metadata,
    /// Version of the client.
    #[serde(default, deserialize_with = "bounds::text_or_empty")]
    pub sdk_version: String,
    /// Id of the project that the session belongs to.
    #[serde(default, deserialize_with = "bounds::text")]
    pub project_id: Option<String>,
    /// Name for display; any text.
    #[serde(default, deserialize_with = "bounds::text")]
    pub display_name: Option<String>,
}

/// Response body of `create_session`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateSessionResponse {
    /// Id of the session, without `:` and `/`.
    pub session_id: String,
}

/// Request body of `session_heartbeat`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatRequest {
    /// Id of the session.
    pub session_id: String,
}

/// Response body of `session_heartbeat`: an empty object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatResponse {}

/// Request body of `sessions/{id}/finish`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FinishRequest {
    /// Reason for the end of the session.
    #[serde(deserialize_with = "json::object")]
    pub reason: FinishReason,
    /// Details for display; any text.
    #[serde(default, deserialize_with = "bounds::text")]
    pub detail: Option<String>,
}

/// Reason why a client finished its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FinishReason {
    /// `success`, `errored` or `interrupted`.
    #[serde(rename = "type")]
    pub kind: FinishKind,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FinishKind {
    /// The client's program ended as intended.
    Success,
    /// The client's program failed.
    Errored,
    /// The user interrupted the client's program.
    Interrupted,
}

/// Response body of `sessions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionsResponse {
    /// Ids of the sessions, newest first.
    pub sessions: Vec<String>,
}

/// Response body of `sessions/{id}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionResponse {
    /// Ids of its training runs.
    pub training_run_ids: Vec<String>,
    /// Ids of its sampling sessions.
    pub sampler_ids: Vec<String>,
    /// Metadata that the client set when it created the session. Values that are not text are written as JSON.
    pub user_metadata: BTreeMap<String, String>,
    /// Name for display; any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
}
