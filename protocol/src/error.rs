//! Errors of operations, with the party at fault.

use serde::{Deserialize, Serialize};

/// Party at fault for a failure, in the protocol's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// The request is wrong; a repetition fails again.
    User,
    /// The service is at fault.
    Server,
    /// The party at fault is unknown.
    Unknown,
}

/// A failed operation: the text is for the client and names the field at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct OpError {
    /// Party that is at fault.
    pub category: Category,
    /// The text for the client.
    pub message: String,
    /// Whether a disk was full, so that the same operation may succeed once there is space. Only the code that executes
    /// the operation uses it.
    #[serde(skip)]
    pub no_space: bool,
}

impl OpError {
    /// Returns the failure of a wrong request.
    pub fn user(message: impl Into<String>) -> Self {
        Self { category: Category::User, message: message.into(), no_space: false }
    }

    /// Returns a failure of the service. Internal detail belongs in the log, not in the text.
    pub fn server(message: impl Into<String>) -> Self {
        Self { category: Category::Server, message: message.into(), no_space: false }
    }

    /// Returns the failure of a full disk.
    pub fn no_space(message: impl Into<String>) -> Self {
        Self { no_space: true, ..Self::server(message) }
    }

    /// Returns the text for a log: see [`redacted`].
    pub fn redacted(&self) -> String {
        redacted(&self.message)
    }
}

/// Maximum number of characters of a redacted text.
const MAX_REDACTED: usize = 300;

/// Makes an error text fit for a log: without quotations from the request, on one line, and of limited length.
pub fn redacted(text: &str) -> String {
    let mut quoted = false;
    let mut kept = String::new();
    let mut escaped = false;
    for character in text.chars() {
        let quote = character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        match (quote, quoted) {
            (true, false) => kept.push('"'),
            (true, true) => kept.push_str("…\""),
            (false, true) => {}
            (false, false) => kept.push(if character.is_control() { ' ' } else { character }),
        }
        quoted ^= quote;
        if kept.chars().count() >= MAX_REDACTED {
            kept.push('…');
            break;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redacted_text_has_no_quotations_and_one_line() {
        assert_eq!(redacted("stop: \"a \\\" secret\" and\nmore"), "stop: \"…\" and more");
        assert_eq!(redacted("open: \"a secret"), "open: \"");
        assert_eq!(OpError::user("seq_id: 3 is below 1").redacted(), "seq_id: 3 is below 1");
        assert_eq!(redacted(&"x".repeat(1_000)).chars().count(), MAX_REDACTED + 1);
    }
}
