//! Search for checkpoints: `checkpoints/search`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::serde::rfc3339;
use utoipa::ToSchema;

use super::catalogue::Checkpoint;
use super::session_search::SearchOwner;
use super::{bounds, json, lists};

/// Request body of `checkpoints/search`. A checkpoint must satisfy every condition that is set.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointSearchRequest {
    /// Projects of the caller, one of which must contain the checkpoint.
    #[serde(default, deserialize_with = "lists::project_ids")]
    #[schema(max_items = 100)]
    pub project_ids: Option<Vec<String>>,
    /// Entries that the checkpoint's metadata must contain.
    #[serde(default, deserialize_with = "bounds::metadata")]
    pub user_metadata: BTreeMap<String, String>,
    /// Kind of the checkpoint: `training`, `sampler` or `external`.
    #[serde(default)]
    #[schema(pattern = "^(training|sampler|external)$")]
    pub checkpoint_type: Option<String>,
    /// Owners whose checkpoints are searched.
    #[serde(default, deserialize_with = "json::or_default")]
    pub owner: SearchOwner,
    /// Base models, one of which the checkpoint must belong to. An empty list matches nothing.
    #[serde(default, deserialize_with = "lists::base_models")]
    #[schema(max_items = 100)]
    pub base_models: Option<Vec<String>>,
    /// Maximum number of checkpoints to return.
    #[serde(default = "default_limit")]
    #[schema(minimum = 1, maximum = 200)]
    pub limit: u32,
    /// The `next_cursor` of the previous page; absent for the first page.
    #[serde(default, deserialize_with = "json::object_or_null")]
    pub cursor: Option<CheckpointCursor>,
}

fn default_limit() -> u32 {
    50
}

/// Position at which the next page begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckpointCursor {
    /// Time of the last checkpoint that was examined, in RFC 3339.
    #[serde(with = "rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub last_created_at: OffsetDateTime,
    /// Path of the last checkpoint that was examined.
    pub last_checkpoint_uuid: String,
}

/// Response body of `checkpoints/search`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckpointSearchResponse {
    /// Matches, newest first. A page may contain fewer than `limit` although `next_cursor` is set.
    pub checkpoints: Vec<Checkpoint>,
    /// Position of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<CheckpointCursor>,
}
