#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};
use trainyard_wire::anthropic::MessagesRequest;
use trainyard_wire::json::parse;
use trainyard_wire::openai::ChatRequest;

use super::super::anthropic::prompt::{self, Parts};
use super::super::openai::chat;
use super::super::output::ToolCall;
use super::super::testing::with_template;
use super::*;

/// A conversation in the form of the OpenAI API.
fn openai(messages: &Value, extra: &Value) -> Conversation {
    let mut body = json!({"model": "m", "messages": messages});
    extra.as_object().unwrap().iter().for_each(|(key, value)| body[key] = value.clone());
    let request: ChatRequest = parse(body.to_string().as_bytes()).unwrap();
    chat::conversation(&request, with_template("{{ tools }}").template().unwrap()).unwrap()
}

/// A conversation in the form of the Anthropic API.
fn anthropic(system: &str, messages: &Value) -> Conversation {
    let body = json!({"model": "m", "max_tokens": 1, "system": system, "messages": messages});
    let request: MessagesRequest = parse(body.to_string().as_bytes()).unwrap();
    prompt::conversation(&Parts::from(&request), with_template("{{ tools }}").template().unwrap()).unwrap().0
}

fn said(content: &str, calls: &[(&str, &str)]) -> Said {
    let mut said = Said::default();
    said.add(&Part::Text(content.to_owned()));
    for (name, arguments) in calls {
        said.add(&Part::ToolCall(ToolCall { name: (*name).to_owned(), arguments: (*arguments).to_owned() }));
    }
    said
}

/// Returns the number of messages up to the reply with this digest.
fn found(conversation: &Conversation, digest: &str) -> Option<usize> {
    History::of(conversation).replies().find(|reply| reply.digest == digest).map(|reply| reply.messages)
}

#[test]
fn a_reply_is_found_in_later_requests_of_both_apis() {
    let user = json!({"role": "user", "content": "Hi"});
    let first = History::of(&openai(&json!([{"role": "system", "content": "s"}, user]), &json!({})));
    let reply = said(" Hello ", &[("f", "{\"b\": 1, \"a\": [1.50]}")]);
    let digest = first.with_reply(&reply);
    let function = |arguments: &str| json!({"name": "f", "arguments": arguments});
    let sent = |content: Value, arguments: &str| {
        let call = json!({"id": "any", "type": "function", "function": function(arguments)});
        let assistant = json!({"role": "assistant", "content": content, "tool_calls": [call]});
        let tool = json!({"role": "tool", "tool_call_id": "any", "content": "ok"});
        openai(&json!([{"role": "system", "content": "s"}, user, assistant, tool]), &json!({}))
    };
    assert_eq!(found(&sent(json!(" Hello "), "{\"b\": 1, \"a\": [1.50]}"), &digest), Some(3));
    // Order and spelling of arguments are the client's, and so are parts.
    assert_eq!(found(&sent(json!([{"type": "text", "text": " Hello "}]), "{\"a\":[1.5],\"b\":1}"), &digest), Some(3));
    assert_eq!(found(&sent(json!("Hello"), "{\"b\": 1, \"a\": [1.50]}"), &digest), None);
    assert_eq!(found(&sent(json!(" Hello "), "{\"b\": 2, \"a\": [1.50]}"), &digest), None);
    let blocks = json!([{"type": "text", "text": " Hello "},
        {"type": "tool_use", "id": "x", "name": "f", "input": {"a": [1.5], "b": 1}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "x", "content": "ok"}]);
    let messages = json!([user, {"role": "assistant", "content": blocks}, {"role": "user", "content": result}]);
    assert_eq!(found(&anthropic("s", &messages), &digest), Some(3));
    assert_eq!(found(&anthropic("t", &messages), &digest), None);
}

#[test]
fn arguments_that_are_not_json_are_what_was_said() {
    let user = json!({"role": "user", "content": "Hi"});
    let first = History::of(&openai(&json!([user]), &json!({})));
    for arguments in ["oops", "{\"a\": ", "\"text\"", "[1]", "{\"a\": 1} and more"] {
        let digest = first.with_reply(&said("", &[("f", arguments)]));
        let call = json!({"id": "any", "type": "function", "function": {"name": "f", "arguments": arguments}});
        let reply = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        assert_eq!(found(&openai(&json!([user, reply]), &json!({})), &digest), Some(2), "{arguments}");
    }
}

#[test]
fn an_absent_content_is_an_empty_one_and_thoughts_do_not_count() {
    let user = json!({"role": "user", "content": "Hi"});
    let mut reply = said("", &[("f", "{}")]);
    reply.add(&Part::Reasoning("hm".to_owned()));
    let digest = History::of(&openai(&json!([user]), &json!({}))).with_reply(&reply);
    let call = json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}});
    for assistant in [
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "assistant", "content": "", "reasoning_content": "other", "tool_calls": [call]}),
    ] {
        let conversation = openai(&json!([user, assistant]), &json!({}));
        assert_eq!(found(&conversation, &digest), Some(2));
        assert_eq!(History::of(&conversation).replies().next().unwrap().call_id.as_deref(), Some("c1"));
    }
}

#[test]
fn tools_variables_and_earlier_messages_count() {
    let user = json!({"role": "user", "content": "Hi"});
    let tool = json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}});
    let plain = json!([user, {"role": "assistant", "content": "a"}]);
    let digest = History::of(&openai(&json!([user]), &json!({"tools": [tool]}))).with_reply(&said("a", &[]));
    assert_eq!(found(&openai(&plain, &json!({"tools": [tool]})), &digest), Some(2));
    assert_eq!(found(&openai(&plain, &json!({})), &digest), None);
    assert_eq!(found(&openai(&plain, &json!({"tools": [tool], "tool_choice": "none"})), &digest), None);
    let other = json!({"tools": [tool], "chat_template_kwargs": {"x": 1}});
    assert_eq!(found(&openai(&plain, &other), &digest), None);
    let named = json!([{"role": "user", "content": "Hi", "name": "me"}, {"role": "assistant", "content": "a"}]);
    assert_eq!(found(&openai(&named, &json!({"tools": [tool]})), &digest), None);
}

#[test]
fn the_last_reply_is_looked_for_first() {
    let message = |role: &str, content: usize| json!({"role": role, "content": content.to_string()});
    let messages: Vec<Value> =
        (0..2_100).map(|at| message(if at % 2 == 0 { "user" } else { "assistant" }, at)).collect();
    let history = History::of(&openai(&json!(messages), &json!({})));
    let places: Vec<usize> = history.replies().map(|reply| reply.messages).collect();
    assert_eq!((places[0], places[1], places.len(), history.messages()), (2_100, 2_098, MOST_REPLIES, 2_100));
}
