//! `POST chat/completions`: choices of the whole answer.

use trainyard_wire::openai::{ChatChoice, ChatLogprobs, ChatReply, FunctionCall, ToolCall};

use super::super::output::{self, Part};
use super::super::sequence::Piece;
use super::super::texts::ModelText;
use super::finish_reason;
use super::logprobs::of_chat;

/// Returns a choice without content. `scored` is whether its log-probabilities are asked for.
pub fn empty(index: usize, scored: bool) -> ChatChoice {
    let message = ChatReply { role: "assistant".to_owned(), ..ChatReply::default() };
    ChatChoice { index, message, logprobs: scored.then(ChatLogprobs::default), finish_reason: String::new() }
}

/// Adds a piece of a completion to its choice, with `top` candidates per token. `request` is the id of the answer.
pub fn add(choice: &mut ChatChoice, piece: Piece, request: &str, text: &ModelText, top: u32) {
    let message = &mut choice.message;
    match piece {
        Piece::Part(Part::Text(more)) => message.content.get_or_insert_default().push_str(&more),
        Piece::Part(Part::Reasoning(more)) => message.reasoning_content.get_or_insert_default().push_str(&more),
        Piece::Part(Part::ToolCall(call)) => {
            let calls = message.tool_calls.get_or_insert_default();
            calls.push(tool_call(request, choice.index, calls.len(), call, None));
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

/// Returns a call with an id that no other call has: the `number`th of a choice. `index` is its place in a stream.
pub fn tool_call(
    request: &str,
    choice: usize,
    number: usize,
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
