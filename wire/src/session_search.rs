//! Search for sessions, their projects and their traces: `sessions/search`, `sessions/{id}/project` and
//! `sessions/{id}/trace_export`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::serde::rfc3339;
use utoipa::ToSchema;

use super::{bounds, json, lists};

/// Request body of `sessions/search`. A session must satisfy every condition that is set. If both `session_id` and
/// `display_name` are set, it must satisfy either of these two.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SessionSearchRequest {
    /// Id of the session.
    #[serde(default, deserialize_with = "bounds::text")]
    pub session_id: Option<String>,
    /// Projects, one of which must contain the session.
    #[serde(default, deserialize_with = "lists::project_ids")]
    #[schema(max_items = 100)]
    pub project_ids: Option<Vec<String>>,
    /// Entries that the session's metadata must contain.
    #[serde(default, deserialize_with = "bounds::metadata")]
    pub user_metadata: BTreeMap<String, String>,
    /// Words that must all occur in the display name, in upper or lower case.
    #[serde(default, deserialize_with = "bounds::text")]
    #[schema(min_length = 1)]
    pub display_name: Option<String>,
    /// Owners whose sessions are searched.
    #[serde(default, deserialize_with = "json::or_default")]
    pub owner: SearchOwner,
    /// Statuses, one of which the session must have.
    #[serde(default, deserialize_with = "lists::statuses")]
    #[schema(min_items = 1, max_items = 16)]
    pub statuses: Option<Vec<StatusQuery>>,
    /// Maximum number of sessions to return.
    #[serde(default = "default_limit")]
    #[schema(minimum = 1, maximum = 200)]
    pub limit: u32,
    /// The `next_cursor` of the previous page; absent for the first page.
    #[serde(default, deserialize_with = "json::object_or_null")]
    pub cursor: Option<SearchCursor>,
}

fn default_limit() -> u32 {
    50
}

/// Owners whose objects are searched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum SearchOwner {
    /// Only the caller's own tenant.
    #[default]
    Own,
    /// All owners whose sessions the caller may see, which is only the caller's own tenant.
    Accessible,
    /// The listed owners, as far as the caller may see their sessions.
    User {
        /// One to ten owners, in the form of `owner` in results.
        #[serde(deserialize_with = "lists::owner_urns")]
        #[schema(min_items = 1, max_items = 10)]
        owner_urns: Vec<String>,
    },
}

/// Status that is searched for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StatusQuery {
    /// The session accepts requests.
    Active,
    /// Matches no session on this server.
    Cancelled,
    /// Matches no session on this server.
    Failed,
    /// The client finished the session.
    ClientFinished {
        /// Reasons, one of which the client must have given; any by default.
        #[serde(default, deserialize_with = "lists::reasons")]
        #[schema(max_items = 16)]
        reasons: Option<Vec<super::sessions::FinishKind>>,
    },
}

/// Position at which the next page begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SearchCursor {
    /// Time of creation of the page's last session, in RFC 3339.
    #[serde(with = "rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub last_created_at: OffsetDateTime,
    /// Id of the page's last session.
    pub last_session_id: String,
}

/// Response body of `sessions/search`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionSearchResponse {
    /// Matches, newest first. A page may contain fewer than `limit` although `next_cursor` is set.
    pub sessions: Vec<SessionSummary>,
    /// Position of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<SearchCursor>,
}

/// A session that matches a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionSummary {
    /// Id of the session.
    pub session_id: String,
    /// Time of creation, in RFC 3339.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Tenant that owns the session.
    pub owner: String,
    /// Project of the session; empty if it is not in a project.
    pub project_id: String,
    /// Status of the session; absent if its heartbeats stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusSummary>,
    /// Number of checkpoints of its runs.
    pub checkpoints_count: u64,
    /// Size of the checkpoints' files, in bytes.
    pub checkpoint_storage_bytes: u64,
    /// Name for display; any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Metadata that the client set when it created the session. Values that are not text are written as JSON.
    pub user_metadata: BTreeMap<String, String>,
}

/// Status of a session that matches a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StatusSummary {
    /// The session accepts requests.
    Active,
    /// The client finished the session.
    ClientFinished {
        /// Reason that the client gave.
        reason: super::sessions::FinishReason,
        /// Details that the client gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
}

/// Request body of `sessions/{id}/project`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionProjectRequest {
    /// Id of the project; any text that is not empty.
    #[serde(deserialize_with = "bounds::text_or_empty")]
    #[schema(min_length = 1)]
    pub project_id: String,
}

/// Response body of `sessions/{id}/trace_export`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TraceExportResponse {
    /// Always `ready`: the trace is computed when it is downloaded.
    pub status: String,
    /// URL of the trace, which can be downloaded without a key.
    pub url: String,
}
