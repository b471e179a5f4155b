//! Saving and loading of weights: `save_weights`, `save_weights_for_sampler`, `save_weights_external`, `load_weights`,
//! `weights_info`, and bodies of the checkpoint routes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trainyard_age as age;
use trainyard_protocol::limits::{MAX_TTL_SECONDS, MIN_TTL_SECONDS};
use trainyard_protocol::{CheckpointKind, CheckpointName, OpError, RunId, RunSpec, SessionId, TenantId, TinkerPath};
use utoipa::ToSchema;

use super::bounds;
use super::json::{self, Metadata};
use super::lists;
use super::models::OptimizerConfig;
use crate::payload::{EphemeralKind, NamedSave, Payload};

/// Request body of `save_weights`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SaveWeightsRequest {
    /// Id of the run.
    pub model_id: String,
    /// Position in the run's order, from 1.
    #[schema(minimum = 1)]
    pub seq_id: i64,
    /// Name of the checkpoint, without a folder.
    pub path: String,
    /// Seconds until the checkpoint is deleted; by default it is kept.
    #[serde(default)]
    #[schema(minimum = 3600, maximum = 315_360_000)]
    pub ttl_seconds: Option<i64>,
    /// Whether to replace a checkpoint of that name.
    #[serde(default, deserialize_with = "json::or_default")]
    pub overwrite: bool,
    /// Metadata to store with the checkpoint.
    #[serde(default, deserialize_with = "bounds::metadata")]
    pub user_metadata: BTreeMap<String, String>,
}

impl SaveWeightsRequest {
    /// Checks the request and returns the payload to store; `spec` is the run's.
    pub fn payload(self, spec: RunSpec) -> Result<Payload, OpError> {
        let save = named(&self.path, self.ttl_seconds, self.overwrite, self.user_metadata, spec)?;
        Ok(Payload::SaveWeights(save))
    }
}

/// Request body of `save_weights_for_sampler`. A save with `path` has a name; a save with `sampling_session_seq_id` is
/// ephemeral.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SaveWeightsForSamplerRequest {
    /// Id of the run.
    pub model_id: String,
    /// Position in the run's order, from 1.
    #[schema(minimum = 1)]
    pub seq_id: i64,
    /// Name of the checkpoint, without a folder.
    #[serde(default)]
    pub path: Option<String>,
    /// Number of the sampling session within the session.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub sampling_session_seq_id: Option<i64>,
    /// Whether later saves change an ephemeral sampler.
    #[serde(default, deserialize_with = "json::or_default")]
    pub kind: SamplerKind,
    /// Seconds until a checkpoint with a name is deleted; by default it is kept.
    #[serde(default)]
    #[schema(minimum = 3600, maximum = 315_360_000)]
    pub ttl_seconds: Option<i64>,
    /// Metadata to store with a checkpoint that has a name.
    #[serde(default, deserialize_with = "bounds::metadata")]
    pub user_metadata: BTreeMap<String, String>,
}

/// Whether later saves change a sampler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SamplerKind {
    /// A sampler that never changes.
    #[default]
    Snapshot,
    /// A sampler that follows the run's later saves of this kind.
    Inflight,
}

impl SaveWeightsForSamplerRequest {
    /// Checks the request and returns the payload to store; `session` and `spec` are the run's.
    pub fn payload(self, session: &SessionId, spec: RunSpec) -> Result<Payload, OpError> {
        match (self.path, self.sampling_session_seq_id) {
            (Some(path), None) => {
                if self.kind == SamplerKind::Inflight {
                    return Err(OpError::user("kind: \"inflight\" requires sampling_session_seq_id instead of path"));
                }
                let save = named(&path, self.ttl_seconds, false, self.user_metadata, spec)?;
                Ok(Payload::SaveWeightsForSampler(save))
            }
            (None, Some(seq_id)) if seq_id < 0 => {
                Err(OpError::user(format!("sampling_session_seq_id: expected a number from 0, found {seq_id}")))
            }
            (None, Some(seq_id)) => Ok(Payload::EphemeralSampler {
                session: session.clone(),
                sampling_session_seq_id: seq_id,
                base_model: spec.base_model,
                kind: match self.kind {
                    SamplerKind::Snapshot => EphemeralKind::Snapshot,
                    SamplerKind::Inflight => EphemeralKind::Inflight,
                },
            }),
            (None, None) => Err(OpError::user("path: missing; set path or sampling_session_seq_id")),
            (Some(_), Some(_)) => {
                Err(OpError::user("sampling_session_seq_id: set together with path; set only one of them"))
            }
        }
    }
}

/// Request body of `save_weights_external`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SaveWeightsExternalRequest {
    /// Id of the run.
    pub model_id: String,
    /// Position in the run's order, from 1.
    #[schema(minimum = 1)]
    pub seq_id: i64,
    /// Name of the checkpoint, without a folder.
    pub path: String,
    /// Seconds until the checkpoint is deleted; by default it is kept.
    #[serde(default)]
    #[schema(minimum = 3600, maximum = 315_360_000)]
    pub ttl_seconds: Option<i64>,
    /// Recipients (`age1…`, at most 10) to encrypt each file to, in the age format. The names of encrypted files end in
    /// `.age`.
    #[serde(default, deserialize_with = "lists::age_encryption_recipients")]
    #[schema(max_items = 10)]
    pub age_encryption_recipients: Vec<String>,
}

impl SaveWeightsExternalRequest {
    /// Checks the request and returns the payload to store; `spec` is the run's.
    pub fn payload(self, spec: RunSpec) -> Result<Payload, OpError> {
        age::recipients(&self.age_encryption_recipients)?;
        let save = named(&self.path, self.ttl_seconds, false, BTreeMap::new(), spec)?;
        let age_recipients = self.age_encryption_recipients;
        Ok(Payload::SaveWeightsExternal(NamedSave { age_recipients, ..save }))
    }
}

fn named(
    path: &str,
    ttl_seconds: Option<i64>,
    overwrite: bool,
    user_metadata: BTreeMap<String, String>,
    spec: RunSpec,
) -> Result<NamedSave, OpError> {
    let name: CheckpointName = path.parse().map_err(|error: OpError| OpError::user(format!("path: {error}")))?;
    check_ttl(ttl_seconds)?;
    let age_recipients = Vec::new();
    Ok(NamedSave { name: name.to_string(), overwrite, ttl_seconds, user_metadata, spec, age_recipients })
}

/// Refuses a `ttl_seconds` outside its range; null stands for a checkpoint that is kept.
pub fn check_ttl(ttl_seconds: Option<i64>) -> Result<(), OpError> {
    match ttl_seconds {
        Some(ttl) if !(MIN_TTL_SECONDS..=MAX_TTL_SECONDS).contains(&ttl) => {
            Err(OpError::user(format!("ttl_seconds: {ttl} is not between {MIN_TTL_SECONDS} and {MAX_TTL_SECONDS}")))
        }
        _ => Ok(()),
    }
}

/// Result of `save_weights` and of a named `save_weights_for_sampler`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SavedResult {
    /// Path of the checkpoint: `tinker://<run>/<segment>/<name>`.
    pub path: String,
}

/// Result of an ephemeral `save_weights_for_sampler`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EphemeralResult {
    /// Id of the sampling session, which is ready for `asample`.
    pub sampling_session_id: String,
}

/// Result of `save_weights_external`, which `retrieve_future` returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExternalResult {
    /// Path of the checkpoint: `tinker://<run>/external_weights/<name>`.
    pub path: String,
    /// Size of all its files, in bytes.
    pub size_bytes: u64,
}

/// Request body of `load_weights`. With `session_id` and `model_seq_id`, it creates a run; with `model_id` and
/// `seq_id`, it loads into an existing run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LoadWeightsRequest {
    /// Id of the existing run.
    #[serde(default)]
    pub model_id: Option<String>,
    /// Position in the existing run's order.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub seq_id: Option<i64>,
    /// Session of the new run.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Number of the new run's model within the session.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub model_seq_id: Option<i64>,
    /// Base model of the new run: the checkpoint's, or another name of the same weights.
    #[serde(default)]
    pub base_model: Option<String>,
    /// Metadata to store with the new run.
    #[serde(default, deserialize_with = "bounds::metadata")]
    #[schema(value_type = Object)]
    pub user_metadata: Metadata,
    /// Path of the checkpoint: `tinker://<run>/weights/<name>`, or `tinker://<run>/external_weights/<name>` without its
    /// optimizer.
    pub path: String,
    /// Whether to restore the optimizer's state too.
    pub optimizer: bool,
    /// Optimizer of the new run if the state is not restored.
    #[serde(default, deserialize_with = "json::object_or_null")]
    pub optimizer_config: Option<OptimizerConfig>,
    /// A key of a tenant that may read the checkpoint, if the caller may not.
    #[serde(default)]
    pub weights_access_token: Option<String>,
}

/// The two forms of `load_weights`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadForm {
    /// Creates a run with the checkpoint's weights.
    Create {
        /// Session of the new run.
        session: SessionId,
        /// Number of the run's model within the session.
        model_seq_id: i64,
    },
    /// Loads the weights into an existing run.
    Existing {
        /// Id of the run.
        run: RunId,
        /// Position of the request in the run's order.
        seq_id: i64,
    },
}

impl LoadWeightsRequest {
    /// Returns the form of the request.
    pub fn form(&self) -> Result<LoadForm, OpError> {
        match (&self.session_id, self.model_seq_id, &self.model_id, self.seq_id) {
            (Some(session), Some(model_seq_id), None, None) => {
                Ok(LoadForm::Create { session: SessionId::new(session.clone()), model_seq_id })
            }
            (None, None, Some(run), Some(seq_id)) => Ok(LoadForm::Existing { run: RunId::new(run.clone()), seq_id }),
            _ => Err(OpError::user(
                "load_weights takes session_id and model_seq_id (to create a model) or model_id and seq_id \
                 (to load into one), not a mixture",
            )),
        }
    }

    /// Returns the checkpoint. It must be a training checkpoint, or an external one if only its weights are loaded.
    pub fn checkpoint(&self) -> Result<TinkerPath, OpError> {
        let path: TinkerPath = self.path.parse().map_err(|error: OpError| OpError::user(format!("path: {error}")))?;
        match path.kind {
            CheckpointKind::Training => Ok(path),
            CheckpointKind::External if self.optimizer => {
                Err(OpError::user("optimizer: external checkpoints contain no optimizer state; load only the weights"))
            }
            CheckpointKind::External => Ok(path),
            CheckpointKind::Sampler => Err(OpError::user(format!(
                "path: expected a training checkpoint (weights/<name>) or an external one (external_weights/<name>), found {:?}",
                self.path
            ))),
        }
    }

    /// Checks the request and returns the payload to store. `spec` is what a new run trains. `reader` is the tenant in
    /// whose name the checkpoint is read, if it is not the run's. `checkpoint_base` is the checkpoint's name for the
    /// base model, if it differs.
    pub fn payload(
        &self,
        spec: &RunSpec,
        reader: Option<TenantId>,
        checkpoint_base: Option<String>,
    ) -> Result<Payload, OpError> {
        let path = self.checkpoint()?;
        if let Some(config) = &self.optimizer_config {
            config.optimizer()?;
        }
        let create = matches!(self.form()?, LoadForm::Create { .. }).then(|| spec.clone());
        let path = path.to_string();
        Ok(Payload::LoadWeights { path, with_optimizer: self.optimizer, create, reader, checkpoint_base })
    }
}

/// Result of `load_weights`, which `retrieve_future` returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoadResult {
    /// Path of the checkpoint.
    pub path: String,
    /// Id of the run.
    pub model_id: String,
}

/// Request body of `weights_info`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WeightsInfoRequest {
    /// Path of the checkpoint.
    pub tinker_path: String,
}

/// Response body of `weights_info`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WeightsInfoResponse {
    /// Name of the base model.
    pub base_model: String,
    /// Optimizer family of the checkpoint's run.
    pub optimizer_config: OptimizerConfig,
    /// Whether the checkpoint is an adapter.
    pub is_lora: bool,
    /// Rank of the adapter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lora_rank: Option<u32>,
    /// Whether the adapter covers the unembedding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train_unembed: Option<bool>,
    /// Whether the adapter covers the MLP projections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train_mlp: Option<bool>,
    /// Whether the adapter covers the attention projections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train_attn: Option<bool>,
}

impl From<&RunSpec> for WeightsInfoResponse {
    fn from(spec: &RunSpec) -> Self {
        let lora = spec.lora.as_ref();
        Self {
            base_model: spec.base_model.clone(),
            optimizer_config: spec.optimizer.into(),
            is_lora: lora.is_some(),
            lora_rank: lora.map(|lora| lora.rank),
            train_unembed: lora.map(|lora| lora.train_unembed),
            train_mlp: lora.map(|lora| lora.train_mlp),
            train_attn: lora.map(|lora| lora.train_attn),
        }
    }
}

/// Request body of `…/ttl`. The field is required; null removes the expiry.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TtlRequest {
    /// Seconds from now until the checkpoint is deleted.
    #[serde(deserialize_with = "present")]
    #[schema(minimum = 3600, maximum = 315_360_000)]
    pub ttl_seconds: Option<i64>,
}

/// Reads an option whose field may be null but must be present.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Option::deserialize(deserializer)
}

/// Response body of `…/external_weights_urls`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExternalUrlsResponse {
    /// URLs by file name, which contain their authorisation.
    pub urls: BTreeMap<String, String>,
    /// Time at which the URLs expire, in RFC 3339.
    #[schema(format = DateTime)]
    pub expires: String,
}

#[cfg(test)]
#[path = "weights_tests.rs"]
mod tests;
