//! `POST responses`: from its body to settings and a conversation.

use minijinja::Value as Ordered;
use serde_json::Value;
use trainyard_protocol::SamplingControls;
use trainyard_wire::lists::MAX_TOOLS;
use trainyard_wire::openai::ResponsesRequest;

use super::super::conversation::{map, set_effort};
use super::super::settings::{Settings, count, top_k, unsupported, within};
use super::super::template::{ChatTemplate, Conversation};
use super::controls::{text_schema, with_schema};
use super::responses_input::{Input, read};
use super::tool_choice::{NameForm, ToolChoice};
use crate::error::ChatError;

/// The one addition that needs nothing: thoughts are returned in the clear.
const ENCRYPTED_THOUGHTS: &str = "reasoning.encrypted_content";

/// Returns the settings of a request, checked.
///
/// # Errors
/// [`ChatError::Invalid`], which names the field.
pub fn settings(request: &ResponsesRequest) -> Result<Settings, ChatError> {
    let most = request.max_output_tokens;
    let format = request.text.as_ref().and_then(|text| text.format.as_ref());
    let schema = format.map(text_schema).transpose()?.flatten();
    Ok(Settings {
        max_tokens: most.map(|most| count("max_output_tokens", most, 1, u32::MAX)).transpose()?,
        temperature: within("temperature", request.temperature.unwrap_or(1.0), 0.0, 2.0)?,
        top_p: within("top_p", request.top_p.unwrap_or(1.0), 0.0, 1.0)?,
        top_k: top_k(request.top_k)?,
        seed: request.seed,
        token_ids: request.return_token_ids,
        controls: with_schema(SamplingControls::default(), schema)?,
        forced_calls: tool_choice(request).forced_calls(&tools(request)?)?,
        ..Settings::default()
    })
}

fn tool_choice(request: &ResponsesRequest) -> ToolChoice<'_> {
    ToolChoice { choice: request.tool_choice.as_ref(), parallel: request.parallel_tool_calls, form: NameForm::Flat }
}

/// Refuses fields that would change the reply and are not supported.
///
/// # Errors
/// [`ChatError::Invalid`], which names the field.
pub fn check_unsupported(request: &ResponsesRequest) -> Result<(), ChatError> {
    let other =
        |value: &Option<String>, allowed: &[&str]| value.as_deref().is_some_and(|value| !allowed.contains(&value));
    let text = request.text.clone().unwrap_or_default();
    let json = text.format.is_some_and(|format| format.kind != "text");
    let has_tools = request.tools.as_ref().is_some_and(|tools| !tools.is_empty());
    let offered = has_tools && tool_choice(request).offers();
    let whole = "responses are not stored: send the whole conversation in input";
    let (not, shortens) = ("is not supported", "truncation of conversations is not supported");
    unsupported("previous_response_id", request.previous_response_id.is_some(), whole)?;
    unsupported("conversation", is_set(request.conversation.as_ref()), whole)?;
    unsupported("background", request.background == Some(true), "background responses are not supported")?;
    unsupported("prompt", is_set(request.prompt.as_ref()), "prompts are not stored; use instructions and input")?;
    unsupported("text.format", json && offered, "JSON is not supported together with tools")?;
    unsupported("text.verbosity", other(&text.verbosity, &["medium"]), "only \"medium\" is supported")?;
    unsupported("truncation", other(&request.truncation, &["disabled"]), shortens)?;
    unsupported("context_management", is_set(request.context_management.as_ref()), shortens)?;
    unsupported("moderation", is_set(request.moderation.as_ref()), not)?;
    unsupported(
        "top_logprobs",
        request.top_logprobs.is_some_and(|top| top > 0),
        "responses have no log-probabilities",
    )?;
    unsupported("service_tier", other(&request.service_tier, &["auto", "default"]), "service tiers are not supported")?;
    if let Some(name) = request.include.iter().flatten().find(|name| *name != ENCRYPTED_THOUGHTS) {
        return Err(ChatError::invalid(format!("include: {name:?} is not supported")));
    }
    tool_choice(request).check_parallel(has_tools)
}

/// Returns whether a field has a value other than null.
fn is_set(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null())
}

/// Returns the conversation of a request in the form of its template.
///
/// # Errors
/// [`ChatError::Invalid`], which names the field.
pub fn conversation(request: &ResponsesRequest, template: &ChatTemplate) -> Result<Conversation, ChatError> {
    let mut messages = Vec::new();
    if let Some(instructions) = &request.instructions {
        messages.push(map([("role", Ordered::from("system")), ("content", Ordered::from(instructions.as_str()))]));
    }
    let Input { messages: said, images } = read(&request.input)?;
    messages.extend(said);
    let mut conversation = Conversation {
        messages,
        tools: if tool_choice(request).offers() { tools(request)? } else { Vec::new() },
        variables: request.chat_template_kwargs.clone().unwrap_or_default(),
        add_generation_prompt: true,
        images,
    };
    if let Some(effort) = request.reasoning.as_ref().and_then(|reasoning| reasoning.effort.as_ref()) {
        set_effort(template, &mut conversation, "reasoning.effort", effort)?;
    }
    Ok(conversation)
}

/// The tools in the form that templates expect, which is that of chat completions.
fn tools(request: &ResponsesRequest) -> Result<Vec<Ordered>, ChatError> {
    let tools = request.tools.as_deref().unwrap_or_default();
    if tools.len() > MAX_TOOLS {
        return Err(ChatError::invalid(format!("tools: {} tools, at most {MAX_TOOLS} are allowed", tools.len())));
    }
    tools.iter().enumerate().map(|(index, tool)| self::tool(index, tool)).collect()
}

fn tool(index: usize, tool: &Ordered) -> Result<Ordered, ChatError> {
    let member = |name: &str| tool.get_attr(name).unwrap_or_default();
    let kind = member("type");
    if kind.as_str() != Some("function") {
        let found = kind.as_str().unwrap_or_default();
        let text = format!("tools[{index}].type: expected \"function\", found {found:?}, which is not supported");
        return Err(ChatError::invalid(text));
    }
    let name = member("name");
    if name.as_str().is_none_or(str::is_empty) {
        return Err(ChatError::invalid(format!("tools[{index}].name: a name is required")));
    }
    let rest = ["description", "parameters"].map(|name| (name, member(name)));
    let rest = rest.into_iter().filter(|(_, value)| !value.is_undefined() && !value.is_none());
    let function = Ordered::from_pairs([("name", name)].into_iter().chain(rest));
    Ok(map([("type", Ordered::from("function")), ("function", function)]))
}

#[cfg(test)]
#[path = "responses_tests.rs"]
mod tests;
