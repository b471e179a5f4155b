//! The parts of the API's description that clients need.

use serde_json::{Map, Value, json};

/// Operations for browsers, supervisors and the tools of Hugging Face. No program calls them through an SDK.
const LEFT_OUT: &[&str] = &["docs", "docs_file", "hub", "index", "livez", "metrics", "openapi_json"];

/// Prefix of the same operations under a shorter path.
const SHORT: &str = "short_";

/// Returns the description without these operations, without refusals, and without alternatives to JSON bodies.
///
/// Constraints of values are dropped: the server checks them and names the field. A client that checked them too would
/// refuse values that a later server accepts.
pub fn for_clients(mut document: Value) -> Value {
    if let Some(paths) = document.get_mut("paths").and_then(Value::as_object_mut) {
        for operations in paths.values_mut().filter_map(Value::as_object_mut) {
            operations.retain(|_, operation| !is_left_out(operation));
            operations.values_mut().for_each(keep_json);
        }
        paths.retain(|_, operations| operations.as_object().is_some_and(|operations| !operations.is_empty()));
    }
    simplify(&mut document);
    document
}

fn is_left_out(operation: &Value) -> bool {
    let name = operation.get("operationId").and_then(Value::as_str).unwrap_or_default();
    LEFT_OUT.contains(&name) || name.starts_with(SHORT)
}

/// Keeps only the JSON form of a body that has one; the other forms (protobuf, streams of events) belong to the
/// hand-written layer.
fn keep_json(operation: &mut Value) {
    let bodies = [operation.pointer_mut("/requestBody/content").map(Value::take)];
    for content in bodies.into_iter().flatten() {
        operation["requestBody"]["content"] = json_alone(content);
    }
    let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else { return };
    // The hand-written layer turns all refusals into one type of error.
    responses.retain(|status, _| status.starts_with('2'));
    for content in responses.values_mut().filter_map(|response| response.get_mut("content")) {
        *content = json_alone(content.take());
    }
}

fn json_alone(content: Value) -> Value {
    match (content.get("application/json"), content.as_object().map_or(0, Map::len)) {
        (Some(body), _) => json!({"application/json": body}),
        // A file in the requested form; a client receives bytes.
        (None, 2..) => json!({"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}),
        (None, _) => content,
    }
}

fn simplify(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(simplify),
        Value::Object(fields) => {
            if fields.contains_key("type") || fields.contains_key("$ref") {
                drop_constraints(fields);
            }
            fields.values_mut().for_each(simplify);
        }
        _ => {}
    }
}

fn drop_constraints(schema: &mut Map<String, Value>) {
    let natural = schema.get("minimum").and_then(Value::as_f64).is_some_and(|least| least >= 0.0);
    let format = schema.get("format").and_then(Value::as_str);
    if natural && let Some(format @ ("int32" | "int64")) = format {
        let unsigned = format!("u{format}");
        schema.insert("format".into(), unsigned.into());
    }
    // In a schema these are numbers or strings. A property of such a name is an object.
    for name in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern", "minLength", "maxLength"] {
        if schema.get(name).is_some_and(|constraint| constraint.is_number() || constraint.is_string()) {
            schema.remove(name);
        }
    }
    schema.remove("propertyNames");
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::for_clients;

    #[test]
    fn unneeded_operations_forms_and_constraints_are_dropped() {
        let number = json!({"type": ["integer", "null"], "format": "int64", "minimum": 1, "default": null});
        let document = json!({
            "paths": {
                "/metrics": {"get": {"operationId": "metrics"}},
                "/v1/x": {"post": {"operationId": "short_x"}},
                "/x": {"post": {
                    "operationId": "x",
                    "requestBody": {"content": {"application/json": 1, "application/x-protobuf": 2}},
                    "responses": {"200": {"content": {"application/json": 1, "text/event-stream": 2}}, "308": {}},
                }},
                "/file": {"get": {"responses": {"200": {"content": {"application/x-ndjson": 1, "text/csv": 2}}}}},
            },
            "components": {"schemas": {"X": {"type": "object", "properties": {"n": number, "pattern": {"type": "string"}}}}},
        });
        let number = json!({"type": ["integer", "null"], "format": "uint64"});
        let bytes = json!({"schema": {"type": "string", "format": "binary"}});
        let expected = json!({
            "paths": {
                "/x": {"post": {
                    "operationId": "x",
                    "requestBody": {"content": {"application/json": 1}},
                    "responses": {"200": {"content": {"application/json": 1}}},
                }},
                "/file": {"get": {"responses": {"200": {"content": {"application/octet-stream": bytes}}}}},
            },
            "components": {"schemas": {"X": {"type": "object", "properties": {"n": number, "pattern": {"type": "string"}}}}},
        });
        assert_eq!(for_clients(document), expected);
    }
}
