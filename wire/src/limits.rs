//! What organisations are granted.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// A limit of an organisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitValue {
    /// Its value; absent where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub value: Option<u64>,
    /// Where it is set.
    pub origin: LimitOrigin,
}

/// Where a limit is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LimitOrigin {
    /// In the configuration file: it can't be changed here.
    File,
    /// In the store.
    Store,
    /// Nowhere: it is as the server's options say, which is no limit for most of them, and a weight of 1.
    Default,
}

/// What an organisation is granted: answer of `GET` and `PUT admin/organisations/{organisation}/limits`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitsResponse {
    /// Its share of a busy service, relative to the other organisations that have work.
    pub weight: LimitValue,
    /// Training runs that may live at once.
    pub max_runs: LimitValue,
    /// Tokens of accepted requests that have not finished, beyond which samples get 429.
    pub max_queued_tokens: LimitValue,
    /// Rate limit: tokens of the requests that start.
    pub tokens_per_minute: LimitValue,
    /// Bytes of its checkpoints.
    pub max_storage_bytes: LimitValue,
    /// Training requests that have not finished.
    pub max_queued_requests: LimitValue,
    /// Bytes of their payloads.
    pub max_queued_bytes: LimitValue,
}

/// Body of `PUT admin/organisations/{organisation}/limits`: what is absent stays, and `null` unsets.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChangeLimitsRequest {
    /// Its share of a busy service, relative to the other organisations that have work.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 1000)]
    pub weight: Option<Option<u64>>,
    /// Training runs that may live at once.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    pub max_runs: Option<Option<u64>>,
    /// Tokens of accepted requests that have not finished, beyond which samples get 429.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    pub max_queued_tokens: Option<Option<u64>>,
    /// Rate limit: tokens of the requests that start.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    pub tokens_per_minute: Option<Option<u64>>,
    /// Bytes of its checkpoints.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    pub max_storage_bytes: Option<Option<u64>>,
    /// Training requests that have not finished.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    pub max_queued_requests: Option<Option<u64>>,
    /// Bytes of their payloads.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    pub max_queued_bytes: Option<Option<u64>>,
}

/// Tells `null` from a field that is absent.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}
