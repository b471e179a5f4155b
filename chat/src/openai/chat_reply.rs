//! `POST chat/completions`: choices of the whole answer.

use trainyard_wire::openai::{ChatChoice, ChatLogprobs, ChatReply, FunctionCall, TokenLogprob, ToolCall};

use super::super::output::{self, Part};
use super::super::sequence::{Piece, Token};
use super::super::settings::Settings;
use super::super::texts::ModelText;
use super::logprobs::of_chat;
use super::{call_id, finish_reason};

/// Details that an answer reports for each token.
#[derive(Clone, Copy)]
pub struct TokenDetails {
    /// Number of candidates in addition to the token's log-probability; `None` for no log-probabilities.
    pub logprobs: Option<u32>,
    /// Whether the ids are shown.
    pub ids: bool,
}

impl TokenDetails {
    /// Returns the details that the settings ask for.
    pub fn of(settings: &Settings) -> Self {
        Self { logprobs: settings.logprobs, ids: settings.token_ids }
    }

    /// Returns the log-probabilities of further tokens; if ids are shown too, of special tokens as well.
    pub fn logprobs(self, text: &ModelText, tokens: &[Token]) -> Vec<TokenLogprob> {
        self.logprobs.map(|top| of_chat(text, tokens, top, self.ids)).unwrap_or_default()
    }
}

/// Returns a choice without content.
pub fn empty(index: usize, details: TokenDetails) -> ChatChoice {
    ChatChoice {
        index,
        message: ChatReply { role: "assistant".to_owned(), ..ChatReply::default() },
        logprobs: details.logprobs.map(|_| ChatLogprobs::default()),
        finish_reason: String::new(),
        token_ids: details.ids.then(Vec::new),
    }
}

/// Adds a piece of a completion to its choice. `request` is the id of the answer.
pub fn add(choice: &mut ChatChoice, piece: Piece, request: &str, text: &ModelText, details: TokenDetails) {
    let message = &mut choice.message;
    match piece {
        Piece::Part(Part::Text(more)) => message.content.get_or_insert_default().push_str(&more),
        Piece::Part(Part::Reasoning(more)) => message.reasoning_content.get_or_insert_default().push_str(&more),
        Piece::Part(Part::ToolCall(call)) => {
            let calls = message.tool_calls.get_or_insert_default();
            calls.push(tool_call(request, choice.index, calls.len(), call, None));
        }
        Piece::Tokens(tokens) => {
            if let Some(ids) = &mut choice.token_ids {
                ids.extend(tokens.iter().map(|token| token.id));
            }
            if let Some(logprobs) = &mut choice.logprobs {
                logprobs.content.extend(details.logprobs(text, &tokens));
            }
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
    ToolCall {
        id: call_id(request.trim_start_matches("chatcmpl-"), choice, number),
        kind: "function".to_owned(),
        function: FunctionCall { name: call.name, arguments: call.arguments },
        index,
    }
}
