//! Listings of training runs and checkpoints: `training_runs` and `checkpoints`.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Query parameters of a listing.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Maximum number of items to return.
    #[param(minimum = 1, maximum = 1000, default = 20)]
    #[serde(default = "default_limit", deserialize_with = "number")]
    pub limit: u32,
    /// Number of items to skip.
    #[serde(default, deserialize_with = "number")]
    pub offset: u64,
    /// `owned` (the default), or `accessible` to include what other tenants have made public.
    #[param(pattern = "^(owned|accessible)$")]
    #[serde(default)]
    pub access_scope: Option<String>,
    /// Returns only items of sessions in this project of the caller's.
    #[serde(default)]
    pub project_id: Option<String>,
}

/// Query parameters of a lookup by id.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ScopeQuery {
    /// `owned` (the default), or `accessible` to include what other tenants have made public.
    #[param(pattern = "^(owned|accessible)$")]
    #[serde(default)]
    pub access_scope: Option<String>,
}

fn default_limit() -> u32 {
    20
}

/// Reads a number in a query, which arrives as text.
pub(crate) fn number<'de, D: Deserializer<'de>, T: FromStr>(deserializer: D) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| D::Error::custom(format!("{text:?} is not a whole number from 0")))
}

/// Position of a page in its listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cursor {
    /// Number of items before the page.
    pub offset: u64,
    /// Maximum number of items that was requested.
    pub limit: u32,
    /// Number of items in the whole listing.
    pub total_count: u64,
}

/// Response body of `training_runs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrainingRunsResponse {
    /// The training runs of this page.
    pub training_runs: Vec<TrainingRun>,
    /// Position of the page in the listing.
    pub cursor: Cursor,
}

/// A training run: a sequence of requests that train one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrainingRun {
    /// Id of the run; the `model_id` of its requests.
    pub training_run_id: String,
    /// Name of the base model.
    pub base_model: String,
    /// Tenant that owns the run.
    pub model_owner: String,
    /// Whether the run trains an adapter.
    pub is_lora: bool,
    /// Rank of the adapter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lora_rank: Option<u32>,
    /// Whether the run's state is lost.
    pub corrupted: bool,
    /// Time of the last request, in RFC 3339.
    #[schema(format = DateTime)]
    pub last_request_time: String,
    /// The run's newest training checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_checkpoint: Option<Checkpoint>,
    /// The run's newest sampler checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sampler_checkpoint: Option<Checkpoint>,
    /// Metadata that the client set when it created the run.
    pub user_metadata: BTreeMap<String, String>,
    /// Continuations by workers with other numerics, oldest first; absent if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numerics_changed: Vec<NumericsChange>,
}

/// The continuation of a run with other kernels, another data type or another layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NumericsChange {
    /// Time of the change, in RFC 3339.
    #[schema(format = DateTime)]
    pub time: String,
    /// How the run was computed before: data type, kernels, layout and version.
    pub from: String,
    /// How the run is computed from then on.
    pub to: String,
}

/// Response body of `checkpoints` and `training_runs/{id}/checkpoints`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckpointsResponse {
    /// The checkpoints of this page.
    pub checkpoints: Vec<Checkpoint>,
    /// Position of the page in the listing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// A checkpoint of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Checkpoint {
    /// Id within the run: `<segment>/<name>`.
    pub checkpoint_id: String,
    /// Name of the base model.
    #[serde(default)]
    pub base_model: String,
    /// Kind of the checkpoint: `training`, `sampler` or `external`.
    #[schema(pattern = "^(training|sampler|external)$")]
    pub checkpoint_type: String,
    /// Time of the save, in RFC 3339.
    #[schema(format = DateTime)]
    pub time: String,
    /// Path of the checkpoint: `tinker://<run>/<segment>/<name>`.
    pub tinker_path: String,
    /// Size of all its files, in bytes.
    pub size_bytes: u64,
    /// Whether other tenants may read it.
    pub public: bool,
    /// Time at which it is deleted, in RFC 3339; absent if it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// Metadata that the client set with the save.
    pub user_metadata: BTreeMap<String, String>,
}
