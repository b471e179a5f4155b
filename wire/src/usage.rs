//! What was used, and what is stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Query of `billing/usage/events` and `admin/usage.csv`.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct UsageQuery {
    /// RFC 3339, at the start of an hour.
    pub starting_on: String,
    /// RFC 3339, at the start of an hour, at most 14 days later.
    pub ending_before: String,
    /// The organisation; the caller's own when absent.
    #[serde(default)]
    pub organisation: Option<String>,
}

/// Query of `billing/usage/checkpoints/current`.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct StorageQuery {
    /// Of one project alone.
    #[serde(default)]
    pub project_id: Option<String>,
    /// The organisation; the caller's own when absent.
    #[serde(default)]
    pub organisation: Option<String>,
}

/// Answer of `billing/usage/events`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageResponse {
    /// By hour, then by tokens, most first.
    pub data: Vec<UsageEvent>,
    /// The sessions that are named and still there.
    pub sessions: BTreeMap<String, UsageSession>,
}

/// What was used in an hour, for one session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageEvent {
    /// The start of the hour.
    #[schema(format = DateTime)]
    pub bucket_start: String,
    /// Its end.
    #[schema(format = DateTime)]
    pub bucket_end: String,
    /// What, and how much.
    pub event_info: UsageInfo,
    /// The base model.
    pub base_model: String,
    /// The session.
    pub session_id: String,
    /// The session's project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// The email of the user whose key created the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
}

/// A kind of use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UsageInfo {
    /// Tokens of examples in forward and backward passes.
    Training {
        /// How many.
        token_count: u64,
    },
    /// Tokens of prompts.
    SamplingPrefill {
        /// Whether the prefix cache had them.
        cached: bool,
        /// How many.
        token_count: u64,
    },
    /// Tokens that were generated.
    SamplingSample {
        /// How many.
        token_count: u64,
    },
    /// Checkpoints that were saved.
    Checkpoint {
        /// How many.
        count: u64,
    },
    /// Checkpoints that were stored.
    Storage {
        /// Of 10^9 bytes.
        gigabyte_hours: f64,
    },
}

impl UsageInfo {
    /// Tokens, for the order of events.
    pub fn tokens(&self) -> u64 {
        match self {
            Self::Training { token_count }
            | Self::SamplingPrefill { token_count, .. }
            | Self::SamplingSample { token_count } => *token_count,
            Self::Checkpoint { .. } | Self::Storage { .. } => 0,
        }
    }
}

/// A session that usage names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageSession {
    /// As the client attached it.
    pub user_metadata: BTreeMap<String, String>,
}

/// Answer of `billing/usage/checkpoints/current`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StorageResponse {
    /// By project and user.
    pub data: Vec<StorageInUse>,
}

/// What is stored now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StorageInUse {
    /// Checkpoints.
    pub checkpoint_count: u64,
    /// Bytes of all their files.
    pub size_bytes: u64,
    /// The same in 10^9 bytes.
    pub size_gigabytes: f64,
    /// The project of the sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// The email of the user whose keys created the sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_email: Option<String>,
}
