//! Turns requests of the Anthropic API into conversations.

use minijinja::Value as Ordered;
use trainyard_wire::anthropic::{
    AnthropicContent, AnthropicMessage, AnthropicTool, Block, CountTokensRequest, MessagesRequest, OutputConfig,
    Thinking, ToolChoice,
};
use trainyard_wire::lists::{MAX_MESSAGES, MAX_TOOLS};

use super::super::conversation::{map, set_effort, set_thinking};
use super::super::settings::unsupported;
use super::super::template::{ChatTemplate, Conversation};
use crate::error::ApiError;

/// The least budget for thoughts that the API accepts.
const MIN_BUDGET: u32 = 1_024;

/// The parts of a request from which its prompt is made.
pub(super) struct Parts<'a> {
    pub(super) messages: &'a [AnthropicMessage],
    pub(super) system: Option<&'a AnthropicContent>,
    pub(super) tools: &'a [AnthropicTool],
    pub(super) tool_choice: Option<&'a ToolChoice>,
    pub(super) thinking: Option<&'a Thinking>,
    pub(super) output: Option<&'a OutputConfig>,
    /// Limit of the reply, if the request has one.
    pub(super) max_tokens: Option<u32>,
}

impl<'a> From<&'a MessagesRequest> for Parts<'a> {
    fn from(request: &'a MessagesRequest) -> Self {
        Self {
            messages: &request.messages,
            system: request.system.as_ref(),
            tools: request.tools.as_deref().unwrap_or_default(),
            tool_choice: request.tool_choice.as_ref(),
            thinking: request.thinking.as_ref(),
            output: request.output_config.as_ref(),
            max_tokens: Some(request.max_tokens),
        }
    }
}

impl<'a> From<&'a CountTokensRequest> for Parts<'a> {
    fn from(request: &'a CountTokensRequest) -> Self {
        Self {
            messages: &request.messages,
            system: request.system.as_ref(),
            tools: request.tools.as_deref().unwrap_or_default(),
            tool_choice: request.tool_choice.as_ref(),
            thinking: request.thinking.as_ref(),
            output: request.output_config.as_ref(),
            max_tokens: None,
        }
    }
}

/// The conversation, and the text of its last message if the assistant is to continue it.
///
/// # Errors
/// When a part is invalid or not supported.
pub(super) fn conversation(
    parts: &Parts<'_>,
    template: &ChatTemplate,
) -> Result<(Conversation, Option<String>), ApiError> {
    let found = parts.messages.len();
    if found == 0 || found > MAX_MESSAGES {
        return Err(ApiError::invalid(format!("messages: {found} messages, 1 to {MAX_MESSAGES} are expected")));
    }
    let mut messages = Vec::with_capacity(found + 1);
    if let Some(system) = parts.system {
        let content = text_of("system", system)?;
        messages.push(map([("role", Ordered::from("system")), ("content", Ordered::from(content))]));
    }
    let mut prefill = None;
    for (index, message) in parts.messages.iter().enumerate() {
        prefill = add_message(&format!("messages.{index}"), message, &mut messages)?;
    }
    let tools = tools(parts)?;
    let add_generation_prompt = prefill.is_none();
    let mut conversation = Conversation { messages, tools, add_generation_prompt, ..Conversation::default() };
    if let Some(thinking) = parts.thinking {
        set_thinking(template, &mut conversation, enabled(thinking, parts.max_tokens)?)?;
    }
    if let Some(output) = parts.output {
        unsupported("output_config.format", output.format.is_some(), "is not supported")?;
        if let Some(effort) = &output.effort {
            set_effort(template, &mut conversation, "output_config.effort", effort)?;
        }
    }
    Ok((conversation, prefill))
}

/// Whether the request asks for thoughts.
fn enabled(thinking: &Thinking, max_tokens: Option<u32>) -> Result<bool, ApiError> {
    match (thinking.kind.as_str(), thinking.budget_tokens) {
        ("disabled", _) => Ok(false),
        ("adaptive", None) => Ok(true),
        ("enabled", Some(budget)) if budget >= MIN_BUDGET && max_tokens.is_none_or(|most| budget < most) => Ok(true),
        ("enabled", _) => Err(ApiError::invalid(format!(
            "thinking.budget_tokens: a number from {MIN_BUDGET} and below max_tokens is required"
        ))),
        ("adaptive", Some(_)) => Err(ApiError::invalid("thinking.budget_tokens: adaptive thinking has no budget")),
        (other, _) => Err(ApiError::invalid(format!("thinking.type: {other:?} is not supported"))),
    }
}

/// Adds a message in the form that templates expect. Returns its text if it is the assistant's and may be continued.
fn add_message(
    field: &str,
    message: &AnthropicMessage,
    messages: &mut Vec<Ordered>,
) -> Result<Option<String>, ApiError> {
    let role = message.role.as_str();
    if !matches!(role, "user" | "assistant") {
        return Err(ApiError::invalid(format!("{field}.role: {role:?} is neither \"user\" nor \"assistant\"")));
    }
    let blocks = match &message.content {
        AnthropicContent::Text(text) => {
            messages.push(map([("role", Ordered::from(role)), ("content", Ordered::from(text.as_str()))]));
            return Ok((role == "assistant").then(|| text.clone()));
        }
        AnthropicContent::Blocks(blocks) => blocks,
    };
    let mut own = Own::default();
    for (index, block) in blocks.iter().enumerate() {
        let field = format!("{field}.content.{index}");
        match (role, block.kind.as_str()) {
            (_, "text") => own.texts.push(required(&field, "text", block.text.as_deref())?),
            ("assistant", "thinking") => own.thoughts.push(required(&field, "thinking", block.thinking.as_deref())?),
            // This server can't decrypt these.
            ("assistant", "redacted_thinking") => {}
            ("assistant", "tool_use") => own.calls.push(call(&field, block)?),
            ("user", "tool_result") => messages.push(result(&field, block)?),
            (_, kind) => {
                return Err(ApiError::invalid(format!(
                    "{field}.type: {kind:?} is not supported in messages of {role:?}"
                )));
            }
        }
    }
    let prefill = (role == "assistant" && own.calls.is_empty()).then(|| own.texts.concat());
    messages.extend(own.message(role));
    Ok(prefill)
}

/// The blocks of a message that become one message of the template.
#[derive(Default)]
struct Own<'a> {
    texts: Vec<&'a str>,
    thoughts: Vec<&'a str>,
    calls: Vec<Ordered>,
}

impl Own<'_> {
    /// `None` if the message contained only results of tools.
    fn message(self, role: &str) -> Option<Ordered> {
        if role == "user" && self.texts.is_empty() {
            return None;
        }
        let text = if role == "user" { self.texts.join("\n") } else { self.texts.concat() };
        let mut members = vec![("role", Ordered::from(role)), ("content", Ordered::from(text))];
        if !self.thoughts.is_empty() {
            members.push(("reasoning_content", Ordered::from(self.thoughts.concat())));
        }
        if !self.calls.is_empty() {
            members.push(("tool_calls", Ordered::from(self.calls)));
        }
        Some(Ordered::from_pairs(members))
    }
}

fn required<'a>(field: &str, name: &str, value: Option<&'a str>) -> Result<&'a str, ApiError> {
    value.ok_or_else(|| ApiError::invalid(format!("{field}.{name}: is required")))
}

fn call(field: &str, block: &Block) -> Result<Ordered, ApiError> {
    let (id, name) = (required(field, "id", block.id.as_deref())?, required(field, "name", block.name.as_deref())?);
    let arguments = block.input.clone().unwrap_or_else(|| Ordered::from_pairs(Vec::<(&str, Ordered)>::new()));
    let function = map([("name", Ordered::from(name)), ("arguments", arguments)]);
    Ok(map([("id", Ordered::from(id)), ("type", Ordered::from("function")), ("function", function)]))
}

fn result(field: &str, block: &Block) -> Result<Ordered, ApiError> {
    let id = required(field, "tool_use_id", block.tool_use_id.as_deref())?;
    let content = match block.content.as_deref() {
        Some(content) => text_of(&format!("{field}.content"), content)?,
        None => String::new(),
    };
    let (role, content) = (Ordered::from("tool"), Ordered::from(content));
    Ok(map([("role", role), ("content", content), ("tool_call_id", Ordered::from(id))]))
}

/// The text of content that may contain only text blocks.
fn text_of(field: &str, content: &AnthropicContent) -> Result<String, ApiError> {
    let blocks = match content {
        AnthropicContent::Text(text) => return Ok(text.clone()),
        AnthropicContent::Blocks(blocks) => blocks,
    };
    let mut texts = Vec::with_capacity(blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        if block.kind != "text" {
            return Err(ApiError::invalid(format!("{field}.{index}.type: {:?} is not supported", block.kind)));
        }
        texts.push(required(&format!("{field}.{index}"), "text", block.text.as_deref())?);
    }
    Ok(texts.join("\n"))
}

/// The tools in the form that templates expect.
fn tools(parts: &Parts<'_>) -> Result<Vec<Ordered>, ApiError> {
    if parts.tools.len() > MAX_TOOLS {
        let found = parts.tools.len();
        return Err(ApiError::invalid(format!("tools: {found} tools, at most {MAX_TOOLS} are allowed")));
    }
    let mut tools = Vec::with_capacity(parts.tools.len());
    for (index, tool) in parts.tools.iter().enumerate() {
        if tool.kind.as_deref().is_some_and(|kind| kind != "custom") {
            let kind = tool.kind.as_deref().unwrap_or_default();
            return Err(ApiError::invalid(format!("tools.{index}.type: {kind:?} is not supported")));
        }
        let schema = tool
            .input_schema
            .clone()
            .ok_or_else(|| ApiError::invalid(format!("tools.{index}.input_schema: is required")))?;
        let mut function = vec![("name", Ordered::from(tool.name.as_str()))];
        function.extend(tool.description.as_deref().map(|text| ("description", Ordered::from(text))));
        function.push(("parameters", schema));
        tools.push(map([("type", Ordered::from("function")), ("function", Ordered::from_pairs(function))]));
    }
    if let Some(choice) = parts.tool_choice {
        unsupported(
            "tool_choice.disable_parallel_tool_use",
            choice.disable_parallel_tool_use == Some(true),
            "true is not supported: a model calls what it likes",
        )?;
        match choice.kind.as_str() {
            "auto" => {}
            "none" => tools.clear(),
            other => {
                return Err(ApiError::invalid(format!(
                    "tool_choice.type: {other:?} is not supported; a model can't be made to call a tool (\"auto\", \"none\")"
                )));
            }
        }
    }
    Ok(tools)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::collections::BTreeMap;

    use serde_json::{Value, json};
    use trainyard_wire::json::parse;

    use super::super::super::template::to_line;
    use super::*;

    fn checked(extra: &Value) -> Result<(Vec<String>, Option<String>), ApiError> {
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
    fn refusals_name_the_field() {
        let user = |block: Value| json!({"messages": [{"role": "user", "content": [block]}]});
        for (extra, text) in [
            (json!({"foo": 1}), "unknown field `foo`"),
            (json!({"messages": []}), "messages: 0 messages"),
            (json!({"messages": [{"role": "system", "content": "a"}]}), "messages.0.role: \"system\""),
            (user(json!({"type": "image"})), "messages.0.content.0.type: \"image\" is not supported"),
            (user(json!({"type": "tool_use", "id": "a"})), "messages.0.content.0.type: \"tool_use\""),
            (user(json!({"type": "tool_result"})), "messages.0.content.0.tool_use_id: is required"),
            (json!({"tools": [{"name": "f"}]}), "tools.0.input_schema: is required"),
            (json!({"tools": [{"name": "bash", "type": "bash_20250124"}]}), "tools.0.type: \"bash_20250124\""),
            (json!({"tool_choice": {"type": "any"}}), "tool_choice.type: \"any\" is not supported"),
            (json!({"thinking": {"type": "enabled", "budget_tokens": 5}}), "thinking.budget_tokens: a number"),
            (
                json!({"thinking": {"type": "adaptive"}}),
                "thinking: the model's chat template does not support thinking",
            ),
            (json!({"output_config": {"effort": "low"}}), "output_config.effort: the model's chat template"),
            (json!({"output_config": {"format": {}}}), "output_config.format: is not supported"),
        ] {
            let refused = checked(&extra).unwrap_err().to_string();
            assert!(refused.contains(text), "{refused}");
        }
        assert!(checked(&json!({"thinking": {"type": "disabled"}})).is_ok());
    }
}
