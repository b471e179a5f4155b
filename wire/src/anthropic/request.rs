//! Request bodies of `POST messages` and `POST messages/count_tokens`.

use minijinja::Value as Ordered;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::super::lists::TextOrParts;
use super::super::{json, lists};

/// Request body of `messages`. Unknown fields are refused.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MessagesRequest {
    /// A base model, a `tinker://` path of a sampler checkpoint, or `<base>;<path>`.
    pub model: String,
    /// The conversation so far. If the last message is the assistant's, the reply continues it.
    #[serde(deserialize_with = "lists::messages")]
    #[schema(min_items = 1, max_items = 16384)]
    pub messages: Vec<AnthropicMessage>,
    /// Maximum number of tokens to sample.
    #[schema(minimum = 1)]
    pub max_tokens: u32,
    /// Instructions before the conversation.
    #[serde(default)]
    pub system: Option<AnthropicContent>,
    /// Divisor of the logits, 1 by default; 0 decodes greedily.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    pub temperature: Option<f64>,
    /// Samples only from the smallest set of tokens whose total probability reaches this value; 1 (the default) turns
    /// this off.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f64>,
    /// Samples only from this many most likely tokens; -1 and 0 turn this off.
    #[serde(default)]
    pub top_k: Option<i64>,
    /// Texts that end the reply. The one that is found is not part of the reply.
    #[serde(default, deserialize_with = "lists::stop_sequences")]
    #[schema(max_items = 64)]
    pub stop_sequences: Option<Vec<String>>,
    /// Whether to respond with server-sent events.
    #[serde(default, deserialize_with = "json::or_default")]
    pub stream: bool,
    /// Tools that the model may call.
    #[serde(default, deserialize_with = "lists::tools")]
    #[schema(max_items = 1024)]
    pub tools: Option<Vec<AnthropicTool>>,
    /// Whether the model may call tools: `auto` (the default) or `none`.
    #[serde(default)]
    pub tool_choice: Option<ToolChoice>,
    /// Whether the model thinks before it answers, if its chat template supports this.
    #[serde(default)]
    pub thinking: Option<Thinking>,
    /// How much effort the model spends, if its chat template supports this.
    #[serde(default)]
    pub output_config: Option<OutputConfig>,
    /// Accepted, but has no effect.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub metadata: Option<Value>,
    /// Refused unless it is `auto` or `standard_only`.
    #[serde(default)]
    pub service_tier: Option<String>,
    /// Refused: containers are not supported.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub container: Option<Value>,
    /// Refused unless it is empty.
    #[serde(default, deserialize_with = "lists::mcp_servers")]
    #[schema(value_type = Option<Vec<Value>>)]
    pub mcp_servers: Option<Vec<Value>>,
    /// Refused: editing of contexts is not supported.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub context_management: Option<Value>,
    /// Accepted, but ignored: prompts are always cached.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub cache_control: Option<Value>,
}

/// Request body of `messages/count_tokens`. Unknown fields are refused.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CountTokensRequest {
    /// Same as `model` of `messages`.
    pub model: String,
    /// Same as `messages` of `messages`.
    #[serde(deserialize_with = "lists::messages")]
    #[schema(min_items = 1, max_items = 16384)]
    pub messages: Vec<AnthropicMessage>,
    /// Same as `system` of `messages`.
    #[serde(default)]
    pub system: Option<AnthropicContent>,
    /// Same as `tools` of `messages`.
    #[serde(default, deserialize_with = "lists::tools")]
    #[schema(max_items = 1024)]
    pub tools: Option<Vec<AnthropicTool>>,
    /// Same as `tool_choice` of `messages`.
    #[serde(default)]
    pub tool_choice: Option<ToolChoice>,
    /// Same as `thinking` of `messages`.
    #[serde(default)]
    pub thinking: Option<Thinking>,
    /// Same as `output_config` of `messages`.
    #[serde(default)]
    pub output_config: Option<OutputConfig>,
    /// Accepted, but has no effect.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub cache_control: Option<Value>,
}

/// A message of a conversation.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnthropicMessage {
    /// Author of the message: `user` or `assistant`.
    pub role: String,
    /// The text or blocks of the message.
    pub content: AnthropicContent,
}

/// Content of a message: a text, or a list of blocks.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(untagged, from = "TextOrParts<Block>")]
pub enum AnthropicContent {
    /// A single text, as a string.
    Text(String),
    /// A list of blocks.
    Blocks(Vec<Block>),
}

impl From<TextOrParts<Block>> for AnthropicContent {
    fn from(content: TextOrParts<Block>) -> Self {
        match content {
            TextOrParts::Text(text) => Self::Text(text),
            TextOrParts::Parts(blocks) => Self::Blocks(blocks),
        }
    }
}

/// A part of a message: `text`, `image`, `thinking`, `redacted_thinking`, `tool_use` or `tool_result`. Other types are
/// refused.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct Block {
    /// Type of the block, which determines its other fields.
    #[serde(rename = "type")]
    pub kind: String,
    /// `text` blocks: the text.
    #[serde(default)]
    pub text: Option<String>,
    /// `image` blocks, in messages of users and results of tools: the file.
    #[serde(default)]
    pub source: Option<ImageSource>,
    /// `thinking` blocks: the thoughts.
    #[serde(default)]
    pub thinking: Option<String>,
    /// `tool_use` blocks: id of the call.
    #[serde(default)]
    pub id: Option<String>,
    /// `tool_use` blocks: name of the tool.
    #[serde(default)]
    pub name: Option<String>,
    /// `tool_use` blocks: arguments of the call, an object.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub input: Option<Ordered>,
    /// `tool_result` blocks: id of the call that the result belongs to.
    #[serde(default)]
    pub tool_use_id: Option<String>,
    /// `tool_result` blocks: what the tool returned.
    #[serde(default)]
    #[schema(no_recursion)]
    pub content: Option<Box<AnthropicContent>>,
    /// `tool_result` blocks: accepted, but ignored; the content describes the error.
    #[serde(default)]
    pub is_error: Option<bool>,
}

/// File of an image.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ImageSource {
    /// `base64`; other types are refused, because the server fetches no files.
    #[serde(rename = "type")]
    pub kind: String,
    /// Format of the file: `image/png` or `image/jpeg`.
    #[serde(default)]
    pub media_type: Option<String>,
    /// The file, in base64.
    #[serde(default)]
    pub data: Option<String>,
}

/// A tool that the model may call.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct AnthropicTool {
    /// `custom` (the default); other types are refused.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// Name of the tool.
    pub name: String,
    /// What the tool does.
    #[serde(default)]
    pub description: Option<String>,
    /// JSON schema of the tool's arguments.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub input_schema: Option<Ordered>,
}

/// Whether the model may call tools.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolChoice {
    /// `auto`, `none`, `any` or `tool`. The input of required calls follows the tool's schema.
    #[serde(rename = "type")]
    pub kind: String,
    /// Name of the tool, for the type `tool`.
    #[serde(default)]
    pub name: Option<String>,
    /// Whether to allow at most one call. With the type `auto`, true is refused.
    #[serde(default)]
    pub disable_parallel_tool_use: Option<bool>,
}

/// Whether the model thinks before it answers.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Thinking {
    /// `enabled`, `adaptive` or `disabled`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Budget for thoughts in tokens: at least 1024 and less than `max_tokens`. Thoughts count as output; only
    /// `max_tokens` limits them.
    #[serde(default)]
    pub budget_tokens: Option<u32>,
    /// Accepted, but has no effect.
    #[serde(default)]
    pub display: Option<String>,
}

/// How the model answers.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputConfig {
    /// A preset such as `low`, or a number, if the model's chat template supports it.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub effort: Option<Value>,
    /// Refused unless it is null.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub format: Option<Value>,
}
