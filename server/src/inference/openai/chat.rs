//! `POST chat/completions`: from its body to a prompt.

use minijinja::Value as Ordered;
use serde_json::Value;
use trainyard_protocol::TenantId;
use trainyard_wire::lists::{MAX_MESSAGES, MAX_TOOLS};
use trainyard_wire::openai::{ChatContent, ChatMessage, ChatRequest, ChatResponse, StopStrings, ToolCall};

use super::super::completion::{Completion, Prompt};
use super::super::conversation::{map, render, set_effort};
use super::super::model_name::resolve;
use super::super::output::OutputFormat;
use super::super::settings::{
    MAX_COMPLETIONS, MAX_LOGPROBS, Settings, count, stop_strings, top_k, unsupported, within,
};
use super::super::sse;
use super::super::template::{ChatTemplate, Conversation};
use super::chat_reply::reply;
use super::chat_stream::ChatStream;
use super::controls::{Given, controls};
use super::{Answered, Head};
use crate::error::ApiError;
use crate::state::AppState;

/// Answers a conversation.
///
/// # Errors
/// When the request is wrong or can't be taken now.
pub(crate) async fn chat(
    state: &AppState,
    tenant: &TenantId,
    request: ChatRequest,
) -> Result<Answered<ChatResponse>, ApiError> {
    check_unsupported(&request)?;
    let settings = settings(&request)?;
    let target = resolve(state, tenant, &request.model).await?;
    let text = state.inference.texts.get(state.models.hub(), &target.base.name).await?;
    let conversation = conversation(&request, text.template()?)?;
    let rendered = render(state, &text, conversation, None).await?;
    let top = request.top_logprobs.unwrap_or(0);
    // JSON is all that the reply consists of.
    let format = if settings.controls.json_schema.is_some() { OutputFormat::default() } else { rendered.format };
    let prompt = Prompt { tokens: rendered.tokens, settings, format, is_chat: true, score_prompt: false };
    let completion = Completion::start(state, tenant, &target, &text, prompt).await?;
    let head = Head::new(state, "chatcmpl", completion.id(), target.name);
    if request.stream {
        let include_usage = request.stream_options.is_some_and(|options| options.include_usage);
        return Ok(Answered::Stream(sse::respond(ChatStream::new(head, completion, text, top, include_usage))));
    }
    reply(head, completion, &text, top).await.map(|response| Answered::Whole(Box::new(response)))
}

fn settings(request: &ChatRequest) -> Result<Settings, ApiError> {
    let max_tokens = match (request.max_completion_tokens, request.max_tokens) {
        (Some(_), Some(_)) => {
            return Err(ApiError::invalid("max_tokens: give either it or max_completion_tokens"));
        }
        (Some(most), None) => Some(count("max_completion_tokens", most, 1, u32::MAX)?),
        (None, Some(most)) => Some(count("max_tokens", most, 1, u32::MAX)?),
        (None, None) => None,
    };
    if request.top_logprobs.is_some() && !request.logprobs {
        return Err(ApiError::invalid("top_logprobs: needs logprobs"));
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
        controls: controls(&Given {
            min_p: request.min_p,
            presence_penalty: request.presence_penalty,
            frequency_penalty: request.frequency_penalty,
            repetition_penalty: request.repetition_penalty,
            logit_bias: request.logit_bias.as_ref(),
            response_format: request.response_format.as_ref(),
        })?,
    })
}

/// Refuses what would change the reply and can't be done.
fn check_unsupported(request: &ChatRequest) -> Result<(), ApiError> {
    let other =
        |value: &Option<String>, allowed: &[&str]| value.as_deref().is_some_and(|value| !allowed.contains(&value));
    let text_alone = request.modalities.as_deref().is_none_or(|modes| modes.iter().all(|mode| mode == "text"));
    let tools = request.tools.as_deref().unwrap_or_default();
    let json = request.response_format.as_ref().is_some_and(|format| format.kind != "text");
    let offered = !tools.is_empty() && request.tool_choice.as_ref().and_then(Value::as_str) != Some("none");
    let not = "is not supported";
    unsupported("response_format", json && offered, "JSON is not supported together with tools")?;
    unsupported("modalities", !text_alone, "other modalities than \"text\" are not supported")?;
    unsupported("audio", request.audio.is_some(), not)?;
    unsupported("prediction", request.prediction.is_some(), not)?;
    unsupported("web_search_options", request.web_search_options.is_some(), not)?;
    unsupported("functions", request.functions.is_some(), "is not supported; use tools")?;
    unsupported("function_call", request.function_call.is_some(), "is not supported; use tool_choice")?;
    unsupported("verbosity", other(&request.verbosity, &["medium"]), "other values than \"medium\" are not supported")?;
    unsupported("store", request.store == Some(true), "completions are not stored")?;
    unsupported("service_tier", other(&request.service_tier, &["auto", "default"]), "there are no service tiers")?;
    let one_call = request.parallel_tool_calls == Some(false) && !tools.is_empty();
    unsupported("parallel_tool_calls", one_call, "false is not supported: a model calls what it likes")?;
    match &request.tool_choice {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(choice)) if matches!(choice.as_str(), "auto" | "none") => Ok(()),
        Some(choice) => Err(ApiError::invalid(format!(
            "tool_choice: {choice} is not supported; a model can't be made to call a tool (\"auto\", \"none\")"
        ))),
    }
}

fn conversation(request: &ChatRequest, template: &ChatTemplate) -> Result<Conversation, ApiError> {
    let (messages, tools) = (&request.messages, request.tools.as_deref().unwrap_or_default());
    if messages.is_empty() || messages.len() > MAX_MESSAGES {
        let found = messages.len();
        return Err(ApiError::invalid(format!("messages: {found} messages, 1 to {MAX_MESSAGES} are expected")));
    }
    if tools.len() > MAX_TOOLS {
        return Err(ApiError::invalid(format!("tools: {} tools, at most {MAX_TOOLS} are allowed", tools.len())));
    }
    for (index, tool) in tools.iter().enumerate() {
        check_tool(index, tool)?;
    }
    let offered = request.tool_choice.as_ref().and_then(Value::as_str) != Some("none");
    let mut conversation = Conversation {
        messages: messages
            .iter()
            .enumerate()
            .map(|(at, message)| self::message(at, message))
            .collect::<Result<_, _>>()?,
        tools: if offered { tools.to_vec() } else { Vec::new() },
        variables: request.chat_template_kwargs.clone().unwrap_or_default(),
        add_generation_prompt: true,
    };
    if let Some(effort) = &request.reasoning_effort {
        set_effort(template, &mut conversation, "reasoning_effort", effort)?;
    }
    Ok(conversation)
}

fn check_tool(index: usize, tool: &Ordered) -> Result<(), ApiError> {
    let member = |value: &Ordered, name: &str| value.get_attr(name).unwrap_or_default();
    if member(tool, "type").as_str() != Some("function") {
        return Err(ApiError::invalid(format!("tools[{index}].type: only \"function\" is supported")));
    }
    if member(&member(tool, "function"), "name").as_str().is_none_or(str::is_empty) {
        return Err(ApiError::invalid(format!("tools[{index}].function.name: a name is required")));
    }
    Ok(())
}

/// A message as templates see it.
fn message(index: usize, message: &ChatMessage) -> Result<Ordered, ApiError> {
    let field = |name: &str| format!("messages[{index}].{name}");
    let role = match message.role.as_str() {
        // The newer name; templates know the older one.
        "developer" => "system",
        role @ ("system" | "user" | "assistant" | "tool") => role,
        other => return Err(ApiError::invalid(format!("{}: {other:?} is no role", field("role")))),
    };
    unsupported(&field("audio"), message.audio.is_some(), "is not supported")?;
    unsupported(&field("function_call"), message.function_call.is_some(), "is not supported; use tool_calls")?;
    let calls = message.tool_calls.as_deref().unwrap_or_default();
    let content = match (&message.content, &message.refusal) {
        (Some(content), _) => self::content(&field("content"), content)?,
        (None, Some(refusal)) => refusal.clone(),
        (None, None) if role == "assistant" => String::new(),
        (None, None) => return Err(ApiError::invalid(format!("{}: a text is required", field("content")))),
    };
    let mut members = vec![("role", Ordered::from(role)), ("content", Ordered::from(content))];
    let texts = [
        ("name", &message.name),
        ("reasoning_content", &message.reasoning_content),
        ("tool_call_id", &message.tool_call_id),
    ];
    members.extend(texts.into_iter().filter_map(|(name, text)| Some((name, Ordered::from(text.as_deref()?)))));
    if !calls.is_empty() {
        let calls = calls.iter().map(|call| self::call(&field("tool_calls"), call)).collect::<Result<Vec<_>, _>>()?;
        members.push(("tool_calls", Ordered::from(calls)));
    }
    Ok(Ordered::from_pairs(members))
}

fn content(field: &str, content: &ChatContent) -> Result<String, ApiError> {
    let parts = match content {
        ChatContent::Text(text) => return Ok(text.clone()),
        ChatContent::Parts(parts) => parts,
    };
    let mut texts = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        match (part.kind.as_str(), &part.text) {
            ("text", Some(text)) => texts.push(text.as_str()),
            ("text", None) => return Err(ApiError::invalid(format!("{field}[{index}].text: a text is required"))),
            (kind, _) => return Err(ApiError::invalid(format!("{field}[{index}].type: {kind:?} is not supported"))),
        }
    }
    Ok(texts.join("\n"))
}

/// A call as templates see it: its arguments are a map.
fn call(field: &str, call: &ToolCall) -> Result<Ordered, ApiError> {
    let text = if call.function.arguments.trim().is_empty() { "{}" } else { &call.function.arguments };
    let arguments: Ordered = serde_json::from_str(text)
        .map_err(|error| ApiError::invalid(format!("{field}: the arguments of {:?} are no JSON: {error}", call.id)))?;
    let function = map([("name", Ordered::from(call.function.name.as_str())), ("arguments", arguments)]);
    let id = Ordered::from(call.id.as_str());
    Ok(map([("id", id), ("type", Ordered::from("function")), ("function", function)]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::collections::BTreeMap;

    use serde_json::json;
    use trainyard_protocol::SamplingControls;
    use trainyard_wire::json::parse;

    use super::*;

    fn request(extra: &Value) -> Result<ChatRequest, ApiError> {
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
        extra.as_object().unwrap().iter().for_each(|(key, value)| body[key] = value.clone());
        Ok(parse(body.to_string().as_bytes())?)
    }

    fn checked(extra: &Value) -> Result<(Settings, Conversation), ApiError> {
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
            "logprobs": true, "top_logprobs": 3, "top_k": 4, "min_p": 0.25, "presence_penalty": -2, "frequency_penalty": 2,
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
            controls: SamplingControls {
                min_p: 0.25,
                presence_penalty: -2.0,
                frequency_penalty: 2.0,
                repetition_penalty: 1.5,
                logit_bias: vec![(5, -100.0), (7, 1.0)],
                json_schema: Some(r#"{"type": "object"}"#.to_owned()),
            },
        };
        assert_eq!(checked(&all).unwrap().0, expected);
    }

    #[test]
    fn refusals_name_the_field() {
        let messages = |message: Value| json!({"messages": [message]});
        for (extra, text) in [
            (json!({"foo": 1}), "unknown field `foo`"),
            (json!({"messages": []}), "messages: 0 messages"),
            (json!({"max_tokens": 0}), "max_tokens: 0 is not between"),
            (json!({"max_tokens": 1, "max_completion_tokens": 1}), "max_tokens: give either"),
            (json!({"n": 0}), "n: 0"),
            (json!({"temperature": 2.5}), "temperature: 2.5"),
            (json!({"top_logprobs": 2}), "top_logprobs: needs logprobs"),
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
            (json!({"response_format": {"type": "grammar"}}), "response_format.type: other types"),
            (json!({"tool_choice": "required"}), "tool_choice: \"required\" is not supported"),
            (json!({"functions": []}), "functions: is not supported; use tools"),
            (json!({"store": true}), "store: completions are not stored"),
            (json!({"tools": [{"type": "web_search"}]}), "tools[0].type: only \"function\""),
            (json!({"tools": [{"type": "function", "function": {}}]}), "tools[0].function.name: a name"),
            (json!({"reasoning_effort": "extreme"}), "reasoning_effort: \"extreme\" is neither"),
            (messages(json!({"role": "robot", "content": "a"})), "messages[0].role: \"robot\" is no role"),
            (messages(json!({"role": "user"})), "messages[0].content: a text is required"),
            (
                messages(json!({"role": "user", "content": [{"type": "image_url"}]})),
                "messages[0].content[0].type: \"image_url\"",
            ),
        ] {
            let refused = checked(&extra).unwrap_err().to_string();
            assert!(refused.contains(text), "{refused}");
        }
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
