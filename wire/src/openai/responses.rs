//! Request body of `POST responses`.

use std::collections::BTreeMap;

use minijinja::Value as Ordered;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::super::json::{self, Metadata};
use super::super::lists::{self, TextOrParts};

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
    /// `{"type": "function", "name": …}`. The arguments of demanded calls follow the tool's schema.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub tool_choice: Option<Value>,
    /// Whether there may be several calls; false requires a `tool_choice` that demands one, if there are tools.
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
    /// Refused if true: responses are not made in the background.
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

/// The conversation of a request: a text of the user, or a list of items.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(untagged, from = "TextOrParts<InputItem>")]
pub enum ResponsesInput {
    /// A single text, as a string.
    Text(String),
    /// A list of items.
    Items(Vec<InputItem>),
}

impl From<TextOrParts<InputItem>> for ResponsesInput {
    fn from(input: TextOrParts<InputItem>) -> Self {
        match input {
            TextOrParts::Text(text) => Self::Text(text),
            TextOrParts::Parts(items) => Self::Items(items),
        }
    }
}

/// An item of a conversation: a `message`, a `function_call`, a `function_call_output` or a `reasoning`. Other types are
/// refused. Further fields, such as ids and states, have no effect.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct InputItem {
    /// Type of the item, which determines its other fields; `message` by default.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// Messages: the author, which is `system`, `developer`, `user` or `assistant`.
    #[serde(default)]
    pub role: Option<String>,
    /// Messages: their text or parts. `reasoning`: the thoughts, as parts of the type `reasoning_text`.
    #[serde(default)]
    pub content: Option<InputContent>,
    /// Calls and their outputs: the id of the call.
    #[serde(default)]
    pub call_id: Option<String>,
    /// Calls: the name of the function.
    #[serde(default)]
    pub name: Option<String>,
    /// Calls: the arguments, a JSON object as text.
    #[serde(default)]
    pub arguments: Option<String>,
    /// Outputs of calls: what the function returned.
    #[serde(default)]
    pub output: Option<InputContent>,
}

/// Content of an item: a text, or a list of parts.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(untagged, from = "TextOrParts<InputPart>")]
pub enum InputContent {
    /// A single text, as a string.
    Text(String),
    /// A list of parts.
    Parts(Vec<InputPart>),
}

impl From<TextOrParts<InputPart>> for InputContent {
    fn from(content: TextOrParts<InputPart>) -> Self {
        match content {
            TextOrParts::Text(text) => Self::Text(text),
            TextOrParts::Parts(parts) => Self::Parts(parts),
        }
    }
}

/// A part of an item. Other types than those below are refused.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct InputPart {
    /// Type of the part: `input_text`, `output_text`, `text`, `refusal`, `reasoning_text` or, in messages of users and
    /// outputs of calls, `input_image`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text of the part.
    #[serde(default)]
    pub text: Option<String>,
    /// `refusal` parts: the text.
    #[serde(default)]
    pub refusal: Option<String>,
    /// `input_image` parts: a data URI with a PNG or JPEG file. Other URLs are refused.
    #[serde(default)]
    pub image_url: Option<String>,
    /// `input_image` parts: refused unless it is `auto` or `high`, because the model sets the size.
    #[serde(default)]
    pub detail: Option<String>,
}

/// Form of a reply's text.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TextConfig {
    /// Format of the text: `text`, `json_object` or `json_schema`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<TextFormat>,
    /// Refused unless it is `medium`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<String>,
}

/// Format of a reply's text. JSON can't be combined with tools.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TextFormat {
    /// `text`, `json_object` or `json_schema`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Name of the schema, for the type `json_schema`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the format is for; it has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The schema, for the type `json_schema`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub schema: Option<Ordered>,
    /// Accepted, but has no effect: the schema always holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
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
