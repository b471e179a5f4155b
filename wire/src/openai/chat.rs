//! `POST chat/completions`: its body.

use std::collections::BTreeMap;

use minijinja::Value as Ordered;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::super::sampling::LogitBias;
use super::super::{json, lists};
use super::shared::{StopStrings, StreamOptions};

/// Body of `chat/completions`. Unknown fields are refused; what is known and not supported is refused unless it has no
/// effect.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatRequest {
    /// A base model, a `tinker://` path of a sampler checkpoint, or `<base>;<path>`.
    pub model: String,
    /// The conversation so far.
    #[serde(deserialize_with = "lists::messages")]
    #[schema(min_items = 1, max_items = 16384)]
    pub messages: Vec<ChatMessage>,
    /// Most tokens to sample; up to the context limit when null.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub max_tokens: Option<u32>,
    /// The newer name of `max_tokens`.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub max_completion_tokens: Option<u32>,
    /// How many replies.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 128)]
    pub n: Option<u32>,
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
    /// Ends a reply; not part of its text.
    #[serde(default)]
    pub stop: Option<StopStrings>,
    /// Return the log-probabilities of the tokens.
    #[serde(default, deserialize_with = "json::or_default")]
    pub logprobs: bool,
    /// Candidates per token.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 20)]
    pub top_logprobs: Option<u32>,
    /// Answer in server-sent events.
    #[serde(default, deserialize_with = "json::or_default")]
    pub stream: bool,
    /// Of a stream.
    #[serde(default)]
    pub stream_options: Option<StreamOptions>,
    /// Functions that the model may call: `{"type": "function", "function": {"name": …, "parameters": …}}`.
    #[serde(default, deserialize_with = "lists::tools")]
    #[schema(value_type = Option<Vec<BTreeMap<String, Value>>>, max_items = 1024)]
    pub tools: Option<Vec<Ordered>>,
    /// `auto` or `none`.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub tool_choice: Option<Value>,
    /// Refused when it is false and there are tools.
    #[serde(default)]
    pub parallel_tool_calls: Option<bool>,
    /// A preset such as `low`, or a number, for models whose template has it.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub reasoning_effort: Option<Value>,
    /// Further variables of the model's chat template.
    #[serde(default)]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub chat_template_kwargs: Option<BTreeMap<String, Ordered>>,
    /// `text`, `json_object` or `json_schema`; the latter two not with tools.
    #[serde(default)]
    pub response_format: Option<ResponseFormat>,
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
    /// Refused unless it is `["text"]`.
    #[serde(default, deserialize_with = "lists::modalities")]
    #[schema(max_items = 16)]
    pub modalities: Option<Vec<String>>,
    /// Refused: there is no audio.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub audio: Option<Value>,
    /// Refused: nothing is predicted.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub prediction: Option<Value>,
    /// Refused: there is no search.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub web_search_options: Option<Value>,
    /// Refused: use `tools`.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub functions: Option<Value>,
    /// Refused: use `tool_choice`.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub function_call: Option<Value>,
    /// Refused unless it is `medium`.
    #[serde(default)]
    pub verbosity: Option<String>,
    /// Refused when true: replies are not stored.
    #[serde(default)]
    pub store: Option<bool>,
    /// Refused unless it is `auto` or `default`.
    #[serde(default)]
    pub service_tier: Option<String>,
    /// Accepted and ignored.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub metadata: Option<Value>,
    /// Accepted and ignored.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub user: Option<Value>,
    /// Accepted and ignored.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub safety_identifier: Option<Value>,
    /// Accepted and ignored.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub prompt_cache_key: Option<Value>,
}

/// A message of a conversation.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatMessage {
    /// `system`, `developer`, `user`, `assistant` or `tool`.
    pub role: String,
    /// What it says.
    #[serde(default)]
    pub content: Option<ChatContent>,
    /// Of the speaker.
    #[serde(default)]
    pub name: Option<String>,
    /// What the assistant thought.
    #[serde(default)]
    pub reasoning_content: Option<String>,
    /// Tools that the assistant called.
    #[serde(default, deserialize_with = "lists::tool_calls")]
    #[schema(max_items = 1024)]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// The call that a message of a tool answers.
    #[serde(default)]
    pub tool_call_id: Option<String>,
    /// Taken as the content when there is none.
    #[serde(default)]
    pub refusal: Option<String>,
    /// Refused unless it is null.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub audio: Option<Value>,
    /// Refused unless it is null.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub function_call: Option<Value>,
    /// Accepted and ignored.
    #[serde(default, deserialize_with = "lists::annotations")]
    #[schema(value_type = Option<Vec<Value>>)]
    pub annotations: Option<Vec<Value>>,
}

/// A text, or parts that are texts.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or a list of parts with a type")]
pub enum ChatContent {
    /// One text.
    Text(String),
    /// Several.
    Parts(Vec<ContentPart>),
}

/// A part of a message; other types than `text` are refused.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ContentPart {
    /// `text`, `json_object` or `json_schema`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Of a `text`.
    #[serde(default)]
    pub text: Option<String>,
}

/// A call of a tool.
#[derive(Clone, Debug, serde::Serialize, Deserialize, ToSchema)]
pub struct ToolCall {
    /// Names the call.
    pub id: String,
    /// `function`.
    #[serde(rename = "type", default = "function")]
    pub kind: String,
    /// What is called.
    pub function: FunctionCall,
    /// Its position, in chunks of a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
}

fn function() -> String {
    "function".to_owned()
}

/// A function with its arguments.
#[derive(Clone, Debug, serde::Serialize, Deserialize, ToSchema)]
pub struct FunctionCall {
    /// Its name.
    pub name: String,
    /// A JSON object, as text.
    pub arguments: String,
}

/// The form of a reply.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResponseFormat {
    /// `text`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Of the type `json_schema`: its `name` and its `schema`.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub json_schema: Option<Ordered>,
}
