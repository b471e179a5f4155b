//! Response body of `POST responses`.

use minijinja::Value as Ordered;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::super::json::Metadata;
use super::responses_output::OutputItem;
use super::responses_text::TextConfig;

/// Response body of `responses`, and the `response` of a stream's events.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ResponsesResponse {
    /// Id of the request.
    pub id: String,
    /// Always the text `response`.
    pub object: String,
    /// Time of the request, in seconds since 1970.
    pub created_at: i64,
    /// `completed`, or `incomplete` if the reply reached a limit; `in_progress` in the first events of a stream.
    pub status: String,
    /// Why the reply is incomplete.
    pub incomplete_details: Option<IncompleteDetails>,
    /// Always null: failed requests have the status of their error.
    #[schema(value_type = Option<Value>)]
    pub error: Option<Value>,
    /// The `model` of the request.
    pub model: String,
    /// Thoughts, texts and calls, in order.
    pub output: Vec<OutputItem>,
    /// Numbers of tokens; null before the end of a stream.
    pub usage: Option<ResponsesUsage>,
    /// The `instructions` of the request.
    pub instructions: Option<String>,
    /// The `max_output_tokens` of the request.
    pub max_output_tokens: Option<u32>,
    /// The `metadata` of the request.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub metadata: Metadata,
    /// The `parallel_tool_calls` of the request, true by default.
    pub parallel_tool_calls: bool,
    /// Always null: responses are not stored.
    pub previous_response_id: Option<String>,
    /// Always false: responses are not stored.
    pub store: bool,
    /// Always false: background responses are not supported.
    pub background: bool,
    /// The `temperature` of the request.
    pub temperature: f64,
    /// The `top_p` of the request.
    pub top_p: f64,
    /// The `text` of the request.
    pub text: TextConfig,
    /// The `tool_choice` of the request, `auto` by default.
    #[schema(value_type = Value)]
    pub tool_choice: Value,
    /// The `tools` of the request.
    #[schema(value_type = Vec<BTreeMap<String, Value>>)]
    pub tools: Vec<Ordered>,
    /// Always the text `disabled`.
    pub truncation: String,
    /// Tokens of the rendered conversation, if `return_token_ids` was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_token_ids: Option<Vec<u32>>,
    /// Tokens sampled so far with the one that ended the reply, if `return_token_ids` was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_ids: Option<Vec<u32>>,
}

/// Why a reply is incomplete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IncompleteDetails {
    /// Always the text `max_output_tokens`: the limit of the request, of the context or of the agent session.
    pub reason: String,
}

/// Numbers of tokens in a request and its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResponsesUsage {
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Details on the tokens of the prompt.
    pub input_tokens_details: InputTokensDetails,
    /// Tokens that were sampled.
    pub output_tokens: u64,
    /// Details on the sampled tokens.
    pub output_tokens_details: OutputTokensDetails,
    /// Sum of both numbers.
    pub total_tokens: u64,
}

/// Details on the tokens of a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InputTokensDetails {
    /// Tokens that the prefix cache served.
    pub cached_tokens: u64,
    /// Always 0 on this server.
    pub cache_write_tokens: u64,
}

/// Details on sampled tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputTokensDetails {
    /// Tokens of the thoughts.
    pub reasoning_tokens: u64,
}
