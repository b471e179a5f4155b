//! `POST messages` and `POST messages/count_tokens`: their answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Answer of `messages`, and the `message` of a stream's first event.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MessageResponse {
    /// Of the request.
    pub id: String,
    /// `message`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `assistant`.
    pub role: String,
    /// As it was asked for.
    pub model: String,
    /// Thoughts, text and calls of tools, in their order.
    pub content: Vec<ReplyBlock>,
    /// `end_turn`, `max_tokens`, `stop_sequence` or `tool_use`.
    pub stop_reason: Option<String>,
    /// The stop sequence that was found.
    pub stop_sequence: Option<String>,
    /// Tokens of the request.
    pub usage: AnthropicUsage,
}

/// A part of the reply.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReplyBlock {
    /// Said.
    Text {
        /// The text.
        text: String,
    },
    /// Thought.
    Thinking {
        /// The text.
        thinking: String,
        /// Always empty.
        signature: String,
    },
    /// A call of a tool.
    ToolUse {
        /// Names the call.
        id: String,
        /// The tool.
        name: String,
        /// The arguments.
        #[schema(value_type = Value)]
        input: Value,
    },
}

/// Tokens of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AnthropicUsage {
    /// Of the prompt, apart from those of the prefix cache.
    pub input_tokens: u64,
    /// Of the prompt, served from the prefix cache.
    pub cache_read_input_tokens: u64,
    /// Always 0.
    pub cache_creation_input_tokens: u64,
    /// Sampled.
    pub output_tokens: u64,
}

/// Answer of `messages/count_tokens`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CountTokensResponse {
    /// Of the rendered prompt.
    pub input_tokens: u64,
}

/// A refused or failed request.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AnthropicErrorResponse {
    /// `error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What is wrong.
    pub error: AnthropicError,
    /// For the server's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// What is wrong with a request.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AnthropicError {
    /// `invalid_request_error`, `rate_limit_error`, `api_error` …
    #[serde(rename = "type")]
    pub kind: String,
    /// For people.
    pub message: String,
}
