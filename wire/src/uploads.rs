//! `external_weights_upload_start`, `external_weights_upload_finish` and the files between them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trainyard_protocol::{ModelHead, OpError, Optimizer, RunSpec};
use utoipa::ToSchema;

use super::bounds;
use super::models::LoraConfig;

/// Body of `external_weights_upload_start`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UploadStartRequest {
    /// Name of the base model that the adapter is for.
    pub base_model: String,
    /// What the adapter is: its rank, at least 1, and what it adapts.
    pub lora_config: LoraConfig,
    /// The project of the checkpoint.
    #[serde(default, deserialize_with = "bounds::text")]
    pub destination_project_id: Option<String>,
}

impl UploadStartRequest {
    /// What the adapter has to be.
    ///
    /// # Errors
    /// The client's, by field.
    pub fn spec(&self, random: impl FnOnce() -> u64) -> Result<RunSpec, OpError> {
        let lora = self.lora_config.spec(random)?;
        let lora =
            lora.ok_or_else(|| OpError::user("lora_config.rank: 0 is no adapter; only adapters are uploaded"))?;
        Ok(RunSpec {
            base_model: self.base_model.clone(),
            lora: Some(lora),
            optimizer: Optimizer::AdamW,
            head: ModelHead::Unembedding,
        })
    }
}

/// Answer of `external_weights_upload_start`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UploadStartResponse {
    /// Names the upload when it is finished.
    pub upload_id: String,
    /// Where each file is sent with PUT, by its name. The URLs are their own authorisation.
    pub urls: BTreeMap<String, String>,
    /// When the URLs stop working and the upload is deleted, RFC 3339.
    #[schema(format = DateTime)]
    pub expires: String,
}

/// Body of `external_weights_upload_finish`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UploadFinishRequest {
    /// The upload.
    pub upload_id: String,
}

/// Answer of `external_weights_upload_finish`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UploadFinishResponse {
    /// The checkpoint, `tinker://<run>/external_weights/<name>`.
    pub tinker_path: String,
}

/// How much of a file has arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UploadedFileResponse {
    /// Bytes from the first one on; the next PUT may begin here.
    pub received_bytes: u64,
    /// Of the whole file, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// Whether all of it arrived.
    pub complete: bool,
}
