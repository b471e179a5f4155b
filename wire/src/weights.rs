//! Saving and loading: `save_weights`, `save_weights_for_sampler`, `save_weights_external`, `load_weights`,
//! `weights_info`, and what the checkpoint routes take.

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

/// Body of `save_weights`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SaveWeightsRequest {
    /// The run.
    pub model_id: String,
    /// Its position in the run's order, from 1.
    #[schema(minimum = 1)]
    pub seq_id: i64,
    /// The checkpoint's bare name.
    pub path: String,
    /// Seconds until it is deleted; never when null.
    #[serde(default)]
    #[schema(minimum = 3600, maximum = 315_360_000)]
    pub ttl_seconds: Option<i64>,
    /// Replace a checkpoint of that name.
    #[serde(default, deserialize_with = "json::or_default")]
    pub overwrite: bool,
    /// Stored with the checkpoint.
    #[serde(default, deserialize_with = "bounds::metadata")]
    pub user_metadata: BTreeMap<String, String>,
}

impl SaveWeightsRequest {
    /// Checks the request and makes it what is stored; `spec` is the run's.
    pub fn payload(self, spec: RunSpec) -> Result<Payload, OpError> {
        let save = named(&self.path, self.ttl_seconds, self.overwrite, self.user_metadata, spec)?;
        Ok(Payload::SaveWeights(save))
    }
}

/// Body of `save_weights_for_sampler`: named with `path`, ephemeral with `sampling_session_seq_id`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SaveWeightsForSamplerRequest {
    /// The run.
    pub model_id: String,
    /// Its position in the run's order, from 1.
    #[schema(minimum = 1)]
    pub seq_id: i64,
    /// The checkpoint's bare name.
    #[serde(default)]
    pub path: Option<String>,
    /// Counts the session's sampling sessions.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub sampling_session_seq_id: Option<i64>,
    /// Whether later saves change it.
    #[serde(default, deserialize_with = "json::or_default")]
    pub kind: SamplerKind,
    /// Seconds until a named one is deleted; never when null.
    #[serde(default)]
    #[schema(minimum = 3600, maximum = 315_360_000)]
    pub ttl_seconds: Option<i64>,
    /// Stored with a named one.
    #[serde(default, deserialize_with = "bounds::metadata")]
    pub user_metadata: BTreeMap<String, String>,
}

/// Whether later saves change a sampler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SamplerKind {
    /// Frozen.
    #[default]
    Snapshot,
    /// Follows the run's later inflight saves.
    Inflight,
}

impl SaveWeightsForSamplerRequest {
    /// Checks the request and makes it what is stored; `session` and `spec` are the run's.
    pub fn payload(self, session: &SessionId, spec: RunSpec) -> Result<Payload, OpError> {
        match (self.path, self.sampling_session_seq_id) {
            (Some(path), None) => {
                if self.kind == SamplerKind::Inflight {
                    return Err(OpError::user("kind: \"inflight\" needs sampling_session_seq_id, not path"));
                }
                let save = named(&path, self.ttl_seconds, false, self.user_metadata, spec)?;
                Ok(Payload::SaveWeightsForSampler(save))
            }
            (None, Some(seq_id)) if seq_id < 0 => {
                Err(OpError::user(format!("sampling_session_seq_id: {seq_id} is negative")))
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
            (None, None) => Err(OpError::user("path: missing; give path or sampling_session_seq_id")),
            (Some(_), Some(_)) => Err(OpError::user("sampling_session_seq_id: given beside path; send one of them")),
        }
    }
}

/// Body of `save_weights_external`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SaveWeightsExternalRequest {
    /// The run.
    pub model_id: String,
    /// Its position in the run's order, from 1.
    #[schema(minimum = 1)]
    pub seq_id: i64,
    /// The checkpoint's bare name.
    pub path: String,
    /// Seconds until it is deleted; never when null.
    #[serde(default)]
    #[schema(minimum = 3600, maximum = 315_360_000)]
    pub ttl_seconds: Option<i64>,
    /// Recipients in the age format (`age1…`, at most 10), to whom each file is encrypted: it gets the suffix `.age`.
    #[serde(default, deserialize_with = "lists::age_encryption_recipients")]
    #[schema(max_items = 10)]
    pub age_encryption_recipients: Vec<String>,
}

impl SaveWeightsExternalRequest {
    /// Checks the request and makes it what is stored; `spec` is the run's.
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

/// Refuses a `ttl_seconds` outside its range; null never expires.
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
    /// `tinker://<run>/<segment>/<name>`.
    pub path: String,
}

/// Result of an ephemeral `save_weights_for_sampler`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EphemeralResult {
    /// Ready for `asample`.
    pub sampling_session_id: String,
}

/// Result of `save_weights_external`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExternalResult {
    /// `tinker://<run>/external_weights/<name>`.
    pub path: String,
    /// Bytes of all its files.
    pub size_bytes: u64,
}

/// Body of `load_weights`. Creates a run with `session_id` and `model_seq_id`; loads into an existing one with
/// `model_id` and `seq_id`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LoadWeightsRequest {
    /// The existing run.
    #[serde(default)]
    pub model_id: Option<String>,
    /// Its position in that run's order.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub seq_id: Option<i64>,
    /// The session of the new run.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Counts the session's models.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub model_seq_id: Option<i64>,
    /// That of the new run: the checkpoint's, or another name of the same weights.
    #[serde(default)]
    pub base_model: Option<String>,
    /// Stored with the new run.
    #[serde(default, deserialize_with = "bounds::metadata")]
    #[schema(value_type = Object)]
    pub user_metadata: Metadata,
    /// `tinker://<run>/weights/<name>`, or `tinker://<run>/external_weights/<name>` without its optimizer.
    pub path: String,
    /// Restore the optimizer's state too.
    pub optimizer: bool,
    /// The new run's optimizer when its state is not restored.
    #[serde(default, deserialize_with = "json::object_or_null")]
    pub optimizer_config: Option<OptimizerConfig>,
    /// A key of a tenant that may read the checkpoint, where the caller may not.
    #[serde(default)]
    pub weights_access_token: Option<String>,
}

/// The two forms of `load_weights`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadForm {
    /// Create a run.
    Create {
        /// Its session.
        session: SessionId,
        /// Its number.
        model_seq_id: i64,
    },
    /// Load into a run.
    Existing {
        /// The run.
        run: RunId,
        /// The request's position in the run's order.
        seq_id: i64,
    },
}

impl LoadWeightsRequest {
    /// Which form it is.
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

    /// The checkpoint; it must be a training checkpoint or an external one, of which the weights alone are loaded.
    pub fn checkpoint(&self) -> Result<TinkerPath, OpError> {
        let path: TinkerPath = self.path.parse().map_err(|error: OpError| OpError::user(format!("path: {error}")))?;
        match path.kind {
            CheckpointKind::Training => Ok(path),
            CheckpointKind::External if self.optimizer => {
                Err(OpError::user("optimizer: external checkpoints hold no optimizer state; load the weights alone"))
            }
            CheckpointKind::External => Ok(path),
            CheckpointKind::Sampler => Err(OpError::user(format!(
                "path: {:?} is no training checkpoint (weights/<name>) and no external one (external_weights/<name>)",
                self.path
            ))),
        }
    }

    /// Checks the request and makes it what is stored: `spec` is what a new run trains, `reader` in whose name the checkpoint
    /// is read, where that is not the run's tenant, and `checkpoint_base` the checkpoint's name for the base model, where
    /// that differs.
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

/// Result of `load_weights`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoadResult {
    /// The checkpoint.
    pub path: String,
    /// The run.
    pub model_id: String,
}

/// Body of `weights_info`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WeightsInfoRequest {
    /// The checkpoint.
    pub tinker_path: String,
}

/// Answer of `weights_info`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WeightsInfoResponse {
    /// Name of the base model.
    pub base_model: String,
    /// The optimizer family.
    pub optimizer_config: OptimizerConfig,
    /// Whether it is an adapter.
    pub is_lora: bool,
    /// The adapter's rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lora_rank: Option<u32>,
    /// The adapter covers the unembedding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train_unembed: Option<bool>,
    /// The adapter covers the MLP projections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train_mlp: Option<bool>,
    /// The adapter covers the attention projections.
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

/// Body of `…/ttl`. The field must be there; null removes the expiry.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TtlRequest {
    /// Seconds from now.
    #[serde(deserialize_with = "present")]
    #[schema(minimum = 3600, maximum = 315_360_000)]
    pub ttl_seconds: Option<i64>,
}

/// Reads an option whose field may be null but not absent.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Option::deserialize(deserializer)
}

/// Answer of `…/external_weights_urls`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExternalUrlsResponse {
    /// Self-authorising URLs by file name.
    pub urls: BTreeMap<String, String>,
    /// When they stop working, RFC 3339.
    #[schema(format = DateTime)]
    pub expires: String,
}

#[cfg(test)]
#[path = "weights_tests.rs"]
mod tests;
