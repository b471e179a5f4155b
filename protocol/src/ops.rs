//! Operations that the engine executes.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{RunId, SamplingSessionId, Tensor};

/// What a run trains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// Name of the base model.
    pub base_model: String,
    /// The adapter; `None` trains all parameters.
    pub lora: Option<LoraSpec>,
    /// The optimizer family.
    pub optimizer: Optimizer,
}

/// A LoRA adapter's shape and start: `W x + (alpha / rank) B A x`, alpha 32, A from the seed, B zero
/// (Hu et al. 2021, arXiv:2106.09685).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoraSpec {
    /// Rank, at least 1.
    pub rank: u32,
    /// Seed of A; drawn at submission when the client gave none, so that a replay repeats it.
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

/// One training example: row `i` of every per-token input belongs to input position `i`.
#[derive(Clone, Debug, PartialEq)]
pub struct Datum {
    /// Input token ids, unchecked against the vocabulary.
    pub tokens: Vec<i64>,
    /// Inputs of the loss function by name.
    pub loss_fn_inputs: BTreeMap<String, Tensor>,
}

/// A setting of a loss function.
#[derive(Clone, Debug, PartialEq)]
pub enum LossConfigValue {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

/// Settings of a loss function by name.
pub type LossConfig = BTreeMap<String, LossConfigValue>;

/// Computes a loss, and its gradient unless `forward_only`.
#[derive(Clone, Debug, PartialEq)]
pub struct ForwardBackward {
    /// The run.
    pub run: RunId,
    /// Examples, at least one.
    pub data: Vec<Datum>,
    /// Name of the loss function.
    pub loss_fn: String,
    /// Its settings.
    pub loss_fn_config: LossConfig,
    /// Leave the accumulated gradient alone.
    pub forward_only: bool,
    /// What the engine made of the examples ahead; `data` is empty then.
    pub ahead: Ahead,
}

/// What an engine made of an operation before its turn, on another thread: a value of the engine's own type.
#[derive(Clone, Default)]
pub struct Ahead(Option<Arc<dyn Any + Send + Sync>>);

impl Ahead {
    /// Keeps a value.
    pub fn new<T: Any + Send + Sync>(value: T) -> Self {
        Self(Some(Arc::new(value)))
    }

    /// The value, if there is one of this type.
    pub fn get<T: Any + Send + Sync>(self) -> Option<Arc<T>> {
        self.0?.downcast().ok()
    }
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Ahead" } else { "None" })
    }
}

/// Whether both are the same value.
impl PartialEq for Ahead {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        }
    }
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveTarget {
    /// The final folder. It is written under a temporary name beside it, synced and renamed.
    pub dir: PathBuf,
    /// Replace a folder that exists.
    pub overwrite: bool,
}

/// Saves weights, moments and step count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveState {
    /// The run.
    pub run: RunId,
    /// Where to.
    pub target: SaveTarget,
}

/// Freezes a run's weights for sampling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveSampler {
    /// The run.
    pub run: RunId,
    /// Key of an in-memory snapshot that [`SamplerSource::Snapshot`] names; replaces an older one.
    pub snapshot: Option<String>,
    /// A folder, for a named checkpoint.
    pub target: Option<SaveTarget>,
}

/// Exports a run's weights for download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveExternal {
    /// The run.
    pub run: RunId,
    /// Where to.
    pub target: SaveTarget,
}

/// Saves everything that a run is, its accumulated gradient included, so that it can go on elsewhere. Files are written
/// while other work goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveRun {
    /// The run.
    pub run: RunId,
    /// Where to.
    pub target: SaveTarget,
}

/// Makes a run what it was when [`SaveRun`] saved it, bit for bit; replaces it when it exists.
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveSnapshot {
    /// The snapshot's key.
    pub key: String,
    /// Where to.
    pub target: SaveTarget,
}

/// Loads a training checkpoint into a run: a new one when `create` is given.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadState {
    /// The run.
    pub run: RunId,
    /// The checkpoint's folder.
    pub dir: PathBuf,
    /// Restore moments and step count too; otherwise they start afresh.
    pub with_optimizer: bool,
    /// Create the run with this spec; it must agree with the checkpoint.
    pub create: Option<RunSpec>,
}

/// Which weights a sample uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SamplerSource {
    /// A base model as loaded.
    Base {
        /// Its name.
        model: String,
    },
    /// A sampler checkpoint on disk.
    Checkpoint {
        /// Its base model.
        base_model: String,
        /// Its folder.
        dir: PathBuf,
    },
    /// An in-memory snapshot made by [`SaveSampler`].
    Snapshot {
        /// Its key.
        key: String,
    },
}

/// When a sample ends, apart from `max_tokens`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stop {
    /// At the model's end tokens.
    Default,
    /// Never.
    Nothing,
    /// At the model's end tokens, or once the decoded text contains one of these.
    Strings(Vec<String>),
    /// At the model's end tokens or one of these.
    Tokens(Vec<i64>),
}

/// How tokens are drawn. Order: temperature, then top-k, then top-p.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingParams {
    /// Most tokens to draw; up to the context limit when `None`.
    pub max_tokens: Option<u32>,
    /// Sample `i` draws from the stream (seed, i).
    pub seed: u64,
    /// When to end early.
    pub stop: Stop,
    /// Divides the logits; 0 is greedy.
    pub temperature: f32,
    /// Keep the `k` most likely; off when `None`.
    pub top_k: Option<u32>,
    /// Keep the smallest set whose probability reaches `p`; 1 is off.
    pub top_p: f32,
}

/// Draws completions of a prompt and computes log-probabilities.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The sampling session, for logs and prefix caching.
    pub sampling_session: SamplingSessionId,
    /// Which weights.
    pub source: SamplerSource,
    /// Prompt token ids, unchecked against the vocabulary.
    pub prompt: Vec<i64>,
    /// How many completions.
    pub num_samples: u32,
    /// How to draw.
    pub params: SamplingParams,
    /// Return the prompt's log-probabilities (temperature 1).
    pub prompt_logprobs: bool,
    /// Only for the last `n` prompt positions.
    pub prompt_logprobs_last_n: Option<u32>,
    /// Most likely candidates per prompt position; 0 is off.
    pub topk_prompt_logprobs: u32,
    /// Most likely candidates per sampled token; 0 is off.
    pub topk_sample_logprobs: u32,
    /// Token ids `[len(prompt) - 1, K]` whose log-probabilities to return; -1 skips a cell.
    pub target_prompt_logprobs: Option<Tensor>,
    /// Independent draws per prompt position at the request's temperature; 0 is off.
    pub prompt_alt_tokens_k: u32,
}

/// Everything the engine executes on behalf of a request.
#[derive(Clone, Debug, PartialEq)]
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
    /// See [`Sample`].
    Sample(Box<Sample>),
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
}
