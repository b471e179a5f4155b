//! Results that operations return.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Tensor;

/// Result of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum OpResult {
    /// A run exists (`CreateRun`, `LoadState`, `RestoreRun`).
    RunReady,
    /// Loss values of a training pass: [`ForwardBackwardResult`].
    ForwardBackward(ForwardBackwardResult),
    /// Metrics of an optimizer step.
    OptimStep {
        /// Values by metric name.
        metrics: BTreeMap<String, f64>,
    },
    /// A save has been written, synced and renamed; `None` if it exists only in memory.
    Saved(Option<SavedFiles>),
    /// Completions and log-probabilities of a sample: [`SampleResult`].
    Sample(SampleResult),
}

/// A folder that a save wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedFiles {
    /// Folder that was written.
    pub dir: PathBuf,
    /// Total size of its files in bytes.
    pub size_bytes: u64,
}

/// Loss values of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct ForwardBackwardResult {
    /// Values of each datum, in request order.
    pub outputs: Vec<DatumOutput>,
    /// Metrics by `name:reduction`; `loss:sum` is always present.
    pub metrics: BTreeMap<String, f64>,
}

/// Values of a datum's targets.
#[derive(Clone, Debug, PartialEq)]
pub struct DatumOutput {
    /// Shape of `target_tokens`: `[N]` or `[N, K]`.
    pub shape: Vec<usize>,
    /// Log-probabilities of the targets at temperature 1.
    pub logprobs: Vec<f32>,
    /// Term of each target in the loss; empty for a custom loss.
    pub elementwise_loss: Vec<f32>,
    /// Entropy in nats at each position, `[N]`, for a datum with `entropy_weights`.
    pub entropies: Option<Vec<f32>>,
    /// Kullback-Leibler divergence in nats from the base model at each position, `[N]`, for a datum with `kl_weights`.
    pub kl: Option<Vec<f32>>,
}

/// Reason why a sequence ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopReason {
    /// An end token or a stop was reached.
    Stop,
    /// `max_tokens` or the context limit was reached.
    Length,
}

/// One completion of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampledSequence {
    /// Reason why the sequence ended.
    pub stop_reason: StopReason,
    /// Token ids with the stop token, at least one.
    pub tokens: Vec<u32>,
    /// Log-probabilities of the temperature-scaled distribution, one per token.
    pub logprobs: Vec<f32>,
    /// Most likely candidates of each token.
    pub topk: Option<TopkLogprobs>,
}

/// Most likely candidates per position, most likely first. An absent row or trailing candidate is token 0 with
/// log-probability -99999.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopkLogprobs {
    /// Number of candidates per row.
    pub k: usize,
    /// Token ids, `[rows, k]`.
    pub token_ids: Vec<u32>,
    /// Log-probabilities of the candidates, `[rows, k]`.
    pub logprobs: Vec<f32>,
}

/// Independently sampled tokens per prompt position, `[len - 1, k]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptAltTokens {
    /// Number of samples per position.
    pub k: usize,
    /// Token ids, position by position.
    pub tokens: Vec<u32>,
    /// Log-probabilities of the temperature-scaled distribution, one per token.
    pub logprobs: Vec<f32>,
}

/// Result of a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleResult {
    /// Completions in the order of the request's sequence ids.
    pub sequences: Vec<SampledSequence>,
    /// Log-probabilities of the prompt's tokens. Entry 0, those of images, and entries that were not asked for are NaN.
    pub prompt_logprobs: Option<Vec<f32>>,
    /// Candidates for the prompt's tokens. Row 0 and rows that were not asked for are absent.
    pub topk_prompt_logprobs: Option<TopkLogprobs>,
    /// Log-probabilities of the request's `target_prompt_logprobs`, in their shape; skipped cells are 0.
    pub target_prompt_logprobs: Option<Tensor>,
    /// Tokens sampled in place of the prompt's: [`PromptAltTokens`].
    pub prompt_alt_tokens: Option<PromptAltTokens>,
    /// Number of prompt tokens served from the prefix cache.
    pub prompt_cache_hit_tokens: u32,
}
