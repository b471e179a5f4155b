//! `training_runs` and `checkpoints`.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Query of the listings.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Most items to return.
    #[param(minimum = 1, maximum = 1000, default = 20)]
    #[serde(default = "default_limit", deserialize_with = "number")]
    pub limit: u32,
    /// Items to skip.
    #[serde(default, deserialize_with = "number")]
    pub offset: u64,
    /// `owned`, or `accessible` with what other tenants have made public.
    #[param(pattern = "^(owned|accessible)$")]
    #[serde(default)]
    pub access_scope: Option<String>,
    /// Only those of sessions in this project of the caller's.
    #[serde(default)]
    pub project_id: Option<String>,
}

/// Query of what is looked up by its id.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ScopeQuery {
    /// `owned`, or `accessible` with what other tenants have made public.
    #[param(pattern = "^(owned|accessible)$")]
    #[serde(default)]
    pub access_scope: Option<String>,
}

fn default_limit() -> u32 {
    20
}

/// Reads a number of a query, which is text.
fn number<'de, D: Deserializer<'de>, T: FromStr>(deserializer: D) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| D::Error::custom(format!("{text:?} is not a whole number from 0")))
}

/// Where a page lies in its listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cursor {
    /// Items skipped.
    pub offset: u64,
    /// Most items asked for.
    pub limit: u32,
    /// Items in all.
    pub total_count: u64,
}

/// Answer of `training_runs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrainingRunsResponse {
    /// The page.
    pub training_runs: Vec<TrainingRun>,
    /// Where it lies.
    pub cursor: Cursor,
}

/// A training run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrainingRun {
    /// Its id; the `model_id`.
    pub training_run_id: String,
    /// Name of the base model.
    pub base_model: String,
    /// Its tenant.
    pub model_owner: String,
    /// Whether it trains an adapter.
    pub is_lora: bool,
    /// The adapter's rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lora_rank: Option<u32>,
    /// Whether its state is lost.
    pub corrupted: bool,
    /// RFC 3339.
    #[schema(format = DateTime)]
    pub last_request_time: String,
    /// Its newest training checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_checkpoint: Option<Checkpoint>,
    /// Its newest sampler checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sampler_checkpoint: Option<Checkpoint>,
    /// As given at creation.
    pub user_metadata: BTreeMap<String, String>,
    /// When it was continued by a worker whose results have other bits, oldest first; absent when it never was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numerics_changed: Vec<NumericsChange>,
}

/// A run was continued with other kernels, another type or another layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NumericsChange {
    /// When, RFC 3339.
    #[schema(format = DateTime)]
    pub time: String,
    /// How it was computed: type, kernels, layout and version.
    pub from: String,
    /// How it is computed from then on.
    pub to: String,
}

/// Answer of `checkpoints` and `training_runs/{id}/checkpoints`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckpointsResponse {
    /// The page.
    pub checkpoints: Vec<Checkpoint>,
    /// Where it lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// A checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Checkpoint {
    /// `<segment>/<name>`.
    pub checkpoint_id: String,
    /// Name of the base model.
    #[serde(default)]
    pub base_model: String,
    /// `training`, `sampler` or `external`.
    #[schema(pattern = "^(training|sampler|external)$")]
    pub checkpoint_type: String,
    /// When it was made, RFC 3339.
    #[schema(format = DateTime)]
    pub time: String,
    /// `tinker://<run>/<segment>/<name>`.
    pub tinker_path: String,
    /// Bytes of all its files.
    pub size_bytes: u64,
    /// Whether others may read it.
    pub public: bool,
    /// When it is deleted, RFC 3339; never when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// As given with the save.
    pub user_metadata: BTreeMap<String, String>,
}
