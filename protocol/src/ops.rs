//! Operations that the engine executes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{LoraSpec, ModelHead, PreparedBatch, RunId, SampleOperation, SamplerSource};

/// Base model and parameters that a run trains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// Name of the base model.
    pub base_model: String,
    /// LoRA adapter to train; `None` trains all parameters.
    pub lora: Option<LoraSpec>,
    /// Optimizer of the run's steps.
    pub optimizer: Optimizer,
    /// Head that is computed from the final hidden states.
    #[serde(default, skip_serializing_if = "ModelHead::is_unembedding")]
    pub head: ModelHead,
}

/// Optimizer that applies gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Optimizer {
    /// AdamW with decoupled weight decay (Loshchilov & Hutter 2019, arXiv:1711.05101).
    AdamW,
}

/// Computes a loss, and its gradient unless `forward_only`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForwardBackward {
    /// Run whose parameters are used.
    pub run: RunId,
    /// Checked examples with their loss.
    pub batch: PreparedBatch,
    /// Whether the accumulated gradient stays unchanged.
    pub forward_only: bool,
}

/// AdamW hyper-parameters of one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdamParams {
    /// Step size of the update.
    pub learning_rate: f64,
    /// Decay rate of the first moment.
    pub beta1: f64,
    /// Decay rate of the second moment.
    pub beta2: f64,
    /// Constant that is added to the denominator.
    pub eps: f64,
    /// Coefficient of decoupled weight decay.
    pub weight_decay: f64,
    /// Largest global gradient norm; gradients are not clipped if it is not positive.
    pub grad_clip_norm: f64,
}

/// Destination of a save.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveTarget {
    /// Final folder. It is written under a temporary name beside it, synced and renamed.
    pub dir: PathBuf,
    /// Whether an existing folder is replaced.
    pub overwrite: bool,
}

/// Saves weights, moments and step count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveState {
    /// Run that is saved.
    pub run: RunId,
    /// Destination of the save.
    pub target: SaveTarget,
}

/// Freezes a run's weights for sampling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveSampler {
    /// Run whose weights are frozen.
    pub run: RunId,
    /// Key of an in-memory snapshot that [`SamplerSource::Snapshot`](crate::SamplerSource::Snapshot) names; replaces an
    /// older one.
    pub snapshot: Option<String>,
    /// Destination of a named checkpoint.
    pub target: Option<SaveTarget>,
}

/// Exports a run's weights for download.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveExternal {
    /// Run that is exported.
    pub run: RunId,
    /// Destination of the export.
    pub target: SaveTarget,
}

/// Saves the complete state of a run, its accumulated gradient included, so that another engine can restore it. Files are
/// written while other work goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveRun {
    /// Run that is saved.
    pub run: RunId,
    /// Destination of the save.
    pub target: SaveTarget,
}

/// Restores a run as [`SaveRun`] saved it, bit for bit; replaces it when it exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RestoreRun {
    /// Run that is restored.
    pub run: RunId,
    /// Base model and parameters of the run, which must agree with the saved ones. The seed of the adapter's start may
    /// differ.
    pub spec: RunSpec,
    /// The folder that [`SaveRun`] wrote.
    pub dir: PathBuf,
}

/// Writes an in-memory sampler snapshot as a sampler checkpoint, while other work goes on. Sampling from it gives the
/// same bits. The snapshot stays until it is dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveSnapshot {
    /// Key of the snapshot.
    pub key: String,
    /// Destination of the checkpoint.
    pub target: SaveTarget,
}

/// Loads a training checkpoint into a run: a new one when `create` is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadState {
    /// Run that receives the checkpoint.
    pub run: RunId,
    /// Folder of the checkpoint.
    pub dir: PathBuf,
    /// Whether moments and step count are restored; otherwise they start afresh.
    pub with_optimizer: bool,
    /// Description of the run to create; it must agree with the checkpoint.
    pub create: Option<RunSpec>,
    /// Name of the run's base model in the checkpoint, if it differs.
    pub checkpoint_base: Option<String>,
    /// Set if the folder contains an adapter that a client uploaded instead of a checkpoint.
    pub uploaded: Option<UploadedAdapter>,
}

/// Files of an uploaded adapter, each in pieces: names in the folder whose contents, one after the other, form the
/// file. Their content is unchecked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadedAdapter {
    /// Pieces of `adapter_config.json`, in order.
    pub config: Vec<String>,
    /// Pieces of `adapter_model.safetensors`, in order.
    pub tensors: Vec<String>,
}

/// Everything the engine executes on behalf of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Operation {
    /// Creates a training run.
    CreateRun {
        /// Id of the new run.
        run: RunId,
        /// Base model and parameters of the run.
        spec: RunSpec,
    },
    /// Loads a training checkpoint: [`LoadState`].
    LoadState(LoadState),
    /// Computes a loss and its gradient: [`ForwardBackward`].
    ForwardBackward(ForwardBackward),
    /// Applies and clears the accumulated gradient.
    OptimStep {
        /// Run whose parameters are updated.
        run: RunId,
        /// Hyper-parameters of the step.
        params: AdamParams,
    },
    /// Saves weights and optimizer state: [`SaveState`].
    SaveState(SaveState),
    /// Freezes weights for sampling: [`SaveSampler`].
    SaveSampler(SaveSampler),
    /// Exports weights for download: [`SaveExternal`].
    SaveExternal(SaveExternal),
    /// Saves the complete state of a run: [`SaveRun`].
    SaveRun(SaveRun),
    /// Restores a saved run: [`RestoreRun`].
    RestoreRun(RestoreRun),
    /// Writes an in-memory snapshot: [`SaveSnapshot`].
    SaveSnapshot(SaveSnapshot),
    /// Samples completions of a prompt: [`SampleOperation`].
    Sample(Box<SampleOperation>),
}

impl Operation {
    /// Returns the run that the operation reads or changes.
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

    /// Returns the folder that the operation writes, if it writes one.
    pub fn target(&self) -> Option<&SaveTarget> {
        match self {
            Self::SaveState(operation) => Some(&operation.target),
            Self::SaveSampler(operation) => operation.target.as_ref(),
            Self::SaveExternal(operation) => Some(&operation.target),
            Self::SaveRun(operation) => Some(&operation.target),
            Self::SaveSnapshot(operation) => Some(&operation.target),
            _ => None,
        }
    }

    /// Returns the folder that the operation reads: a checkpoint, a snapshot or an upload.
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
