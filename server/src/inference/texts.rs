//! Tokenizers and chat templates of the base models, read when they are first needed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::Semaphore;
use trainyard_gpu_runtime::tokenizer::TextTokenizer;

use super::template::{ChatTemplate, TemplateError};
use crate::error::ApiError;
use crate::hub::Hub;

/// The newer place of the template for conversations with tools.
const TOOL_USE_FILE: &str = "additional_chat_templates/tool_use.jinja";
/// Renderings and encodings at a time; further ones wait.
const AT_ONCE: usize = 4;

/// What turns text into a model's tokens and back.
pub(crate) struct ModelText {
    /// The base model's tokenizer.
    pub(crate) tokenizer: TextTokenizer,
    template: Result<Option<ChatTemplate>, TemplateError>,
    /// The `eos_token` of `tokenizer_config.json`.
    pub(crate) end: Option<EndToken>,
}

/// A token that ends what the assistant says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndToken {
    pub(crate) id: u32,
    pub(crate) text: String,
}

/// Tokenizers and templates of the base models requested so far. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ModelTexts {
    read: Arc<Mutex<BTreeMap<String, Known>>>,
    working: Arc<Semaphore>,
}

/// A model's texts with the commit of the files that they were read from.
struct Known {
    commit: String,
    text: Arc<ModelText>,
}

impl Default for ModelTexts {
    fn default() -> Self {
        Self { read: Arc::default(), working: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl ModelTexts {
    /// The tokenizer and template of a base model.
    ///
    /// # Errors
    /// When the model has no tokenizer, or its tokenizer can't be read.
    pub(crate) async fn get(&self, hub: &Hub, model: &str) -> Result<Arc<ModelText>, ApiError> {
        let files = hub.files(model).ok_or_else(|| without_tokenizer(model))?;
        if let Some(known) = self.lock().get(model).filter(|known| known.commit == files.commit) {
            return Ok(Arc::clone(&known.text));
        }
        let commit = files.commit.clone();
        let name = model.to_owned();
        let text = self.work(move || ModelText::read(&name, |file| files.content(file))).await??;
        let text = Arc::new(text);
        self.lock().insert(model.to_owned(), Known { commit, text: Arc::clone(&text) });
        Ok(text)
    }

    /// Runs long work on a separate thread.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let internal = |error: &dyn std::fmt::Display| ApiError::Internal(format!("text was not processed: {error}"));
        let permit = Arc::clone(&self.working).acquire_owned().await.map_err(|error| internal(&error))?;
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        done.await.map_err(|error| internal(&error))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Known>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn without_tokenizer(model: &str) -> ApiError {
    ApiError::invalid(format!("model: {model:?} has no tokenizer.json, so it accepts only tokens"))
}

impl ModelText {
    /// Reads the files of a model; `file` finds them by name.
    pub(super) fn read(model: &str, file: impl Fn(&str) -> Option<bytes::Bytes>) -> Result<Self, ApiError> {
        let json = file("tokenizer.json").ok_or_else(|| without_tokenizer(model))?;
        let tokenizer = TextTokenizer::from_json(&json)
            .map_err(|error| ApiError::invalid(format!("model: {model:?} takes no text: {error}")))?;
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
            tracing::warn!(model, %error, "chat template can't be used");
        }
        Ok(Self { tokenizer, template, end })
    }

    /// The chat template.
    ///
    /// # Errors
    /// When there is no template, or it does not compile.
    pub(crate) fn template(&self) -> Result<&ChatTemplate, ApiError> {
        match &self.template {
            Ok(Some(template)) => Ok(template),
            Ok(None) => Err(ApiError::invalid(
                "model: the model has no chat template; render the conversation yourself and use /completions",
            )),
            Err(error) => Err(ApiError::invalid(format!("model: {error}"))),
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
    fn an_unreadable_tokenizer_is_refused_by_the_model_s_name() {
        let file = |name: &str| (name == "tokenizer.json").then(|| bytes::Bytes::from_static(b"{\"normalizer\": 7}"));
        let refused = ModelText::read("m", file).err().unwrap();
        assert!(matches!(refused, ApiError::Invalid(_)), "{refused:?}");
        assert!(refused.to_string().starts_with("model: \"m\" takes no text: tokenizer.json: "), "{refused}");
    }

    #[tokio::test]
    async fn a_model_without_a_tokenizer_is_refused_by_name() {
        let refused = ModelTexts::default().get(&Hub::default(), "m").await.err().unwrap();
        assert!(refused.to_string().contains("\"m\" has no tokenizer.json"), "{refused}");
    }
}
