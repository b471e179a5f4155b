//! The refusals and failures of this crate.

use trainyard_protocol::OpError;

/// Error when a request can't become a prompt.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// A field is invalid or not supported; the text names it.
    #[error("{0}")]
    Invalid(String),
    /// The text could not be processed, which is not the client's fault.
    #[error("{0}")]
    Internal(String),
}

impl ChatError {
    /// Makes the error of an invalid field.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }
}

/// An operation error found while reading a request is the client's.
impl From<OpError> for ChatError {
    fn from(error: OpError) -> Self {
        Self::Invalid(error.message)
    }
}
