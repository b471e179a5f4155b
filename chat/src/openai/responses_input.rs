//! Items of `POST responses` as messages of templates.
//!
//! A reply of the assistant is one message of a template and several items: thoughts, text and calls. Items of the
//! assistant in a row are one reply. A further one begins with thoughts behind text or calls, and with a text behind a text.

use minijinja::Value as Ordered;
use trainyard_wire::lists::MAX_MESSAGES;
use trainyard_wire::openai::{InputContent, InputItem, InputPart, ResponsesInput};

use super::super::conversation::map;
use super::super::images::{self, Piece};
use super::super::sent_image::ChatImage;
use super::super::settings::unsupported;
use super::chat_messages::call;
use crate::error::ChatError;

/// The messages of a conversation.
#[derive(Default)]
pub(super) struct Input {
    pub(super) messages: Vec<Ordered>,
    pub(super) images: Vec<ChatImage>,
}

/// Reads the conversation of a request.
///
/// # Errors
/// [`ChatError::Invalid`], which names the field.
pub(super) fn read(input: &ResponsesInput) -> Result<Input, ChatError> {
    let items = match input {
        ResponsesInput::Text(text) => {
            let message = map([("role", Ordered::from("user")), ("content", Ordered::from(text.as_str()))]);
            return Ok(Input { messages: vec![message], images: Vec::new() });
        }
        ResponsesInput::Items(items) => items,
    };
    if items.is_empty() || items.len() > MAX_MESSAGES {
        let found = items.len();
        return Err(ChatError::invalid(format!("input: expected 1 to {MAX_MESSAGES} items, found {found}")));
    }
    let mut reader = Reader::default();
    for (index, item) in items.iter().enumerate() {
        reader.add(&format!("input[{index}]"), item)?;
    }
    reader.end_reply();
    Ok(reader.input)
}

#[derive(Default)]
struct Reader {
    input: Input,
    /// The reply whose items are being read.
    reply: Option<Reply>,
}

/// A reply of the assistant.
#[derive(Default)]
struct Reply {
    thoughts: String,
    text: String,
    calls: Vec<Ordered>,
    /// Whether an item other than thoughts was read.
    has_spoken: bool,
    /// Whether the last item was a text.
    ends_with_text: bool,
}

impl Reader {
    fn add(&mut self, field: &str, item: &InputItem) -> Result<(), ChatError> {
        match item.kind.as_deref().unwrap_or("message") {
            "message" => self.message(field, item),
            "reasoning" => self.thoughts(field, item),
            "function_call" => {
                let [id, name, arguments] =
                    [("call_id", &item.call_id), ("name", &item.name), ("arguments", &item.arguments)]
                        .map(|(name, value)| required(field, name, value.as_deref()));
                let call = call(id?, name?, arguments?);
                let reply = self.reply.get_or_insert_default();
                reply.calls.push(call);
                (reply.has_spoken, reply.ends_with_text) = (true, false);
                Ok(())
            }
            "function_call_output" => {
                let id = required(field, "call_id", item.call_id.as_deref())?;
                let content = self.content(&format!("{field}.output"), "tool", item.output.as_ref())?;
                let [role, id] = ["tool", id].map(Ordered::from);
                self.push(map([("role", role), ("content", content), ("tool_call_id", id)]));
                Ok(())
            }
            "item_reference" => Err(ChatError::invalid(format!(
                "{field}.type: \"item_reference\" is not supported, because items are not stored: send the item itself"
            ))),
            other => Err(ChatError::invalid(format!(
                "{field}.type: expected message, function_call, function_call_output or reasoning, found {other:?}"
            ))),
        }
    }

    fn message(&mut self, field: &str, item: &InputItem) -> Result<(), ChatError> {
        let role = match item.role.as_deref() {
            // Templates know the older name.
            Some("developer") => "system",
            Some(role @ ("system" | "user" | "assistant")) => role,
            other => {
                let found = other.unwrap_or_default();
                return Err(ChatError::invalid(format!(
                    "{field}.role: expected system, developer, user or assistant, found {found:?}"
                )));
            }
        };
        let content = self.content(&format!("{field}.content"), role, item.content.as_ref())?;
        if role != "assistant" {
            self.push(map([("role", Ordered::from(role)), ("content", content)]));
            return Ok(());
        }
        if self.reply.as_ref().is_some_and(|reply| reply.ends_with_text) {
            self.end_reply();
        }
        let reply = self.reply.get_or_insert_default();
        reply.text.push_str(content.as_str().unwrap_or_default());
        (reply.has_spoken, reply.ends_with_text) = (true, true);
        Ok(())
    }

    /// Reads thoughts. Encrypted ones and summaries are ignored.
    fn thoughts(&mut self, field: &str, item: &InputItem) -> Result<(), ChatError> {
        let content = match &item.content {
            None => Ordered::from(""),
            content => self.content(&format!("{field}.content"), "assistant", content.as_ref())?,
        };
        if self.reply.as_ref().is_some_and(|reply| reply.has_spoken) {
            self.end_reply();
        }
        self.reply.get_or_insert_default().thoughts.push_str(content.as_str().unwrap_or_default());
        Ok(())
    }

    fn push(&mut self, message: Ordered) {
        self.end_reply();
        self.input.messages.push(message);
    }

    fn end_reply(&mut self) {
        let Some(Reply { thoughts, text, calls, .. }) = self.reply.take() else { return };
        let mut members = vec![("role", Ordered::from("assistant")), ("content", Ordered::from(text))];
        if !thoughts.is_empty() {
            members.push(("reasoning_content", Ordered::from(thoughts)));
        }
        if !calls.is_empty() {
            members.push(("tool_calls", Ordered::from(calls)));
        }
        self.input.messages.push(Ordered::from_pairs(members));
    }

    /// The content of an item as templates see it. Its images are added to those of the conversation.
    fn content(&mut self, field: &str, role: &str, content: Option<&InputContent>) -> Result<Ordered, ChatError> {
        let parts = match content {
            None => return Err(ChatError::invalid(format!("{field}: is required"))),
            Some(InputContent::Text(text)) => return Ok(Ordered::from(text.as_str())),
            Some(InputContent::Parts(parts)) => parts,
        };
        let mut pieces = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            let field = format!("{field}[{index}]");
            match part.kind.as_str() {
                "input_text" | "output_text" | "text" | "reasoning_text" => {
                    pieces.push(Piece::Text(required(&field, "text", part.text.as_deref())?));
                }
                "refusal" => pieces.push(Piece::Text(required(&field, "refusal", part.refusal.as_deref())?)),
                "input_image" if matches!(role, "user" | "tool") => {
                    self.input.images.push(image(&field, part)?);
                    pieces.push(Piece::Image);
                }
                kind => return Err(ChatError::invalid(format!("{field}.type: {kind:?} is not supported"))),
            }
        }
        Ok(images::content(&pieces))
    }
}

fn image(field: &str, part: &InputPart) -> Result<ChatImage, ChatError> {
    let url = required(field, "image_url", part.image_url.as_deref())?;
    let other = part.detail.as_deref().is_some_and(|detail| !matches!(detail, "auto" | "high"));
    let only = "only \"auto\" and \"high\" are supported: the model sets the size";
    unsupported(&format!("{field}.detail"), other, only)?;
    ChatImage::from_url(&format!("{field}.image_url"), url)
}

fn required<'a>(field: &str, name: &str, value: Option<&'a str>) -> Result<&'a str, ChatError> {
    value.ok_or_else(|| ChatError::invalid(format!("{field}.{name}: is required")))
}
