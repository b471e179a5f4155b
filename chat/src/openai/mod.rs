//! Requests and answers of the OpenAI API.

pub mod chat;
mod chat_messages;
pub mod chat_reply;
pub mod completion_choice;
pub mod completions;
mod controls;
pub mod logprobs;
pub mod responses;
mod responses_input;
pub mod responses_reply;
mod tool_choice;

/// Returns the id of a call, unique within the server: the `number`th of a choice of a request's replies.
fn call_id(request: &str, choice: usize, number: usize) -> String {
    format!("call_{request}_{choice}_{number}")
}

/// Returns the reason why a completion ended.
pub fn finish_reason(end: &super::sequence::End) -> &'static str {
    match end {
        end if end.too_long => "length",
        end if end.calls_tools => "tool_calls",
        _ => "stop",
    }
}
