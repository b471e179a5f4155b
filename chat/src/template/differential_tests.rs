//! The templates in `chat/tests/templates` have the texts that Jinja2 in Python renders, set up as `transformers` does.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use minijinja::Value;
use time::OffsetDateTime;

use super::{ChatTemplate, Conversation};

/// 2024-07-09 15:04:05, which `render.py` has too.
const NOW: i64 = 1_720_537_445;
/// Names of an assistant's thoughts in requests.
const THOUGHTS: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/templates")
}

fn json(name: &str) -> Value {
    serde_json::from_slice(&fs::read(folder().join(name)).unwrap()).unwrap()
}

fn pairs(map: &Value) -> Vec<(String, Value)> {
    if map.is_undefined() {
        return Vec::new();
    }
    map.try_iter().unwrap().map(|key| (key.to_string(), map.get_item(&key).unwrap())).collect()
}

/// Returns a message with its thoughts under both names that templates read.
fn with_thoughts(message: &Value) -> Value {
    let given =
        |name: &&str| Some(message.get_attr(name).unwrap()).filter(|value| !value.is_none() && !value.is_undefined());
    let Some(thoughts) = THOUGHTS.iter().find_map(given) else { return message.clone() };
    let mut members = vec![("thinking".to_owned(), thoughts.clone())];
    members.extend(pairs(message));
    members.push(("reasoning_content".to_owned(), thoughts));
    Value::from_pairs(members)
}

fn conversation(given: &Value) -> Conversation {
    let list = |name: &str| {
        let list = given.get_attr(name).unwrap();
        if list.is_undefined() { Vec::new() } else { list.try_iter().unwrap().collect::<Vec<_>>() }
    };
    Conversation {
        messages: list("messages").iter().map(with_thoughts).collect(),
        tools: list("tools"),
        variables: pairs(&given.get_attr("variables").unwrap()).into_iter().collect(),
        add_generation_prompt: given.get_attr("add_generation_prompt").unwrap().is_true(),
        images: Vec::new(),
    }
}

#[test]
fn templates_have_the_texts_of_jinja2() {
    let tokens =
        BTreeMap::from([("bos_token", "<s>"), ("eos_token", "</s>")].map(|(name, token)| (name.into(), token.into())));
    let conversations = pairs(&json("conversations.json"));
    let mut differences = Vec::new();
    let expected = pairs(&json("expected.json"));
    for (template, texts) in &expected {
        let source = fs::read_to_string(folder().join(format!("{template}.jinja"))).unwrap();
        let compiled = ChatTemplate::new(BTreeMap::from([("default".to_owned(), source)]), tokens.clone());
        for (name, given) in &conversations {
            let wanted = texts.get_attr(name).unwrap();
            let now = OffsetDateTime::from_unix_timestamp(NOW).unwrap();
            let rendered = compiled.as_ref().map_err(ToString::to_string);
            let rendered =
                rendered.and_then(|it| it.render(&conversation(given), now).map_err(|error| error.to_string()));
            if rendered.as_deref().ok() != wanted.as_str() {
                differences.push(format!("{template}, {name}:\n  Jinja2 {wanted:?}\n  here   {rendered:?}"));
            }
        }
    }
    assert!(expected.len() > 60 && conversations.len() > 3);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Renders one line with the conversation of `render.py`'s snippets.
fn snippet(source: &str) -> Result<String, String> {
    let message = |role: &str, content: &str| Value::from_pairs([("role", role), ("content", content)]);
    let conversation = Conversation {
        messages: vec![message("user", "Hi"), message("assistant", "Yo\n")],
        add_generation_prompt: true,
        ..Conversation::default()
    };
    let tokens = [("bos_token", "<s>"), ("eos_token", "</s>")].map(|(name, token)| (name.into(), token.into()));
    let sources = BTreeMap::from([("default".to_owned(), source.to_owned())]);
    let compiled = ChatTemplate::new(sources, tokens.into()).map_err(|error| error.to_string())?;
    let now = OffsetDateTime::from_unix_timestamp(NOW).unwrap();
    compiled.render(&conversation, now).map_err(|error| error.to_string())
}

#[test]
fn snippets_have_the_texts_of_jinja2() {
    let path = folder().join("expected_snippets.json");
    let cases: Vec<(String, Option<String>)> = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let mut differences = Vec::new();
    for (source, wanted) in &cases {
        let rendered = snippet(source);
        if rendered.as_ref().ok() != wanted.as_ref() {
            differences.push(format!("{source}\n  Jinja2 {wanted:?}\n  here   {rendered:?}"));
        }
    }
    assert!(cases.len() > 150);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Jinja2 renders these. What is refused here names the construct.
#[test]
fn what_is_not_supported_is_refused_by_name() {
    for (source, name) in [
        ("{% macro f() %}{% call f() %}{{ varargs }}{% endcall %}{% endmacro %}", "varargs in a call block"),
        ("{% macro f(kwargs) %}{{ varargs }}{% endmacro %}", "varargs or kwargs"),
        ("{% block a %}x{% endblock %}", "statement block"),
        ("{{ 'a b' | wordwrap(1) }}", "wordwrap"),
        ("{{ 'http://a.b' | urlize }}", "urlize"),
        ("{{ {'a': 1} | xmlattr }}", "xmlattr"),
        ("{{ [1] | pprint }}", "pprint"),
        ("{{ [1] | random }}", "random"),
        ("{{ lipsum() }}", "lipsum"),
        ("{{ +1 }}", "unexpected `+`"),
        ("{{ '{!r}'.format(1) }}", "!"),
        ("{{ 'a'.translate({}) }}", "translate"),
        ("{{ '\\N{BULLET}' }}", "escape \\N"),
        ("{{ ['x' ~ '\\\\\\U0001F600'] }}", "escape \\U"),
        ("{{ 2 ** 128 }}", "**"),
        ("{{ 2 ** 126 * 4 }}", "*"),
        ("{{ 99999999999999999999999999999999999999999 }}", "integer"),
        ("{{ ('9' * 45) | int }}", "128 bits"),
        ("{{ ('f' * 40) | int(base=16) }}", "128 bits"),
        ("{{ 1e40 | int }}", "128 bits"),
        ("{{ '%d' % 1e40 }}", "128 bits"),
        ("{{ range(2 ** 64, 2 ** 64 + 2) }}", ""),
        ("{{ 'a' ~ namespace(a=1) }}", "namespace"),
        ("{{ namespace(a=1) }}", "namespace"),
    ] {
        let error = snippet(source).unwrap_err();
        assert!(error.contains(name), "{source}: {error}");
    }
}
