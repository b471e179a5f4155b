//! The tokenizer and the chat template of a model, read from its files.

use std::collections::BTreeMap;

use serde_json::Value;
use trainyard_gpu_runtime::tokenizer::TextTokenizer;

use super::template::{ChatTemplate, TemplateError};
use crate::error::ChatError;

/// Newer location of the template for conversations with tools.
const TOOL_USE_FILE: &str = "additional_chat_templates/tool_use.jinja";

/// Tokenizer and chat template of a model.
pub struct ModelText {
    /// The base model's tokenizer.
    pub tokenizer: TextTokenizer,
    template: Result<Option<ChatTemplate>, TemplateError>,
    /// The `eos_token` of `tokenizer_config.json`.
    pub end: Option<EndToken>,
}

/// A token that ends the assistant's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndToken {
    /// Id in the vocabulary of the tokenizer.
    pub id: u32,
    /// Content of the special token.
    pub text: String,
}

/// Returns the refusal of a model whose files contain no tokenizer.
pub fn without_tokenizer(model: &str) -> ChatError {
    ChatError::invalid(format!("model: {model:?} has no tokenizer.json, so it accepts only tokens"))
}

/// Returns the refusal of a model with a `tiktoken.model` of which no `tokenizer.json` could be made.
fn unreadable_ranks(model: &str) -> ChatError {
    ChatError::invalid(format!(
        "model: the tiktoken.model of {model:?} can't be used, so it accepts only tokens; `trainyard doctor` tells why"
    ))
}

impl ModelText {
    /// Reads the files of a model; `file` finds them by name.
    ///
    /// # Errors
    ///
    /// [`ChatError::Invalid`] if the tokenizer is missing or can't be read. An invalid template is only logged.
    pub fn read(model: &str, file: impl Fn(&str) -> Option<bytes::Bytes>) -> Result<Self, ChatError> {
        let missing = || match file("tiktoken.model") {
            Some(_) => unreadable_ranks(model),
            None => without_tokenizer(model),
        };
        let json = file("tokenizer.json").ok_or_else(missing)?;
        let tokenizer = TextTokenizer::from_json(&json)
            .map_err(|error| ChatError::invalid(format!("model: the tokenizer of {model:?} can't be used: {error}")))?;
        let object = |name: &str| file(name).and_then(|json| serde_json::from_slice::<Value>(&json).ok());
        let config = object("tokenizer_config.json").unwrap_or_default();
        let mut sources = BTreeMap::new();
        if let Some(found) = object("chat_template.json") {
            collect_sources(&found["chat_template"], &mut sources);
        }
        collect_sources(&config["chat_template"], &mut sources);
        // If both exist, this is the newer form.
        if let Some(source) = file("chat_template.jinja").and_then(|text| String::from_utf8(text.to_vec()).ok()) {
            sources.insert("default".to_owned(), source);
        }
        if let Some(source) = file(TOOL_USE_FILE).and_then(|text| String::from_utf8(text.to_vec()).ok()) {
            sources.insert("tool_use".to_owned(), source);
        }
        let tokens = special_tokens(&config);
        let end = tokens.get("eos_token").and_then(|text| {
            let id = tokenizer.id(text)?;
            Some(EndToken { id, text: text.clone() })
        });
        let template = match sources.is_empty() {
            true => Ok(None),
            false => ChatTemplate::new(sources, tokens).map(Some),
        };
        if let Err(error) = &template {
            tracing::warn!(model, %error, "the chat template can't be used");
        }
        Ok(Self { tokenizer, template, end })
    }

    /// Returns the chat template.
    ///
    /// # Errors
    ///
    /// An error if the model has none, or if it does not compile.
    pub fn template(&self) -> Result<&ChatTemplate, ChatError> {
        match &self.template {
            Ok(Some(template)) => Ok(template),
            Ok(None) => Err(ChatError::invalid(
                "model: the model has no chat template; render the conversation yourself and use /completions",
            )),
            Err(error) => Err(ChatError::invalid(format!("model: {error}"))),
        }
    }
}

/// One template, or several by name.
fn collect_sources(found: &Value, sources: &mut BTreeMap<String, String>) {
    match found {
        Value::String(source) => {
            sources.insert("default".to_owned(), source.clone());
        }
        Value::Array(named) => sources.extend(
            named
                .iter()
                .filter_map(|entry| Some((entry["name"].as_str()?.to_owned(), entry["template"].as_str()?.to_owned()))),
        ),
        _ => {}
    }
}

/// The special tokens that templates use: texts, or objects with their `content`.
fn special_tokens(config: &Value) -> BTreeMap<String, String> {
    let names = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];
    let text = |name: &str| {
        let value = &config[name];
        value.as_str().or_else(|| value["content"].as_str()).map(str::to_owned)
    };
    names.into_iter().filter_map(|name| Some((name.to_owned(), text(name)?))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::super::template::Conversation;
    use super::super::testing::{EOS, byte_level_json};
    use super::*;

    #[test]
    fn templates_come_alone_or_by_name_and_tokens_in_both_forms() {
        let mut sources = BTreeMap::new();
        collect_sources(
            &json!([{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}]),
            &mut sources,
        );
        assert_eq!((sources["default"].as_str(), sources["tool_use"].as_str()), ("a", "b"));
        collect_sources(&json!("c"), &mut sources);
        collect_sources(&Value::Null, &mut sources);
        assert_eq!(sources["default"], "c");
        let tokens = special_tokens(&json!({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": null}));
        assert_eq!(
            tokens,
            BTreeMap::from([("bos_token", "<s>"), ("eos_token", "</s>")].map(|(a, b)| (a.to_owned(), b.to_owned())))
        );
    }

    #[test]
    fn the_newer_files_are_read() {
        let content = |name: &str| match name {
            "tokenizer.json" => Some(byte_level_json().to_string()),
            "tokenizer_config.json" => Some(
                json!({"eos_token": "<|end|>", "chat_template": [
                    {"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}]})
                .to_string(),
            ),
            "chat_template.jinja" => Some("c".to_owned()),
            "additional_chat_templates/tool_use.jinja" => Some("d{{ eos_token }}".to_owned()),
            _ => None,
        };
        let text = ModelText::read("m", |name| content(name).map(bytes::Bytes::from)).unwrap();
        let template = text.template().unwrap();
        let rendered = |tools: Vec<minijinja::Value>| {
            let conversation = Conversation { tools, ..Conversation::default() };
            template.render(&conversation, time::OffsetDateTime::UNIX_EPOCH).unwrap()
        };
        assert_eq!((rendered(vec![]), rendered(vec![minijinja::Value::from(1)])), ("c".into(), "d<|end|>".into()));
        assert_eq!(text.end, Some(EndToken { id: EOS, text: "<|end|>".to_owned() }));
    }

    #[test]
    fn a_model_whose_ranks_are_not_read_is_refused_by_name() {
        let file = |name: &str| (name == "tiktoken.model").then(|| bytes::Bytes::from_static(b"?"));
        let refused = ModelText::read("m", file).err().unwrap().to_string();
        assert!(refused.starts_with("model: the tiktoken.model of \"m\" can't be used"), "{refused}");
        let refused = ModelText::read("m", |_| None).err().unwrap().to_string();
        assert!(refused.starts_with("model: \"m\" has no tokenizer.json"), "{refused}");
    }

    #[test]
    fn an_unreadable_tokenizer_is_refused_by_the_model_s_name() {
        let file = |name: &str| (name == "tokenizer.json").then(|| bytes::Bytes::from_static(b"{\"normalizer\": 7}"));
        let refused = ModelText::read("m", file).err().unwrap();
        assert!(matches!(refused, ChatError::Invalid(_)), "{refused:?}");
        assert!(
            refused.to_string().starts_with("model: the tokenizer of \"m\" can't be used: tokenizer.json: "),
            "{refused}"
        );
    }
}
