//! Requests and answers of the OpenAI API.

pub mod chat;
mod chat_messages;
pub mod chat_reply;
pub mod completion_choice;
pub mod completions;
mod controls;
pub mod logprobs;
mod tool_choice;

/// Returns the reason why a completion ended.
pub fn finish_reason(end: &super::sequence::End) -> &'static str {
    match end {
        end if end.too_long => "length",
        end if end.calls_tools => "tool_calls",
        _ => "stop",
    }
}
