//! Messages of `POST chat/completions` as templates see them.

use minijinja::Value as Ordered;
use trainyard_wire::openai::{ChatContent, ChatMessage, ImageUrl, ToolCall};

use super::super::conversation::map;
use super::super::images::{self, Piece};
use super::super::sent_image::ChatImage;
use super::super::settings::unsupported;
use crate::error::ChatError;

/// A message as templates see it.
pub(super) fn message(index: usize, message: &ChatMessage, images: &mut Vec<ChatImage>) -> Result<Ordered, ChatError> {
    let field = |name: &str| format!("messages[{index}].{name}");
    let role = match message.role.as_str() {
        // The newer name; templates know the older one.
        "developer" => "system",
        role @ ("system" | "user" | "assistant" | "tool") => role,
        other => {
            return Err(ChatError::invalid(format!(
                "{}: expected system, developer, user, assistant or tool, found {other:?}",
                field("role")
            )));
        }
    };
    unsupported(&field("audio"), message.audio.is_some(), "is not supported")?;
    unsupported(&field("function_call"), message.function_call.is_some(), "is not supported; use tool_calls")?;
    let calls = message.tool_calls.as_deref().unwrap_or_default();
    let content = match (&message.content, &message.refusal) {
        (Some(content), _) => self::content(&field("content"), role, content, images)?,
        (None, Some(refusal)) => Ordered::from(refusal.as_str()),
        (None, None) if role == "assistant" => Ordered::from(""),
        (None, None) => return Err(ChatError::invalid(format!("{}: a text is required", field("content")))),
    };
    let mut members = vec![("role", Ordered::from(role)), ("content", content)];
    let texts = [
        ("name", &message.name),
        ("reasoning_content", &message.reasoning_content),
        ("tool_call_id", &message.tool_call_id),
    ];
    members.extend(texts.into_iter().filter_map(|(name, text)| Some((name, Ordered::from(text.as_deref()?)))));
    if !calls.is_empty() {
        let call = |call: &ToolCall| self::call(&call.id, &call.function.name, &call.function.arguments);
        members.push(("tool_calls", Ordered::from(calls.iter().map(call).collect::<Vec<_>>())));
    }
    Ok(Ordered::from_pairs(members))
}

/// The content of a message as templates see it. Its images are added to `images`.
fn content(field: &str, role: &str, content: &ChatContent, images: &mut Vec<ChatImage>) -> Result<Ordered, ChatError> {
    let parts = match content {
        ChatContent::Text(text) => return Ok(Ordered::from(text.as_str())),
        ChatContent::Parts(parts) => parts,
    };
    let mut pieces = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        match (part.kind.as_str(), &part.text) {
            ("text", Some(text)) => pieces.push(Piece::Text(text)),
            ("image_url", _) if matches!(role, "user" | "tool") => {
                images.push(image(&format!("{field}[{index}].image_url"), part.image_url.as_ref())?);
                pieces.push(Piece::Image);
            }
            ("text", None) => return Err(ChatError::invalid(format!("{field}[{index}].text: a text is required"))),
            (kind, _) => return Err(ChatError::invalid(format!("{field}[{index}].type: {kind:?} is not supported"))),
        }
    }
    Ok(images::content(&pieces))
}

fn image(field: &str, url: Option<&ImageUrl>) -> Result<ChatImage, ChatError> {
    let ImageUrl { url, detail } = url.ok_or_else(|| ChatError::invalid(format!("{field}: an object is required")))?;
    let other = detail.as_deref().is_some_and(|detail| !matches!(detail, "auto" | "high"));
    unsupported(
        &format!("{field}.detail"),
        other,
        "only \"auto\" and \"high\" are supported: the model sets the size",
    )?;
    ChatImage::from_url(&format!("{field}.url"), url)
}

/// A call as templates see it: its arguments are a map. Arguments that are not JSON stay the text that was said.
pub(super) fn call(id: &str, name: &str, arguments: &str) -> Ordered {
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    let arguments: Ordered = serde_json::from_str(arguments).unwrap_or_else(|_| Ordered::from(arguments));
    let function = map([("name", Ordered::from(name)), ("arguments", arguments)]);
    map([("id", Ordered::from(id)), ("type", Ordered::from("function")), ("function", function)])
}
