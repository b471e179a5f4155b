#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use serde_json::json;
use trainyard_wire::json::parse;

use super::super::super::template::to_line;
use super::super::chat;
use super::*;

fn template() -> ChatTemplate {
    let sources = BTreeMap::from([("default".to_owned(), "{{ tools }}{{ reasoning_effort }}".to_owned())]);
    ChatTemplate::new(sources, BTreeMap::new()).unwrap()
}

fn checked(extra: &Value) -> Result<(Settings, Conversation), ChatError> {
    let mut body = json!({"model": "m", "input": "Hi"});
    extra.as_object().unwrap().iter().for_each(|(key, value)| body[key] = value.clone());
    let request: ResponsesRequest = parse(body.to_string().as_bytes())?;
    check_unsupported(&request)?;
    Ok((settings(&request)?, conversation(&request, &template())?))
}

/// The settings and the conversation of a request for chat completions.
fn of_chat(body: &Value) -> (Settings, Conversation) {
    let request = parse(body.to_string().as_bytes()).unwrap();
    (chat::settings(&request).unwrap(), chat::conversation(&request, &template()).unwrap())
}

fn lines(values: &[Ordered]) -> Vec<String> {
    values.iter().map(|value| to_line(value).unwrap()).collect()
}

#[test]
fn a_request_is_that_of_chat_completions() {
    let schema = r#"{"type": "object", "properties": {"z": {"type": "integer"}, "a": {}}}"#;
    let function = json!({"name": "f", "description": "F.", "parameters": {"type": "object", "properties": {}}});
    let mut tool = json!({"type": "function", "strict": true});
    function.as_object().unwrap().iter().for_each(|(key, value)| tool[key] = value.clone());
    let chat_tool = json!({"type": "function", "function": function});
    for (own, others) in [
        (json!({}), json!({})),
        (
            json!({"max_output_tokens": 5, "temperature": 0.5, "top_p": 0.25, "top_k": 4, "seed": 7, "return_token_ids": true,
                "reasoning": {"effort": "low", "summary": "auto"}, "chat_template_kwargs": {"x": 1}}),
            json!({"max_completion_tokens": 5, "temperature": 0.5, "top_p": 0.25, "top_k": 4, "seed": 7, "return_token_ids": true,
                "reasoning_effort": "low", "chat_template_kwargs": {"x": 1}}),
        ),
        (
            json!({"tools": [tool], "tool_choice": "required", "parallel_tool_calls": false}),
            json!({"tools": [chat_tool], "tool_choice": "required", "parallel_tool_calls": false}),
        ),
        (
            json!({"tools": [tool], "tool_choice": {"type": "function", "name": "f"}}),
            json!({"tools": [chat_tool], "tool_choice": {"type": "function", "function": {"name": "f"}}}),
        ),
        (json!({"tools": [tool], "tool_choice": "none"}), json!({"tools": [chat_tool], "tool_choice": "none"})),
        (json!({"text": {"format": {"type": "json_object"}}}), json!({"response_format": {"type": "json_object"}})),
    ] {
        let (settings, conversation) = checked(&own).unwrap();
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
        others.as_object().unwrap().iter().for_each(|(key, value)| body[key] = value.clone());
        let (expected, chat) = of_chat(&body);
        assert_eq!(settings, expected, "{own}");
        assert_eq!(lines(&conversation.messages), lines(&chat.messages), "{own}");
        assert_eq!(conversation.variables, chat.variables, "{own}");
        // Only the content is compared.
        let tools =
            |of: &Conversation| lines(&of.tools).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (own_tools, chat_tools): (Vec<Value>, Vec<Value>) = (tools(&conversation), tools(&chat));
        assert_eq!(own_tools, chat_tools, "{own}");
    }
    let text = format!(
        r#"{{"model": "m", "input": "Hi", "text": {{"format": {{"type": "json_schema", "name": "n", "schema": {schema}}}}}}}"#
    );
    let request: ResponsesRequest = parse(text.as_bytes()).unwrap();
    assert_eq!(settings(&request).unwrap().controls.json_schema.as_deref(), Some(schema));
}

#[test]
fn items_become_the_messages_that_chat_completions_have() {
    let (_, conversation) = checked(&json!({"instructions": "Be brief.", "input": [
        {"role": "developer", "content": "d"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [
            {"type": "output_text", "text": "I look.", "annotations": [], "logprobs": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{\"z\": 1, \"a\": 2}"},
        {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "oops"},
        {"type": "function_call_output", "call_id": "c1", "output": "7"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "8"}]},
        {"type": "function_call", "call_id": "c3", "name": "f", "arguments": ""},
        {"role": "assistant", "content": "one"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "two"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": "x"},
    ]}))
    .unwrap();
    let call = |id: &str, name: &str, arguments: &str| {
        format!(r#"{{"id": "{id}", "type": "function", "function": {{"name": "{name}", "arguments": {arguments}}}}}"#)
    };
    let calls = [call("c1", "f", r#"{"z": 1, "a": 2}"#), call("c2", "g", r#""oops""#)].join(", ");
    let third = call("c3", "f", "{}");
    assert_eq!(
        lines(&conversation.messages),
        [
            r#"{"role": "system", "content": "Be brief."}"#.to_owned(),
            r#"{"role": "system", "content": "d"}"#.to_owned(),
            r#"{"role": "user", "content": "a\nb"}"#.to_owned(),
            format!(
                r#"{{"role": "assistant", "content": "I look.", "reasoning_content": "hm", "tool_calls": [{calls}]}}"#
            ),
            r#"{"role": "tool", "content": "7", "tool_call_id": "c1"}"#.to_owned(),
            r#"{"role": "tool", "content": "8", "tool_call_id": "c2"}"#.to_owned(),
            format!(r#"{{"role": "assistant", "content": "one", "tool_calls": [{third}]}}"#),
            r#"{"role": "assistant", "content": "two"}"#.to_owned(),
            r#"{"role": "assistant", "content": ""}"#.to_owned(),
        ]
    );
}

#[test]
fn images_are_parts_of_their_message() {
    let url = "data:image/png;base64,AAAA";
    let image = json!({"type": "input_image", "image_url": url, "detail": "auto"});
    let (_, conversation) = checked(&json!({"input": [{"role": "user", "content": [image]},
        {"type": "function_call_output", "call_id": "c", "output": [image]}]}))
    .unwrap();
    let fields: Vec<&str> = conversation.images.iter().map(|image| image.field.as_str()).collect();
    assert_eq!(fields, ["input[0].content[0].image_url", "input[1].output[0].image_url"]);
    assert_eq!(lines(&conversation.messages)[0], r#"{"role": "user", "content": [{"type": "image"}]}"#);
}

#[test]
fn refusals_name_the_field() {
    let item = |item: Value| json!({"input": [item]});
    let part = |part: Value| json!({"input": [{"role": "user", "content": [part]}]});
    for (extra, text) in [
        (json!({"foo": 1}), "unknown field `foo`"),
        (json!({"input": []}), "input: expected 1 to"),
        (json!({"max_output_tokens": 0}), "max_output_tokens: 0 is not between"),
        (json!({"temperature": 2.5}), "temperature: 2.5"),
        (json!({"previous_response_id": "resp_1"}), "previous_response_id: responses are not stored: send the whole"),
        (json!({"conversation": "conv_1"}), "conversation: responses are not stored"),
        (json!({"background": true}), "background: background responses are not"),
        (json!({"prompt": {"id": "p"}}), "prompt: prompts are not stored"),
        (json!({"truncation": "auto"}), "truncation: truncation of conversations is not supported"),
        (json!({"context_management": []}), "context_management: truncation of conversations"),
        (json!({"moderation": {"model": "m"}}), "moderation: is not supported"),
        (json!({"include": ["message.output_text.logprobs"]}), "include: \"message.output_text.logprobs\" is not"),
        (json!({"top_logprobs": 1}), "top_logprobs: responses have no"),
        (json!({"service_tier": "flex"}), "service_tier: service tiers"),
        (json!({"text": {"verbosity": "low"}}), "text.verbosity: only"),
        (json!({"text": {"format": {"type": "grammar"}}}), "text.format.type: expected \"text\""),
        (json!({"text": {"format": {"type": "json_schema", "name": "n"}}}), "text.format.schema: a schema is required"),
        (json!({"text": {"format": {"type": "text", "schema": {}}}}), "text.format.schema: requires the type"),
        (
            json!({"text": {"format": {"type": "json_object"}}, "tools": [{"type": "function", "name": "f"}]}),
            "text.format: JSON is not supported together with tools",
        ),
        (json!({"tools": [{"type": "web_search"}]}), "tools[0].type: expected \"function\", found \"web_search\""),
        (json!({"tools": [{"type": "function"}]}), "tools[0].name: a name is required"),
        (
            json!({"tools": [{"type": "function", "name": "f"}], "parallel_tool_calls": false}),
            "parallel_tool_calls: false is supported only",
        ),
        (json!({"tool_choice": "required"}), "tool_choice: a call is required, but no tools are given"),
        (json!({"tool_choice": {"type": "function", "name": "f"}}), "tool_choice: no tool is named \"f\""),
        (json!({"tool_choice": {"type": "allowed_tools"}}), "or {\"type\": \"function\", \"name\": …}, found"),
        (json!({"reasoning": {"effort": "extreme"}}), "reasoning.effort: expected one of"),
        (item(json!({"role": "robot", "content": "a"})), "input[0].role: expected system, developer, user or"),
        (item(json!({"role": "user"})), "input[0].content: is required"),
        (item(json!({"type": "item_reference", "id": "x"})), "input[0].type: \"item_reference\" is not supported"),
        (item(json!({"type": "computer_call"})), "input[0].type: expected message, function_call"),
        (item(json!({"type": "function_call", "call_id": "c", "name": "f"})), "input[0].arguments: is required"),
        (item(json!({"type": "function_call_output", "output": "x"})), "input[0].call_id: is required"),
        (item(json!({"type": "function_call_output", "call_id": "c"})), "input[0].output: is required"),
        (part(json!({"type": "input_file", "file_id": "x"})), "input[0].content[0].type: \"input_file\" is not"),
        (part(json!({"type": "input_text"})), "input[0].content[0].text: is required"),
        (part(json!({"type": "input_image", "file_id": "x"})), "input[0].content[0].image_url: is required"),
        (
            part(json!({"type": "input_image", "image_url": "http://x"})),
            "input[0].content[0].image_url: \"http\" URLs are not supported",
        ),
        (
            part(json!({"type": "input_image", "image_url": "data:image/png;base64,", "detail": "low"})),
            "input[0].content[0].detail: only",
        ),
    ] {
        let refused = checked(&extra).unwrap_err().to_string();
        assert!(refused.contains(text), "{refused}");
    }
}

#[test]
fn what_has_no_effect_is_accepted() {
    let none = json!({"store": true, "metadata": {"a": "b"}, "include": ["reasoning.encrypted_content"],
        "max_tool_calls": 3, "service_tier": "auto", "truncation": "disabled", "user": "u", "prompt_cache_key": "k",
        "prompt_cache_retention": "24h", "safety_identifier": "s", "top_logprobs": 0, "background": false,
        "stream_options": {"include_obfuscation": false}, "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "previous_response_id": null, "conversation": null, "instructions": null, "tools": [], "tool_choice": "auto"});
    assert_eq!(checked(&none).unwrap().0, Settings::default());
}
