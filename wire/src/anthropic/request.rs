//! `POST messages` and `POST messages/count_tokens`: their bodies.

use minijinja::Value as Ordered;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::super::{json, lists};

/// Body of `messages`. Unknown fields are refused.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MessagesRequest {
    /// A base model, a `tinker://` path of a sampler checkpoint, or `<base>;<path>`.
    pub model: String,
    /// The conversation so far; one that ends with the assistant's message is continued.
    #[serde(deserialize_with = "lists::messages")]
    #[schema(min_items = 1, max_items = 16384)]
    pub messages: Vec<AnthropicMessage>,
    /// Most tokens to sample.
    #[schema(minimum = 1)]
    pub max_tokens: u32,
    /// Instructions before the conversation.
    #[serde(default)]
    pub system: Option<AnthropicContent>,
    /// Divides the logits; 0 is greedy, 1 when null.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    pub temperature: Option<f64>,
    /// Keep the smallest set whose probability reaches `p`.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f64>,
    /// Keep the `k` most likely; -1 and 0 are off.
    #[serde(default)]
    pub top_k: Option<i64>,
    /// Each ends the reply; not part of its text.
    #[serde(default, deserialize_with = "lists::stop_sequences")]
    #[schema(max_items = 64)]
    pub stop_sequences: Option<Vec<String>>,
    /// Answer in server-sent events.
    #[serde(default, deserialize_with = "json::or_default")]
    pub stream: bool,
    /// Tools that the model may call.
    #[serde(default, deserialize_with = "lists::tools")]
    #[schema(max_items = 1024)]
    pub tools: Option<Vec<AnthropicTool>>,
    /// `auto` or `none`.
    #[serde(default)]
    pub tool_choice: Option<ToolChoice>,
    /// Whether the model thinks before it answers, where its template has that.
    #[serde(default)]
    pub thinking: Option<Thinking>,
    /// How much effort the model makes, where its template has that.
    #[serde(default)]
    pub output_config: Option<OutputConfig>,
    /// Accepted and ignored.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub metadata: Option<Value>,
    /// Refused unless it is `auto` or `standard_only`.
    #[serde(default)]
    pub service_tier: Option<String>,
    /// Refused: there are no containers.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub container: Option<Value>,
    /// Refused unless it is empty.
    #[serde(default, deserialize_with = "lists::mcp_servers")]
    #[schema(value_type = Option<Vec<Value>>)]
    pub mcp_servers: Option<Vec<Value>>,
    /// Refused: contexts are not edited.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub context_management: Option<Value>,
    /// Accepted and ignored: prompts are cached anyway.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub cache_control: Option<Value>,
}

/// Body of `messages/count_tokens`. Unknown fields are refused.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CountTokensRequest {
    /// As in `messages`.
    pub model: String,
    /// As in `messages`.
    #[serde(deserialize_with = "lists::messages")]
    #[schema(min_items = 1, max_items = 16384)]
    pub messages: Vec<AnthropicMessage>,
    /// As in `messages`.
    #[serde(default)]
    pub system: Option<AnthropicContent>,
    /// As in `messages`.
    #[serde(default, deserialize_with = "lists::tools")]
    #[schema(max_items = 1024)]
    pub tools: Option<Vec<AnthropicTool>>,
    /// As in `messages`.
    #[serde(default)]
    pub tool_choice: Option<ToolChoice>,
    /// As in `messages`.
    #[serde(default)]
    pub thinking: Option<Thinking>,
    /// As in `messages`.
    #[serde(default)]
    pub output_config: Option<OutputConfig>,
    /// Accepted and ignored.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub cache_control: Option<Value>,
}

/// A message of a conversation.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnthropicMessage {
    /// `user` or `assistant`.
    pub role: String,
    /// What it says.
    pub content: AnthropicContent,
}

/// A text, or blocks.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or a list of blocks with a type")]
pub enum AnthropicContent {
    /// One text.
    Text(String),
    /// Blocks.
    Blocks(Vec<Block>),
}

/// A part of a message: `text`, `thinking`, `redacted_thinking`, `tool_use` or `tool_result`. Other types are refused.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct Block {
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Of a `text`.
    #[serde(default)]
    pub text: Option<String>,
    /// Of `thinking`.
    #[serde(default)]
    pub thinking: Option<String>,
    /// Of a `tool_use`: names the call.
    #[serde(default)]
    pub id: Option<String>,
    /// Of a `tool_use`: the tool.
    #[serde(default)]
    pub name: Option<String>,
    /// Of a `tool_use`: the arguments.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub input: Option<Ordered>,
    /// Of a `tool_result`: the call that it answers.
    #[serde(default)]
    pub tool_use_id: Option<String>,
    /// Of a `tool_result`: what the tool returned.
    #[serde(default)]
    #[schema(no_recursion)]
    pub content: Option<Box<AnthropicContent>>,
    /// Of a `tool_result`: accepted; the content says what went wrong.
    #[serde(default)]
    pub is_error: Option<bool>,
}

/// A tool that the model may call.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct AnthropicTool {
    /// `custom`; other types are refused.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// Its name.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: Option<String>,
    /// JSON schema of its arguments.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub input_schema: Option<Ordered>,
}

/// Whether tools are called.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolChoice {
    /// `auto` or `none`; `any` and `tool` are refused.
    #[serde(rename = "type")]
    pub kind: String,
    /// Of the type `tool`.
    #[serde(default)]
    pub name: Option<String>,
    /// Refused when true.
    #[serde(default)]
    pub disable_parallel_tool_use: Option<bool>,
}

/// Whether the model thinks.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Thinking {
    /// `enabled`, `adaptive` or `disabled`.
    #[serde(rename = "type")]
    pub kind: String,
    /// At least 1024 and below `max_tokens`; thoughts count as output, and nothing else limits them.
    #[serde(default)]
    pub budget_tokens: Option<u32>,
    /// Accepted and ignored.
    #[serde(default)]
    pub display: Option<String>,
}

/// The form of the output.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputConfig {
    /// A preset such as `low`, or a number, for models whose template has it.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub effort: Option<Value>,
    /// Refused unless it is null.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub format: Option<Value>,
}
