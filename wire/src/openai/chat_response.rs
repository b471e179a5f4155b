//! `POST chat/completions`: its answer, whole and in chunks.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::chat::ToolCall;
use super::shared::Usage;

/// Answer of `chat/completions`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChatResponse {
    /// Of the request.
    pub id: String,
    /// `chat.completion`.
    pub object: String,
    /// Seconds since 1970.
    pub created: i64,
    /// As it was asked for.
    pub model: String,
    /// The replies.
    pub choices: Vec<ChatChoice>,
    /// Tokens of the request.
    pub usage: Usage,
}

/// One reply.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChatChoice {
    /// Its position.
    pub index: usize,
    /// What the model says.
    pub message: ChatReply,
    /// Of its tokens, if they were asked for.
    pub logprobs: Option<ChatLogprobs>,
    /// `stop`, `length` or `tool_calls`.
    pub finish_reason: String,
}

/// The assistant's message.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ChatReply {
    /// `assistant`.
    pub role: String,
    /// Its text; null when it only calls tools.
    pub content: Option<String>,
    /// Always null.
    pub refusal: Option<String>,
    /// What it thought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Tools that it calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
}

/// Log-probabilities of a reply, or of what a chunk adds to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChatLogprobs {
    /// Token by token.
    pub content: Vec<TokenLogprob>,
    /// Always null.
    pub refusal: Option<Vec<TokenLogprob>>,
}

/// A token with its log-probability and the most likely candidates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TokenLogprob {
    /// Its text; half a character is U+FFFD.
    pub token: String,
    /// Of the temperature-scaled distribution.
    pub logprob: f64,
    /// Its bytes.
    pub bytes: Option<Vec<u8>>,
    /// Most likely first.
    pub top_logprobs: Vec<TopLogprob>,
}

/// A candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TopLogprob {
    /// Its text; half a character is U+FFFD.
    pub token: String,
    /// Of the temperature-scaled distribution.
    pub logprob: f64,
    /// Its bytes.
    pub bytes: Option<Vec<u8>>,
}

/// A chunk of a stream.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChatChunk {
    /// Of the request.
    pub id: String,
    /// `chat.completion.chunk`.
    pub object: String,
    /// Seconds since 1970.
    pub created: i64,
    /// As it was asked for.
    pub model: String,
    /// What is new; empty in the chunk with the usage.
    pub choices: Vec<ChatChunkChoice>,
    /// Tokens of the request, in the last chunk if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// What a chunk adds to a reply.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChatChunkChoice {
    /// The reply's position.
    pub index: usize,
    /// What is new.
    pub delta: ChatDelta,
    /// Of new tokens, if they were asked for.
    pub logprobs: Option<ChatLogprobs>,
    /// `stop`, `length` or `tool_calls`; null before the end.
    pub finish_reason: Option<String>,
}

/// What is new in a reply.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ChatDelta {
    /// `assistant`, in the first chunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// More text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// More thoughts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Another call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
}
