//! What training and sampling return.

use std::collections::BTreeMap;

use crate::data::Tensor;

/// Result of `forward` and `forward_backward`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TrainingOutput {
    /// `logprobs` and `elementwise_loss` of each datum, in the request's order.
    pub loss_fn_outputs: Vec<BTreeMap<String, Tensor>>,
    /// Keys `name:reduction`, such as `loss:sum`.
    pub metrics: BTreeMap<String, f64>,
}

impl TrainingOutput {
    /// The sum of the loss over all data; not a number if the server does not say.
    pub fn loss(&self) -> f64 {
        self.metrics.get("loss:sum").copied().unwrap_or(f64::NAN)
    }
}

/// Result of `optim_step`.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[non_exhaustive]
pub struct OptimOutput {
    /// By name.
    #[serde(default)]
    pub metrics: BTreeMap<String, f64>,
}

/// For each position up to k pairs of token id and log-probability, or `None` where there are none.
pub type Candidates = Vec<Option<Vec<(i32, f32)>>>;

/// Why a completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// An end token or a stop matched.
    Stop,
    /// `max_tokens` or the context's limit.
    Length,
}

/// One completion.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SampledSequence {
    /// Token ids.
    pub tokens: Vec<i32>,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// One per token.
    pub logprobs: Option<Vec<f32>>,
    /// With `topk_sample_logprobs`.
    pub topk_logprobs: Option<Candidates>,
}

/// Result of `sample`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SampleOutput {
    /// As many as were asked for.
    pub sequences: Vec<SampledSequence>,
    /// One per prompt token, `None` where there is none.
    pub prompt_logprobs: Option<Vec<Option<f32>>>,
    /// With `topk_prompt_logprobs`.
    pub topk_prompt_logprobs: Option<Candidates>,
    /// Prompt tokens that were not computed again.
    pub prompt_cache_hit_tokens: u32,
}
