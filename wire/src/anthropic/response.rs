//! Responses of `POST messages` and `POST messages/count_tokens`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Response body of `messages`, and the `message` of a stream's first event.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MessageResponse {
    /// Id of the request.
    pub id: String,
    /// Always the text `message`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Always the text `assistant`.
    pub role: String,
    /// The `model` of the request.
    pub model: String,
    /// Thoughts, text and tool calls, in order.
    pub content: Vec<ReplyBlock>,
    /// Why the reply ended: `end_turn`, `max_tokens`, `stop_sequence` or `tool_use`.
    pub stop_reason: Option<String>,
    /// The stop sequence that ended the reply.
    pub stop_sequence: Option<String>,
    /// Numbers of tokens in the request and the reply.
    pub usage: AnthropicUsage,
}

/// A part of the reply.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReplyBlock {
    /// Text that the model wrote.
    Text {
        /// Text of this block.
        text: String,
    },
    /// Thoughts that precede the answer.
    Thinking {
        /// Text of the thoughts.
        thinking: String,
        /// Always the empty text.
        signature: String,
    },
    /// A call of a tool.
    ToolUse {
        /// Id of the call.
        id: String,
        /// Name of the tool.
        name: String,
        /// Arguments of the call, an object.
        #[schema(value_type = Value)]
        input: Value,
    },
}

/// Numbers of tokens in a request and its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AnthropicUsage {
    /// Prompt tokens that were computed, without those that the prefix cache served.
    pub input_tokens: u64,
    /// Prompt tokens that the prefix cache served.
    pub cache_read_input_tokens: u64,
    /// Always 0 on this server.
    pub cache_creation_input_tokens: u64,
    /// Tokens that were sampled.
    pub output_tokens: u64,
}

/// Response body of `messages/count_tokens`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CountTokensResponse {
    /// Number of tokens in the rendered prompt.
    pub input_tokens: u64,
}

/// Response to a request that was refused or failed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AnthropicErrorResponse {
    /// Always the text `error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Description of the error.
    pub error: AnthropicError,
    /// Id of the request in the server's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Description of an error.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AnthropicError {
    /// Type of the error: `invalid_request_error`, `rate_limit_error`, `api_error` …
    #[serde(rename = "type")]
    pub kind: String,
    /// Description of the error, for display.
    pub message: String,
}
