//! Usage of the service, and storage in use.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Query parameters of `billing/usage/events` and `admin/usage.csv`.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct UsageQuery {
    /// Start of the period, in RFC 3339: the start of an hour.
    pub starting_on: String,
    /// End of the period, in RFC 3339: the start of an hour, at most 14 days after `starting_on`.
    pub ending_before: String,
    /// Name of the organisation; the caller's own by default.
    #[serde(default)]
    pub organisation: Option<String>,
}

/// Query parameters of `billing/usage/checkpoints/current`.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct StorageQuery {
    /// Returns only checkpoints of this project.
    #[serde(default)]
    pub project_id: Option<String>,
    /// Name of the organisation; the caller's own by default.
    #[serde(default)]
    pub organisation: Option<String>,
}

/// Response body of `billing/usage/events`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageResponse {
    /// Usage by hour, and within an hour by tokens in descending order.
    pub data: Vec<UsageEvent>,
    /// Sessions that `data` names, unless they were deleted.
    pub sessions: BTreeMap<String, UsageSession>,
}

/// Usage of a session within an hour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageEvent {
    /// Start of the hour, in RFC 3339.
    #[schema(format = DateTime)]
    pub bucket_start: String,
    /// End of the hour, in RFC 3339.
    #[schema(format = DateTime)]
    pub bucket_end: String,
    /// Kind and amount of the usage.
    pub event_info: UsageInfo,
    /// Name of the base model.
    pub base_model: String,
    /// Id of the session.
    pub session_id: String,
    /// Project of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// Email address of the user whose key created the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
}

/// Kind and amount of a usage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UsageInfo {
    /// Tokens of examples in forward and backward passes.
    Training {
        /// Number of these tokens.
        token_count: u64,
    },
    /// Tokens of the prompts of samples.
    SamplingPrefill {
        /// Whether the prefix cache served the tokens.
        cached: bool,
        /// Number of these tokens.
        token_count: u64,
    },
    /// Tokens that were generated.
    SamplingSample {
        /// Number of these tokens.
        token_count: u64,
    },
    /// Checkpoints that were saved.
    Checkpoint {
        /// Number of these checkpoints.
        count: u64,
    },
    /// Checkpoints that were stored.
    Storage {
        /// Storage in units of 10^9 bytes, multiplied by hours.
        gigabyte_hours: f64,
    },
}

impl UsageInfo {
    /// Returns the number of tokens, by which events are ordered.
    pub fn tokens(&self) -> u64 {
        match self {
            Self::Training { token_count }
            | Self::SamplingPrefill { token_count, .. }
            | Self::SamplingSample { token_count } => *token_count,
            Self::Checkpoint { .. } | Self::Storage { .. } => 0,
        }
    }
}

/// A session that usage refers to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageSession {
    /// Metadata that the client set when it created the session.
    pub user_metadata: BTreeMap<String, String>,
}

/// Response body of `billing/usage/checkpoints/current`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StorageResponse {
    /// Storage by project and user.
    pub data: Vec<StorageInUse>,
}

/// Storage in use now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StorageInUse {
    /// Number of these checkpoints.
    pub checkpoint_count: u64,
    /// Size of all their files, in bytes.
    pub size_bytes: u64,
    /// Size of all their files, in units of 10^9 bytes.
    pub size_gigabytes: f64,
    /// Project of the sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// Email address of the user whose keys created the sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_email: Option<String>,
}
