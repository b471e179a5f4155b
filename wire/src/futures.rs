//! Futures: the answer to a submission, `retrieve_future`, `retrieve_futures` and `cancel_future`.

use serde::{Deserialize, Serialize};
use trainyard_protocol::{Category, OpError};
use utoipa::ToSchema;

use super::{json, lists};

/// Answer to every submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SubmitResponse {
    /// Id of the future.
    pub request_id: String,
    /// Id of the run, for training requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    /// One id per sample, for `asample`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_sequence_ids: Option<Vec<String>>,
}

/// Request body of `retrieve_future`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RetrieveFutureRequest {
    /// Id of the future.
    pub request_id: String,
    /// Whether the server may return only the size of the result. This server always returns the result.
    #[serde(default, deserialize_with = "json::or_default")]
    pub allow_metadata_only: bool,
}

/// Response body of `retrieve_future` while the result is pending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TryAgainResponse {
    /// Always the text `try_again`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Id of the future.
    pub request_id: String,
    /// `active`, or `paused_rate_limit` or `paused_capacity` while the request waits for a quota or for capacity.
    #[schema(pattern = "^(active|paused_rate_limit|paused_capacity)$")]
    pub queue_state: String,
    /// The quota or the capacity that the request waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_state_reason: Option<String>,
}

impl TryAgainResponse {
    /// Returns the answer for a request that is queued or running.
    pub fn active(request_id: impl Into<String>) -> Self {
        Self::new(request_id, "active", None)
    }

    /// Returns the answer for a request that waits for the quota or the capacity that `reason` names.
    pub fn paused(request_id: impl Into<String>, queue_state: &str, reason: String) -> Self {
        Self::new(request_id, queue_state, Some(reason))
    }

    fn new(request_id: impl Into<String>, queue_state: &str, queue_state_reason: Option<String>) -> Self {
        let (kind, queue_state) = ("try_again".to_owned(), queue_state.to_owned());
        Self { kind, request_id: request_id.into(), queue_state, queue_state_reason }
    }
}

/// Response body of `retrieve_future` for a failed request. No other JSON answer has a key `error`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedResponse {
    /// Description of the error; it names the field at fault.
    pub error: String,
    /// Origin of the error: `user`, `server` or `unknown`.
    #[schema(value_type = String, pattern = "^(user|server|unknown)$")]
    pub category: Category,
}

impl From<OpError> for FailedResponse {
    fn from(error: OpError) -> Self {
        Self { error: error.message, category: error.category }
    }
}

/// Request body of `retrieve_futures`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RetrieveFuturesRequest {
    /// The sampling session whose completions are returned.
    #[serde(deserialize_with = "json::object")]
    pub target: FuturesTarget,
    /// Cursor of the previous answer; 0 at first.
    #[schema(minimum = 0)]
    #[serde(default, deserialize_with = "json::or_default")]
    pub prev_cursor: i64,
    /// Maximum time to wait, in seconds. 0 returns at once; by default the server chooses.
    #[schema(minimum = 0)]
    #[serde(default)]
    pub timeout: Option<f64>,
    /// Results that the server may drop: at most 16,384 ids of 64 bytes. Ids from a key with only read access are
    /// ignored.
    #[serde(default, deserialize_with = "lists::retrieved_request_ids")]
    #[schema(max_items = 16384)]
    pub retrieved_request_ids: Vec<String>,
}

/// A sampling session, which may be that of a clone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FuturesTarget {
    /// Always the text `sampling_session`.
    #[serde(rename = "type", default = "sampling_session")]
    pub kind: String,
    /// Id of the sampling session.
    pub sampling_session_id: String,
    /// Number of the clone: `seq_id` divided by 10^9.
    #[schema(minimum = 0)]
    #[serde(default, deserialize_with = "json::or_default")]
    pub cloned_sampler_id: i64,
}

fn sampling_session() -> String {
    "sampling_session".to_owned()
}

/// Response body of `retrieve_futures`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RetrieveFuturesResponse {
    /// Requests that finished after `prev_cursor`.
    pub completions: Vec<FutureCompletion>,
    /// Cursor that covers exactly the completions above.
    pub cursor: i64,
}

/// A future that finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum FutureCompletion {
    /// A future with a result.
    Finished {
        /// Id of the future.
        request_id: String,
        /// Size of the uncompressed result, in bytes.
        response_payload_uncompressed_size: u64,
    },
    /// A future whose request failed.
    Failed {
        /// Id of the future.
        request_id: String,
    },
}

/// Request body of `cancel_future`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CancelFutureRequest {
    /// Id of the future.
    pub request_id: String,
}

/// Response body of `cancel_future`: an empty object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelFutureResponse {}
