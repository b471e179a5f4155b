//! `config.json` to [`ModelConfig`]: the table of families, and one file for each.

use crate::config::{Attention, Block, HeadNorms, LoadError, ModelConfig, RopeScaling};

use super::keys::Keys;

mod common;
mod deepseek_v3;
mod gemma3;
mod glm4_moe;
mod gpt_oss;
mod granitemoehybrid;
mod indexed;
mod kimi;
mod lfm2;
mod llama;
mod ministral3;
mod mistral;
mod nemotron_h;
mod olmo3;
mod phi3;
mod qwen2;
mod qwen3;
mod qwen3_5;
mod qwen3_5_moe;
mod qwen3_moe;
mod qwen3_vl;
mod rope;
mod smollm3;
mod vision;
mod vision_moonvit;
mod vision_qwen;

/// Makes a model's description of a `config.json`.
type Family = fn(Keys<'_>) -> Result<ModelConfig, LoadError>;

/// Every family by its `model_type`.
const FAMILIES: &[(&str, Family)] = &[
    ("deepseek_v3", deepseek_v3::config),
    ("deepseek_v32", indexed::deepseek),
    ("gemma3_text", gemma3::config),
    ("glm4_moe", glm4_moe::config),
    ("glm_moe_dsa", indexed::glm),
    ("gpt_oss", gpt_oss::config),
    ("granitemoehybrid", granitemoehybrid::config),
    ("kimi_k2", kimi::k2),
    ("kimi_k25", kimi::k25),
    ("lfm2", lfm2::config),
    ("llama", llama::config),
    ("ministral3", ministral3::config),
    ("mistral", mistral::config),
    ("mistral3", ministral3::with_images),
    ("nemotron_h", nemotron_h::config),
    ("olmo3", olmo3::config),
    ("phi3", phi3::config),
    ("qwen2", qwen2::config),
    ("qwen3", qwen3::config),
    ("qwen3_5", qwen3_5::with_vision),
    ("qwen3_5_moe", qwen3_5_moe::with_vision),
    ("qwen3_5_moe_text", qwen3_5_moe::of),
    ("qwen3_5_text", qwen3_5::of),
    ("qwen3_moe", qwen3_moe::config),
    ("qwen3_vl", qwen3_vl::dense),
    ("qwen3_vl_moe", qwen3_vl::experts),
    ("smollm3", smollm3::config),
];

/// Families whose quantized files are supported, with their `quant_method`.
const QUANTIZED: &[(&str, &str)] = &[
    ("deepseek_v3", FP8),
    ("deepseek_v3", PACKED),
    ("deepseek_v32", FP8),
    ("glm_moe_dsa", FP8),
    ("gpt_oss", "mxfp4"),
    ("kimi_k2", FP8),
    ("kimi_k2", PACKED),
    ("kimi_k25", FP8),
    ("kimi_k25", PACKED),
];
const FP8: &str = "fp8";
pub(super) const PACKED: &str = "compressed-tensors";

/// Reads the configuration in a `config.json` by the family named in `model_type`, except for the end tokens.
pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let Some(model_type) = keys.text("model_type")? else {
        return Err(keys.malformed("model_type is missing"));
    };
    if let Some(quantization) = quantization(&keys)? {
        let method = quantization.text("quant_method")?;
        if !QUANTIZED.contains(&(model_type, method.unwrap_or_default())) {
            let method = method.map(|method| format!(" {method}")).unwrap_or_default();
            return Err(LoadError::Unsupported(format!("quantization_config{method} (quantized safetensors)")));
        }
    }
    let Some((_, family)) = FAMILIES.iter().find(|(name, _)| *name == model_type) else {
        let supported: Vec<_> = FAMILIES.iter().map(|(name, _)| *name).collect();
        return Err(LoadError::Unsupported(format!("model_type {model_type:?} (supported: {})", supported.join(", "))));
    };
    let mut config = family(keys)?;
    if config.rotary_dim.is_none() {
        rope::refuse_partial_rotation(&keys)?;
    }
    for rope in &config.ropes {
        // Beyond it all frequencies would be others, also those of the positions before.
        if let RopeScaling::Long { original_max_position_embeddings: original, .. } = rope.scaling {
            config.max_position_embeddings = config.max_position_embeddings.min(original);
        }
    }
    consistent(&keys, &config)?;
    Ok(config)
}

/// How the files are quantized, as models with images may say in the settings of their text model.
pub(super) fn quantization<'k>(keys: &Keys<'k>) -> Result<Option<Keys<'k>>, LoadError> {
    match (keys.object("quantization_config")?, keys.object("text_config")?) {
        (None, Some(text)) => text.object("quantization_config"),
        (quantization, _) => Ok(quantization),
    }
}

fn consistent(keys: &Keys<'_>, config: &ModelConfig) -> Result<(), LoadError> {
    let ModelConfig { num_heads, num_kv_heads, head_dim, .. } = *config;
    if num_kv_heads == 0 || !num_heads.is_multiple_of(num_kv_heads) {
        return Err(keys.malformed(format!("num_key_value_heads {num_kv_heads} does not divide {num_heads} heads")));
    }
    if head_dim == 0 || !head_dim.is_multiple_of(2) {
        return Err(keys.malformed(format!("head_dim is {head_dim}, expected a positive even number")));
    }
    let unrotated = |attention: &Attention| attention.rope.is_none() && attention.head_norms != HeadNorms::None;
    if config.blocks.iter().filter_map(Block::attention).any(unrotated) {
        return Err(LoadError::Unsupported("norms of queries and keys in attention without positions".to_owned()));
    }
    let has_norm = |block: &Block| block.norms.post_attention.or(block.norms.post_mlp).is_some();
    if config.residual_scale != 1.0 && config.blocks.iter().any(has_norm) {
        let what = "norms of the blocks' outputs together with a factor on the residual stream";
        return Err(LoadError::Unsupported(what.to_owned()));
    }
    for rope in &config.ropes {
        if let RopeScaling::Long { factors, .. } = &rope.scaling {
            let (found, pairs) = (factors.len(), config.rope_dim() / 2);
            if found != pairs {
                return Err(keys.malformed(format!("short_factor has {found} entries for {pairs} frequencies")));
            }
        }
    }
    if !(config.rms_norm_eps.is_finite() && config.rms_norm_eps >= 0.0) {
        return Err(keys.malformed(format!("rms_norm_eps is {}", config.rms_norm_eps)));
    }
    Ok(())
}
