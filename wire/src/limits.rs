//! Limits of organisations, which operators set.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// A limit of an organisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitValue {
    /// Value in force; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub value: Option<u64>,
    /// Place where the limit is set.
    pub origin: LimitOrigin,
}

/// Place where a limit is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LimitOrigin {
    /// The configuration file; the API can't change it.
    File,
    /// The store, which the API changes.
    Store,
    /// Neither: the server's options apply. Most limits are then unlimited, and the weight is 1.
    Default,
}

/// Limits of an organisation: answer of `GET` and `PUT admin/organisations/{organisation}/limits`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitsResponse {
    /// Share of a busy service, relative to the other organisations that have work.
    pub weight: LimitValue,
    /// Maximum number of training runs at the same time.
    pub max_runs: LimitValue,
    /// Maximum number of tokens in accepted requests that have not finished; samples beyond it are answered with status
    /// 429.
    pub max_queued_tokens: LimitValue,
    /// Rate limit: maximum number of tokens in the requests that start within a minute.
    pub tokens_per_minute: LimitValue,
    /// Maximum size of all checkpoints, in bytes.
    pub max_storage_bytes: LimitValue,
    /// Maximum number of training requests that have not finished.
    pub max_queued_requests: LimitValue,
    /// Maximum size of the payloads of these training requests, in bytes.
    pub max_queued_bytes: LimitValue,
    /// Maximum number of samples that have not finished.
    pub max_queued_samples: LimitValue,
    /// Maximum number of sessions that are open, or that ended within the retention time.
    pub max_sessions: LimitValue,
    /// Rate limit: maximum number of pixels of the images that are sent to an API server within a minute.
    pub pixels_per_minute: LimitValue,
}

/// Request body of `PUT admin/organisations/{organisation}/limits`. Absent fields keep their values; `null` unsets a
/// limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChangeLimitsRequest {
    /// Share of a busy service, relative to the other organisations that have work.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 1000)]
    pub weight: Option<Option<u64>>,
    /// Maximum number of training runs at the same time.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    pub max_runs: Option<Option<u64>>,
    /// Maximum number of tokens in accepted requests that have not finished; samples beyond it are answered with status
    /// 429.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    pub max_queued_tokens: Option<Option<u64>>,
    /// Rate limit: maximum number of tokens in the requests that start within a minute.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    pub tokens_per_minute: Option<Option<u64>>,
    /// Maximum size of all checkpoints, in bytes.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    pub max_storage_bytes: Option<Option<u64>>,
    /// Maximum number of training requests that have not finished.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    pub max_queued_requests: Option<Option<u64>>,
    /// Maximum size of the payloads of these training requests, in bytes.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    pub max_queued_bytes: Option<Option<u64>>,
    /// Maximum number of samples that have not finished.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    pub max_queued_samples: Option<Option<u64>>,
    /// Maximum number of sessions that are open, or that ended within the retention time.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    pub max_sessions: Option<Option<u64>>,
    /// Rate limit: maximum number of pixels of the images that are sent to an API server within a minute.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    pub pixels_per_minute: Option<Option<u64>>,
}

/// Distinguishes `null` from an absent field.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}
