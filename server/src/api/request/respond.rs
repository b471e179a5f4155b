//! Responses of known length.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use trainyard_http::answer::full_response;

use crate::error::ApiError;
use crate::inference::Answered;
use crate::inference::agents::Agent;

/// A JSON response with status 200.
pub(crate) struct Answer<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(body) => full_response(StatusCode::OK, "application/json", body.into()),
            Err(error) => ApiError::Internal(format!("failed to write a response: {error}")).into_response(),
        }
    }
}

/// Result of a handler.
pub(crate) type Reply<T> = Result<Answer<T>, ApiError>;

/// Returns a response of the compatible APIs, whole or as a stream. With the key of an agent session, it says how its
/// replies begin.
pub(crate) fn whole_or_stream<T: Serialize>(agent: Option<&Agent>, answered: Answered<T>) -> Response {
    let response = match answered {
        Answered::Whole(whole) => Answer(whole).into_response(),
        Answered::Stream(events) => events,
    };
    match agent {
        Some(agent) => agent.mark(response),
        None => response,
    }
}
