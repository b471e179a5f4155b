//! Results of training and sampling.

use std::collections::BTreeMap;

use crate::data::Tensor;

/// Result of `forward` and `forward_backward`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TrainingOutput {
    /// Values `logprobs` and `elementwise_loss` of each datum, in the request's order, `entropies` if a datum has
    /// `entropy_weights`, and `kl` if one has `kl_weights`.
    pub loss_fn_outputs: Vec<BTreeMap<String, Tensor>>,
    /// Metrics by `name:reduction`, such as `loss:sum`.
    pub metrics: BTreeMap<String, f64>,
}

impl TrainingOutput {
    /// Returns the sum of the loss over all data, or NaN if the result does not contain it.
    pub fn loss(&self) -> f64 {
        self.metrics.get("loss:sum").copied().unwrap_or(f64::NAN)
    }
}

/// Result of an `optim_step`.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[non_exhaustive]
pub struct OptimOutput {
    /// Values by metric name.
    #[serde(default)]
    pub metrics: BTreeMap<String, f64>,
}

/// Up to k pairs of token id and log-probability for each position, or `None` for a position without candidates.
pub type Candidates = Vec<Option<Vec<(i32, f32)>>>;

/// Reason why a completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// An end token or a stop was reached.
    Stop,
    /// `max_tokens` or the context's limit was reached.
    Length,
}

/// One completion of a prompt.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SampledSequence {
    /// Ids of the sampled tokens.
    pub tokens: Vec<i32>,
    /// Reason why the completion ended.
    pub stop_reason: StopReason,
    /// Log-probabilities, one per token.
    pub logprobs: Option<Vec<f32>>,
    /// Candidates per token, if `topk_sample_logprobs` is set.
    pub topk_logprobs: Option<Candidates>,
}

/// Result of a `sample`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SampleOutput {
    /// Completions, as many as were asked for.
    pub sequences: Vec<SampledSequence>,
    /// Log-probabilities, one per prompt token; `None` for a token without one.
    pub prompt_logprobs: Option<Vec<Option<f32>>>,
    /// Candidates per prompt token, if `topk_prompt_logprobs` is set.
    pub topk_prompt_logprobs: Option<Candidates>,
    /// Number of prompt tokens found in the prefix cache.
    pub prompt_cache_hit_tokens: u32,
}
