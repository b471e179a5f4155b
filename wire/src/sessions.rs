//! `create_session`, `session_heartbeat`, `sessions`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

use super::bounds;
use super::json::{self, Metadata};

/// Body of `create_session`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct CreateSessionRequest {
    /// Labels.
    #[serde(default, deserialize_with = "bounds::tags")]
    pub tags: Vec<String>,
    /// Free-form.
    #[serde(default, deserialize_with = "bounds::metadata")]
    #[schema(value_type = Object)]
    pub user_metadata: Metadata,
    /// The client's version.
    #[serde(default, deserialize_with = "bounds::text_or_empty")]
    pub sdk_version: String,
    /// A project to count it under.
    #[serde(default, deserialize_with = "bounds::text")]
    pub project_id: Option<String>,
    /// A name for people.
    #[serde(default, deserialize_with = "bounds::text")]
    pub display_name: Option<String>,
}

/// Answer of `create_session`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateSessionResponse {
    /// The session; free of `:` and `/`.
    pub session_id: String,
}

/// Body of `session_heartbeat`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatRequest {
    /// The session.
    pub session_id: String,
}

/// Answer of `session_heartbeat`: an empty object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatResponse {}

/// Body of `sessions/{id}/finish`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FinishRequest {
    /// Why.
    #[serde(deserialize_with = "json::object")]
    pub reason: FinishReason,
    /// More about it.
    #[serde(default, deserialize_with = "bounds::text")]
    pub detail: Option<String>,
}

/// Why a client finished its session.
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
    /// As intended.
    Success,
    /// With an error.
    Errored,
    /// By the user.
    Interrupted,
}

/// Answer of `sessions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionsResponse {
    /// Ids, newest first.
    pub sessions: Vec<String>,
}

/// Answer of `sessions/{id}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionResponse {
    /// Its training runs.
    pub training_run_ids: Vec<String>,
    /// Its sampling sessions.
    pub sampler_ids: Vec<String>,
    /// As given at creation; values that are not text are written as JSON.
    pub user_metadata: BTreeMap<String, String>,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
}
