//! Choices of `POST completions`, made from the pieces of a completion.

use trainyard_wire::openai::{CompletionChoice, CompletionLogprobs};

use super::super::output::Part;
use super::super::sequence::Piece;
use super::super::texts::ModelText;
use super::finish_reason;
use super::logprobs::of_completion;

/// Settings of how the answer shows a request's completions.
#[derive(Clone, Copy)]
pub struct Shown {
    /// Number of completions of each prompt.
    pub n: usize,
    /// Whether the prompt precedes the completion.
    pub echo: bool,
    /// Whether log-probabilities are asked for.
    pub logprobs: bool,
    /// Whether the ids of tokens are asked for.
    pub token_ids: bool,
    /// Whether the completion is left out, because `max_tokens` is 0 although one token had to be sampled.
    pub prompt_alone: bool,
}

/// Returns a choice without content.
pub fn empty(index: usize) -> CompletionChoice {
    CompletionChoice {
        index,
        text: String::new(),
        logprobs: None,
        finish_reason: None,
        prompt_token_ids: None,
        token_ids: None,
    }
}

/// Adds a piece of a completion to its choice. `offset` counts the characters of the choice so far.
pub fn add(choice: &mut CompletionChoice, piece: Piece, text: &ModelText, shown: Shown, offset: &mut usize) {
    match piece {
        Piece::End(_) if shown.prompt_alone => choice.finish_reason = Some("length".to_owned()),
        Piece::End(end) => choice.finish_reason = Some(finish_reason(&end).to_owned()),
        _ if shown.prompt_alone => {}
        Piece::Part(Part::Text(more) | Part::Reasoning(more)) => choice.text.push_str(&more),
        Piece::Part(Part::ToolCall(_)) => {}
        Piece::Tokens(tokens) => {
            if shown.token_ids {
                choice.token_ids.get_or_insert_default().extend(tokens.iter().map(|token| token.id));
            }
            if shown.logprobs {
                extend(choice.logprobs.get_or_insert_default(), of_completion(text, &tokens, offset));
            }
        }
    }
}

fn extend(logprobs: &mut CompletionLogprobs, new: CompletionLogprobs) {
    logprobs.tokens.extend(new.tokens);
    logprobs.token_logprobs.extend(new.token_logprobs);
    logprobs.top_logprobs.extend(new.top_logprobs);
    logprobs.text_offset.extend(new.text_offset);
}

/// Returns the addition of a piece to a choice of a stream. `index` is the place of the choice.
pub fn delta(index: usize, piece: Piece, text: &ModelText, shown: Shown, offset: &mut usize) -> CompletionChoice {
    let mut choice = empty(index);
    add(&mut choice, piece, text, shown, offset);
    choice
}
