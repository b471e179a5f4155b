//! Operations that the engine executes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{ModelHead, PreparedBatch, RunId, SampleOperation, SamplerSource};

/// What a run trains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// Name of the base model.
    pub base_model: String,
    /// The adapter; `None` trains all parameters.
    pub lora: Option<LoraSpec>,
    /// The optimizer family.
    pub optimizer: Optimizer,
    /// What is computed from the final hidden states.
    #[serde(default, skip_serializing_if = "ModelHead::is_unembedding")]
    pub head: ModelHead,
}

/// A LoRA adapter's shape and start: `W x + (alpha / rank) B A x`, alpha 32, A from the seed, B zero
/// (Hu et al. 2021, arXiv:2106.09685).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoraSpec {
    /// Rank, at least 1.
    pub rank: u32,
    /// Seed of A; chosen at submission when the client gave none, so that a replay repeats it.
    pub seed: u64,
    /// Adapt the unembedding (`lm_head`).
    pub train_unembed: bool,
    /// Adapt the MLP projections.
    pub train_mlp: bool,
    /// Adapt the attention projections.
    pub train_attn: bool,
}

/// An optimizer family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Optimizer {
    /// AdamW with decoupled weight decay (Loshchilov & Hutter 2019, arXiv:1711.05101).
    AdamW,
}

/// Computes a loss, and its gradient unless `forward_only`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForwardBackward {
    /// The run.
    pub run: RunId,
    /// Checked examples with their loss.
    pub batch: PreparedBatch,
    /// Leave the accumulated gradient alone.
    pub forward_only: bool,
}

/// AdamW hyper-parameters of one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdamParams {
    /// Step size.
    pub learning_rate: f64,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the denominator.
    pub eps: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Largest global gradient norm; none when it is not positive.
    pub grad_clip_norm: f64,
}

/// Where a save writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveTarget {
    /// The final folder. It is written under a temporary name beside it, synced and renamed.
    pub dir: PathBuf,
    /// Replace a folder that exists.
    pub overwrite: bool,
}

/// Saves weights, moments and step count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveState {
    /// The run.
    pub run: RunId,
    /// Where to.
    pub target: SaveTarget,
}

/// Freezes a run's weights for sampling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveSampler {
    /// The run.
    pub run: RunId,
    /// Key of an in-memory snapshot that [`SamplerSource::Snapshot`](crate::SamplerSource::Snapshot) names; replaces an older one.
    pub snapshot: Option<String>,
    /// A folder, for a named checkpoint.
    pub target: Option<SaveTarget>,
}

/// Exports a run's weights for download.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveExternal {
    /// The run.
    pub run: RunId,
    /// Where to.
    pub target: SaveTarget,
}

/// Saves the complete state of a run, its accumulated gradient included, so that another engine can restore it. Files are
/// written while other work goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveRun {
    /// The run.
    pub run: RunId,
    /// Where to.
    pub target: SaveTarget,
}

/// Restores a run as [`SaveRun`] saved it, bit for bit; replaces it when it exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RestoreRun {
    /// The run.
    pub run: RunId,
    /// What it trains; must agree with what was saved. The seed of the adapter's start may differ.
    pub spec: RunSpec,
    /// The folder that [`SaveRun`] wrote.
    pub dir: PathBuf,
}

/// Writes an in-memory sampler snapshot as a sampler checkpoint, while other work goes on. Sampling from it gives the
/// same bits. The snapshot stays until it is dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveSnapshot {
    /// The snapshot's key.
    pub key: String,
    /// Where to.
    pub target: SaveTarget,
}

/// Loads a training checkpoint into a run: a new one when `create` is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadState {
    /// The run.
    pub run: RunId,
    /// The checkpoint's folder.
    pub dir: PathBuf,
    /// Restore moments and step count too; otherwise they start afresh.
    pub with_optimizer: bool,
    /// Create the run with this spec; it must agree with the checkpoint.
    pub create: Option<RunSpec>,
    /// The name that the checkpoint has for the run's base model, where that differs.
    pub checkpoint_base: Option<String>,
    /// The folder holds an adapter that a client uploaded instead of a checkpoint.
    pub uploaded: Option<UploadedAdapter>,
}

/// The files of an uploaded adapter, each in pieces: names in the folder, whose contents one after the other are the file.
/// Nothing about their content is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadedAdapter {
    /// Of `adapter_config.json`.
    pub config: Vec<String>,
    /// Of `adapter_model.safetensors`.
    pub tensors: Vec<String>,
}

/// Everything the engine executes on behalf of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Operation {
    /// Creates a run.
    CreateRun {
        /// Its id.
        run: RunId,
        /// What it trains.
        spec: RunSpec,
    },
    /// See [`LoadState`].
    LoadState(LoadState),
    /// See [`ForwardBackward`].
    ForwardBackward(ForwardBackward),
    /// Applies and clears the accumulated gradient.
    OptimStep {
        /// The run.
        run: RunId,
        /// The step's hyper-parameters.
        params: AdamParams,
    },
    /// See [`SaveState`].
    SaveState(SaveState),
    /// See [`SaveSampler`].
    SaveSampler(SaveSampler),
    /// See [`SaveExternal`].
    SaveExternal(SaveExternal),
    /// See [`SaveRun`].
    SaveRun(SaveRun),
    /// See [`RestoreRun`].
    RestoreRun(RestoreRun),
    /// See [`SaveSnapshot`].
    SaveSnapshot(SaveSnapshot),
    /// See [`SampleOperation`].
    Sample(Box<SampleOperation>),
}

impl Operation {
    /// The run that it is about.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            Self::CreateRun { run, .. } | Self::OptimStep { run, .. } => Some(run),
            Self::LoadState(operation) => Some(&operation.run),
            Self::ForwardBackward(operation) => Some(&operation.run),
            Self::SaveState(operation) => Some(&operation.run),
            Self::SaveSampler(operation) => Some(&operation.run),
            Self::SaveExternal(operation) => Some(&operation.run),
            Self::SaveRun(operation) => Some(&operation.run),
            Self::RestoreRun(operation) => Some(&operation.run),
            Self::SaveSnapshot(_) | Self::Sample(_) => None,
        }
    }

    /// The folder that it reads: a checkpoint, a snapshot or an upload.
    pub fn folder_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::LoadState(operation) => Some(&mut operation.dir),
            Self::RestoreRun(operation) => Some(&mut operation.dir),
            Self::Sample(operation) => match &mut operation.source {
                SamplerSource::Checkpoint { dir, .. } => Some(dir),
                SamplerSource::Base { .. } | SamplerSource::Snapshot { .. } => None,
            },
            _ => None,
        }
    }
}
