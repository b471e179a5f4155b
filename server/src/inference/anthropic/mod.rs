//! Requests and answers of the Anthropic API.

mod messages;
mod stream;

pub(crate) use self::messages::{count_tokens, messages};
use trainyard_wire::anthropic::AnthropicUsage;

use super::completion::Tokens;

/// Counts the tokens of a request.
fn usage(tokens: Tokens) -> AnthropicUsage {
    AnthropicUsage {
        input_tokens: tokens.prompt.saturating_sub(tokens.cached),
        cache_read_input_tokens: tokens.cached,
        cache_creation_input_tokens: 0,
        output_tokens: tokens.sampled,
    }
}

/// The id of the answer to a request.
fn message_id(request: &str) -> String {
    format!("msg_{request}")
}
