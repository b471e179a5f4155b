//! `POST chat/completions`: from its body to settings and a conversation.

use minijinja::Value as Ordered;
use trainyard_wire::lists::{MAX_MESSAGES, MAX_TOOLS};
use trainyard_wire::openai::{ChatRequest, StopStrings};

use super::super::conversation::set_effort;
use super::super::settings::{
    MAX_COMPLETIONS, MAX_LOGPROBS, Settings, count, stop_strings, top_k, unsupported, within,
};
use super::super::template::{ChatTemplate, Conversation};
use super::tool_choice::{NameForm, ToolChoice};
use super::{chat_messages, controls};
use crate::error::ChatError;

/// Returns the settings of a request, checked.
///
/// # Errors
/// [`ChatError::Invalid`], which names the field.
pub fn settings(request: &ChatRequest) -> Result<Settings, ChatError> {
    let max_tokens = match (request.max_completion_tokens, request.max_tokens) {
        (Some(_), Some(_)) => {
            return Err(ChatError::invalid("max_tokens: set either max_tokens or max_completion_tokens"));
        }
        (Some(most), None) => Some(count("max_completion_tokens", most, 1, u32::MAX)?),
        (None, Some(most)) => Some(count("max_tokens", most, 1, u32::MAX)?),
        (None, None) => None,
    };
    if request.top_logprobs.is_some() && !request.logprobs {
        return Err(ChatError::invalid("top_logprobs: requires logprobs"));
    }
    let top = count("top_logprobs", request.top_logprobs.unwrap_or(0), 0, MAX_LOGPROBS)?;
    Ok(Settings {
        n: count("n", request.n.unwrap_or(1), 1, MAX_COMPLETIONS)?,
        max_tokens,
        temperature: within("temperature", request.temperature.unwrap_or(1.0), 0.0, 2.0)?,
        top_p: within("top_p", request.top_p.unwrap_or(1.0), 0.0, 1.0)?,
        top_k: top_k(request.top_k)?,
        seed: request.seed,
        stop: stop_strings("stop", request.stop.clone().map(StopStrings::into_vec).unwrap_or_default())?,
        logprobs: request.logprobs.then_some(top),
        token_ids: request.return_token_ids,
        controls: controls::checked(request.controls(), request.response_format.as_ref())?,
        forced_calls: tool_choice(request).forced_calls(request.tools.as_deref().unwrap_or_default())?,
    })
}

fn tool_choice(request: &ChatRequest) -> ToolChoice<'_> {
    ToolChoice { choice: request.tool_choice.as_ref(), parallel: request.parallel_tool_calls, form: NameForm::Nested }
}

/// Refuses fields that would change the reply and are not supported.
///
/// # Errors
/// [`ChatError::Invalid`], which names the field.
pub fn check_unsupported(request: &ChatRequest) -> Result<(), ChatError> {
    let other =
        |value: &Option<String>, allowed: &[&str]| value.as_deref().is_some_and(|value| !allowed.contains(&value));
    let text_alone = request.modalities.as_deref().is_none_or(|modes| modes.iter().all(|mode| mode == "text"));
    let tools = request.tools.as_deref().unwrap_or_default();
    let json = request.response_format.as_ref().is_some_and(|format| format.kind != "text");
    let offered = !tools.is_empty() && tool_choice(request).offers();
    let not = "is not supported";
    unsupported("response_format", json && offered, "JSON is not supported together with tools")?;
    unsupported("modalities", !text_alone, "only \"text\" is supported")?;
    unsupported("audio", request.audio.is_some(), not)?;
    unsupported("prediction", request.prediction.is_some(), not)?;
    unsupported("web_search_options", request.web_search_options.is_some(), not)?;
    unsupported("functions", request.functions.is_some(), "is not supported; use tools")?;
    unsupported("function_call", request.function_call.is_some(), "is not supported; use tool_choice")?;
    unsupported("verbosity", other(&request.verbosity, &["medium"]), "only \"medium\" is supported")?;
    unsupported("store", request.store == Some(true), "completions are not stored")?;
    unsupported("service_tier", other(&request.service_tier, &["auto", "default"]), "service tiers are not supported")?;
    tool_choice(request).check_parallel(!tools.is_empty())
}

/// Returns the conversation of a request in the form of its template.
///
/// # Errors
/// [`ChatError::Invalid`], which names the field.
pub fn conversation(request: &ChatRequest, template: &ChatTemplate) -> Result<Conversation, ChatError> {
    let messages = &request.messages;
    if messages.is_empty() || messages.len() > MAX_MESSAGES {
        let found = messages.len();
        return Err(ChatError::invalid(format!("messages: expected 1 to {MAX_MESSAGES} messages, found {found}")));
    }
    let tools = checked_tools(request.tools.as_deref().unwrap_or_default())?;
    let mut images = Vec::new();
    let mut conversation = Conversation {
        messages: messages
            .iter()
            .enumerate()
            .map(|(at, message)| chat_messages::message(at, message, &mut images))
            .collect::<Result<_, _>>()?,
        tools: if tool_choice(request).offers() { tools.to_vec() } else { Vec::new() },
        variables: request.chat_template_kwargs.clone().unwrap_or_default(),
        add_generation_prompt: true,
        images: Vec::new(),
    };
    conversation.images = images;
    if let Some(effort) = &request.reasoning_effort {
        set_effort(template, &mut conversation, "reasoning_effort", effort)?;
    }
    Ok(conversation)
}

fn checked_tools(tools: &[Ordered]) -> Result<&[Ordered], ChatError> {
    if tools.len() > MAX_TOOLS {
        return Err(ChatError::invalid(format!("tools: {} tools, at most {MAX_TOOLS} are allowed", tools.len())));
    }
    tools.iter().enumerate().try_for_each(|(index, tool)| check_tool(index, tool))?;
    Ok(tools)
}

fn check_tool(index: usize, tool: &Ordered) -> Result<(), ChatError> {
    let member = |value: &Ordered, name: &str| value.get_attr(name).unwrap_or_default();
    if member(tool, "type").as_str() != Some("function") {
        return Err(ChatError::invalid(format!("tools[{index}].type: only \"function\" is supported")));
    }
    if member(&member(tool, "function"), "name").as_str().is_none_or(str::is_empty) {
        return Err(ChatError::invalid(format!("tools[{index}].function.name: a name is required")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::collections::BTreeMap;

    use serde_json::{Value, json};
    use trainyard_protocol::SamplingControls;
    use trainyard_wire::json::parse;

    use super::*;

    fn request(extra: &Value) -> Result<ChatRequest, ChatError> {
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
        extra.as_object().unwrap().iter().for_each(|(key, value)| body[key] = value.clone());
        Ok(parse(body.to_string().as_bytes())?)
    }

    fn checked(extra: &Value) -> Result<(Settings, Conversation), ChatError> {
        let request = request(extra)?;
        check_unsupported(&request)?;
        let sources = BTreeMap::from([("default".to_owned(), "{{ tools }}{{ reasoning_effort }}".to_owned())]);
        let template = ChatTemplate::new(sources, BTreeMap::new()).unwrap();
        Ok((settings(&request)?, conversation(&request, &template)?))
    }

    #[test]
    fn settings_have_the_defaults_of_the_api() {
        let (settings, conversation) = checked(&json!({})).unwrap();
        assert_eq!(settings, Settings::default());
        assert!(conversation.add_generation_prompt);
        let all = json!({"max_completion_tokens": 5, "n": 2, "temperature": 0, "top_p": 0.5, "seed": 1, "stop": "x",
            "logprobs": true, "top_logprobs": 3, "return_token_ids": true, "top_k": 4, "min_p": 0.25, "presence_penalty": -2, "frequency_penalty": 2,
            "repetition_penalty": 1.5, "logit_bias": {"7": 1, "5": -100}, "response_format": {"type": "json_object"}});
        let expected = Settings {
            n: 2,
            max_tokens: Some(5),
            temperature: 0.0,
            top_p: 0.5,
            top_k: Some(4),
            seed: Some(1),
            stop: vec!["x".to_owned()],
            logprobs: Some(3),
            token_ids: true,
            controls: SamplingControls {
                min_p: 0.25,
                presence_penalty: -2.0,
                frequency_penalty: 2.0,
                repetition_penalty: 1.5,
                logit_bias: vec![(5, -100.0), (7, 1.0)],
                json_schema: Some(r#"{"type": "object"}"#.to_owned()),
                call_marks: None,
            },
            forced_calls: None,
        };
        assert_eq!(checked(&all).unwrap().0, expected);
    }

    #[test]
    fn refusals_name_the_field() {
        let messages = |message: Value| json!({"messages": [message]});
        for (extra, text) in [
            (json!({"foo": 1}), "unknown field `foo`"),
            (json!({"messages": []}), "messages: expected 1 to"),
            (json!({"max_tokens": 0}), "max_tokens: 0 is not between"),
            (json!({"max_tokens": 1, "max_completion_tokens": 1}), "max_tokens: set either"),
            (json!({"n": 0}), "n: 0"),
            (json!({"n": 129}), "n: 129"),
            (json!({"logprobs": true, "top_logprobs": 21}), "top_logprobs: 21"),
            (json!({"temperature": 2.5}), "temperature: 2.5"),
            (json!({"top_logprobs": 2}), "top_logprobs: requires logprobs"),
            (json!({"stop": [""]}), "stop: an empty string"),
            (json!({"stop": 7}), "stop: invalid type: integer `7`, expected a string or a list of strings"),
            (json!({"logit_bias": {"5": 101}}), "logit_bias: 101 for token 5 is outside"),
            (json!({"logit_bias": {"a": 1}}), "logit_bias: \"a\" is not a token id"),
            (json!({"min_p": -1}), "min_p: -1 is outside [0, 1]"),
            (json!({"repetition_penalty": 0}), "repetition_penalty: 0 is outside (0, 100]"),
            (
                json!({"response_format": {"type": "json_object"},
                    "tools": [{"type": "function", "function": {"name": "f"}}]}),
                "response_format: JSON is not supported together with tools",
            ),
            (json!({"response_format": {"type": "grammar"}}), "response_format.type: expected"),
            (json!({"tool_choice": "required"}), "tool_choice: a call is required, but no tools are given"),
            (json!({"tool_choice": "some"}), "tool_choice: expected \"auto\", \"none\", \"required\" or"),
            (json!({"tool_choice": {"type": "allowed_tools"}}), "tool_choice: expected \"auto\""),
            (
                json!({"tool_choice": {"type": "function", "function": {"name": "f"}}}),
                "tool_choice: no tool is named \"f\"",
            ),
            (json!({"functions": []}), "functions: is not supported; use tools"),
            (json!({"store": true}), "store: completions are not stored"),
            (json!({"tools": [{"type": "web_search"}]}), "tools[0].type: only \"function\""),
            (json!({"tools": [{"type": "function", "function": {}}]}), "tools[0].function.name: a name"),
            (json!({"reasoning_effort": "extreme"}), "reasoning_effort: expected one of"),
            (
                messages(json!({"role": "robot", "content": "a"})),
                "messages[0].role: expected system, developer, user, assistant or tool, found \"robot\"",
            ),
            (messages(json!({"role": "user"})), "messages[0].content: a text is required"),
            (
                messages(json!({"role": "user", "content": [{"type": "image_url"}]})),
                "messages[0].content[0].image_url: an object is required",
            ),
            (
                messages(json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]})),
                "messages[0].content[0].image_url.url: \"http\" URLs are not supported",
            ),
            (
                messages(json!({"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": ""}}]})),
                "messages[0].content[0].type: \"image_url\" is not supported",
            ),
            (
                messages(json!({"role": "user", "content": [
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,", "detail": "low"}}]})),
                "messages[0].content[0].image_url.detail: only \"auto\" and \"high\"",
            ),
            (messages(json!({"role": "user", "content": [{"type": "file"}]})), "content[0].type: \"file\""),
        ] {
            let refused = checked(&extra).unwrap_err().to_string();
            assert!(refused.contains(text), "{refused}");
        }
    }

    #[test]
    fn images_are_parts_of_their_message() {
        let url = "data:image/png;base64,AAAA";
        let (_, conversation) = checked(&json!({"messages": [{"role": "user", "content": [
            {"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": url, "detail": "auto"}}]}]}))
        .unwrap();
        let shown = super::super::super::template::to_line(&conversation.messages[0]).unwrap();
        let content = r#"[{"type": "text", "text": "a"}, {"type": "image"}]"#;
        assert_eq!(shown, format!(r#"{{"role": "user", "content": {content}}}"#));
        let image = &conversation.images[0];
        assert_eq!((image.format, image.data.len()), ("png", 3));
        assert_eq!(image.field, "messages[0].content[1].image_url.url");
    }

    #[test]
    fn messages_reach_the_template_in_its_form() {
        let messages = json!({"messages": [
            {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"z\": 1, \"a\": 2}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "7"},
        ], "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}], "reasoning_effort": "low"});
        let (_, conversation) = checked(&messages).unwrap();
        let shown: Vec<String> = conversation
            .messages
            .iter()
            .map(|message| super::super::super::template::to_line(message).unwrap())
            .collect();
        assert_eq!(
            shown,
            [
                r#"{"role": "system", "content": "a\nb"}"#,
                concat!(
                    r#"{"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "#,
                    r#""function": {"name": "f", "arguments": {"z": 1, "a": 2}}}]}"#
                ),
                r#"{"role": "tool", "content": "7", "tool_call_id": "c1"}"#,
            ]
        );
        assert_eq!(conversation.tools.len(), 1);
        let mut none = messages;
        none["tool_choice"] = json!("none");
        assert!(checked(&none).unwrap().1.tools.is_empty());
    }
}
