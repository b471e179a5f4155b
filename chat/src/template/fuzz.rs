//! Mutated chat templates: whatever a model contains, a conversation is rendered or refused, within bounds on time and
//! memory.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use minijinja::Value;
use time::OffsetDateTime;
use trainyard_test_support::heap;
use trainyard_test_support::mutate::Corpus;

use super::fuel::FUEL;
use super::{ChatTemplate, Conversation, STACK};

/// Bytes that a rendering may hold: what its fuel pays for, as the value, in the output and while it is copied.
const MOST_BYTES: usize = 6 * 64 * FUEL as usize;

const WORDS: [&str; 52] = [
    "{{ ",
    " }}",
    "{% ",
    " %}",
    "{%- ",
    " -%}",
    "{% for a in range(99999) %}",
    "{% endfor %}",
    "{% if true %}",
    "{% endif %}",
    "{% set ns = namespace(x=[]) %}",
    "{% set ns.x = [ns.x, ns.x] %}",
    "{% set ns.x = ns %}",
    "{% set ns.x = ns.x ~ ns.x %}",
    "{% macro f(x) %}",
    "{% endmacro %}",
    "f(1)",
    "messages",
    "tools",
    "loop.index",
    "| tojson",
    "| tojson(indent=16)",
    "| join('y' * 9999)",
    "| list",
    "| map('upper')",
    "| sort",
    "| unique",
    "| batch(2, messages)",
    "| replace('a', 'b' * 99999)",
    "| string",
    "| indent(99999)",
    "* 99999",
    "+ 'a'",
    "[0] *",
    "['x' * 9999] *",
    ".split('')",
    ".replace('', 'x' * 999)",
    "'{:>99999}'.format(1)",
    "strftime_now('%B' * 99)",
    "== ns.x",
    "in ns.x",
    "is eq ns.x",
    "ns.x",
    "loop.changed(ns.x)",
    "{% generation %}",
    "{% endgeneration %}",
    "'%9999s' % ",
    "1 < ns.x < ",
    ".ljust(99999)",
    ".rsplit(none, 1)",
    ".index(ns.x)",
    "| tojson(separators=['x' * 9999, ''])",
];

fn conversation() -> Conversation {
    let value = |json: &str| serde_json::from_str::<Value>(json).unwrap();
    Conversation {
        messages: vec![
            value(r#"{"role": "system", "content": "Be brief."}"#),
            value(r#"{"role": "user", "content": "<think>a</think> Hello \u00e9 <|im_end|>"}"#),
            value(
                r#"{"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1, {"b": 2}]}}}]}"#,
            ),
            value(r#"{"role": "tool", "content": "3"}"#),
        ],
        tools: vec![value(r#"{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}"#)],
        variables: BTreeMap::from([("enable_thinking".to_owned(), Value::from(false))]),
        add_generation_prompt: true,
        images: Vec::new(),
    }
}

fn render_all() {
    let conversation = conversation();
    let mut rendered = 0;
    Corpus::new("templates").inputs(1_500).changes(4).words(&WORDS).each(|input| {
        let source = String::from_utf8_lossy(input).into_owned();
        let tokens = BTreeMap::from([("bos_token".to_owned(), "<s>".to_owned())]);
        let render = || {
            let template = ChatTemplate::new(BTreeMap::from([("default".to_owned(), source.clone())]), tokens)?;
            template.render_here(&conversation, OffsetDateTime::UNIX_EPOCH)
        };
        let (result, peak) = heap::peak(render);
        assert!(peak <= MOST_BYTES, "{peak} bytes held at once for {source}");
        match result {
            Ok(_) => rendered += 1,
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    });
    assert!(rendered > 50, "{rendered}: some mutations are templates");
}

#[test]
fn mutated_templates() {
    std::thread::Builder::new().stack_size(STACK).spawn(render_all).unwrap().join().unwrap();
}
