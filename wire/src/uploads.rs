//! Uploads of adapters: `external_weights_upload_start`, `external_weights_upload_finish` and the files between them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trainyard_protocol::{ModelHead, OpError, Optimizer, RunSpec};
use utoipa::ToSchema;

use super::bounds;
use super::models::LoraConfig;

/// Request body of `external_weights_upload_start`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UploadStartRequest {
    /// Name of the base model that the adapter belongs to.
    pub base_model: String,
    /// Shape of the adapter: its rank, at least 1, and the projections that it adapts.
    pub lora_config: LoraConfig,
    /// Project of the checkpoint.
    #[serde(default, deserialize_with = "bounds::text")]
    pub destination_project_id: Option<String>,
}

impl UploadStartRequest {
    /// Returns the properties that the adapter must have.
    ///
    /// # Errors
    ///
    /// A user error that names the field at fault.
    pub fn spec(&self, random: impl FnOnce() -> u64) -> Result<RunSpec, OpError> {
        let lora = self.lora_config.spec(random)?;
        let lora = lora.ok_or_else(|| {
            OpError::user("lora_config.rank: expected at least 1, found 0; only adapters can be uploaded")
        })?;
        Ok(RunSpec {
            base_model: self.base_model.clone(),
            lora: Some(lora),
            optimizer: Optimizer::AdamW,
            head: ModelHead::Unembedding,
        })
    }
}

/// Response body of `external_weights_upload_start`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UploadStartResponse {
    /// Id of the upload.
    pub upload_id: String,
    /// URL for each file, by its name, to send the file to with `PUT`. The URLs contain their authorisation.
    pub urls: BTreeMap<String, String>,
    /// Time at which the URLs expire and the upload is deleted, in RFC 3339.
    #[schema(format = DateTime)]
    pub expires: String,
}

/// Request body of `external_weights_upload_finish`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UploadFinishRequest {
    /// Id of the upload.
    pub upload_id: String,
}

/// Response body of `external_weights_upload_finish`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UploadFinishResponse {
    /// Path of the checkpoint: `tinker://<run>/external_weights/<name>`.
    pub tinker_path: String,
}

/// Progress of the upload of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UploadedFileResponse {
    /// Number of bytes that have arrived, from the first one on; the next `PUT` may begin here.
    pub received_bytes: u64,
    /// Length of the file in bytes, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// Whether the whole file has arrived.
    pub complete: bool,
}
