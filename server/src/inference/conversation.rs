//! Turns conversations into prompts, using what the model's template supports.

use std::sync::Arc;

use minijinja::Value;
use time::OffsetDateTime;

use super::output::{CALL, OutputFormat};
use super::template::{ChatTemplate, Conversation, TemplateError};
use super::texts::ModelText;
use crate::error::ApiError;
use crate::state::AppState;

/// The variables by which templates switch thoughts on and off, and set their length.
const ENABLE_THINKING: &str = "enable_thinking";
const REASONING_EFFORT: &str = "reasoning_effort";
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// A prompt for an assistant's message.
pub(crate) struct Rendered {
    pub(crate) tokens: Vec<u32>,
    /// The parts of which the message may consist.
    pub(crate) format: OutputFormat,
}

/// A map that keeps its members in this order.
pub(crate) fn map<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::from_pairs(members)
}

/// Renders a conversation and encodes it. `prefill` is the assistant's last message, which the model continues.
///
/// # Errors
/// When the template does not accept the conversation.
pub(crate) async fn render(
    state: &AppState,
    text: &Arc<ModelText>,
    conversation: Conversation,
    prefill: Option<String>,
) -> Result<Rendered, ApiError> {
    let now = i128::from(state.clock.now().as_millis()) * 1_000_000;
    let now = OffsetDateTime::from_unix_timestamp_nanos(now).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let text = Arc::clone(text);
    let work = move || {
        let template = text.template()?;
        check_tools(template, &conversation)?;
        let mut prompt = template.render(&conversation, now).map_err(refused)?;
        if let Some(prefill) = &prefill {
            prompt = continued(prompt, prefill)?;
        }
        let format = OutputFormat {
            reasoning: prefill.is_none() && template.mentions("<think>"),
            begins_in_reasoning: prefill.is_none() && prompt.trim_end().ends_with("<think>"),
            tool_calls: !conversation.tools.is_empty() && template.mentions(CALL),
        };
        let tokens = encode(&text, &prompt, false)?;
        Ok(Rendered { tokens, format })
    };
    state.inference.texts.work(work).await?
}

/// Encodes a text into at least one token.
///
/// # Errors
/// When the text has no tokens.
pub(crate) fn encode(text: &ModelText, prompt: &str, framed: bool) -> Result<Vec<u32>, ApiError> {
    let encoded = text.tokenizer.encode(prompt, framed);
    let tokens = encoded.map_err(|error| ApiError::Internal(format!("a prompt was not encoded: {error}")))?;
    if tokens.is_empty() {
        return Err(ApiError::invalid("prompt: at least one token is required"));
    }
    Ok(tokens)
}

fn refused(error: TemplateError) -> ApiError {
    ApiError::invalid(format!("messages: {error}"))
}

fn check_tools(template: &ChatTemplate, conversation: &Conversation) -> Result<(), ApiError> {
    if !conversation.tools.is_empty() && !template.mentions("tools") {
        return Err(ApiError::invalid("tools: the model's chat template does not support tools"));
    }
    Ok(())
}

/// A rendered conversation up to the end of its last message.
fn continued(mut prompt: String, last: &str) -> Result<String, ApiError> {
    let last = last.trim();
    let found = prompt.rfind(last).ok_or_else(|| {
        ApiError::invalid("messages: the model's chat template changes the last message, which can't be continued")
    })?;
    prompt.truncate(found + last.len());
    Ok(prompt)
}

/// Sets the reasoning effort of the model.
///
/// # Errors
/// When the template has no variable for the effort, or `value` is not a valid effort.
pub(crate) fn set_effort(
    template: &ChatTemplate,
    conversation: &mut Conversation,
    field: &str,
    value: &serde_json::Value,
) -> Result<(), ApiError> {
    let (effort, none) = match value {
        serde_json::Value::Null => return Ok(()),
        serde_json::Value::String(name) if EFFORTS.contains(&name.as_str()) => {
            (Value::from(name.as_str()), name == "none")
        }
        value => match value.as_f64().filter(|number| (0.0..=1.0).contains(number)) {
            Some(number) => (Value::from(number), number == 0.0),
            None => {
                let names = EFFORTS.join(", ");
                return Err(ApiError::invalid(format!("{field}: {value} is neither one of {names} nor from 0 to 1")));
            }
        },
    };
    if template.mentions(REASONING_EFFORT) {
        conversation.variables.insert(REASONING_EFFORT.to_owned(), effort);
    } else if template.mentions(ENABLE_THINKING) {
        conversation.variables.insert(ENABLE_THINKING.to_owned(), Value::from(!none));
    } else {
        return Err(ApiError::invalid(format!("{field}: the model's chat template does not support it")));
    }
    Ok(())
}

/// Switches thoughts on or off.
///
/// # Errors
/// When the request asks for thoughts and the template does not support them.
pub(crate) fn set_thinking(
    template: &ChatTemplate,
    conversation: &mut Conversation,
    enabled: bool,
) -> Result<(), ApiError> {
    if template.mentions(ENABLE_THINKING) {
        conversation.variables.insert(ENABLE_THINKING.to_owned(), Value::from(enabled));
    } else if enabled && !template.mentions("<think>") {
        return Err(ApiError::invalid("thinking: the model's chat template does not support thinking"));
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
        assert!(set("{{ reasoning_effort }}", json!("extreme")).unwrap_err().to_string().contains("neither one of"));
        assert!(set("", json!(null)).unwrap().is_empty());
    }
}
