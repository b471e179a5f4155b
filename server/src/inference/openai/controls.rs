//! Penalties, biases, `min_p` and response formats, as in the OpenAI API and its extensions.

use trainyard_protocol::SamplingControls;
use trainyard_wire::openai::ResponseFormat;
use trainyard_wire::sampling::LogitBias;

use super::super::template::to_line;
use crate::error::ApiError;

/// The schema of `json_object`.
const ANY_OBJECT: &str = r#"{"type": "object"}"#;

/// The fields of a request.
#[derive(Default)]
pub(super) struct Given<'a> {
    pub(super) min_p: Option<f64>,
    pub(super) presence_penalty: Option<f64>,
    pub(super) frequency_penalty: Option<f64>,
    pub(super) repetition_penalty: Option<f64>,
    pub(super) logit_bias: Option<&'a LogitBias>,
    pub(super) response_format: Option<&'a ResponseFormat>,
}

/// The controls that the request sets.
///
/// # Errors
/// The user's errors, with the field.
pub(super) fn controls(given: &Given<'_>) -> Result<SamplingControls, ApiError> {
    let off = SamplingControls::default();
    let or = |value: Option<f64>, off: f32| value.map_or(off, |value| value as f32);
    let controls = SamplingControls {
        min_p: or(given.min_p, off.min_p),
        presence_penalty: or(given.presence_penalty, off.presence_penalty),
        frequency_penalty: or(given.frequency_penalty, off.frequency_penalty),
        repetition_penalty: or(given.repetition_penalty, off.repetition_penalty),
        logit_bias: given.logit_bias.map(|bias| bias.entries().to_vec()).unwrap_or_default(),
        json_schema: given.response_format.map(schema).transpose()?.flatten(),
    };
    controls.check()?;
    Ok(controls)
}

/// The schema of a response format, as JSON; `None` for text.
fn schema(format: &ResponseFormat) -> Result<Option<String>, ApiError> {
    let refuse = |text: &str| Err(ApiError::invalid(format!("response_format.{text}")));
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
        _ => refuse("type: other types than \"text\", \"json_object\" and \"json_schema\" are not supported"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    fn read(format: &Value) -> Result<Option<String>, ApiError> {
        let format: ResponseFormat = serde_json::from_str(&format.to_string()).unwrap();
        controls(&Given { response_format: Some(&format), ..Given::default() }).map(|controls| controls.json_schema)
    }

    #[test]
    fn a_form_is_a_schema_with_its_members_in_order() {
        assert_eq!(read(&json!({"type": "text"})).unwrap(), None);
        assert_eq!(read(&json!({"type": "json_object"})).unwrap().as_deref(), Some(r#"{"type": "object"}"#));
        let text = r#"{"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema":
            {"properties": {"z": {"type": "integer"}, "a": {"maximum": 2.5}}, "type": "object"}}}"#;
        let format: ResponseFormat = serde_json::from_str(text).unwrap();
        let found = controls(&Given { response_format: Some(&format), ..Given::default() }).unwrap().json_schema;
        let expected = r#"{"properties": {"z": {"type": "integer"}, "a": {"maximum": 2.5}}, "type": "object"}"#;
        assert_eq!(found.as_deref(), Some(expected));
    }

    #[test]
    fn forms_that_are_none_are_refused_by_name() {
        for (format, text) in [
            (json!({"type": "grammar"}), "response_format.type: other types"),
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
