//! Types that completions and chat completions share.

use serde::{Deserialize, Deserializer, Serialize};
use trainyard_protocol::limits::MAX_STOP_STRINGS;
use utoipa::ToSchema;

use super::super::lists::{StopList, StopVisitor};

/// One or more texts that end a completion.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum StopStrings {
    /// A single text, as a string.
    One(String),
    /// Texts, any of which ends the completion.
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
    /// Returns the texts as a list.
    pub fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(string) => vec![string],
            Self::Many(strings) => strings,
        }
    }
}

/// Options that apply only to streams.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StreamOptions {
    /// Whether to end the stream with a chunk that contains the usage and no choices.
    pub include_usage: bool,
    /// Accepted, but ignored: streams are not padded.
    #[schema(nullable)]
    pub include_obfuscation: Option<bool>,
}

/// Numbers of tokens in a request and its completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// Tokens of the prompts.
    pub prompt_tokens: u64,
    /// Tokens that were sampled.
    pub completion_tokens: u64,
    /// Sum of both numbers.
    pub total_tokens: u64,
    /// Details on the tokens of the prompts.
    pub prompt_tokens_details: PromptTokensDetails,
}

/// Details on the tokens of the prompts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PromptTokensDetails {
    /// Tokens that the prefix cache served.
    pub cached_tokens: u64,
}

impl Usage {
    /// Returns the usage for these numbers of tokens.
    pub fn new(prompt: u64, completion: u64, cached: u64) -> Self {
        Self {
            prompt_tokens: prompt,
            completion_tokens: completion,
            total_tokens: prompt.saturating_add(completion),
            prompt_tokens_details: PromptTokensDetails { cached_tokens: cached },
        }
    }
}

/// Response to a request that was refused or failed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = OpenAiErrorResponse)]
pub struct ErrorResponse {
    /// Description of the error.
    pub error: OpenAiError,
}

/// Description of an error.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OpenAiError {
    /// Description of the error, for display.
    pub message: String,
    /// Type of the error: `invalid_request_error`, `rate_limit_error`, `server_error` …
    #[serde(rename = "type")]
    pub kind: String,
    /// Field of the request at fault.
    pub param: Option<String>,
    /// Code of the error, such as `model_not_found` or `invalid_api_key`.
    pub code: Option<String>,
}
