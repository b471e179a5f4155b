//! A node as the client sent it: its place for error texts, and the arguments that it was given.

use serde_json::Value;

use super::error::shortened;
use super::{Argument, GraphError, MAX_NAME_BYTES};

/// The arguments that a node was given.
#[derive(Default)]
pub(super) struct Given {
    pub(super) positional: Vec<Argument>,
    pub(super) named: Vec<(String, Argument)>,
}

/// Where a node is, for error texts.
pub(super) struct Place<'v> {
    index: usize,
    pub(super) name: &'v str,
    pub(super) kind: &'v str,
    pub(super) target: &'v str,
}

impl<'v> Place<'v> {
    pub(super) fn of(index: usize, value: &'v Value) -> Result<Self, GraphError> {
        let field = |key: &str| {
            let found = text(value.get(key), &format!("graph.nodes[{index}].{key}"))?;
            if found.len() <= MAX_NAME_BYTES {
                return Ok(found);
            }
            let reason = format!("has {} bytes, at most {MAX_NAME_BYTES} are allowed", found.len());
            Err(GraphError::field(format!("graph.nodes[{index}].{key}"), reason))
        };
        Ok(Self { index, name: field("name")?, kind: field("op")?, target: field("target")? })
    }

    /// The node is refused.
    pub(super) fn refused(&self, reason: impl Into<String>) -> GraphError {
        let target = format!("{} {}", shortened(self.kind), shortened(self.target));
        GraphError::Node { index: self.index, name: shortened(self.name), target, reason: reason.into() }
    }
}

/// A text.
pub(super) fn text<'v>(value: Option<&'v Value>, field: &str) -> Result<&'v str, GraphError> {
    value.and_then(Value::as_str).ok_or_else(|| GraphError::field(field, "a text is required"))
}
