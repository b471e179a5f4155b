//! Request body of `POST responses`.

use std::collections::BTreeMap;

use minijinja::Value as Ordered;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::super::json::{self, Metadata};
use super::super::lists;
use super::responses_input::ResponsesInput;
use super::responses_text::TextConfig;

/// Request body of `responses`. Unknown fields are refused. A known field that is not supported is refused unless it has
/// no effect.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResponsesRequest {
    /// A base model, a `tinker://` path of a sampler checkpoint, or `<base>;<path>`.
    pub model: String,
    /// The conversation so far: a text of the user, or a list of items.
    #[serde(deserialize_with = "lists::input")]
    pub input: ResponsesInput,
    /// A system message before the conversation.
    #[serde(default)]
    pub instructions: Option<String>,
    /// Maximum number of tokens to sample; by default, up to the context limit.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub max_output_tokens: Option<u32>,
    /// Divisor of the logits, 1 by default; 0 decodes greedily.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f64>,
    /// Samples only from the smallest set of tokens whose total probability reaches this value; 1 (the default) turns
    /// this off.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f64>,
    /// Samples only from this many most likely tokens; -1 and 0 turn this off. An extension of the API.
    #[serde(default)]
    pub top_k: Option<i64>,
    /// Seed that makes sampling repeatable. An extension of the API.
    #[serde(default, deserialize_with = "json::seed")]
    #[schema(value_type = Option<i64>)]
    pub seed: Option<i128>,
    /// Further variables for the model's chat template. An extension of the API.
    #[serde(default, deserialize_with = "lists::chat_template_kwargs")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub chat_template_kwargs: Option<BTreeMap<String, Ordered>>,
    /// Whether to return the ids of the prompt's tokens and of those that were sampled, so that a trainer need not encode
    /// texts again. An extension of the API.
    #[serde(default, deserialize_with = "json::or_default")]
    pub return_token_ids: bool,
    /// Functions that the model may call: `{"type": "function", "name": …, "parameters": …}`. Other types are refused.
    #[serde(default, deserialize_with = "lists::tools")]
    #[schema(value_type = Option<Vec<BTreeMap<String, Value>>>, max_items = 1024)]
    pub tools: Option<Vec<Ordered>>,
    /// Whether the model calls tools: `auto` (the default), `none`, `required`, or the one that it must call:
    /// `{"type": "function", "name": …}`. The arguments of required calls follow the tool's schema.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub tool_choice: Option<Value>,
    /// Whether there may be several calls; false requires a `tool_choice` that requires a call, if there are tools.
    #[serde(default)]
    pub parallel_tool_calls: Option<bool>,
    /// Form of the reply's text.
    #[serde(default)]
    pub text: Option<TextConfig>,
    /// How the model thinks before it answers.
    #[serde(default)]
    pub reasoning: Option<ReasoningConfig>,
    /// Whether to respond with server-sent events.
    #[serde(default, deserialize_with = "json::or_default")]
    pub stream: bool,
    /// Options that apply only to streams.
    #[serde(default)]
    pub stream_options: Option<ResponsesStreamOptions>,
    /// Accepted with any value: responses are not stored. Agent sessions record turns in any case.
    #[serde(default)]
    pub store: Option<bool>,
    /// Repeated in the response; it has no other effect.
    #[serde(default, deserialize_with = "lists::response_metadata")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub metadata: Metadata,
    /// Refused, because responses are not stored: send the whole conversation.
    #[serde(default)]
    pub previous_response_id: Option<String>,
    /// Refused, because conversations are not stored: send the whole conversation.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub conversation: Option<Value>,
    /// Refused if true: background responses are not supported.
    #[serde(default)]
    pub background: Option<bool>,
    /// Refused: prompts are not stored.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub prompt: Option<Value>,
    /// Refused: the server does not shorten conversations.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub context_management: Option<Value>,
    /// Refused: replies are not moderated.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub moderation: Option<Value>,
    /// Refused unless it is `disabled`: the server does not shorten conversations.
    #[serde(default)]
    pub truncation: Option<String>,
    /// Additions to the response. `reasoning.encrypted_content` has no effect, because thoughts are returned in the clear;
    /// others are refused.
    #[serde(default, deserialize_with = "lists::include")]
    #[schema(max_items = 16)]
    pub include: Option<Vec<String>>,
    /// Refused unless it is 0: responses have no log-probabilities.
    #[serde(default)]
    pub top_logprobs: Option<u32>,
    /// Accepted, but has no effect: it counts calls of tools that the server runs.
    #[serde(default)]
    pub max_tool_calls: Option<u32>,
    /// Refused unless it is `auto` or `default`.
    #[serde(default)]
    pub service_tier: Option<String>,
    /// Accepted, but has no effect.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub user: Option<Value>,
    /// Accepted, but has no effect.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub safety_identifier: Option<Value>,
    /// Accepted, but has no effect.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub prompt_cache_key: Option<Value>,
    /// Accepted, but has no effect: prompts are always cached.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub prompt_cache_retention: Option<Value>,
    /// Accepted, but has no effect: prompts are always cached.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub prompt_cache_options: Option<Value>,
}

/// How the model thinks before it answers.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReasoningConfig {
    /// A preset such as `low`, or a number, if the model's chat template supports it.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub effort: Option<Value>,
    /// Accepted, but has no effect: thoughts are returned as they are, without a summary.
    #[serde(default)]
    pub summary: Option<String>,
    /// Older name of `summary`.
    #[serde(default)]
    pub generate_summary: Option<String>,
}

/// Options that apply only to streams of responses.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResponsesStreamOptions {
    /// Accepted, but ignored: streams are not padded.
    #[schema(nullable)]
    pub include_obfuscation: Option<bool>,
}
