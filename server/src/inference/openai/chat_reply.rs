//! `POST chat/completions`: the whole answer.

use trainyard_wire::openai::{ChatChoice, ChatLogprobs, ChatReply, ChatResponse, FunctionCall, ToolCall};

use super::super::completion::Completion;
use super::super::output::{self, Part};
use super::super::sequence::Piece;
use super::super::texts::ModelText;
use super::logprobs::of_chat;
use super::{Head, finish_reason, usage};
use crate::error::ApiError;

/// Waits for the completions' end.
pub(super) async fn reply(
    head: Head,
    mut completion: Completion,
    text: &ModelText,
    top: u32,
) -> Result<ChatResponse, ApiError> {
    let updates = completion.rest().await?;
    let mut choices: Vec<ChatChoice> = (0..completion.count()).map(|index| empty(index, completion.scores())).collect();
    for (index, piece) in updates {
        if let Some(choice) = choices.get_mut(index) {
            add(choice, piece, &head.id, text, top);
        }
    }
    let usage = usage(std::iter::once(&completion));
    let Head { id, created, model } = head;
    Ok(ChatResponse { id, object: "chat.completion".to_owned(), created, model, choices, usage })
}

fn empty(index: usize, scored: bool) -> ChatChoice {
    let message = ChatReply { role: "assistant".to_owned(), ..ChatReply::default() };
    ChatChoice { index, message, logprobs: scored.then(ChatLogprobs::default), finish_reason: String::new() }
}

fn add(choice: &mut ChatChoice, piece: Piece, request: &str, text: &ModelText, top: u32) {
    let message = &mut choice.message;
    match piece {
        Piece::Part(Part::Text(more)) => message.content.get_or_insert_default().push_str(&more),
        Piece::Part(Part::Reasoning(more)) => message.reasoning_content.get_or_insert_default().push_str(&more),
        Piece::Part(Part::ToolCall(call)) => {
            let calls = message.tool_calls.get_or_insert_default();
            calls.push(tool_call(request, (choice.index, calls.len()), call, None));
        }
        Piece::Tokens(tokens) => {
            choice.logprobs.get_or_insert_default().content.extend(of_chat(text, &tokens, top));
        }
        Piece::End(end) => {
            choice.finish_reason = finish_reason(&end).to_owned();
            if message.tool_calls.is_none() {
                message.content.get_or_insert_default();
            }
        }
    }
}

/// A call, with an id that no other call has.
pub(super) fn tool_call(
    request: &str,
    (choice, number): (usize, usize),
    call: output::ToolCall,
    index: Option<usize>,
) -> ToolCall {
    let request = request.trim_start_matches("chatcmpl-");
    ToolCall {
        id: format!("call_{request}_{choice}_{number}"),
        kind: "function".to_owned(),
        function: FunctionCall { name: call.name, arguments: call.arguments },
        index,
    }
}
