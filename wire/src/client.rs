//! What a client asks before and beside its work: configuration, capabilities, health, telemetry.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{json, lists};

/// Body of `client/config` and `client/dynamic_config`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ClientConfigRequest {
    /// The client's version.
    #[serde(default, deserialize_with = "json::or_default")]
    pub sdk_version: String,
}

/// Answer of `client/config`: settings that the server chooses for the client. Fields left out keep the
/// client's defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClientConfigResponse {
    /// Exchange the API key for a token at `auth/token`, and call with that.
    pub pjwt_auth_enabled: bool,
    /// Where the credential comes from.
    pub credential_default_source: String,
    /// Datums per `forward_backward` request.
    pub fwdbwd_max_chunk_len: u64,
    /// Estimated bytes per `forward_backward` request.
    pub fwdbwd_max_chunk_bytes_count: u64,
    /// Post the chunks of a call concurrently.
    pub parallel_fwdbwd_chunks: bool,
    /// Compress `forward_backward` bodies with zstd.
    pub proto_compress_fwdbwd: bool,
    /// Learn of finished samples through `retrieve_futures`.
    pub sample_use_retrieve_futures: bool,
    /// Run custom losses on the server.
    pub custom_loss_server_side: bool,
    /// Ask the server for clone numbers.
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

/// Answer of `client/dynamic_config`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClientDynamicConfigResponse {
    /// Seconds until the client polls again.
    pub refresh_interval_sec: u64,
    /// Send `cancel_future` for abandoned samples.
    pub sample_cancel_enabled: bool,
    /// Cancellations sent at once.
    pub sample_cancel_max_batch_size: u64,
}

impl Default for ClientDynamicConfigResponse {
    fn default() -> Self {
        Self { refresh_interval_sec: 300, sample_cancel_enabled: true, sample_cancel_max_batch_size: 64 }
    }
}

/// Answer of `healthz`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HealthResponse {
    /// `ok`, or what the server waits for.
    pub status: String,
}

/// Answer of `get_server_capabilities`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerCapabilities {
    /// The base models.
    pub supported_models: Vec<SupportedModel>,
}

/// A base model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SupportedModel {
    /// Its name.
    pub model_name: String,
    /// Most tokens of prompt and completion together.
    pub max_context_length: u64,
    /// Runs can be created on it.
    pub trainable: bool,
    /// It can be sampled.
    pub sampleable: bool,
}

/// Body of `telemetry`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TelemetryRequest {
    /// What happened; not stored.
    #[serde(default, deserialize_with = "lists::events")]
    #[schema(max_items = 16384)]
    pub events: Vec<serde_json::Value>,
    /// The client's platform.
    #[serde(default, deserialize_with = "json::or_default")]
    pub platform: String,
    /// The client's version.
    #[serde(default, deserialize_with = "json::or_default")]
    pub sdk_version: String,
    /// The session, or `sessionless-<uuid>`.
    #[serde(default, deserialize_with = "json::or_default")]
    pub session_id: String,
}

/// Answer of `telemetry`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TelemetryResponse {
    /// Always `accepted`.
    pub status: String,
}

impl TelemetryResponse {
    /// The one answer that clients take.
    pub fn accepted() -> Self {
        Self { status: "accepted".to_owned() }
    }
}

/// Body of every refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// What is wrong, naming the field.
    pub detail: String,
    /// The id of the HTTP request, as in the header `x-request-id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_request_id: Option<String>,
}
