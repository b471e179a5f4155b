//! `checkpoints/search`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::serde::rfc3339;
use utoipa::ToSchema;

use super::catalogue::Checkpoint;
use super::session_search::SearchOwner;
use super::{bounds, json, lists};

/// Body of `checkpoints/search`: everything that is given must hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointSearchRequest {
    /// In one of these projects of the caller's.
    #[serde(default, deserialize_with = "lists::project_ids")]
    #[schema(max_items = 100)]
    pub project_ids: Option<Vec<String>>,
    /// With these entries.
    #[serde(default, deserialize_with = "bounds::metadata")]
    pub user_metadata: BTreeMap<String, String>,
    /// `training`, `sampler` or `external`.
    #[serde(default)]
    #[schema(pattern = "^(training|sampler|external)$")]
    pub checkpoint_type: Option<String>,
    /// Whose checkpoints.
    #[serde(default, deserialize_with = "json::or_default")]
    pub owner: SearchOwner,
    /// Of one of these base models; none match an empty list.
    #[serde(default, deserialize_with = "lists::base_models")]
    #[schema(max_items = 100)]
    pub base_models: Option<Vec<String>>,
    /// Most checkpoints to return.
    #[serde(default = "default_limit")]
    #[schema(minimum = 1, maximum = 200)]
    pub limit: u32,
    /// `next_cursor` of the page before.
    #[serde(default, deserialize_with = "json::object_or_null")]
    pub cursor: Option<CheckpointCursor>,
}

fn default_limit() -> u32 {
    50
}

/// Where the next page begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckpointCursor {
    /// Of the last checkpoint that was looked at, RFC 3339.
    #[serde(with = "rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub last_created_at: OffsetDateTime,
    /// Its path.
    pub last_checkpoint_uuid: String,
}

/// Answer of `checkpoints/search`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckpointSearchResponse {
    /// Newest first. There may be fewer than `limit` although `next_cursor` is given.
    pub checkpoints: Vec<Checkpoint>,
    /// Where to go on; absent when there are no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<CheckpointCursor>,
}
