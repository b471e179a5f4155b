//! The outcome of a completion, which may still have to be encoded.

use trainyard_protocol::OpError;

use crate::{Encode, Error, Outcome};

/// What the worker reported of a request.
pub(super) enum CompletionOutcome {
    Encoded(Outcome),
    /// A success; the result is made when it is first written.
    ToEncode(Encode),
    /// It is being encoded; left behind by an encoder that panicked.
    Encoding,
}

impl CompletionOutcome {
    /// Why the request failed, if that is known.
    pub(super) fn error(&self) -> Option<&OpError> {
        match self {
            Self::Encoded(Outcome::Failed(error)) => Some(error),
            _ => None,
        }
    }

    /// The outcome, encoded the first time and kept for the case that it is written again.
    pub(super) fn encoded(&mut self) -> Result<Outcome, Error> {
        let outcome = match std::mem::replace(self, Self::Encoding) {
            Self::Encoded(outcome) => outcome,
            Self::ToEncode(encode) => encode(),
            Self::Encoding => return Err(Error::store("complete a request", "its outcome is gone")),
        };
        *self = Self::Encoded(outcome.clone());
        Ok(outcome)
    }
}
