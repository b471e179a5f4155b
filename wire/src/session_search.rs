//! `sessions/search` and `sessions/{id}/project`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::serde::rfc3339;
use utoipa::ToSchema;

use super::{bounds, json, lists};

/// Body of `sessions/search`: everything that is given must hold. With both `session_id` and `display_name`, a session that
/// matches either one matches.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SessionSearchRequest {
    /// This session.
    #[serde(default, deserialize_with = "bounds::text")]
    pub session_id: Option<String>,
    /// In one of these projects.
    #[serde(default, deserialize_with = "lists::project_ids")]
    #[schema(max_items = 100)]
    pub project_ids: Option<Vec<String>>,
    /// With these entries.
    #[serde(default, deserialize_with = "bounds::metadata")]
    pub user_metadata: BTreeMap<String, String>,
    /// Words that all occur in the display name, in any case.
    #[serde(default, deserialize_with = "bounds::text")]
    #[schema(min_length = 1)]
    pub display_name: Option<String>,
    /// Whose sessions.
    #[serde(default, deserialize_with = "json::or_default")]
    pub owner: SearchOwner,
    /// With one of these statuses.
    #[serde(default, deserialize_with = "lists::statuses")]
    #[schema(min_items = 1, max_items = 16)]
    pub statuses: Option<Vec<StatusQuery>>,
    /// Most sessions to return.
    #[serde(default = "default_limit")]
    #[schema(minimum = 1, maximum = 200)]
    pub limit: u32,
    /// `next_cursor` of the page before.
    #[serde(default, deserialize_with = "json::object_or_null")]
    pub cursor: Option<SearchCursor>,
}

fn default_limit() -> u32 {
    50
}

/// Whose sessions are searched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum SearchOwner {
    /// The caller's.
    #[default]
    Own,
    /// All that the caller may see: its own.
    Accessible,
    /// Those of these owners, as far as the caller may see them.
    User {
        /// One to ten owners, as `owner` names them in results.
        #[serde(deserialize_with = "lists::owner_urns")]
        #[schema(min_items = 1, max_items = 10)]
        owner_urns: Vec<String>,
    },
}

/// A status that is searched for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StatusQuery {
    /// It accepts requests.
    Active,
    /// No session has this status here.
    Cancelled,
    /// No session has this status here.
    Failed,
    /// Its client ended it.
    ClientFinished {
        /// For one of these reasons; for any when absent.
        #[serde(default, deserialize_with = "lists::reasons")]
        #[schema(max_items = 16)]
        reasons: Option<Vec<super::sessions::FinishKind>>,
    },
}

/// Where the next page begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SearchCursor {
    /// Of the page's last session, RFC 3339.
    #[serde(with = "rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub last_created_at: OffsetDateTime,
    /// Its id.
    pub last_session_id: String,
}

/// Answer of `sessions/search`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionSearchResponse {
    /// Newest first. There may be fewer than `limit` although `next_cursor` is given.
    pub sessions: Vec<SessionSummary>,
    /// Where to go on; absent when there are no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<SearchCursor>,
}

/// A session that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionSummary {
    /// Its id.
    pub session_id: String,
    /// RFC 3339.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Its tenant.
    pub owner: String,
    /// Its project; empty when it is in none.
    pub project_id: String,
    /// Absent when its heartbeats stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusSummary>,
    /// Checkpoints of its runs.
    pub checkpoints_count: u64,
    /// Bytes of their files.
    pub checkpoint_storage_bytes: u64,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// As given at creation; values that are not text are written as JSON.
    pub user_metadata: BTreeMap<String, String>,
}

/// The status of a session that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StatusSummary {
    /// It accepts requests.
    Active,
    /// Its client ended it.
    ClientFinished {
        /// Why.
        reason: super::sessions::FinishReason,
        /// More about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
}

/// Body of `sessions/{id}/project`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionProjectRequest {
    /// The project; a free text.
    #[serde(deserialize_with = "bounds::text_or_empty")]
    #[schema(min_length = 1)]
    pub project_id: String,
}

/// Answer of `sessions/{id}/trace_export`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TraceExportResponse {
    /// Always `ready`: the trace is made when it is downloaded.
    pub status: String,
    /// Where it is, without a key.
    pub url: String,
}
