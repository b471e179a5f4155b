//! Request and response bodies of `POST completions`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use trainyard_protocol::SamplingControls;
use utoipa::ToSchema;

use super::super::json;
use super::super::sampling::LogitBias;
use super::shared::{StopStrings, StreamOptions, Usage};

/// Request body of `completions`. Unknown fields are refused.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompletionRequest {
    /// A base model, a `tinker://` path of a sampler checkpoint, or `<base>;<path>`.
    pub model: String,
    /// Text or tokens to complete.
    pub prompt: CompletionPrompt,
    /// Maximum number of tokens to sample, 16 by default. 0 is allowed with `echo`.
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// Number of completions for each prompt, 1 by default.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 128)]
    pub n: Option<u32>,
    /// Refused unless equal to `n`.
    #[serde(default)]
    pub best_of: Option<u32>,
    /// Divisor of the logits, 1 by default; 0 decodes greedily.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f64>,
    /// Samples only from the smallest set of tokens whose total probability reaches this value; 1 (the default) turns
    /// this off.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f64>,
    /// Samples only from this many most likely tokens; -1 and 0 turn this off.
    #[serde(default)]
    pub top_k: Option<i64>,
    /// Seed that makes sampling repeatable.
    #[serde(default, deserialize_with = "json::seed")]
    #[schema(value_type = Option<i64>)]
    pub seed: Option<i128>,
    /// Texts that end a completion. The one that is found is not part of the completion.
    #[serde(default)]
    pub stop: Option<StopStrings>,
    /// Returns the log-probability of each token and of this many candidates for it.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 20)]
    pub logprobs: Option<u32>,
    /// Whether to return the ids of the prompt's tokens and of those that were sampled, so that a trainer need not encode
    /// texts again.
    #[serde(default, deserialize_with = "json::or_default")]
    pub return_token_ids: bool,
    /// Whether to return the prompt before the completion.
    #[serde(default, deserialize_with = "json::or_default")]
    pub echo: bool,
    /// Whether to respond with server-sent events.
    #[serde(default, deserialize_with = "json::or_default")]
    pub stream: bool,
    /// Options that apply only to streams.
    #[serde(default)]
    pub stream_options: Option<StreamOptions>,
    /// Subtracted from a token's logit for each time that the token occurs in the completion.
    #[serde(default)]
    #[schema(minimum = -2, maximum = 2)]
    pub frequency_penalty: Option<f64>,
    /// Subtracted from a token's logit if the token occurs in the completion.
    #[serde(default)]
    #[schema(minimum = -2, maximum = 2)]
    pub presence_penalty: Option<f64>,
    /// Divides positive logits, and multiplies negative ones, of tokens in the prompt or the completion; 1 turns this
    /// off.
    #[serde(default)]
    #[schema(exclusive_minimum = 0, maximum = 100)]
    pub repetition_penalty: Option<f64>,
    /// Excludes tokens that are less likely than this fraction of the most likely one; 0 turns this off.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    pub min_p: Option<f64>,
    /// Values between -100 and 100 that are added to the logits of tokens, by token id.
    #[serde(default)]
    #[schema(value_type = Option<BTreeMap<String, f64>>)]
    pub logit_bias: Option<LogitBias>,
    /// Refused unless it is empty.
    #[serde(default)]
    pub suffix: Option<String>,
    /// Accepted, but has no effect.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub user: Option<Value>,
}

impl CompletionRequest {
    /// The controls that the request sets. Their ranges are not checked.
    pub fn controls(&self) -> SamplingControls {
        let off = SamplingControls::default();
        let or = |value: Option<f64>, off: f32| value.map_or(off, |value| value as f32);
        SamplingControls {
            min_p: or(self.min_p, off.min_p),
            presence_penalty: or(self.presence_penalty, off.presence_penalty),
            frequency_penalty: or(self.frequency_penalty, off.frequency_penalty),
            repetition_penalty: or(self.repetition_penalty, off.repetition_penalty),
            logit_bias: self.logit_bias.as_ref().map(LogitBias::to_vec).unwrap_or_default(),
            json_schema: None,
            call_marks: None,
        }
    }
}

/// Prompts of a request: a text, a list of texts, a list of token ids, or a list of such lists.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string, a list of strings, a list of token ids or a list of such lists")]
pub enum CompletionPrompt {
    /// A single text, as a string.
    Text(String),
    /// A list of texts.
    Texts(Vec<String>),
    /// A single list of token ids.
    Tokens(Vec<u32>),
    /// Several lists of token ids.
    TokenLists(Vec<Vec<u32>>),
}

/// Response body of `completions`, and each chunk of a stream.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CompletionResponse {
    /// Id of the request.
    pub id: String,
    /// Always the text `text_completion`.
    pub object: String,
    /// Time of the request, in seconds since 1970.
    pub created: i64,
    /// The `model` of the request.
    pub model: String,
    /// Completions of the first prompt, then those of the second, and so on.
    pub choices: Vec<CompletionChoice>,
    /// Numbers of tokens in the request and its completions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// A completion, or the part that a chunk adds to it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CompletionChoice {
    /// Position of the completion among the choices.
    pub index: usize,
    /// Text of the completion.
    pub text: String,
    /// Log-probabilities of the tokens, if `logprobs` was set.
    pub logprobs: Option<CompletionLogprobs>,
    /// Why the completion ended: `stop` or `length`; null in chunks before the end.
    pub finish_reason: Option<String>,
    /// Tokens of the prompt, if `return_token_ids` was set; only in the first chunk of a completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_token_ids: Option<Vec<u32>>,
    /// Sampled tokens with the one that ended the completion, if `return_token_ids` was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_ids: Option<Vec<u32>>,
}

/// Log-probabilities, token by token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CompletionLogprobs {
    /// Texts of the tokens.
    pub tokens: Vec<String>,
    /// Log-probabilities of the tokens; null for the first token of a prompt.
    pub token_logprobs: Vec<Option<f64>>,
    /// Most likely candidates at each position: their texts and log-probabilities.
    pub top_logprobs: Vec<Option<BTreeMap<String, f64>>>,
    /// Number of characters before each token.
    pub text_offset: Vec<usize>,
}
