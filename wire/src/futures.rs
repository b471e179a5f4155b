//! Futures: the answer of a submit, `retrieve_future`, `retrieve_futures`, `cancel_future`.

use serde::{Deserialize, Serialize};
use trainyard_protocol::{Category, OpError};
use utoipa::ToSchema;

use super::{json, lists};

/// Answer of every submit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SubmitResponse {
    /// The future.
    pub request_id: String,
    /// The run, of training requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    /// One id per sample, of `asample`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_sequence_ids: Option<Vec<String>>,
}

/// Body of `retrieve_future`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RetrieveFutureRequest {
    /// The future.
    pub request_id: String,
    /// The server may answer with the size alone; this one never does.
    #[serde(default, deserialize_with = "json::or_default")]
    pub allow_metadata_only: bool,
}

/// Answer of `retrieve_future` while the result is pending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TryAgainResponse {
    /// `try_again`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The future.
    pub request_id: String,
    /// `active`; `paused_rate_limit` or `paused_capacity` while the request waits for more than its turn.
    #[schema(pattern = "^(active|paused_rate_limit|paused_capacity)$")]
    pub queue_state: String,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_state_reason: Option<String>,
}

impl TryAgainResponse {
    /// Poll again: the request is queued or running.
    pub fn active(request_id: impl Into<String>) -> Self {
        Self::new(request_id, "active", None)
    }

    /// Poll again: the request waits for the quota or the capacity that `reason` names.
    pub fn paused(request_id: impl Into<String>, queue_state: &str, reason: String) -> Self {
        Self::new(request_id, queue_state, Some(reason))
    }

    fn new(request_id: impl Into<String>, queue_state: &str, queue_state_reason: Option<String>) -> Self {
        let (kind, queue_state) = ("try_again".to_owned(), queue_state.to_owned());
        Self { kind, request_id: request_id.into(), queue_state, queue_state_reason }
    }
}

/// Answer of `retrieve_future` for a failed request. No other JSON answer has a key `error`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedResponse {
    /// What is wrong, naming the field.
    pub error: String,
    /// `user`, `server` or `unknown`.
    #[schema(value_type = String, pattern = "^(user|server|unknown)$")]
    pub category: Category,
}

impl From<OpError> for FailedResponse {
    fn from(error: OpError) -> Self {
        Self { error: error.message, category: error.category }
    }
}

/// Body of `retrieve_futures`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RetrieveFuturesRequest {
    /// Whose completions.
    #[serde(deserialize_with = "json::object")]
    pub target: FuturesTarget,
    /// The cursor of the last answer; 0 at first.
    #[schema(minimum = 0)]
    #[serde(default, deserialize_with = "json::or_default")]
    pub prev_cursor: i64,
    /// Seconds to wait; the server's choice when null, 0 returns at once.
    #[schema(minimum = 0)]
    #[serde(default)]
    pub timeout: Option<f64>,
    /// Results that the server may drop: at most 16,384 ids of 64 bytes. A key that may only read drops none.
    #[serde(default, deserialize_with = "lists::retrieved_request_ids")]
    #[schema(max_items = 16384)]
    pub retrieved_request_ids: Vec<String>,
}

/// One, possibly cloned, sampling session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FuturesTarget {
    /// `sampling_session`.
    #[serde(rename = "type", default = "sampling_session")]
    pub kind: String,
    /// The sampling session.
    pub sampling_session_id: String,
    /// `seq_id` divided by 10^9.
    #[schema(minimum = 0)]
    #[serde(default, deserialize_with = "json::or_default")]
    pub cloned_sampler_id: i64,
}

fn sampling_session() -> String {
    "sampling_session".to_owned()
}

/// Answer of `retrieve_futures`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RetrieveFuturesResponse {
    /// What finished after `prev_cursor`.
    pub completions: Vec<FutureCompletion>,
    /// Covers exactly the completions above.
    pub cursor: i64,
}

/// A finished future.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum FutureCompletion {
    /// It has a result.
    Finished {
        /// The future.
        request_id: String,
        /// Bytes of the result.
        response_payload_uncompressed_size: u64,
    },
    /// It failed.
    Failed {
        /// The future.
        request_id: String,
    },
}

/// Body of `cancel_future`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CancelFutureRequest {
    /// The future.
    pub request_id: String,
}

/// Answer of `cancel_future`: an empty object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelFutureResponse {}
