//! Requests and answers of the Anthropic API.

pub mod messages;
pub mod prompt;
pub mod reply;

use super::sequence::End;

/// Returns the reason why a reply ended.
pub fn stop_reason(end: &End) -> &'static str {
    match end {
        End { too_long: true, .. } => "max_tokens",
        End { stop_string: Some(_), .. } => "stop_sequence",
        End { calls_tools: true, .. } => "tool_use",
        _ => "end_turn",
    }
}

/// Returns the id of a call, unique within the server. `request` is the id of the answer.
pub fn call_id(request: &str, number: usize) -> String {
    format!("toolu_{}_{number}", request.trim_start_matches("msg_"))
}
