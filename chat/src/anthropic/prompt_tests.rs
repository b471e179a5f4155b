#![allow(clippy::unwrap_used, reason = "tests")]
use std::collections::BTreeMap;

use serde_json::{Value, json};
use trainyard_wire::json::parse;

use super::super::super::template::to_line;
use super::*;

fn checked(extra: &Value) -> Result<(Vec<String>, Option<String>), ChatError> {
    let mut body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]});
    extra.as_object().unwrap().iter().for_each(|(key, value)| body[key] = value.clone());
    let request: MessagesRequest = parse(body.to_string().as_bytes())?;
    let parts = Parts::from(&request);
    let sources = BTreeMap::from([("default".to_owned(), "{{ tools }}".to_owned())]);
    let template = ChatTemplate::new(sources, BTreeMap::new()).unwrap();
    let (conversation, prefill) = conversation(&parts, &template)?;
    let all = conversation.messages.iter().chain(&conversation.tools);
    Ok((all.map(|value| to_line(value).unwrap()).collect(), prefill))
}

#[test]
fn messages_reach_the_template_in_its_form() {
    let (shown, prefill) = checked(&json!({
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": ""},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"z": 1, "a": 2}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "7"},
                {"type": "text", "text": "And?"}]},
            {"role": "assistant", "content": "It "},
        ],
        "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}],
    }))
    .unwrap();
    assert_eq!(
        shown,
        [
            r#"{"role": "system", "content": "Be brief."}"#,
            r#"{"role": "user", "content": "a\nb"}"#,
            concat!(
                r#"{"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [{"id": "t1", "#,
                r#""type": "function", "function": {"name": "f", "arguments": {"z": 1, "a": 2}}}]}"#
            ),
            r#"{"role": "tool", "content": "7", "tool_call_id": "t1"}"#,
            r#"{"role": "user", "content": "And?"}"#,
            r#"{"role": "assistant", "content": "It "}"#,
            concat!(
                r#"{"type": "function", "function": {"name": "f", "description": "d", "#,
                r#""parameters": {"type": "object"}}}"#
            ),
        ]
    );
    assert_eq!(prefill.as_deref(), Some("It "));
}

#[test]
fn images_are_parts_of_messages_and_results() {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "AAAA"}});
    let (shown, _) = checked(&json!({"messages": [
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a"}, image]},
            image, {"type": "text", "text": "b"}]},
    ]}))
    .unwrap();
    assert_eq!(
        shown,
        [
            concat!(
                r#"{"role": "tool", "content": [{"type": "text", "text": "a"}, {"type": "image"}], "#,
                r#""tool_call_id": "t1"}"#
            ),
            r#"{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "b"}]}"#,
        ]
    );
}

#[test]
fn refusals_name_the_field() {
    let user = |block: Value| json!({"messages": [{"role": "user", "content": [block]}]});
    for (extra, text) in [
        (json!({"foo": 1}), "unknown field `foo`"),
        (json!({"messages": []}), "messages: expected 1 to"),
        (
            json!({"messages": [{"role": "system", "content": "a"}]}),
            "messages.0.role: expected \"user\" or \"assistant\", found \"system\"",
        ),
        (user(json!({"type": "image"})), "messages.0.content.0.source: is required"),
        (
            user(json!({"type": "image", "source": {"type": "url", "url": "http://x"}})),
            "messages.0.content.0.source.type: \"url\" is not supported, because the server fetches no files",
        ),
        (
            json!({"messages": [{"role": "assistant", "content": [{"type": "image"}]}]}),
            "messages.0.content.0.type: \"image\" is not supported in messages of \"assistant\"",
        ),
        (user(json!({"type": "document"})), "messages.0.content.0.type: \"document\" is not supported"),
        (user(json!({"type": "tool_use", "id": "a"})), "messages.0.content.0.type: \"tool_use\""),
        (user(json!({"type": "tool_result"})), "messages.0.content.0.tool_use_id: is required"),
        (json!({"tools": [{"name": "f"}]}), "tools.0.input_schema: is required"),
        (json!({"tools": [{"name": "bash", "type": "bash_20250124"}]}), "tools.0.type: \"bash_20250124\""),
        (
            json!({"tools": [{"name": "f", "input_schema": [1]}]}),
            "tools.0.input_schema: expected a JSON schema, an object",
        ),
        (json!({"tool_choice": {"type": "any"}}), "tool_choice: a call is required, but no tools are given"),
        (json!({"tool_choice": {"type": "tool"}}), "tool_choice.name: is required"),
        (json!({"tool_choice": {"type": "tool", "name": "f"}}), "tool_choice: no tool is named \"f\""),
        (
            json!({"tool_choice": {"type": "some"}}),
            "tool_choice.type: expected auto, none, any or tool, found \"some\"",
        ),
        (
            json!({"tool_choice": {"type": "auto", "disable_parallel_tool_use": true}}),
            "tool_choice.disable_parallel_tool_use: true is supported only when a call",
        ),
        (json!({"thinking": {"type": "enabled", "budget_tokens": 5}}), "thinking.budget_tokens: expected a number"),
        (json!({"thinking": {"type": "adaptive"}}), "thinking: the model's chat template does not support thinking"),
        (json!({"output_config": {"effort": "low"}}), "output_config.effort: the model's chat template"),
        (json!({"output_config": {"format": {}}}), "output_config.format: is not supported"),
    ] {
        let refused = checked(&extra).unwrap_err().to_string();
        assert!(refused.contains(text), "{refused}");
    }
    assert!(checked(&json!({"thinking": {"type": "disabled"}})).is_ok());
}
