//! Requests and answers of the Anthropic API.

mod messages;
mod prompt;
mod reply;
mod stream;

pub(crate) use self::messages::{count_tokens, messages};
use trainyard_wire::anthropic::AnthropicUsage;

use super::completion::Tokens;
use super::sequence::End;

/// Counts the tokens of a request.
fn usage(tokens: Tokens) -> AnthropicUsage {
    AnthropicUsage {
        input_tokens: tokens.prompt.saturating_sub(tokens.cached),
        cache_read_input_tokens: tokens.cached,
        cache_creation_input_tokens: 0,
        output_tokens: tokens.sampled,
    }
}

/// Why a reply ended.
fn stop_reason(end: &End) -> &'static str {
    match end {
        End { too_long: true, .. } => "max_tokens",
        End { stop_string: Some(_), .. } => "stop_sequence",
        End { calls_tools: true, .. } => "tool_use",
        _ => "end_turn",
    }
}

/// The id of a call, unique within the server.
fn call_id(request: &str, number: usize) -> String {
    format!("toolu_{}_{number}", request.trim_start_matches("msg_"))
}

/// The id of the answer to a request.
fn message_id(request: &str) -> String {
    format!("msg_{request}")
}
