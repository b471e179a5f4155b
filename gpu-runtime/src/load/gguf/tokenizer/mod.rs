//! The tokenizer in a GGUF file's metadata, as the files that `transformers` reads.

use serde_json::{Map, Value, json};

use self::pipeline::Pipeline;
use self::vocabulary::Vocabulary;
use super::metadata::GgufFile;
use crate::config::{LoadError, ModelFiles};

mod byte_level;
mod pipeline;
mod sentencepiece;
mod vocabulary;

/// Makes `tokenizer.json`, `tokenizer_config.json`, `special_tokens_map.json`, `config.json` and
/// `generation_config.json`. A file without a tokenizer gives only the last two.
pub(super) fn files(file: &GgufFile, config: &Map<String, Value>, end: &[u32]) -> Result<ModelFiles, LoadError> {
    let mut files = ModelFiles::new();
    let mut add = |name: &str, content: &Value| {
        files.insert(name.to_owned(), format!("{content:#}\n").into_bytes());
    };
    add("config.json", &Value::Object(config.clone()));
    add(
        "generation_config.json",
        &without_nulls(json!({
            "bos_token_id": config.get("bos_token_id"),
            "eos_token_id": end,
            "pad_token_id": config.get("pad_token_id"),
        })),
    );
    if let Some(model) = file.text("tokenizer.ggml.model")? {
        let vocabulary = Vocabulary::read(file, model)?;
        let rows = config.get("vocab_size").and_then(Value::as_u64).unwrap_or(0);
        if vocabulary.len() as u64 > rows {
            return Err(file.malformed(format!("{} tokens for {rows} rows of the embedding", vocabulary.len())));
        }
        let pipeline = match model {
            "gpt2" => byte_level::pipeline(file, &vocabulary)?,
            "llama" => sentencepiece::pipeline(file, &vocabulary)?,
            other => return Err(LoadError::Unsupported(format!("GGUF tokenizer {other:?} (supported: gpt2, llama)"))),
        };
        add("tokenizer.json", &tokenizer_json(&vocabulary, pipeline));
        add("tokenizer_config.json", &tokenizer_config(file, config, &vocabulary)?);
        add("special_tokens_map.json", &without_nulls(vocabulary.roles()));
    }
    Ok(files)
}

fn tokenizer_json(vocabulary: &Vocabulary<'_>, pipeline: Pipeline) -> Value {
    let mut post_processors = pipeline.post_processors;
    post_processors.extend(vocabulary.template());
    let post_processor = match post_processors.len() {
        0 => Value::Null,
        1 => post_processors.remove(0),
        _ => json!({"type": "Sequence", "processors": post_processors}),
    };
    let added: Vec<_> = vocabulary
        .added()
        .map(|(id, content, special)| {
            let mut token = added_token(vocabulary, content, special);
            token["id"] = id.into();
            token
        })
        .collect();
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": pipeline.normalizer,
        "pre_tokenizer": pipeline.pre_tokenizer,
        "post_processor": post_processor,
        "decoder": pipeline.decoder,
        "model": pipeline.model,
    })
}

fn tokenizer_config(
    file: &GgufFile,
    config: &Map<String, Value>,
    vocabulary: &Vocabulary<'_>,
) -> Result<Value, LoadError> {
    let added: Map<String, Value> = vocabulary
        .added()
        .map(|(id, content, special)| (id.to_string(), added_token(vocabulary, content, special)))
        .collect();
    let mut json = vocabulary.roles();
    json["tokenizer_class"] = "PreTrainedTokenizerFast".into();
    json["model_max_length"] = config.get("max_position_embeddings").cloned().unwrap_or(Value::Null);
    json["add_bos_token"] = vocabulary.add_bos.into();
    json["add_eos_token"] = vocabulary.add_eos.into();
    json["clean_up_tokenization_spaces"] = false.into();
    json["added_tokens_decoder"] = Value::Object(added);
    json["chat_template"] = file.text("tokenizer.chat_template")?.into();
    Ok(without_nulls(json))
}

fn added_token(vocabulary: &Vocabulary<'_>, content: &str, special: bool) -> Value {
    json!({
        "content": content,
        "lstrip": false,
        "normalized": false,
        "rstrip": vocabulary.strips(content),
        "single_word": false,
        "special": special,
    })
}

fn without_nulls(mut json: Value) -> Value {
    if let Value::Object(map) = &mut json {
        map.retain(|_, value| !value.is_null());
    }
    json
}
