//! Why a graph is refused.

use crate::OpError;

/// What is wrong with a custom loss, by field or node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// A field outside the nodes.
    #[error("{field}: {reason}")]
    Field {
        /// Its name in the request.
        field: String,
        /// What is wrong, and what is allowed.
        reason: String,
    },
    /// A node.
    #[error("graph.nodes[{index}]: node {name:?} ({target}): {reason}")]
    Node {
        /// Its position in the list.
        index: usize,
        /// Its name; cut off where it is too long.
        name: String,
        /// What it calls, after its kind: `call_function torch.exp`.
        target: String,
        /// What is wrong, and what is allowed.
        reason: String,
    },
}

impl GraphError {
    /// The same as a failure of the request.
    pub fn refusal(&self) -> OpError {
        OpError::user(self.to_string())
    }

    pub(super) fn field(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Field { field: field.into(), reason: reason.into() }
    }
}

/// The beginning of a text of the client's, for an error text.
pub(super) fn shortened(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
