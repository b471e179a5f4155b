//! Errors of graphs that are refused.

use crate::OpError;

/// A defect of a custom loss, in a field or node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// A field outside the nodes is wrong.
    #[error("{field}: {reason}")]
    Field {
        /// Name of the field in the request.
        field: String,
        /// The defect, and what is allowed instead.
        reason: String,
    },
    /// A node is wrong or not allowed.
    #[error("graph.nodes[{index}]: node {name:?} ({target}): {reason}")]
    Node {
        /// Position of the node in the list.
        index: usize,
        /// Name of the node, cut off if it is too long.
        name: String,
        /// Kind and target of the node's call: `call_function torch.exp`.
        target: String,
        /// The defect, and what is allowed instead.
        reason: String,
    },
}

impl GraphError {
    /// Converts the error into a failure of the request.
    pub fn refusal(&self) -> OpError {
        OpError::user(self.to_string())
    }

    pub(super) fn field(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Field { field: field.into(), reason: reason.into() }
    }
}

/// Returns the beginning of a client's text, for an error text.
pub(super) fn shortened(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
