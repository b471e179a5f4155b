//! Request body of `POST chat/completions`.

use std::collections::BTreeMap;

use minijinja::Value as Ordered;
use serde::Deserialize;
use serde_json::Value;
use trainyard_protocol::SamplingControls;
use utoipa::ToSchema;

use super::super::lists::TextOrParts;
use super::super::sampling::LogitBias;
use super::super::{json, lists};
use super::shared::{StopStrings, StreamOptions};

/// Request body of `chat/completions`. Unknown fields are refused. A known field that is not supported is refused
/// unless it has no effect.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatRequest {
    /// A base model, a `tinker://` path of a sampler checkpoint, or `<base>;<path>`.
    pub model: String,
    /// The conversation so far.
    #[serde(deserialize_with = "lists::messages")]
    #[schema(min_items = 1, max_items = 16384)]
    pub messages: Vec<ChatMessage>,
    /// Maximum number of tokens to sample; by default, up to the context limit.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub max_tokens: Option<u32>,
    /// Newer name of `max_tokens`.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub max_completion_tokens: Option<u32>,
    /// Number of replies, 1 by default.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 128)]
    pub n: Option<u32>,
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
    /// Texts that end a reply. The one that is found is not part of the reply.
    #[serde(default)]
    pub stop: Option<StopStrings>,
    /// Whether to return the log-probabilities of the tokens.
    #[serde(default, deserialize_with = "json::or_default")]
    pub logprobs: bool,
    /// Number of candidates to return per token.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 20)]
    pub top_logprobs: Option<u32>,
    /// Whether to return the ids of the prompt's tokens and of those that were sampled, so that a trainer need not encode
    /// texts again.
    #[serde(default, deserialize_with = "json::or_default")]
    pub return_token_ids: bool,
    /// Whether to respond with server-sent events.
    #[serde(default, deserialize_with = "json::or_default")]
    pub stream: bool,
    /// Options that apply only to streams.
    #[serde(default)]
    pub stream_options: Option<StreamOptions>,
    /// Functions that the model may call: `{"type": "function", "function": {"name": …, "parameters": …}}`.
    #[serde(default, deserialize_with = "lists::tools")]
    #[schema(value_type = Option<Vec<BTreeMap<String, Value>>>, max_items = 1024)]
    pub tools: Option<Vec<Ordered>>,
    /// Whether the model calls tools: `auto` (the default), `none`, `required`, or the one that it must call:
    /// `{"type": "function", "function": {"name": …}}`. The arguments of required calls follow the tool's schema.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub tool_choice: Option<Value>,
    /// Whether there may be several calls; false requires a `tool_choice` that requires a call, if there are tools.
    #[serde(default)]
    pub parallel_tool_calls: Option<bool>,
    /// A preset such as `low`, or a number, if the model's chat template supports it.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub reasoning_effort: Option<Value>,
    /// Further variables for the model's chat template.
    #[serde(default, deserialize_with = "lists::chat_template_kwargs")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub chat_template_kwargs: Option<BTreeMap<String, Ordered>>,
    /// Format of a reply: `text`, `json_object` or `json_schema`. The latter two can't be combined with tools.
    #[serde(default)]
    pub response_format: Option<ResponseFormat>,
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
    /// Refused unless it is `["text"]`.
    #[serde(default, deserialize_with = "lists::modalities")]
    #[schema(max_items = 16)]
    pub modalities: Option<Vec<String>>,
    /// Refused: audio is not supported.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub audio: Option<Value>,
    /// Refused: predicted outputs are not supported.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub prediction: Option<Value>,
    /// Refused: web search is not supported.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub web_search_options: Option<Value>,
    /// Refused: use `tools` instead.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub functions: Option<Value>,
    /// Refused: use `tool_choice` instead.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub function_call: Option<Value>,
    /// Refused unless it is `medium`.
    #[serde(default)]
    pub verbosity: Option<String>,
    /// Refused if true: replies are not stored.
    #[serde(default)]
    pub store: Option<bool>,
    /// Refused unless it is `auto` or `default`.
    #[serde(default)]
    pub service_tier: Option<String>,
    /// Accepted, but has no effect.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub metadata: Option<Value>,
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
}

impl ChatRequest {
    /// The controls that the request sets, apart from its response format. Their ranges are unchecked.
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

/// A message of a conversation.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatMessage {
    /// Author of the message: `system`, `developer`, `user`, `assistant` or `tool`.
    pub role: String,
    /// The text or parts of the message.
    #[serde(default)]
    pub content: Option<ChatContent>,
    /// Name of the author.
    #[serde(default)]
    pub name: Option<String>,
    /// Thoughts of the assistant.
    #[serde(default)]
    pub reasoning_content: Option<String>,
    /// Calls that the assistant made.
    #[serde(default, deserialize_with = "lists::tool_calls")]
    #[schema(max_items = 1024)]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// Id of the call that a message with the role `tool` answers.
    #[serde(default)]
    pub tool_call_id: Option<String>,
    /// Used as the content if `content` is absent.
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
    /// Accepted, but has no effect.
    #[serde(default, deserialize_with = "lists::annotations")]
    #[schema(value_type = Option<Vec<Value>>)]
    pub annotations: Option<Vec<Value>>,
}

/// Content of a message: a text, or a list of texts and images.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(untagged, from = "TextOrParts<ContentPart>")]
pub enum ChatContent {
    /// A single text, as a string.
    Text(String),
    /// A list of texts and images.
    Parts(Vec<ContentPart>),
}

impl From<TextOrParts<ContentPart>> for ChatContent {
    fn from(content: TextOrParts<ContentPart>) -> Self {
        match content {
            TextOrParts::Text(text) => Self::Text(text),
            TextOrParts::Parts(parts) => Self::Parts(parts),
        }
    }
}

/// A part of a message. Types other than `text` and `image_url` are refused.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ContentPart {
    /// Type of the part: `text` or, in messages of users and tools, `image_url`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text of the part.
    #[serde(default)]
    pub text: Option<String>,
    /// The image of the part.
    #[serde(default)]
    pub image_url: Option<ImageUrl>,
}

/// An image of a message.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageUrl {
    /// A data URI with a PNG or JPEG file: `data:image/png;base64,…`. Other URLs are refused.
    pub url: String,
    /// Refused unless it is `auto` or `high`: the model sets the size.
    #[serde(default)]
    pub detail: Option<String>,
}

/// A call of a tool.
#[derive(Clone, Debug, serde::Serialize, Deserialize, ToSchema)]
pub struct ToolCall {
    /// Id of the call.
    pub id: String,
    /// Always the text `function`.
    #[serde(rename = "type", default = "function")]
    pub kind: String,
    /// The function that is called.
    pub function: FunctionCall,
    /// Position of the call in the reply; only in chunks of a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
}

fn function() -> String {
    "function".to_owned()
}

/// A function and the arguments of a call.
#[derive(Clone, Debug, serde::Serialize, Deserialize, ToSchema)]
pub struct FunctionCall {
    /// Name of the function.
    pub name: String,
    /// Arguments: a JSON object, encoded as text.
    pub arguments: String,
}

/// Format of a reply.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResponseFormat {
    /// `text`, `json_object` or `json_schema`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The `name` and the `schema`, for the type `json_schema`.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub json_schema: Option<Ordered>,
}
