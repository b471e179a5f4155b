//! Payloads: requests as they are stored until a worker executes them.
//!
//! `forward` and `forward_backward` are stored as their protobuf message (see [`crate::training`]); everything else is
//! a [`Payload`] in JSON. A payload is complete: seeds that the client left open are chosen before it is stored, so
//! that every execution gives the same bits.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use trainyard_protocol::{AdamParams, CheckpointKind, RunSpec, Sample, SessionId, TenantId, UploadedAdapter};

/// A stored request, other than a training pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// Creation of a run, for `create_model`.
    CreateModel {
        /// What the run trains.
        spec: RunSpec,
        /// Whether the server chose the seed in the spec.
        #[serde(rename = "seed_drawn")]
        server_seed: bool,
    },
    /// Load of a checkpoint, for `load_weights`.
    LoadWeights {
        /// Path of the checkpoint, `tinker://…`.
        path: String,
        /// Whether to restore the optimizer's state too.
        with_optimizer: bool,
        /// Spec of the run to create; `None` for an existing run.
        create: Option<RunSpec>,
        /// Tenant in whose name the checkpoint is read, if it is not the run's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reader: Option<TenantId>,
        /// Name of the run's base model in the checkpoint, if it differs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkpoint_base: Option<String>,
    },
    /// The first request of a run that checks an uploaded adapter.
    ImportAdapter {
        /// Folder of the upload's pieces in the storage.
        dir: PathBuf,
        /// Names of the pieces of each file.
        files: UploadedAdapter,
        /// Properties that the adapter must have.
        spec: RunSpec,
    },
    /// Step of the optimizer, for `optim_step`.
    OptimStep {
        /// Hyper-parameters of the step.
        params: AdamParams,
    },
    /// Save of a training checkpoint, for `save_weights`.
    SaveWeights(NamedSave),
    /// Save of a sampler checkpoint, for `save_weights_for_sampler` with a name.
    SaveWeightsForSampler(NamedSave),
    /// Sampler in memory, for `save_weights_for_sampler` without a name.
    EphemeralSampler {
        /// Session of the run.
        session: SessionId,
        /// Number of the sampling session within the session.
        sampling_session_seq_id: i64,
        /// Base model of the run.
        base_model: String,
        /// Whether later saves change the sampler.
        kind: EphemeralKind,
    },
    /// Save of an external checkpoint, for `save_weights_external`.
    SaveWeightsExternal(NamedSave),
    /// Completions of a prompt, for `asample`.
    Sample {
        /// The sample to compute.
        #[serde(flatten)]
        sample: Box<Sample>,
        /// Whether the server chose the seed.
        #[serde(rename = "seed_drawn")]
        server_seed: bool,
    },
}

/// A save under a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedSave {
    /// Name of the checkpoint, which was checked at submission.
    pub name: String,
    /// Whether to replace a checkpoint of that name.
    pub overwrite: bool,
    /// Seconds until the checkpoint is deleted.
    pub ttl_seconds: Option<i64>,
    /// Metadata to store with the checkpoint.
    pub user_metadata: BTreeMap<String, String>,
    /// What the run trains, for the catalogue.
    pub spec: RunSpec,
    /// Recipients (`age1…`) to encrypt the files to; empty for files that are not encrypted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub age_recipients: Vec<String>,
}

/// Whether later saves change an ephemeral sampler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EphemeralKind {
    /// A sampler that never changes.
    Snapshot,
    /// The run's one sampler that every save of this kind updates.
    Inflight,
}

/// A payload that can't be written or read.
#[derive(Debug, thiserror::Error)]
#[error("stored request: {0}")]
pub struct CodecError(#[from] serde_json::Error);

impl Payload {
    /// Returns the bytes to store.
    pub fn encode(&self) -> Result<Bytes, CodecError> {
        Ok(serde_json::to_vec(self)?.into())
    }

    /// Reads bytes that [`Payload::encode`] returned.
    pub fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        Ok(serde_json::from_slice(bytes)?)
    }

    /// Returns the kind of checkpoint that the request writes, if it writes one.
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

    /// Returns the bytes that a retry must repeat: the payload without what the server chose (seeds, the placement of adapters), and without
    /// the sampling session's number. Clients renew that number with every retry of an ephemeral save.
    pub fn identity(&self) -> Result<Bytes, CodecError> {
        let mut identity = self.clone();
        // The server chooses the placement on latents, which requests to older releases do not have.
        let spec = match &mut identity {
            Self::CreateModel { spec, .. } | Self::ImportAdapter { spec, .. } => Some(spec),
            Self::LoadWeights { create, .. } => create.as_mut(),
            _ => None,
        };
        if let Some(lora) = spec.and_then(|spec| spec.lora.as_mut()) {
            lora.latent_up = true;
        }
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
