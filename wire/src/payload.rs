//! What is stored of a request until the worker executes it.
//!
//! `forward` and `forward_backward` are stored as their protobuf message (see [`crate::training`]);
//! everything else is a [`Payload`] in JSON. A payload is complete: seeds that the client left open are chosen
//! before it is stored, so that executing it again gives the same bits.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use trainyard_protocol::{AdamParams, CheckpointKind, RunSpec, Sample, SessionId, TenantId, UploadedAdapter};

/// A stored request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// `create_model`.
    CreateModel {
        /// What the run trains.
        spec: RunSpec,
        /// The spec's seed is the server's, not the client's.
        #[serde(rename = "seed_drawn")]
        server_seed: bool,
    },
    /// `load_weights`.
    LoadWeights {
        /// The checkpoint, `tinker://…`.
        path: String,
        /// Restore the optimizer's state too.
        with_optimizer: bool,
        /// Create the run with this spec.
        create: Option<RunSpec>,
        /// In whose name the checkpoint is read, where that is not the run's tenant.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reader: Option<TenantId>,
        /// The name that the checkpoint has for the run's base model, where that differs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkpoint_base: Option<String>,
    },
    /// The first request of the run that checks an upload.
    ImportAdapter {
        /// The folder of its pieces in the storage.
        dir: PathBuf,
        /// The pieces.
        files: UploadedAdapter,
        /// What the adapter has to be.
        spec: RunSpec,
    },
    /// `optim_step`.
    OptimStep {
        /// The step's hyper-parameters.
        params: AdamParams,
    },
    /// `save_weights`.
    SaveWeights(NamedSave),
    /// Named `save_weights_for_sampler`.
    SaveWeightsForSampler(NamedSave),
    /// Ephemeral `save_weights_for_sampler`.
    EphemeralSampler {
        /// The run's session.
        session: SessionId,
        /// Counts the session's sampling sessions.
        sampling_session_seq_id: i64,
        /// The run's base model.
        base_model: String,
        /// Whether later saves change it.
        kind: EphemeralKind,
    },
    /// `save_weights_external`.
    SaveWeightsExternal(NamedSave),
    /// `asample`.
    Sample {
        /// What to sample.
        #[serde(flatten)]
        sample: Box<Sample>,
        /// The seed is the server's, not the client's.
        #[serde(rename = "seed_drawn")]
        server_seed: bool,
    },
}

/// A save under a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedSave {
    /// The checkpoint's name, checked at submission.
    pub name: String,
    /// Replace a checkpoint of that name.
    pub overwrite: bool,
    /// Seconds until it is deleted.
    pub ttl_seconds: Option<i64>,
    /// Stored with the checkpoint.
    pub user_metadata: BTreeMap<String, String>,
    /// What the run trains, for the catalogue.
    pub spec: RunSpec,
    /// To whom the files are encrypted, `age1…`; nobody when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub age_recipients: Vec<String>,
}

/// Whether later saves change an ephemeral sampler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EphemeralKind {
    /// Frozen.
    Snapshot,
    /// One sampler per run, which each such save updates.
    Inflight,
}

/// A payload that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[error("stored request: {0}")]
pub struct CodecError(#[from] serde_json::Error);

impl Payload {
    /// The bytes to store.
    pub fn encode(&self) -> Result<Bytes, CodecError> {
        Ok(serde_json::to_vec(self)?.into())
    }

    /// Reads what [`Payload::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        Ok(serde_json::from_slice(bytes)?)
    }

    /// The kind of the checkpoint that it writes, if it does.
    pub fn stores(&self) -> Option<CheckpointKind> {
        match self {
            Self::SaveWeights(_) => Some(CheckpointKind::Training),
            Self::SaveWeightsForSampler(_) => Some(CheckpointKind::Sampler),
            Self::SaveWeightsExternal(_) => Some(CheckpointKind::External),
            Self::CreateModel { .. }
            | Self::LoadWeights { .. }
            | Self::ImportAdapter { .. }
            | Self::OptimStep { .. }
            | Self::EphemeralSampler { .. }
            | Self::Sample { .. } => None,
        }
    }

    /// The bytes that a retry must repeat: the payload without the seeds that the server chose and without the sampling
    /// session's number, which the client renews with every retry of an ephemeral save.
    pub fn identity(&self) -> Result<Bytes, CodecError> {
        let mut identity = self.clone();
        match &mut identity {
            Self::CreateModel { spec, server_seed: true } => {
                if let Some(lora) = &mut spec.lora {
                    lora.seed = 0;
                }
            }
            Self::Sample { sample, server_seed: true } => sample.params.seed = 0,
            Self::EphemeralSampler { sampling_session_seq_id, .. } => *sampling_session_seq_id = 0,
            _ => {}
        }
        identity.encode()
    }
}

#[cfg(test)]
#[path = "payload_tests.rs"]
mod tests;
