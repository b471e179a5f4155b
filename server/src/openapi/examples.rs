//! An example of each JSON body, by the operation's id.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use utoipa::openapi::content::Content;
use utoipa::openapi::{OpenApi, RefOr};

use super::operations::operations;

pub(super) const JSON: &str = "application/json";

/// The bodies of one operation.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Example {
    pub(super) request: Option<Value>,
    pub(super) response: Option<Value>,
    /// Answers of other content types, by these.
    pub(super) other: BTreeMap<String, Value>,
}

/// All examples.
///
/// # Errors
/// Fails if the file is not what it should be, which a test excludes.
pub(super) fn all() -> Result<BTreeMap<String, Example>, serde_json::Error> {
    serde_json::from_str(include_str!("examples.json"))
}

/// Writes the examples into the document.
pub(super) fn insert(document: &mut OpenApi) {
    let mut examples = all().unwrap_or_default();
    for operation in operations(document) {
        let Some(id) = operation.operation_id.as_deref() else { continue };
        let Some(Example { request, response, other }) = examples.remove(id) else { continue };
        if let (Some(RefOr::T(body)), Some(example)) = (&mut operation.request_body, request) {
            show(body.content.get_mut(JSON), example);
        }
        if let Some(RefOr::T(answer)) = operation.responses.responses.get_mut("200") {
            for (content_type, example) in other {
                show(answer.content.get_mut(&content_type), example);
            }
            if let Some(example) = response {
                show(answer.content.get_mut(JSON), example);
            }
        }
    }
}

/// Sets the example of a body, where there is one.
pub(super) fn show(content: Option<&mut RefOr<Content>>, example: Value) {
    if let Some(RefOr::T(content)) = content {
        content.example = Some(example);
    }
}
