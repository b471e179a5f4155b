//! `config.json` to [`ModelConfig`]: what the families share, and one file for each.

use crate::config::{Arch, LoadError, ModelConfig};

use super::keys::Keys;

mod llama;
mod mistral;
mod qwen2;
mod qwen3;
mod rope;

/// Layers above this are taken for a damaged file rather than a model.
const MAX_LAYERS: usize = 4096;

/// What the family named by `model_type` makes of a `config.json`, except for the end tokens.
pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    if keys.value("quantization_config").is_some() {
        return Err(LoadError::Unsupported("quantization_config (quantized safetensors)".into()));
    }
    let config = match keys.text("model_type")? {
        Some("llama") => llama::config(keys),
        Some("mistral") => mistral::config(keys),
        Some("qwen2") => qwen2::config(keys),
        Some("qwen3") => qwen3::config(keys),
        Some(other) => {
            Err(LoadError::Unsupported(format!("model_type {other:?} (supported: llama, mistral, qwen2, qwen3)")))
        }
        None => Err(keys.malformed("model_type is missing")),
    }?;
    consistent(&keys, &config)?;
    Ok(config)
}

/// What a family assumes where `config.json` is silent.
struct Defaults {
    arch: Arch,
    /// Key and value heads if unwritten; `null` always means as many as query heads.
    kv_heads: Option<usize>,
    /// Width of a head; else the width of the model divided by its heads.
    head_dim: Option<usize>,
}

/// The part that all families spell alike: full attention, no biases.
fn base(keys: &Keys<'_>, defaults: &Defaults) -> Result<ModelConfig, LoadError> {
    if let Some(activation) = keys.text("hidden_act")?.filter(|&name| name != "silu") {
        return Err(LoadError::Unsupported(format!("hidden_act {activation:?} (supported: silu)")));
    }
    let hidden_size = keys.required_size("hidden_size")?;
    let num_heads = keys.required_size("num_attention_heads")?;
    let num_layers = keys.required_size("num_hidden_layers")?;
    if num_layers > MAX_LAYERS {
        return Err(keys.malformed(format!("num_hidden_layers is {num_layers}, above {MAX_LAYERS}")));
    }
    let unwritten_kv_heads = defaults.kv_heads.filter(|_| !keys.is_written("num_key_value_heads"));
    let unwritten_head_dim = defaults.head_dim.filter(|_| !keys.is_written("head_dim"));
    Ok(ModelConfig {
        arch: defaults.arch,
        hidden_size,
        intermediate_size: keys.required_size("intermediate_size")?,
        num_layers,
        num_heads,
        num_kv_heads: keys.size("num_key_value_heads")?.or(unwritten_kv_heads).unwrap_or(num_heads),
        head_dim: keys.size("head_dim")?.or(unwritten_head_dim).unwrap_or(hidden_size / num_heads),
        vocab_size: keys.required_size("vocab_size")?,
        max_position_embeddings: keys.required_size("max_position_embeddings")?,
        rms_norm_eps: keys.number("rms_norm_eps")?.unwrap_or(1e-6) as f32,
        rope: rope::config(keys)?,
        sliding_window: vec![None; num_layers],
        tie_word_embeddings: keys.flag("tie_word_embeddings")?.unwrap_or(false),
        qkv_bias: false,
        o_bias: false,
        mlp_bias: false,
        qk_norm: false,
        eos_token_ids: Vec::new(),
    })
}

/// The window of each layer in the Qwen families: `layer_types`, or all layers from `max_window_layers` on,
/// and only if `use_sliding_window` says so.
fn qwen_windows(keys: &Keys<'_>, layers: usize) -> Result<Vec<Option<usize>>, LoadError> {
    let window = if keys.flag("use_sliding_window")?.unwrap_or(false) { window(keys)? } else { None };
    let Some(types) = keys.list("layer_types")? else {
        let first = keys.size("max_window_layers")?.unwrap_or(28);
        return Ok((0..layers).map(|layer| window.filter(|_| layer >= first)).collect());
    };
    if types.len() != layers {
        return Err(keys.malformed(format!("layer_types has {} entries for {layers} layers", types.len())));
    }
    types
        .iter()
        .map(|kind| match kind.as_str() {
            Some("full_attention") => Ok(None),
            Some("sliding_attention") => Ok(window),
            _ => Err(LoadError::Unsupported(format!("layer type {kind}"))),
        })
        .collect()
}

/// `sliding_window`, which is 4096 in these families unless written otherwise; `null` is none.
fn window(keys: &Keys<'_>) -> Result<Option<usize>, LoadError> {
    if !keys.is_written("sliding_window") {
        return Ok(Some(4096));
    }
    match keys.size("sliding_window")? {
        Some(0) => Err(keys.malformed("sliding_window is zero")),
        window => Ok(window),
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
    if !(config.rms_norm_eps.is_finite() && config.rms_norm_eps >= 0.0) {
        return Err(keys.malformed(format!("rms_norm_eps is {}", config.rms_norm_eps)));
    }
    Ok(())
}
