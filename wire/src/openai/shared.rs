//! What completions and chat completions share.

use serde::{Deserialize, Deserializer, Serialize};
use trainyard_protocol::limits::MAX_STOP_STRINGS;
use utoipa::ToSchema;

use super::super::lists::{StopList, StopVisitor};

/// One stop string, or several.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum StopStrings {
    /// One.
    One(String),
    /// Any of them.
    Many(Vec<String>),
}

impl<'de> Deserialize<'de> for StopStrings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bounds = StopVisitor { most_texts: MAX_STOP_STRINGS, most_tokens: None };
        Ok(match deserializer.deserialize_any(bounds)? {
            StopList::Text(text) => Self::One(text),
            StopList::Texts(texts) => Self::Many(texts),
            StopList::Tokens(_) => Self::Many(Vec::new()),
        })
    }
}

impl StopStrings {
    /// All of them.
    pub fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(string) => vec![string],
            Self::Many(strings) => strings,
        }
    }
}

/// Of a stream.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StreamOptions {
    /// End the stream with a chunk that has the usage and no choices.
    pub include_usage: bool,
    /// Accepted and ignored: nothing is padded.
    #[schema(nullable)]
    pub include_obfuscation: Option<bool>,
}

/// Tokens of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// Of the prompts.
    pub prompt_tokens: u64,
    /// Sampled.
    pub completion_tokens: u64,
    /// Both.
    pub total_tokens: u64,
    /// Of the prompts in more detail.
    pub prompt_tokens_details: PromptTokensDetails,
}

/// Tokens of the prompts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PromptTokensDetails {
    /// Served from the prefix cache.
    pub cached_tokens: u64,
}

impl Usage {
    /// So many tokens.
    pub fn new(prompt: u64, completion: u64, cached: u64) -> Self {
        Self {
            prompt_tokens: prompt,
            completion_tokens: completion,
            total_tokens: prompt.saturating_add(completion),
            prompt_tokens_details: PromptTokensDetails { cached_tokens: cached },
        }
    }
}

/// A refused or failed request.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = OpenAiErrorResponse)]
pub struct ErrorResponse {
    /// What is wrong.
    pub error: OpenAiError,
}

/// What is wrong with a request.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OpenAiError {
    /// For people.
    pub message: String,
    /// `invalid_request_error`, `rate_limit_error`, `server_error` …
    #[serde(rename = "type")]
    pub kind: String,
    /// The field at fault.
    pub param: Option<String>,
    /// `model_not_found`, `invalid_api_key` …
    pub code: Option<String>,
}
