//! A node as the client sent it: its place for error texts, and its arguments.

use serde_json::Value;

use super::error::shortened;
use super::{Argument, GraphError, MAX_NAME_BYTES};

/// Arguments of a node as the client sent them.
#[derive(Default)]
pub(super) struct Given {
    pub(super) positional: Vec<Argument>,
    pub(super) named: Vec<(String, Argument)>,
}

/// Location of a node, for error texts.
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

    /// Returns the error that refuses the node.
    pub(super) fn refused(&self, reason: impl Into<String>) -> GraphError {
        let target = format!("{} {}", shortened(self.kind), shortened(self.target));
        GraphError::Node { index: self.index, name: shortened(self.name), target, reason: reason.into() }
    }
}

/// Returns a field's string, or an error that names the field.
pub(super) fn text<'v>(value: Option<&'v Value>, field: &str) -> Result<&'v str, GraphError> {
    value.and_then(Value::as_str).ok_or_else(|| GraphError::field(field, "a text is required"))
}
