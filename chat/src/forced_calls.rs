//! Calls of tools that a request requires, and the schema that they follow.

use minijinja::Value as Ordered;
use serde_json::{Map, Value, json};
use trainyard_protocol::{CallMarks, SamplingControls};

use super::output::{CALL, CALL_END, OutputFormat};
use super::template::to_line;
use crate::error::ChatError;

/// Field of both APIs that demands calls.
const FIELD: &str = "tool_choice";
/// Keywords whose values are not schemas.
const VALUES: [&str; 4] = ["const", "default", "enum", "examples"];
/// Keywords beside which a schema of arguments need not say that they are an object.
const TYPED: [&str; 5] = ["type", "$ref", "anyOf", "oneOf", "allOf"];

/// Calls that the model must make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForcedCalls {
    /// JSON schema of a call, as JSON.
    schema: String,
    /// Whether further calls may follow the first.
    several: bool,
}

/// Which tool must be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand<'a> {
    Any,
    Named(&'a str),
}

impl ForcedCalls {
    /// Demands calls of tools in the form of the OpenAI API.
    ///
    /// # Errors
    /// [`ChatError::Invalid`] if no tool fits, or a schema is not one.
    pub(crate) fn new(tools: &[Ordered], demand: Demand<'_>, several: bool) -> Result<Self, ChatError> {
        let mut functions = Vec::new();
        for (index, tool) in tools.iter().enumerate() {
            let function = tool.get_attr("function").unwrap_or_default();
            let name = function.get_attr("name").unwrap_or_default();
            let Some(name) = name.as_str() else { continue };
            if matches!(demand, Demand::Any) || demand == Demand::Named(name) {
                let parameters = function.get_attr("parameters").unwrap_or_default();
                functions.push((name.to_owned(), arguments(index, &parameters)?));
            }
        }
        let refuse = |text: String| Err(ChatError::invalid(format!("{FIELD}: {text}")));
        let schema = match (functions.as_mut_slice(), demand) {
            ([], Demand::Any) => return refuse("a call is required, but no tools are given".to_owned()),
            ([], Demand::Named(name)) => return refuse(format!("no tool is named {name:?}")),
            ([(name, arguments)], _) => call(name, arguments.take(), "#"),
            (functions, _) => {
                let calls = functions.iter_mut().enumerate();
                let calls = calls.map(|(at, (name, arguments))| call(name, arguments.take(), &format!("#/anyOf/{at}")));
                json!({ "anyOf": calls.collect::<Vec<_>>() })
            }
        };
        Ok(Self { schema: schema.to_string(), several })
    }

    /// Adds the calls to the controls of a sample whose prompt expects output of this format. Returns the format of what is
    /// then sampled.
    ///
    /// # Errors
    /// [`ChatError::Invalid`] if the model's calls have marks that are not known here, if it is to think first, or if the
    /// schema is too large.
    pub(crate) fn apply(
        self,
        controls: &mut SamplingControls,
        format: OutputFormat,
    ) -> Result<OutputFormat, ChatError> {
        if !format.tool_calls || format.channels {
            return Err(ChatError::invalid(format!(
                "{FIELD}: a call can't be forced: the model's chat template has no {CALL}"
            )));
        }
        if format.begins_in_reasoning {
            return Err(ChatError::invalid(format!(
                "{FIELD}: a call can't be forced while the model thinks: turn thinking off"
            )));
        }
        controls.json_schema = Some(self.schema);
        controls.call_marks = Some(CallMarks {
            before: format!("{CALL}\n"),
            after: format!("\n{CALL_END}"),
            between: self.several.then(|| "\n".to_owned()),
        });
        controls.check().map_err(|error| {
            let reason = error.message.trim_start_matches("sampling_params.json_schema: ");
            ChatError::invalid(format!("tools: the schema of their calls {reason}"))
        })?;
        Ok(OutputFormat { reasoning: false, ..format })
    }
}

/// The schema of a call whose own place is `base`, a JSON pointer.
fn call(name: &str, mut arguments: Value, base: &str) -> Value {
    rebase(&mut arguments, &format!("{base}/properties/arguments"));
    json!({
        "type": "object",
        "properties": { "name": { "const": name }, "arguments": arguments },
        "required": ["name", "arguments"],
        "additionalProperties": false,
    })
}

/// The schema of a tool's arguments.
fn arguments(index: usize, parameters: &Ordered) -> Result<Value, ChatError> {
    let refuse = |text: &str| Err(ChatError::invalid(format!("tools[{index}].function.parameters: {text}")));
    if parameters.is_undefined() || parameters.is_none() {
        return Ok(json!({ "type": "object", "properties": {}, "additionalProperties": false }));
    }
    let Some(mut schema) = to_line(parameters).ok().and_then(|text| serde_json::from_str::<Map<_, _>>(&text).ok())
    else {
        return refuse("expected a JSON schema, an object");
    };
    if !TYPED.iter().any(|keyword| schema.contains_key(*keyword)) {
        schema.insert("type".to_owned(), json!("object"));
    }
    Ok(Value::Object(schema))
}

/// Lets references of a schema lead to its new place within another.
fn rebase(schema: &mut Value, base: &str) {
    match schema {
        Value::Object(members) => {
            for (keyword, member) in members {
                match member {
                    Value::String(reference) if keyword == "$ref" => {
                        if let Some(rest) = reference.strip_prefix('#') {
                            *reference = format!("{base}{rest}");
                        }
                    }
                    member if !VALUES.contains(&keyword.as_str()) => rebase(member, base),
                    _ => {}
                }
            }
        }
        Value::Array(members) => members.iter_mut().for_each(|member| rebase(member, base)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const FORMAT: OutputFormat =
        OutputFormat { reasoning: true, begins_in_reasoning: false, tool_calls: true, channels: false };

    fn ordered(value: Value) -> Ordered {
        serde_json::from_value(value).unwrap()
    }

    fn tools() -> Vec<Ordered> {
        let look = json!({"type": "function", "function": {"name": "look", "parameters": {
            "$defs": {"place": {"enum": ["up", "down"]}},
            "properties": {"z": {"$ref": "#/$defs/place"}, "a": {"const": {"$ref": "#"}}},
        }}});
        let wait = json!({"type": "function", "function": {"name": "wait"}});
        [look, wait].map(ordered).to_vec()
    }

    fn forced(demand: Demand<'_>, several: bool) -> (Value, Option<CallMarks>, OutputFormat) {
        let mut controls = SamplingControls::default();
        let calls = ForcedCalls::new(&tools(), demand, several).unwrap();
        let format = calls.apply(&mut controls, FORMAT).unwrap();
        (serde_json::from_str(&controls.json_schema.unwrap()).unwrap(), controls.call_marks, format)
    }

    #[test]
    fn a_named_tool_is_the_only_one() {
        let (schema, marks, format) = forced(Demand::Named("look"), false);
        assert_eq!(schema["properties"]["name"], json!({"const": "look"}));
        let arguments = &schema["properties"]["arguments"];
        assert_eq!(arguments["type"], "object");
        assert_eq!(arguments["properties"]["z"], json!({"$ref": "#/properties/arguments/$defs/place"}));
        assert_eq!(arguments["properties"]["a"], json!({"const": {"$ref": "#"}}));
        let order: Vec<&String> = arguments["properties"].as_object().unwrap().keys().collect();
        assert_eq!(order, ["z", "a"]);
        let marks = marks.unwrap();
        assert_eq!((marks.before.as_str(), marks.after.as_str()), ("<tool_call>\n", "\n</tool_call>"));
        assert_eq!((marks.between, format.reasoning, format.tool_calls), (None, false, true));
    }

    #[test]
    fn any_tool_is_one_of_all() {
        let (schema, marks, _) = forced(Demand::Any, true);
        let [look, wait] = schema["anyOf"].as_array().unwrap().as_slice() else { unreachable!("two tools") };
        let reference = &look["properties"]["arguments"]["properties"]["z"]["$ref"];
        assert_eq!(reference, "#/anyOf/0/properties/arguments/$defs/place");
        assert_eq!(wait["properties"]["arguments"]["additionalProperties"], false);
        assert_eq!(marks.unwrap().between.as_deref(), Some("\n"));
    }

    #[test]
    fn what_cannot_be_forced_is_refused() {
        let refused = |tools: &[Ordered], demand| ForcedCalls::new(tools, demand, true).unwrap_err().to_string();
        assert_eq!(refused(&tools(), Demand::Named("go")), "tool_choice: no tool is named \"go\"");
        assert_eq!(refused(&[], Demand::Any), "tool_choice: a call is required, but no tools are given");
        let wrong = json!({"type": "function", "function": {"name": "f", "parameters": [1]}});
        let wrong = refused(&[ordered(wrong)], Demand::Any);
        assert_eq!(wrong, "tools[0].function.parameters: expected a JSON schema, an object");
        let applied = |format| {
            let calls = ForcedCalls::new(&tools(), Demand::Any, true).unwrap();
            calls.apply(&mut SamplingControls::default(), format).unwrap_err().to_string()
        };
        assert!(applied(OutputFormat { tool_calls: false, ..FORMAT }).contains("has no <tool_call>"));
        assert!(applied(OutputFormat { channels: true, ..FORMAT }).contains("has no <tool_call>"));
        assert!(applied(OutputFormat { begins_in_reasoning: true, ..FORMAT }).contains("turn thinking off"));
        let large = json!({"type": "function", "function": {"name": "f", "parameters": {"enum": vec![1; 100_000]}}});
        let calls = ForcedCalls::new(&[ordered(large)], Demand::Any, true).unwrap();
        let error = calls.apply(&mut SamplingControls::default(), FORMAT).unwrap_err().to_string();
        assert!(error.starts_with("tools: the schema of their calls has "), "{error}");
    }
}
