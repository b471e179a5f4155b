//! Turns conversations into prompts, using what the model's template supports.

use minijinja::Value;
use time::OffsetDateTime;
use trainyard_protocol::ImageSpan;
use trainyard_wire::images::ImageRules;

use super::channels::CHANNEL;
use super::images::{check_model, place};
use super::output::{CALL, OutputFormat};
use super::template::{ChatTemplate, Conversation, TemplateError};
use super::texts::ModelText;
use crate::error::ChatError;

/// The variables by which templates switch thoughts on and off, and set their length.
const ENABLE_THINKING: &str = "enable_thinking";
const REASONING_EFFORT: &str = "reasoning_effort";
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// A prompt for an assistant's message.
pub struct Rendered {
    /// Tokens of the prompt, at least one, with a placeholder at each position of an image.
    pub tokens: Vec<u32>,
    /// Images among the tokens.
    pub images: Vec<ImageSpan>,
    /// The parts of which the message may consist.
    pub format: OutputFormat,
}

/// A map that keeps its members in this order.
pub(crate) fn map<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::from_pairs(members)
}

/// Renders a conversation and encodes it for a model with these rules. `prefill` is the assistant's last message, which the
/// model continues.
///
/// # Errors
/// Fails if the template does not accept the conversation, or the model does not accept an image.
pub fn render(
    text: &ModelText,
    conversation: &Conversation,
    prefill: Option<&str>,
    rules: &ImageRules,
    now: OffsetDateTime,
) -> Result<Rendered, ChatError> {
    check_model(&conversation.images, rules)?;
    let template = text.template()?;
    check_tools(template, conversation)?;
    let mut prompt = template.render(conversation, now).map_err(refused)?;
    if let Some(prefill) = prefill {
        prompt = continued(prompt, prefill)?;
    }
    let format = output_format(template, conversation, &prompt, prefill);
    let mut tokens = encode(text, &prompt, false)?;
    let mut images = Vec::new();
    if !conversation.images.is_empty() {
        let input = place(&tokens, &conversation.images, rules)?;
        // They were tokens of 32 bits before.
        tokens = input.tokens.into_iter().filter_map(|token| u32::try_from(token).ok()).collect();
        images = input.images;
    }
    Ok(Rendered { tokens, images, format })
}

/// Returns the parts of which the reply to a rendered prompt may consist.
pub(crate) fn output_format(
    template: &ChatTemplate,
    conversation: &Conversation,
    prompt: &str,
    prefill: Option<&str>,
) -> OutputFormat {
    let channels = prefill.is_none() && template.mentions(CHANNEL);
    OutputFormat {
        reasoning: prefill.is_none() && template.mentions("<think>"),
        begins_in_reasoning: prefill.is_none() && prompt.trim_end().ends_with("<think>"),
        tool_calls: !conversation.tools.is_empty() && (template.mentions(CALL) || channels),
        channels,
    }
}

/// Encodes a text into at least one token. `framed` adds what the tokenizer puts around a text.
///
/// # Errors
/// Fails if the text has no tokens.
pub fn encode(text: &ModelText, prompt: &str, framed: bool) -> Result<Vec<u32>, ChatError> {
    let encoded = text.tokenizer.encode(prompt, framed);
    let tokens = encoded.map_err(|error| ChatError::Internal(format!("failed to encode a prompt: {error}")))?;
    if tokens.is_empty() {
        return Err(ChatError::invalid("prompt: at least one token is required"));
    }
    Ok(tokens)
}

pub(crate) fn refused(error: TemplateError) -> ChatError {
    ChatError::invalid(format!("messages: {error}"))
}

pub(crate) fn check_tools(template: &ChatTemplate, conversation: &Conversation) -> Result<(), ChatError> {
    if !conversation.tools.is_empty() && !template.mentions("tools") {
        return Err(ChatError::invalid("tools: the model's chat template does not support tools"));
    }
    Ok(())
}

/// A rendered conversation up to the end of its last message.
pub(crate) fn continued(mut prompt: String, last: &str) -> Result<String, ChatError> {
    let last = last.trim();
    let found = prompt.rfind(last).ok_or_else(|| {
        ChatError::invalid("messages: the model's chat template changes the last message, which can't be continued")
    })?;
    prompt.truncate(found + last.len());
    Ok(prompt)
}

/// Sets the reasoning effort of the model.
///
/// # Errors
/// Fails if the template has no variable for the effort, or `value` is not a valid effort.
pub(crate) fn set_effort(
    template: &ChatTemplate,
    conversation: &mut Conversation,
    field: &str,
    value: &serde_json::Value,
) -> Result<(), ChatError> {
    let (effort, none) = match value {
        serde_json::Value::Null => return Ok(()),
        serde_json::Value::String(name) if EFFORTS.contains(&name.as_str()) => {
            (Value::from(name.as_str()), name == "none")
        }
        value => match value.as_f64().filter(|number| (0.0..=1.0).contains(number)) {
            Some(number) => (Value::from(number), number == 0.0),
            None => {
                let names = EFFORTS.join(", ");
                return Err(ChatError::invalid(format!(
                    "{field}: expected one of {names} or a number from 0 to 1, found {value}"
                )));
            }
        },
    };
    if template.mentions(REASONING_EFFORT) {
        conversation.variables.insert(REASONING_EFFORT.to_owned(), effort);
    } else if template.mentions(ENABLE_THINKING) {
        conversation.variables.insert(ENABLE_THINKING.to_owned(), Value::from(!none));
    } else {
        return Err(ChatError::invalid(format!("{field}: the model's chat template does not support it")));
    }
    Ok(())
}

/// Switches thoughts on or off.
///
/// # Errors
/// Fails if the request asks for thoughts and the template does not support them.
pub(crate) fn set_thinking(
    template: &ChatTemplate,
    conversation: &mut Conversation,
    enabled: bool,
) -> Result<(), ChatError> {
    if template.mentions(ENABLE_THINKING) {
        conversation.variables.insert(ENABLE_THINKING.to_owned(), Value::from(enabled));
    } else if enabled && !template.mentions("<think>") {
        return Err(ChatError::invalid("thinking: the model's chat template does not support thinking"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn template(source: &str) -> ChatTemplate {
        ChatTemplate::new(BTreeMap::from([("default".to_owned(), source.to_owned())]), BTreeMap::new()).unwrap()
    }

    #[test]
    fn the_last_message_is_continued() {
        let prompt = "<user>Hi<end><assistant>Hi there<end>\n".to_owned();
        assert_eq!(continued(prompt.clone(), " Hi there ").unwrap(), "<user>Hi<end><assistant>Hi there");
        assert!(continued(prompt, "other").is_err());
    }

    #[test]
    fn effort_is_what_the_template_has() {
        let set = |source: &str, value: serde_json::Value| {
            let mut conversation = Conversation::default();
            set_effort(&template(source), &mut conversation, "reasoning_effort", &value)
                .map(|()| conversation.variables)
        };
        let effort = set("{{ reasoning_effort }}", json!("low")).unwrap();
        assert_eq!(effort["reasoning_effort"], Value::from("low"));
        assert_eq!(set("{{ reasoning_effort }}", json!(0.5)).unwrap()["reasoning_effort"], Value::from(0.5));
        assert_eq!(set("{{ enable_thinking }}", json!("none")).unwrap()["enable_thinking"], Value::from(false));
        assert!(set("", json!("low")).unwrap_err().to_string().contains("reasoning_effort: the model's chat template"));
        assert!(set("{{ reasoning_effort }}", json!("extreme")).unwrap_err().to_string().contains("expected one of"));
        assert!(set("", json!(null)).unwrap().is_empty());
    }
}
