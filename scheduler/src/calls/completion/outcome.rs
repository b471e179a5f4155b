//! The outcome of a completion, which may still have to be encoded.

use trainyard_protocol::OpError;

use crate::{Encode, Error, Outcome};

/// Outcome that the worker reported for a request.
pub(super) enum CompletionOutcome {
    Encoded(Outcome),
    /// The request succeeded; its result is encoded when it is first written.
    ToEncode(Encode),
    /// The result is being encoded; this value remains if the encoder panicked.
    Encoding,
}

impl CompletionOutcome {
    /// Returns the error of the request, if it is known.
    pub(super) fn error(&self) -> Option<&OpError> {
        match self {
            Self::Encoded(Outcome::Failed(error)) => Some(error),
            _ => None,
        }
    }

    /// Returns the outcome, which is encoded on the first call and kept in case it is written again.
    pub(super) fn encoded(&mut self) -> Result<Outcome, Error> {
        let outcome = match std::mem::replace(self, Self::Encoding) {
            Self::Encoded(outcome) => outcome,
            Self::ToEncode(encode) => encode(),
            Self::Encoding => return Err(Error::store("complete a request", "its outcome was lost")),
        };
        *self = Self::Encoded(outcome.clone());
        Ok(outcome)
    }
}
