//! What is stored of a request until the worker executes it.
//!
//! `forward` and `forward_backward` are stored as their protobuf message (see [`crate::wire::training`]);
//! everything else is a [`Payload`] in JSON. A payload is complete: seeds that the client left open are drawn
//! before it is stored, so that executing it again gives the same bits.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use trainyard_protocol::limits::scored_tokens;
use trainyard_protocol::{AdamParams, CheckpointKind, RequestId, RunId, RunSpec, SessionId, Stop, TinkerPath};
use trainyard_scheduler::RequestKind;

use crate::wire::tensor::TensorData;

/// A stored request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// `create_model`.
    CreateModel {
        /// What the run trains.
        spec: RunSpec,
        /// The spec's seed is the server's, not the client's.
        seed_drawn: bool,
    },
    /// `load_weights`.
    LoadWeights {
        /// The checkpoint, `tinker://…`.
        path: String,
        /// Restore the optimizer's state too.
        with_optimizer: bool,
        /// Create the run with this spec.
        create: Option<RunSpec>,
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
    Sample(Box<SamplePayload>),
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
    /// Kept with the checkpoint.
    pub user_metadata: BTreeMap<String, String>,
    /// What the run trains, for the catalogue.
    pub spec: RunSpec,
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

/// A sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplePayload {
    /// Prompt token ids.
    pub prompt: Vec<i64>,
    /// Completions to draw.
    pub num_samples: u32,
    /// Most tokens to draw.
    pub max_tokens: Option<u32>,
    /// In `[0, 2^63)`.
    pub seed: u64,
    /// The seed is the server's, not the client's.
    pub seed_drawn: bool,
    /// When to end early.
    pub stop: Stop,
    /// Divides the logits.
    pub temperature: f32,
    /// Keep the `k` most likely.
    pub top_k: Option<u32>,
    /// Keep the smallest set whose probability reaches `p`.
    pub top_p: f32,
    /// Return the prompt's log-probabilities.
    pub prompt_logprobs: bool,
    /// Only the last `n` prompt positions.
    pub prompt_logprobs_last_n: Option<u32>,
    /// Candidates per prompt position.
    pub topk_prompt_logprobs: u32,
    /// Candidates per sampled token.
    pub topk_sample_logprobs: u32,
    /// Token ids to score, in the request's layout.
    pub target_prompt_logprobs: Option<TensorData>,
    /// Independent draws per prompt position.
    pub prompt_alt_tokens_k: u32,
}

impl SamplePayload {
    /// What it costs at most: its prompt with the targets scored in it, and all that it may draw on a model of this
    /// context length.
    pub fn tokens(&self, max_context_length: usize) -> u64 {
        let prompt = self.prompt.len() as u64;
        let room = (max_context_length as u64).saturating_sub(prompt);
        let each = self.max_tokens.map_or(room, u64::from);
        let targets = self.target_prompt_logprobs.as_ref().map_or(0, TensorData::columns);
        scored_tokens(prompt, targets).saturating_add(each.saturating_mul(u64::from(self.num_samples)))
    }
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
            | Self::OptimStep { .. }
            | Self::EphemeralSampler { .. }
            | Self::Sample(_) => None,
        }
    }

    /// The bytes that a retry must repeat: the payload without what the server drew and without the sampling
    /// session's number, which the client renews with every retry of an ephemeral save.
    pub fn identity(&self) -> Result<Bytes, CodecError> {
        let mut identity = self.clone();
        match &mut identity {
            Self::CreateModel { spec, seed_drawn: true } => {
                if let Some(lora) = &mut spec.lora {
                    lora.seed = 0;
                }
            }
            Self::Sample(sample) if sample.seed_drawn => sample.seed = 0,
            Self::EphemeralSampler { sampling_session_seq_id, .. } => *sampling_session_seq_id = 0,
            _ => {}
        }
        identity.encode()
    }
}

/// A folder for a save, relative to the storage: `checkpoints/<run>/<segment>/<name>.<request>-<attempt>`. Each
/// attempt has one of its own, so nothing that is saved is ever written over.
pub fn checkpoint_location(path: &TinkerPath, request: &RequestId, attempt: u64) -> PathBuf {
    let folder = format!("{}.{}-{attempt:016x}", path.name, folder_name(request.as_str()));
    [CHECKPOINTS, &folder_name(path.run.as_str()), path.kind.segment(), &folder].iter().collect()
}

/// Where the storage has what recovery needs of a run. Every attempt to save has a folder of its own.
pub fn snapshot_location(run: &RunId, kind: RequestKind, attempt: u64) -> PathBuf {
    ["snapshots", &folder_name(run.as_str()), &format!("{}-{attempt:016x}", kind.as_str())].iter().collect()
}

/// The folder of all checkpoints in the storage.
const CHECKPOINTS: &str = "checkpoints";

/// An id as a folder: every character that is unsafe in a file name is written as `%` and its bytes in hexadecimal.
fn folder_name(id: &str) -> String {
    let mut name = String::with_capacity(id.len());
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02x}"));
        }
    }
    name
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
