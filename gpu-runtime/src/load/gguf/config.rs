//! GGUF metadata in the spelling of a Hugging Face `config.json`.

use serde_json::{Map, Value, json};

use super::architecture::Architecture;
use super::metadata::GgufFile;
use super::rope;
use super::tensors::GgufSource;
use crate::config::{LoadError, TensorSource};

/// The id that llama.cpp writes for a token that the model does not have.
pub(super) const NO_TOKEN: u64 = u32::MAX as u64;

/// What `transformers` would have in the folder that the file was made from.
pub(super) fn config_json(
    file: &GgufFile,
    family: &Architecture,
    tensors: &GgufSource,
) -> Result<Map<String, Value>, LoadError> {
    let arch = family.name;
    let key = |name: &str| format!("{arch}.{name}");
    let size = |name: &str| {
        let key = key(name);
        file.integer(&key)?.ok_or_else(|| file.malformed(format!("metadata key {key} is missing")))
    };
    if let Some(experts) = file.integer(&key("expert_count"))?.filter(|&count| count > 0 && !family.has_experts) {
        return Err(LoadError::Unsupported(format!("{} {experts} (a mixture of experts)", key("expert_count"))));
    }
    let embedding = tensors.shape("model.embed_tokens.weight");
    let embedding = embedding.ok_or_else(|| LoadError::MissingTensor("model.embed_tokens.weight".into()))?;
    let heads = size("attention.head_count")?.max(1);
    let theta = file.number(&key("rope.freq_base"))?.unwrap_or(10_000.0);
    let has = |name: &str| tensors.shape(&format!("model.layers.0.{name}.bias")).is_some();
    let mut json = json!({
        "architectures": [family.class],
        "model_type": family.model_type,
        "hidden_act": "silu",
        "hidden_size": size("embedding_length")?,
        "intermediate_size": size("feed_forward_length")?,
        "num_hidden_layers": size("block_count")?,
        "num_attention_heads": heads,
        "num_key_value_heads": file.integer(&key("attention.head_count_kv"))?.unwrap_or(heads),
        "vocab_size": embedding[0],
        "max_position_embeddings": size("context_length")?,
        "rms_norm_eps": file.number(&key("attention.layer_norm_rms_epsilon"))?.unwrap_or(1e-6),
        "rope_theta": theta,
        "rope_scaling": rope::scaling(file, arch, theta, tensors.rope_factors()?.as_deref())?,
        "tie_word_embeddings": tensors.shape("lm_head.weight").is_none(),
        "bos_token_id": file.integer("tokenizer.ggml.bos_token_id")?.filter(|&id| id != NO_TOKEN),
        "eos_token_id": file.integer("tokenizer.ggml.eos_token_id")?.filter(|&id| id != NO_TOKEN),
        // A number beyond the embedding stands for none.
        "pad_token_id": file.integer("tokenizer.ggml.padding_token_id")?.filter(|&id| id < embedding[0] as u64),
    });
    for (setting, module) in family.bias_settings {
        json[*setting] = has(module).into();
    }
    if !family.has_latent_attention {
        json["head_dim"] = head_dim(file, arch, size("embedding_length")? / heads)?.into();
    }
    match json {
        Value::Object(mut map) => (family.settings)(file, &mut map).map(|()| map),
        _ => Err(file.malformed("no configuration")),
    }
}

/// End of text, of turn and of message: whatever the file names.
pub(super) fn end_tokens(file: &GgufFile) -> Result<Vec<u32>, LoadError> {
    let mut ids = Vec::new();
    for kind in ["eos", "eot", "eom"] {
        let id = file.integer(&format!("tokenizer.ggml.{kind}_token_id"))?.filter(|&id| id != NO_TOKEN);
        ids.extend(id.and_then(|id| u32::try_from(id).ok()).filter(|id| !ids.contains(id)));
    }
    Ok(ids)
}

fn head_dim(file: &GgufFile, arch: &str, default: u64) -> Result<u64, LoadError> {
    let width = file.integer(&format!("{arch}.attention.key_length"))?.unwrap_or(default);
    for name in ["attention.value_length", "rope.dimension_count"] {
        let key = format!("{arch}.{name}");
        if let Some(other) = file.integer(&key)?.filter(|&other| other != width) {
            return Err(LoadError::Unsupported(format!("{key} {other} with heads of width {width}")));
        }
    }
    Ok(width)
}
