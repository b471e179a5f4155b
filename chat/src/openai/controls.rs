//! Penalties, biases, `min_p` and response formats, as in the OpenAI API and its extensions.

use trainyard_protocol::SamplingControls;
use trainyard_wire::openai::ResponseFormat;

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
    let json_schema = response_format.map(schema).transpose()?.flatten();
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
            let schema = named.get_attr("schema").unwrap_or_default();
            if schema.is_undefined() || schema.is_none() {
                return refuse("json_schema.schema: a schema is required");
            }
            match to_line(&schema) {
                Ok(text) => Ok(Some(text)),
                Err(error) => refuse(&format!("json_schema.schema: {error}")),
            }
        }
        _ => refuse("type: expected \"text\", \"json_object\" or \"json_schema\""),
    }
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
