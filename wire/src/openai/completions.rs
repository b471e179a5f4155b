//! `POST completions`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::super::json;
use super::super::sampling::LogitBias;
use super::shared::{StopStrings, StreamOptions, Usage};

/// Body of `completions`. Unknown fields are refused.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompletionRequest {
    /// A base model, a `tinker://` path of a sampler checkpoint, or `<base>;<path>`.
    pub model: String,
    /// What to complete.
    pub prompt: CompletionPrompt,
    /// Most tokens to sample; 16 when null. 0 is for `echo`.
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// Completions of each prompt.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 128)]
    pub n: Option<u32>,
    /// Refused unless it equals `n`.
    #[serde(default)]
    pub best_of: Option<u32>,
    /// Divides the logits; 0 is greedy, 1 when null.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f64>,
    /// Keep the smallest set whose probability reaches `p`.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f64>,
    /// Keep the `k` most likely; -1 and 0 are off.
    #[serde(default)]
    pub top_k: Option<i64>,
    /// Makes sampling repeatable.
    #[serde(default, deserialize_with = "json::seed")]
    #[schema(value_type = Option<i64>)]
    pub seed: Option<i128>,
    /// Ends a completion; not part of its text.
    #[serde(default)]
    pub stop: Option<StopStrings>,
    /// Log-probabilities of so many candidates per token, and of the token.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 20)]
    pub logprobs: Option<u32>,
    /// Return the prompt before the completion.
    #[serde(default, deserialize_with = "json::or_default")]
    pub echo: bool,
    /// Answer in server-sent events.
    #[serde(default, deserialize_with = "json::or_default")]
    pub stream: bool,
    /// Of a stream.
    #[serde(default)]
    pub stream_options: Option<StreamOptions>,
    /// Subtracted from the logits of tokens each time that the text holds them.
    #[serde(default)]
    #[schema(minimum = -2, maximum = 2)]
    pub frequency_penalty: Option<f64>,
    /// Subtracted from the logits of tokens that the text holds.
    #[serde(default)]
    #[schema(minimum = -2, maximum = 2)]
    pub presence_penalty: Option<f64>,
    /// Divides positive logits of tokens that prompt or text hold, and multiplies negative ones; 1 is off.
    #[serde(default)]
    #[schema(exclusive_minimum = 0, maximum = 100)]
    pub repetition_penalty: Option<f64>,
    /// Tokens less likely than this fraction of the most likely one are not sampled; 0 is off.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    pub min_p: Option<f64>,
    /// Added to the logits of tokens, by token id, each between -100 and 100.
    #[serde(default)]
    #[schema(value_type = Option<BTreeMap<String, f64>>)]
    pub logit_bias: Option<LogitBias>,
    /// Refused unless it is empty.
    #[serde(default)]
    pub suffix: Option<String>,
    /// Accepted and ignored.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub user: Option<Value>,
}

/// A text, texts, tokens, or lists of tokens.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string, a list of strings, a list of token ids or a list of such lists")]
pub enum CompletionPrompt {
    /// One text.
    Text(String),
    /// Several.
    Texts(Vec<String>),
    /// One list of token ids.
    Tokens(Vec<u32>),
    /// Several.
    TokenLists(Vec<Vec<u32>>),
}

/// Answer of `completions`, and each chunk of a stream.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CompletionResponse {
    /// Of the request.
    pub id: String,
    /// `text_completion`.
    pub object: String,
    /// Seconds since 1970.
    pub created: i64,
    /// As it was asked for.
    pub model: String,
    /// The completions of the first prompt, then those of the second, and so on.
    pub choices: Vec<CompletionChoice>,
    /// Tokens of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// One completion, or what a chunk adds to it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CompletionChoice {
    /// Its position.
    pub index: usize,
    /// Its text.
    pub text: String,
    /// Of its tokens, if they were asked for.
    pub logprobs: Option<CompletionLogprobs>,
    /// `stop` or `length`; null in chunks before its end.
    pub finish_reason: Option<String>,
}

/// Log-probabilities, token by token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CompletionLogprobs {
    /// The tokens' texts.
    pub tokens: Vec<String>,
    /// Null for the first token of a prompt.
    pub token_logprobs: Vec<Option<f64>>,
    /// The most likely candidates by their texts.
    pub top_logprobs: Vec<Option<BTreeMap<String, f64>>>,
    /// Characters before each token.
    pub text_offset: Vec<usize>,
}
