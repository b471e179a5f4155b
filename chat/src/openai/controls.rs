//! Penalties, biases, `min_p` and response formats, as in the OpenAI API and its extensions.

use minijinja::Value as Ordered;
use trainyard_protocol::SamplingControls;
use trainyard_wire::openai::{ResponseFormat, TextFormat};

use super::super::template::to_line;
use crate::error::ChatError;

/// The schema of `json_object`.
const ANY_OBJECT: &str = r#"{"type": "object"}"#;

/// The controls of a request with its response format, checked.
///
/// # Errors
/// The user's errors, with the field.
pub(super) fn checked(
    controls: SamplingControls,
    response_format: Option<&ResponseFormat>,
) -> Result<SamplingControls, ChatError> {
    with_schema(controls, response_format.map(schema).transpose()?.flatten())
}

/// The controls of a request whose reply follows a schema in JSON, checked.
///
/// # Errors
/// The user's errors, with the field.
pub(super) fn with_schema(
    controls: SamplingControls,
    json_schema: Option<String>,
) -> Result<SamplingControls, ChatError> {
    let controls = SamplingControls { json_schema, ..controls };
    controls.check()?;
    Ok(controls)
}

/// The schema of a response format, as JSON; `None` for text.
fn schema(format: &ResponseFormat) -> Result<Option<String>, ChatError> {
    let refuse = |text: &str| Err(ChatError::invalid(format!("response_format.{text}")));
    match (format.kind.as_str(), &format.json_schema) {
        ("text" | "json_object", Some(_)) => refuse("json_schema: requires the type \"json_schema\""),
        ("text", None) => Ok(None),
        ("json_object", None) => Ok(Some(ANY_OBJECT.to_owned())),
        ("json_schema", None) => refuse("json_schema: a schema is required"),
        ("json_schema", Some(named)) => {
            written("response_format.json_schema.schema", &named.get_attr("schema").unwrap_or_default())
        }
        _ => refuse("type: expected \"text\", \"json_object\" or \"json_schema\""),
    }
}

/// The schema of a response's text, as JSON; `None` for text.
///
/// # Errors
/// The user's errors, with the field.
pub(super) fn text_schema(format: &TextFormat) -> Result<Option<String>, ChatError> {
    let schema = format.schema.clone().unwrap_or_default();
    let refuse = |text: &str| Err(ChatError::invalid(format!("text.format.{text}")));
    match format.kind.as_str() {
        "text" | "json_object" if format.schema.is_some() => refuse("schema: requires the type \"json_schema\""),
        "text" => Ok(None),
        "json_object" => Ok(Some(ANY_OBJECT.to_owned())),
        "json_schema" => written("text.format.schema", &schema),
        _ => refuse("type: expected \"text\", \"json_object\" or \"json_schema\""),
    }
}

fn written(field: &str, schema: &Ordered) -> Result<Option<String>, ChatError> {
    if schema.is_undefined() || schema.is_none() {
        return Err(ChatError::invalid(format!("{field}: a schema is required")));
    }
    to_line(schema).map(Some).map_err(|error| ChatError::invalid(format!("{field}: {error}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    fn read(format: &Value) -> Result<Option<String>, ChatError> {
        let format: ResponseFormat = serde_json::from_str(&format.to_string()).unwrap();
        checked(SamplingControls::default(), Some(&format)).map(|controls| controls.json_schema)
    }

    #[test]
    fn a_form_is_a_schema_with_its_members_in_order() {
        assert_eq!(read(&json!({"type": "text"})).unwrap(), None);
        assert_eq!(read(&json!({"type": "json_object"})).unwrap().as_deref(), Some(r#"{"type": "object"}"#));
        let text = r#"{"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema":
            {"properties": {"z": {"type": "integer"}, "a": {"maximum": 2.5}}, "type": "object"}}}"#;
        let format: ResponseFormat = serde_json::from_str(text).unwrap();
        let found = checked(SamplingControls::default(), Some(&format)).unwrap().json_schema;
        let expected = r#"{"properties": {"z": {"type": "integer"}, "a": {"maximum": 2.5}}, "type": "object"}"#;
        assert_eq!(found.as_deref(), Some(expected));
    }

    #[test]
    fn forms_that_are_none_are_refused_by_name() {
        for (format, text) in [
            (json!({"type": "grammar"}), "response_format.type: expected"),
            (json!({"type": "json_schema"}), "response_format.json_schema: a schema"),
            (
                json!({"type": "json_schema", "json_schema": {"name": "n"}}),
                "response_format.json_schema.schema: a schema",
            ),
            (json!({"type": "text", "json_schema": {}}), "response_format.json_schema: requires"),
            (json!({"type": "json_schema", "json_schema": {"schema": [1]}}), "json_schema: must be an object"),
        ] {
            let refused = read(&format).unwrap_err().to_string();
            assert!(refused.contains(text), "{refused}");
        }
    }
}
