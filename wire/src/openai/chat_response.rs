//! Responses of `POST chat/completions`, whole and in chunks.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::chat::ToolCall;
use super::shared::Usage;

/// Response body of `chat/completions`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChatResponse {
    /// Id of the request.
    pub id: String,
    /// Always the text `chat.completion`.
    pub object: String,
    /// Time of the request, in seconds since 1970.
    pub created: i64,
    /// The `model` of the request.
    pub model: String,
    /// Replies, as many as `n` of the request.
    pub choices: Vec<ChatChoice>,
    /// Numbers of tokens in the request and its replies.
    pub usage: Usage,
    /// Tokens of the rendered conversation, if `return_token_ids` was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_token_ids: Option<Vec<u32>>,
}

/// A reply of the model.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChatChoice {
    /// Position of the reply among the choices.
    pub index: usize,
    /// The message that the assistant replied with.
    pub message: ChatReply,
    /// Log-probabilities of the tokens, if `logprobs` was set: without special tokens, or of each of `token_ids`.
    pub logprobs: Option<ChatLogprobs>,
    /// Why the reply ended: `stop`, `length` or `tool_calls`.
    pub finish_reason: String,
    /// Sampled tokens with the one that ended the reply, if `return_token_ids` was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_ids: Option<Vec<u32>>,
}

/// The assistant's message in a reply.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ChatReply {
    /// Always the text `assistant`.
    pub role: String,
    /// Text of the reply; null if it only calls tools.
    pub content: Option<String>,
    /// Always null: refusals are part of the content.
    pub refusal: Option<String>,
    /// Thoughts that precede the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Tools that the reply calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
}

/// Log-probabilities of a reply, or of the part that a chunk adds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChatLogprobs {
    /// Log-probabilities, token by token.
    pub content: Vec<TokenLogprob>,
    /// Always null: refusals are part of the content.
    pub refusal: Option<Vec<TokenLogprob>>,
}

/// A token with its log-probability and the most likely candidates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TokenLogprob {
    /// Text of the token; U+FFFD stands for an incomplete character.
    pub token: String,
    /// Log-probability in the temperature-scaled distribution.
    pub logprob: f64,
    /// Bytes of the token's text.
    pub bytes: Option<Vec<u8>>,
    /// Candidates at this position, most likely first.
    pub top_logprobs: Vec<TopLogprob>,
}

/// A candidate for a token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TopLogprob {
    /// Text of the token; U+FFFD stands for an incomplete character.
    pub token: String,
    /// Log-probability in the temperature-scaled distribution.
    pub logprob: f64,
    /// Bytes of the token's text.
    pub bytes: Option<Vec<u8>>,
}

/// A chunk of a stream.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChatChunk {
    /// Id of the request.
    pub id: String,
    /// Always the text `chat.completion.chunk`.
    pub object: String,
    /// Time of the request, in seconds since 1970.
    pub created: i64,
    /// The `model` of the request.
    pub model: String,
    /// Additions to the replies; empty in the chunk with the usage.
    pub choices: Vec<ChatChunkChoice>,
    /// Numbers of tokens; only in the last chunk, if `stream_options.include_usage` was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Tokens of the rendered conversation; only in the first chunk, if `return_token_ids` was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_token_ids: Option<Vec<u32>>,
}

/// Part of a reply, in a chunk.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChatChunkChoice {
    /// Position of the reply among the choices.
    pub index: usize,
    /// What the chunk adds to the message.
    pub delta: ChatDelta,
    /// Log-probabilities of the added tokens, if `logprobs` was set: without special tokens, or of each of `token_ids`.
    pub logprobs: Option<ChatLogprobs>,
    /// Why the reply ended: `stop`, `length` or `tool_calls`; null before the end.
    pub finish_reason: Option<String>,
    /// Tokens sampled since the reply's last chunk, if `return_token_ids` was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_ids: Option<Vec<u32>>,
}

/// What a chunk adds to a message.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ChatDelta {
    /// `assistant`; only in the first chunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Text to append to the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Text to append to the thoughts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Further calls of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
}
