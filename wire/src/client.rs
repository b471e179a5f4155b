//! Requests that support a client's work: configuration, capabilities, health and telemetry.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{json, lists};

/// Request body of `client/config` and `client/dynamic_config`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ClientConfigRequest {
    /// Version of the client.
    #[serde(default, deserialize_with = "json::or_default")]
    pub sdk_version: String,
}

/// Response body of `client/config`: settings that the server chooses for the client. The client uses its own defaults
/// for settings that are not listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClientConfigResponse {
    /// Whether to exchange the API key for a token at `auth/token`, and to call with the token.
    pub pjwt_auth_enabled: bool,
    /// Source of the credential.
    pub credential_default_source: String,
    /// Maximum number of datums per `forward_backward` request.
    pub fwdbwd_max_chunk_len: u64,
    /// Estimated maximum size of a `forward_backward` request, in bytes.
    pub fwdbwd_max_chunk_bytes_count: u64,
    /// Whether to post the chunks of a call concurrently.
    pub parallel_fwdbwd_chunks: bool,
    /// Whether to compress `forward_backward` bodies with zstd.
    pub proto_compress_fwdbwd: bool,
    /// Whether to learn of finished samples through `retrieve_futures`.
    pub sample_use_retrieve_futures: bool,
    /// Whether to run custom losses on the server.
    pub custom_loss_server_side: bool,
    /// Whether to ask the server for the numbers of clones.
    pub sample_join_sampling_session: bool,
}

impl Default for ClientConfigResponse {
    fn default() -> Self {
        Self {
            pjwt_auth_enabled: true,
            credential_default_source: "api_key".to_owned(),
            fwdbwd_max_chunk_len: 1024,
            fwdbwd_max_chunk_bytes_count: 5_000_000,
            parallel_fwdbwd_chunks: true,
            proto_compress_fwdbwd: false,
            sample_use_retrieve_futures: false,
            custom_loss_server_side: true,
            sample_join_sampling_session: true,
        }
    }
}

/// Response body of `client/dynamic_config`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClientDynamicConfigResponse {
    /// Seconds until the client polls again.
    pub refresh_interval_sec: u64,
    /// Whether to send `cancel_future` for samples that were abandoned.
    pub sample_cancel_enabled: bool,
    /// Maximum number of cancellations that are sent at once.
    pub sample_cancel_max_batch_size: u64,
}

impl Default for ClientDynamicConfigResponse {
    fn default() -> Self {
        Self { refresh_interval_sec: 300, sample_cancel_enabled: true, sample_cancel_max_batch_size: 64 }
    }
}

/// Response body of `healthz`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HealthResponse {
    /// `ok`, or what the server waits for.
    pub status: String,
}

/// Response body of `get_server_capabilities`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerCapabilities {
    /// Base models that the server serves.
    pub supported_models: Vec<SupportedModel>,
}

/// A base model that the server serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SupportedModel {
    /// Name of the model.
    pub model_name: String,
    /// Maximum length of prompt and completion together, in tokens.
    pub max_context_length: u64,
    /// Whether runs can be created on it.
    pub trainable: bool,
    /// Whether it can be sampled from.
    pub sampleable: bool,
}

/// Request body of `telemetry`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TelemetryRequest {
    /// Events of the client; they are not stored.
    #[serde(default, deserialize_with = "lists::events")]
    #[schema(max_items = 16384)]
    pub events: Vec<serde_json::Value>,
    /// Platform of the client.
    #[serde(default, deserialize_with = "json::or_default")]
    pub platform: String,
    /// Version of the client.
    #[serde(default, deserialize_with = "json::or_default")]
    pub sdk_version: String,
    /// Id of the session, or `sessionless-<uuid>`.
    #[serde(default, deserialize_with = "json::or_default")]
    pub session_id: String,
}

/// Response body of `telemetry`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TelemetryResponse {
    /// Always the text `accepted`.
    pub status: String,
}

impl TelemetryResponse {
    /// Returns the only response that clients accept.
    pub fn accepted() -> Self {
        Self { status: "accepted".to_owned() }
    }
}

/// Response body of every error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// Description of the error; it names the field at fault.
    pub detail: String,
    /// Id of the HTTP request, the same as in the header `x-request-id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_request_id: Option<String>,
}
