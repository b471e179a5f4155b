//! Requests and answers of the OpenAI API.

mod chat;
mod chat_stream;
mod completion_stream;
mod completions;
mod models;
mod responses;

pub(crate) use self::chat::chat;
pub(crate) use self::completions::completions;
pub(crate) use self::models::{model, models};
pub(crate) use self::responses::responses;
use super::completion::Completion;
pub(crate) use super::sse::Answered;
use trainyard_wire::openai::Usage;

use crate::error::ApiError;
use crate::state::AppState;

/// The last event of a stream.
const DONE: &str = "data: [DONE]\n\n";
/// A comment, which clients skip.
const PING: &str = ": ping\n\n";

/// Fields that every answer and every chunk of a request contains.
#[derive(Clone)]
struct Head {
    id: String,
    created: i64,
    model: String,
}

impl Head {
    fn new(state: &AppState, prefix: &str, id: &str, model: String) -> Self {
        Self { id: format!("{prefix}-{id}"), created: seconds(state), model }
    }
}

/// The present time in seconds since 1970.
fn seconds(state: &AppState) -> i64 {
    state.clock.now().as_millis() / 1_000
}

/// Counts the tokens of all prompts of a request.
fn usage<'a>(completions: impl Iterator<Item = &'a Completion>) -> Usage {
    let sums = completions.fold((0, 0, 0), |(prompt, sampled, cached), completion| {
        let tokens = completion.tokens;
        (prompt + tokens.prompt, sampled + tokens.sampled, cached + tokens.cached)
    });
    Usage::new(sums.0, sums.1, sums.2)
}

/// The last event of a stream that fails.
fn failure(error: &ApiError) -> String {
    let body = super::error_form::openai(error.status(), &error.shown());
    super::sse::data(&body).unwrap_or_else(|_| DONE.to_owned())
}
