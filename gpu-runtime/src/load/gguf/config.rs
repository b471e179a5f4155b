//! GGUF metadata in the spelling of a Hugging Face `config.json`.

use serde_json::{Map, Value, json};

use super::architecture::{Architecture, Rotation};
use super::extents::{kv_heads, layers};
use super::metadata::GgufFile;
use super::own::{Own, extend};
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
    let own = Own { file, arch: family.name };
    if let Some(experts) = own.integer("expert_count")?.filter(|&count| count > 0 && !family.has_experts) {
        return Err(LoadError::Unsupported(format!("{} {experts} (a mixture of experts)", own.key("expert_count"))));
    }
    let embedding = tensors.shape("model.embed_tokens.weight");
    let embedding = embedding.ok_or_else(|| LoadError::MissingTensor("model.embed_tokens.weight".into()))?;
    let heads = own.required("attention.head_count")?.max(1);
    let mut json = Map::new();
    let common = json!({
        "architectures": [family.class],
        "model_type": family.model_type,
        "hidden_act": "silu",
        "hidden_size": own.required("embedding_length")?,
        "num_hidden_layers": layers(file, family)?,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads(file, family)?.unwrap_or(heads),
        "vocab_size": embedding[0],
        "max_position_embeddings": own.required("context_length")?,
        "rms_norm_eps": own.number("attention.layer_norm_rms_epsilon")?.unwrap_or(1e-6),
        "tie_word_embeddings": tensors.shape("lm_head.weight").is_none(),
        "bos_token_id": file.integer("tokenizer.ggml.bos_token_id")?.filter(|&id| id != NO_TOKEN),
        "eos_token_id": file.integer("tokenizer.ggml.eos_token_id")?.filter(|&id| id != NO_TOKEN),
        // A number beyond the embedding stands for none.
        "pad_token_id": file.integer("tokenizer.ggml.padding_token_id")?.filter(|&id| id < embedding[0] as u64),
    });
    extend(&mut json, common);
    if family.has_mlp {
        json.insert("intermediate_size".into(), own.required("feed_forward_length")?.into());
    }
    if family.rotation != Rotation::None {
        let theta = own.number("rope.freq_base")?.unwrap_or(10_000.0);
        json.insert("rope_theta".into(), theta.into());
        json.insert("rope_scaling".into(), rope::scaling(file, family.name, theta, tensors)?);
    }
    for (setting, tensor) in family.tensor_settings {
        json.insert((*setting).to_owned(), tensors.has_in_blocks(tensor).into());
    }
    if !family.has_latent_attention {
        let width = head_dim(&own, own.required("embedding_length")? / heads)?;
        json.insert("head_dim".into(), width.into());
        rotated(&own, family.rotation, width, &mut json)?;
    }
    (family.settings)(file, &mut json).map(|()| json)
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

fn head_dim(own: &Own<'_>, default: u64) -> Result<u64, LoadError> {
    let width = own.integer("attention.key_length")?.unwrap_or(default);
    match own.integer("attention.value_length")?.filter(|&other| other != width) {
        None => Ok(width),
        Some(other) => Err(not_of_width(own, "attention.value_length", other, width)),
    }
}

/// Reads how much of a head of `width` is rotated.
fn rotated(own: &Own<'_>, rotation: Rotation, width: u64, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    const KEY: &str = "rope.dimension_count";
    let found = own.integer(KEY)?.unwrap_or(width);
    match rotation {
        Rotation::None => {}
        Rotation::Whole if found == width => {}
        Rotation::Part if (1..=width).contains(&found) => {
            json.insert("partial_rotary_factor".into(), share(found, width).into());
        }
        Rotation::Whole | Rotation::Part => return Err(not_of_width(own, KEY, found, width)),
    }
    Ok(())
}

fn not_of_width(own: &Own<'_>, name: &str, found: u64, width: u64) -> LoadError {
    LoadError::Unsupported(format!("{} {found} with heads of width {width}", own.key(name)))
}

/// The factor of `width` whose product is `part` when it is rounded down.
pub(super) fn share(part: u64, width: u64) -> f64 {
    let factor = part as f64 / width as f64;
    if (width as f64 * factor) as u64 == part { factor } else { factor.next_up() }
}
