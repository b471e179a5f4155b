//! Turns requests of the Anthropic API into conversations.

use minijinja::Value as Ordered;
use minijinja::value::ValueKind;
use trainyard_wire::anthropic::{
    AnthropicContent, AnthropicMessage, AnthropicTool, Block, CountTokensRequest, MessagesRequest, OutputConfig,
    Thinking, ToolChoice,
};
use trainyard_wire::lists::{MAX_MESSAGES, MAX_TOOLS};

use super::super::conversation::{map, set_effort, set_thinking};
use super::super::images::{self, Piece};
use super::super::sent_image::ChatImage;
use super::super::settings::unsupported;
use super::super::template::{ChatTemplate, Conversation};
use crate::error::ChatError;
use crate::forced_calls::{Demand, ForcedCalls};

/// Minimum budget for thoughts that the API accepts.
const MIN_BUDGET: u32 = 1_024;

/// The parts of a request from which its prompt is made.
pub struct Parts<'a> {
    /// Messages of the conversation, with the system prompt apart.
    pub messages: &'a [AnthropicMessage],
    /// System prompt, if the request has one.
    pub system: Option<&'a AnthropicContent>,
    /// Tools that are offered to the model.
    pub tools: &'a [AnthropicTool],
    /// Whether the model may call tools.
    pub tool_choice: Option<&'a ToolChoice>,
    /// Whether the model thinks, and for how many tokens.
    pub thinking: Option<&'a Thinking>,
    /// Format and effort of the reply.
    pub output: Option<&'a OutputConfig>,
    /// Limit of the reply, if the request has one.
    pub max_tokens: Option<u32>,
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

/// Returns the conversation, and the text of its last message if the assistant is to continue it.
///
/// # Errors
/// Fails if a part is invalid or not supported.
pub fn conversation(parts: &Parts<'_>, template: &ChatTemplate) -> Result<(Conversation, Option<String>), ChatError> {
    let found = parts.messages.len();
    if found == 0 || found > MAX_MESSAGES {
        return Err(ChatError::invalid(format!("messages: expected 1 to {MAX_MESSAGES} messages, found {found}")));
    }
    let (mut messages, mut images) = (Vec::with_capacity(found + 1), Vec::new());
    if let Some(system) = parts.system {
        let content = text_of("system", system)?;
        messages.push(map([("role", Ordered::from("system")), ("content", Ordered::from(content))]));
    }
    let mut prefill = None;
    for (index, message) in parts.messages.iter().enumerate() {
        prefill = add_message(&format!("messages.{index}"), message, &mut messages, &mut images)?;
    }
    let tools = tools(parts)?;
    // Tokens are counted for what would be answered alone.
    forced_calls(parts)?;
    let add_generation_prompt = prefill.is_none();
    let mut conversation = Conversation { messages, tools, add_generation_prompt, images, ..Conversation::default() };
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

/// Returns whether the request asks for thoughts.
fn enabled(thinking: &Thinking, max_tokens: Option<u32>) -> Result<bool, ChatError> {
    match (thinking.kind.as_str(), thinking.budget_tokens) {
        ("disabled", _) => Ok(false),
        ("adaptive", None) => Ok(true),
        ("enabled", Some(budget)) if budget >= MIN_BUDGET && max_tokens.is_none_or(|most| budget < most) => Ok(true),
        ("enabled", _) => Err(ChatError::invalid(format!(
            "thinking.budget_tokens: expected a number of at least {MIN_BUDGET} and less than max_tokens"
        ))),
        ("adaptive", Some(_)) => {
            Err(ChatError::invalid("thinking.budget_tokens: a budget is not supported with adaptive thinking"))
        }
        (other, _) => Err(ChatError::invalid(format!("thinking.type: {other:?} is not supported"))),
    }
}

/// Adds a message in the form that templates expect. Returns its text if it is the assistant's and may be continued.
fn add_message(
    field: &str,
    message: &AnthropicMessage,
    messages: &mut Vec<Ordered>,
    images: &mut Vec<ChatImage>,
) -> Result<Option<String>, ChatError> {
    let role = message.role.as_str();
    if !matches!(role, "user" | "assistant") {
        return Err(ChatError::invalid(format!("{field}.role: expected \"user\" or \"assistant\", found {role:?}")));
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
            (_, "text") => own.pieces.push(Piece::Text(required(&field, "text", block.text.as_deref())?)),
            ("user", "image") => {
                images.push(image(&field, block)?);
                own.pieces.push(Piece::Image);
            }
            ("assistant", "thinking") => own.thoughts.push(required(&field, "thinking", block.thinking.as_deref())?),
            // This server can't decrypt these.
            ("assistant", "redacted_thinking") => {}
            ("assistant", "tool_use") => own.calls.push(call(&field, block)?),
            ("user", "tool_result") if own.has_images() => {
                return Err(ChatError::invalid(format!("{field}: results of tools must come before images")));
            }
            ("user", "tool_result") => messages.push(result(&field, block, images)?),
            (_, kind) => {
                return Err(ChatError::invalid(format!(
                    "{field}.type: {kind:?} is not supported in messages of {role:?}"
                )));
            }
        }
    }
    let prefill = (role == "assistant" && own.calls.is_empty()).then(|| own.text());
    messages.extend(own.message(role));
    Ok(prefill)
}

/// The blocks of a message that become one message of the template.
#[derive(Default)]
struct Own<'a> {
    pieces: Vec<Piece<'a>>,
    thoughts: Vec<&'a str>,
    calls: Vec<Ordered>,
}

impl Own<'_> {
    fn has_images(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Image))
    }

    /// The texts of an assistant's message.
    fn text(&self) -> String {
        let text = |piece: &Piece<'_>| match piece {
            Piece::Text(text) => (*text).to_owned(),
            Piece::Image => String::new(),
        };
        self.pieces.iter().map(text).collect()
    }

    /// `None` if the message contained only results of tools.
    fn message(self, role: &str) -> Option<Ordered> {
        if role == "user" && self.pieces.is_empty() {
            return None;
        }
        let content = if role == "user" { images::content(&self.pieces) } else { Ordered::from(self.text()) };
        let mut members = vec![("role", Ordered::from(role)), ("content", content)];
        if !self.thoughts.is_empty() {
            members.push(("reasoning_content", Ordered::from(self.thoughts.concat())));
        }
        if !self.calls.is_empty() {
            members.push(("tool_calls", Ordered::from(self.calls)));
        }
        Some(Ordered::from_pairs(members))
    }
}

fn required<'a>(field: &str, name: &str, value: Option<&'a str>) -> Result<&'a str, ChatError> {
    value.ok_or_else(|| ChatError::invalid(format!("{field}.{name}: is required")))
}

fn call(field: &str, block: &Block) -> Result<Ordered, ChatError> {
    let (id, name) = (required(field, "id", block.id.as_deref())?, required(field, "name", block.name.as_deref())?);
    let arguments = block.input.clone().unwrap_or_else(|| Ordered::from_pairs(Vec::<(&str, Ordered)>::new()));
    let function = map([("name", Ordered::from(name)), ("arguments", arguments)]);
    Ok(map([("id", Ordered::from(id)), ("type", Ordered::from("function")), ("function", function)]))
}

fn result(field: &str, block: &Block, images: &mut Vec<ChatImage>) -> Result<Ordered, ChatError> {
    let id = required(field, "tool_use_id", block.tool_use_id.as_deref())?;
    let content = match block.content.as_deref() {
        Some(content) => content_of(&format!("{field}.content"), content, images)?,
        None => Ordered::from(""),
    };
    let role = Ordered::from("tool");
    Ok(map([("role", role), ("content", content), ("tool_call_id", Ordered::from(id))]))
}

fn image(field: &str, block: &Block) -> Result<ChatImage, ChatError> {
    let source = block.source.as_ref().ok_or_else(|| ChatError::invalid(format!("{field}.source: is required")))?;
    let field = format!("{field}.source");
    if source.kind != "base64" {
        return Err(ChatError::invalid(format!(
            "{field}.type: {:?} is not supported, because the server fetches no files: send \"base64\"",
            source.kind
        )));
    }
    let media_type = required(&field, "media_type", source.media_type.as_deref())?;
    ChatImage::from_base64(&field, media_type, required(&field, "data", source.data.as_deref())?)
}

/// The content of a tool's result as templates see it. Its images are added to `images`.
fn content_of(field: &str, content: &AnthropicContent, images: &mut Vec<ChatImage>) -> Result<Ordered, ChatError> {
    let blocks = match content {
        AnthropicContent::Text(text) => return Ok(Ordered::from(text.as_str())),
        AnthropicContent::Blocks(blocks) => blocks,
    };
    let mut pieces = Vec::with_capacity(blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        let field = format!("{field}.{index}");
        match block.kind.as_str() {
            "text" => pieces.push(Piece::Text(required(&field, "text", block.text.as_deref())?)),
            "image" => {
                images.push(image(&field, block)?);
                pieces.push(Piece::Image);
            }
            other => return Err(ChatError::invalid(format!("{field}.type: {other:?} is not supported"))),
        }
    }
    Ok(images::content(&pieces))
}

/// The text of content that may contain only text blocks.
fn text_of(field: &str, content: &AnthropicContent) -> Result<String, ChatError> {
    let blocks = match content {
        AnthropicContent::Text(text) => return Ok(text.clone()),
        AnthropicContent::Blocks(blocks) => blocks,
    };
    let mut texts = Vec::with_capacity(blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        if block.kind != "text" {
            return Err(ChatError::invalid(format!("{field}.{index}.type: {:?} is not supported", block.kind)));
        }
        texts.push(required(&format!("{field}.{index}"), "text", block.text.as_deref())?);
    }
    Ok(texts.join("\n"))
}

/// The tools in the form that templates expect.
fn tools(parts: &Parts<'_>) -> Result<Vec<Ordered>, ChatError> {
    if parts.tools.len() > MAX_TOOLS {
        let found = parts.tools.len();
        return Err(ChatError::invalid(format!("tools: {found} tools, at most {MAX_TOOLS} are allowed")));
    }
    let mut tools = Vec::with_capacity(parts.tools.len());
    for (index, tool) in parts.tools.iter().enumerate() {
        if tool.kind.as_deref().is_some_and(|kind| kind != "custom") {
            let kind = tool.kind.as_deref().unwrap_or_default();
            return Err(ChatError::invalid(format!("tools.{index}.type: {kind:?} is not supported")));
        }
        let schema = tool
            .input_schema
            .clone()
            .ok_or_else(|| ChatError::invalid(format!("tools.{index}.input_schema: is required")))?;
        if schema.kind() != ValueKind::Map {
            return Err(ChatError::invalid(format!("tools.{index}.input_schema: expected a JSON schema, an object")));
        }
        let mut function = vec![("name", Ordered::from(tool.name.as_str()))];
        function.extend(tool.description.as_deref().map(|text| ("description", Ordered::from(text))));
        function.push(("parameters", schema));
        tools.push(map([("type", Ordered::from("function")), ("function", Ordered::from_pairs(function))]));
    }
    if parts.tool_choice.is_some_and(|choice| choice.kind == "none") {
        tools.clear();
    }
    Ok(tools)
}

/// The calls that `tool_choice` demands.
///
/// # Errors
/// [`ChatError::Invalid`], which names the field.
pub(super) fn forced_calls(parts: &Parts<'_>) -> Result<Option<ForcedCalls>, ChatError> {
    let Some(choice) = parts.tool_choice else { return Ok(None) };
    let one = choice.disable_parallel_tool_use == Some(true);
    let demand = match (choice.kind.as_str(), &choice.name) {
        ("auto", _) => {
            unsupported(
                "tool_choice.disable_parallel_tool_use",
                one,
                "true is supported only when a call is required",
            )?;
            return Ok(None);
        }
        ("none", _) => return Ok(None),
        ("any", _) => Demand::Any,
        ("tool", Some(name)) => Demand::Named(name),
        ("tool", None) => return Err(ChatError::invalid("tool_choice.name: is required")),
        (other, _) => {
            return Err(ChatError::invalid(format!(
                "tool_choice.type: expected auto, none, any or tool, found {other:?}"
            )));
        }
    };
    let thinks = parts.thinking.is_some_and(|thinking| thinking.kind != "disabled");
    unsupported("tool_choice", thinks, "a call can't be forced while the model thinks: turn thinking off")?;
    ForcedCalls::new(&tools(parts)?, demand, !one).map(Some)
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
