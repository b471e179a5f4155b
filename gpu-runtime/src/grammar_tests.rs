#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;
use serde_json::json;
use trainyard_protocol::SamplingControls;

use super::*;
use crate::stop::tests::detokenizer;

/// End token of the tokenizer, and the size of its vocabulary with padding.
const EOS: u32 = 256;
const VOCAB: usize = 300;

pub(super) fn compiler() -> GrammarCompiler {
    GrammarCompiler::new(&detokenizer(), VOCAB, &[EOS, 298]).unwrap()
}

/// Runs work on a thread with a stack of so many bytes.
pub(super) fn on_stack<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(bytes).spawn_scoped(scope, work).unwrap();
        thread.join().unwrap()
    })
}

fn compile(schema: &Value) -> Result<Grammar, OpError> {
    compiler().compile(&schema.to_string())
}

/// Feeds a text byte by byte; whether all of it is allowed and it may end then.
fn accepts(grammar: &Grammar, text: &str) -> bool {
    let mut grammar = grammar.clone();
    let mut bytes = text.bytes().map(u32::from).peekable();
    while let Some(byte) = bytes.next() {
        if !grammar.allowed().allows(byte) {
            return false;
        }
        if grammar.push(byte).unwrap() {
            return bytes.peek().is_none();
        }
    }
    grammar.allowed().allows(EOS)
}

fn person() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 8},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
        },
        "required": ["name", "age"],
        "additionalProperties": false,
    })
}

/// Whether a value follows [`person`].
fn is_person(value: &Value) -> bool {
    let Some(fields) = value.as_object() else { return false };
    let tags = |tags: &Value| {
        tags.as_array().is_some_and(|tags| tags.len() <= 2 && tags.iter().all(|tag| tag == "a" || tag == "b"))
    };
    fields.keys().all(|key| ["name", "age", "tags"].contains(&key.as_str()))
        && value["name"].as_str().is_some_and(|name| name.chars().count() <= 8)
        && value["age"].as_u64().is_some_and(|age| age <= 120)
        && fields.get("tags").is_none_or(tags)
}

#[test]
fn only_what_follows_the_schema_is_allowed() {
    let grammar = compile(&person()).unwrap();
    for text in [
        r#"{"name":"Ada","age":36}"#,
        "{\n  \"name\": \"Ada\",\n  \"age\": 36,\n  \"tags\": [\"a\", \"b\"]\n}",
        r#"{"name":"é\n\"","age":0,"tags":[]}"#,
        "{\n                \"name\": \"Ada\",\n\t\t\"age\": 36\n}",
    ] {
        assert!(accepts(&grammar, text), "{text}");
    }
    for text in [
        r#"{"name":"Ada"}"#,
        r#"{"name":"Ada","age":121}"#,
        r#"{"name":"Ada","age":1.5}"#,
        r#"{"name":"much too long","age":1}"#,
        r#"{"name":"Ada","age":1,"x":1}"#,
        r#"{"name":"Ada","age":1,"tags":["a","b","a"]}"#,
        "{\"name\":\n\n\"Ada\",\"age\":1}",
        "{\"name\": \n\"Ada\",\"age\":1}",
        "{\"name\":                 \"Ada\",\"age\":1}",
        "\n\n{\"name\":\"Ada\",\"age\":1}",
        "[]",
        "",
    ] {
        assert!(!accepts(&grammar, text), "{text}");
    }
}

#[test]
fn end_tokens_are_allowed_where_the_text_is_complete_and_special_tokens_never() {
    let mut grammar = compile(&json!({"type": "integer"})).unwrap();
    assert!(!grammar.allowed().allows(EOS));
    assert!(!grammar.push(u32::from(b'7')).unwrap());
    assert!(
        grammar.allowed().allows(EOS) && grammar.allowed().allows(298) && grammar.allowed().allows(u32::from(b'1'))
    );
    assert!(!grammar.allowed().allows(299), "a token without text");
    assert!(grammar.push(298).unwrap());
    // Nothing can follow: it ends by itself.
    let mut grammar = compile(&json!({"const": "x"})).unwrap();
    let ends: Vec<bool> = b"\"x\"".iter().map(|byte| grammar.push(u32::from(*byte)).unwrap()).collect();
    assert_eq!(ends, [false, false, true]);
}

#[test]
fn copies_go_their_own_ways() {
    let grammar = compile(&person()).unwrap();
    let mut one = grammar.clone();
    one.push(u32::from(b'{')).unwrap();
    assert!(grammar.allowed().allows(u32::from(b'{')) && !one.allowed().allows(u32::from(b'{')));
}

#[test]
fn schema_bombs_and_unknown_keywords_are_the_users_errors() {
    let nested = |operator: &str| {
        let level = |i: usize| {
            let next = json!({"$ref": format!("#/$defs/a{}", i + 1)});
            (format!("a{i}"), json!({operator: [next.clone(), next]}))
        };
        let mut defs: serde_json::Map<String, Value> = (0..40).map(level).collect();
        defs.insert("a40".to_owned(), json!({"type": "string", "maxLength": 3}));
        json!({"$ref": "#/$defs/a0", "$defs": defs})
    };
    // These stand for little, or can be worked off step by step.
    for schema in [
        nested("allOf"),
        nested("anyOf"),
        json!({"type": "string", "maxLength": 1_000_000_000}),
        json!({"type": "array", "minItems": 1_000_000_000, "items": {}}),
        json!({"type": "string", "pattern": "^((a{1,1000}){1,1000}){1,1000}$"}),
    ] {
        if let Ok(mut grammar) = compile(&schema) {
            let first = [b'"', b'['].map(u32::from).into_iter().find(|byte| grammar.allowed().allows(*byte)).unwrap();
            assert!(!grammar.push(first).unwrap());
        }
    }
    for (schema, reason) in [
        (json!({"$ref": "#"}), ""),
        (json!({"$ref": "http://127.0.0.1/schema.json"}), "$ref"),
        (json!({"$ref": "file:///etc/passwd"}), "$ref"),
        (json!({"type": "foo"}), "foo"),
        (json!({"type": "object", "if": {}, "then": {}}), "if"),
        (json!({"type": "string", "allOf": [{"type": "integer"}]}), "Unsatisfiable"),
        (json!({"type": "integer", "minimum": -1e300, "maximum": 1e300}), ""),
        (json!({"type": "number", "multipleOf": 1e-9}), ""),
        (json!({"type": "string", "pattern": "("}), ""),
    ] {
        let Err(error) = compile(&schema) else {
            // What a debug build refuses, because its numbers overflow, is computed in a release.
            assert!(reason.is_empty(), "{schema}");
            continue;
        };
        assert!(error.message.starts_with("sampling_params.json_schema: "), "{error}");
        assert!(error.message.contains(reason) && error.message.len() < 400, "{error}");
        assert!(!error.message.contains("panic") && !error.message.contains(".rs"), "{error}");
    }
}

#[test]
fn settings_of_the_library_within_a_schema_are_ignored() {
    let mut schema = person();
    schema["x-guidance"] = json!({"whitespace_pattern": "x*", "lenient": true});
    let grammar = compile(&schema).unwrap();
    assert!(accepts(&grammar, r#"{"name": "Ada", "age": 3}"#) && !accepts(&grammar, r#"{x"name":"Ada","age":3}"#));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whatever is sampled among the allowed tokens, the text parses and follows the schema.
    #[test]
    fn texts_follow_the_schema(choices in prop::collection::vec(any::<prop::sample::Index>(), 400)) {
        let detokenizer = detokenizer();
        let mut grammar = compile(&person()).unwrap();
        let (mut tokens, mut ended) = (Vec::new(), false);
        for choice in choices {
            let allowed: Vec<u32> = (0..VOCAB as u32).filter(|token| grammar.allowed().allows(*token)).collect();
            let token = *choice.get(&allowed);
            ended = grammar.push(token).unwrap();
            if token != EOS && token != 298 {
                tokens.push(token);
            }
            if ended {
                break;
            }
        }
        prop_assert!(ended, "{}", detokenizer.decode(&tokens));
        let text = detokenizer.decode(&tokens);
        let value: Value = serde_json::from_str(&text).map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        prop_assert!(is_person(&value), "{}", text);
    }
}

#[test]
fn calls_stand_between_their_marks() {
    let marks = |between: Option<&str>| CallMarks {
        before: "<tool_call>\n".to_owned(),
        after: "\n</tool_call>".to_owned(),
        between: between.map(str::to_owned),
    };
    let arguments = json!({"$defs": {"b": {"type": "boolean"}}, "type": "object", "properties": {
        "on": {"$ref": "#/anyOf/0/properties/arguments/$defs/b"}}, "required": ["on"], "additionalProperties": false});
    let call = |name: &str, arguments: &Value| {
        json!({"type": "object", "properties": {"name": {"const": name},
        "arguments": arguments}, "required": ["name", "arguments"], "additionalProperties": false})
    };
    let schema = json!({"anyOf": [call("f", &arguments), call("g", &json!({"type": "object", "maxProperties": 0}))]});
    let compiled = |between| compiler().compile_calls(&schema.to_string(), &marks(between)).unwrap();
    let (one, several) = (compiled(None), compiled(Some("\n")));
    let f = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"on\": true}}\n</tool_call>";
    let g = "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>";
    for text in [f, g] {
        assert!(accepts(&one, text) && accepts(&several, text), "{text}");
    }
    let both = format!("{f}\n{g}");
    assert!(accepts(&several, &both) && !accepts(&one, &both));
    for text in
        ["", "{}", "<tool_call>\n{}\n</tool_call>", &format!(" {f}"), &f.replace("true", "1"), &f.replace("f\"", "h\"")]
    {
        assert!(!accepts(&one, text) && !accepts(&several, text), "{text}");
    }
    let refused = compiler().compile_calls(r#"{"type": "what"}"#, &marks(None)).err().unwrap();
    assert!(refused.message.starts_with("tools: "), "{refused}");
}

/// Levels of `make`, around a schema of a text.
fn nested(levels: usize, make: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(json!({"type": "string"}), |inner, _| make(inner))
}

/// Schemas that refer from one to the next, `count` of them.
fn chained(count: usize, make: impl Fn(Value) -> Value) -> Value {
    let next = |at: usize| make(json!({"$ref": format!("#/$defs/{}", at + 1)}));
    let mut defs: serde_json::Map<String, Value> = (0..count).map(|at| (at.to_string(), next(at))).collect();
    defs.insert(count.to_string(), json!({"type": "string"}));
    json!({"$ref": "#/$defs/0", "$defs": defs})
}

/// The deepest schemas that a sample may have, by nesting and by references, and one that a search found.
#[test]
fn deep_schemas_leave_most_of_the_stack() {
    let all_of = |inner: Value| json!({"allOf": [inner]});
    let any_of = |inner: Value| json!({"anyOf": [inner, {"type": "null"}]});
    let both = |inner: Value| json!({"allOf": [inner, {"minLength": 1}]});
    let property = |inner: Value| json!({"type": "object", "properties": {"a": inner}, "required": ["a"]});
    let array = |inner: Value| json!({"type": "array", "items": inner});
    let found: Value = serde_json::from_str(include_str!("../../tests/fuzz/json_schema/references")).unwrap();
    let schemas = [
        nested(60, all_of),
        nested(60, any_of),
        nested(60, both),
        nested(60, property),
        nested(120, array),
        json!({"const": (0..120).fold(json!(1), |inner, _| json!([inner]))}),
        chained(1_000, |inner| inner),
        chained(500, all_of),
        chained(300, any_of),
        chained(300, both),
        chained(200, property),
        chained(500, array),
    ];
    let compiled = |schema: &Value| {
        let controls = SamplingControls { json_schema: Some(schema.to_string()), ..SamplingControls::default() };
        controls.check().unwrap();
        on_stack(COMPILE_STACK / 2, || compile(schema))
    };
    for (at, schema) in schemas.iter().enumerate() {
        assert!(compiled(schema).is_ok(), "{at}");
    }
    let error = compiled(&found).err().unwrap();
    assert!(error.message.ends_with("schema must be an object or boolean"), "{error}");
}
