//! Arguments and results of sampling from logits.

use crate::sampling::SamplingRule;
use crate::tensors::Tensors;

/// Logits of all tokens, and the number of tokens that were computed together: log-sum-exps are combined from those of
/// such parts ([`LogSum::of`](crate::LogSum::of)), as `Backend::target_logprobs` does.
pub struct Logits<'a, B: Tensors> {
    /// Logits by row: `[_, vocabulary]`.
    pub rows: &'a B::Rows,
    /// Number of tokens of a part; the last one may have fewer.
    pub part: usize,
}

/// How to sample a token from a row of logits.
#[derive(Clone, Copy, Debug)]
pub struct TokenRequest<'a> {
    /// Index of the row in the logits.
    pub row: usize,
    /// Rule by which the token is sampled.
    pub rule: SamplingRule<'a>,
    /// Number of most likely tokens to report.
    pub report: usize,
}

/// A sampled token and its log-probabilities.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampledToken {
    /// Id of the token.
    pub token: u32,
    /// Log-probability at the request's temperature (at 1 when greedy), of the unchanged logits and before all cuts.
    pub logprob: f32,
    /// The most likely tokens with their log-probabilities, best first; fewer if the vocabulary is smaller.
    pub topk: Vec<(u32, f32)>,
}

/// Values to report about a row of logits.
#[derive(Clone, Debug, Default)]
pub struct ScoreRequest {
    /// Index of the row in the logits.
    pub row: usize,
    /// Tokens whose log-probabilities at temperature 1 are wanted.
    pub targets: Vec<u32>,
    /// Number of most likely tokens to report, at temperature 1.
    pub topk: usize,
    /// Independent samples at this temperature, one for each number in [0, 1).
    pub alternatives: Option<(f32, Vec<f64>)>,
}

/// Values that a [`ScoreRequest`] asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowScores {
    /// Log-probabilities of the targets.
    pub targets: Vec<f32>,
    /// Most likely tokens with their log-probabilities, best first.
    pub topk: Vec<(u32, f32)>,
    /// Sampled tokens with their log-probabilities at the temperature.
    pub alternatives: Vec<(u32, f32)>,
}
