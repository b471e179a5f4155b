//! What operations return.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Tensor;

/// What an operation returned.
#[derive(Clone, Debug, PartialEq)]
pub enum OpResult {
    /// A run exists now (`CreateRun`, `LoadState`, `RestoreRun`).
    RunReady,
    /// See [`ForwardBackwardResult`].
    ForwardBackward(ForwardBackwardResult),
    /// Metrics of an optimizer step.
    OptimStep {
        /// By name.
        metrics: BTreeMap<String, f64>,
    },
    /// A save has been written, synced and renamed; `None` when it lives in memory alone.
    Saved(Option<SavedFiles>),
    /// See [`SampleResult`].
    Sample(SampleResult),
}

/// A folder that a save wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedFiles {
    /// The folder.
    pub dir: PathBuf,
    /// Bytes of all its files.
    pub size_bytes: u64,
}

/// Loss values of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct ForwardBackwardResult {
    /// One per datum, in request order.
    pub outputs: Vec<DatumOutput>,
    /// Keys `name:reduction`; always holds `loss:sum`.
    pub metrics: BTreeMap<String, f64>,
}

/// Per-token values of a datum.
#[derive(Clone, Debug, PartialEq)]
pub struct DatumOutput {
    /// Shape of `target_tokens`: `[N]` or `[N, K]`.
    pub shape: Vec<usize>,
    /// Log-probabilities of the targets at temperature 1.
    pub logprobs: Vec<f32>,
    /// Each target's term of the loss; empty for a custom loss.
    pub elementwise_loss: Vec<f32>,
}

/// Why a sequence ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopReason {
    /// An end token or a stop matched.
    Stop,
    /// `max_tokens` or the context limit.
    Length,
}

/// One completion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampledSequence {
    /// Why it ended.
    pub stop_reason: StopReason,
    /// Tokens with the stop token, at least one.
    pub tokens: Vec<u32>,
    /// Log-probabilities of the temperature-scaled distribution, one per token.
    pub logprobs: Vec<f32>,
    /// Candidates per token.
    pub topk: Option<TopkLogprobs>,
}

/// Most likely candidates per position, most likely first. An absent row or trailing candidate holds
/// token 0 with log-probability -99999.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopkLogprobs {
    /// Candidates per row.
    pub k: usize,
    /// `[rows, k]`.
    pub token_ids: Vec<u32>,
    /// `[rows, k]`.
    pub logprobs: Vec<f32>,
}

/// Independently sampled tokens per prompt position, `[len - 1, k]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptAltTokens {
    /// Samples per position.
    pub k: usize,
    /// Token ids.
    pub tokens: Vec<u32>,
    /// Their log-probabilities, of the temperature-scaled distribution.
    pub logprobs: Vec<f32>,
}

/// What a sample returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleResult {
    /// In the order of the request's sequence ids.
    pub sequences: Vec<SampledSequence>,
    /// Length of the prompt; entry 0 and entries that were not asked for are NaN.
    pub prompt_logprobs: Option<Vec<f32>>,
    /// Length of the prompt; row 0 and rows that were not asked for are absent.
    pub topk_prompt_logprobs: Option<TopkLogprobs>,
    /// Shape of the request's `target_prompt_logprobs`; skipped cells are 0.
    pub target_prompt_logprobs: Option<Tensor>,
    /// See [`PromptAltTokens`].
    pub prompt_alt_tokens: Option<PromptAltTokens>,
    /// Prompt tokens served from the prefix cache.
    pub prompt_cache_hit_tokens: u32,
}
