//! How an operation fails.

use serde::{Deserialize, Serialize};

/// Whose fault a failure is, as the wire says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// The request is wrong; sending it again fails again.
    User,
    /// The service is at fault.
    Server,
    /// Neither is established.
    Unknown,
}

/// A failed operation: the text is for the client and names the field at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct OpError {
    /// Whose fault it is.
    pub category: Category,
    /// The text for the client.
    pub message: String,
}

impl OpError {
    /// The request is wrong.
    pub fn user(message: impl Into<String>) -> Self {
        Self { category: Category::User, message: message.into() }
    }

    /// The service failed. Keep internal detail for the log.
    pub fn server(message: impl Into<String>) -> Self {
        Self { category: Category::Server, message: message.into() }
    }
}
