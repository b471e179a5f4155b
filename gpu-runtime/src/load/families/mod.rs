//! `config.json` to [`ModelConfig`]: what the families share, and one file for each.

use crate::config::{Activation, Biases, Block, BlockNorms, LoadError, ModelConfig, VocabularyPart};

use super::keys::Keys;

mod deepseek_v3;
mod gemma3;
mod gpt_oss;
mod llama;
mod mistral;
mod qwen2;
mod qwen3;
mod qwen3_moe;
mod rope;

/// Makes a model's description of a `config.json`.
type Family = fn(Keys<'_>) -> Result<ModelConfig, LoadError>;

/// Every family by its `model_type`.
const FAMILIES: &[(&str, Family)] = &[
    ("deepseek_v3", deepseek_v3::config),
    ("gemma3_text", gemma3::config),
    ("gpt_oss", gpt_oss::config),
    ("llama", llama::config),
    ("mistral", mistral::config),
    ("qwen2", qwen2::config),
    ("qwen3", qwen3::config),
    ("qwen3_moe", qwen3_moe::config),
];

/// Families whose quantized files are supported, with their `quant_method`.
const QUANTIZED: &[(&str, &str)] = &[("deepseek_v3", "fp8"), ("gpt_oss", "mxfp4")];

/// Layers above this are taken for a damaged file rather than a model.
const MAX_LAYERS: usize = 4096;
/// Likewise for the experts of a layer.
const MAX_EXPERTS: usize = 4096;

/// Reads the configuration in a `config.json` by the family named in `model_type`, except for the end tokens.
pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let Some(model_type) = keys.text("model_type")? else {
        return Err(keys.malformed("model_type is missing"));
    };
    if keys.value("quantization_config").is_some() {
        let method = keys.object("quantization_config")?.map(|keys| keys.text("quant_method")).transpose()?.flatten();
        if !QUANTIZED.contains(&(model_type, method.unwrap_or_default())) {
            let method = method.map(|method| format!(" {method}")).unwrap_or_default();
            return Err(LoadError::Unsupported(format!("quantization_config{method} (quantized safetensors)")));
        }
    }
    let Some((_, family)) = FAMILIES.iter().find(|(name, _)| *name == model_type) else {
        let supported: Vec<_> = FAMILIES.iter().map(|(name, _)| *name).collect();
        return Err(LoadError::Unsupported(format!("model_type {model_type:?} (supported: {})", supported.join(", "))));
    };
    let config = family(keys)?;
    consistent(&keys, &config)?;
    Ok(config)
}

/// Defaults of a family for keys that `config.json` omits.
struct Defaults {
    arch: &'static str,
    /// Default of key and value heads; `null` always means as many as query heads.
    kv_heads: Option<usize>,
    /// Width of a head; else the width of the model divided by its heads.
    head_dim: Option<usize>,
}

/// The part that all families spell alike: full attention, no biases.
fn base(keys: &Keys<'_>, defaults: &Defaults) -> Result<ModelConfig, LoadError> {
    let hidden_size = keys.required_size("hidden_size")?;
    let num_heads = keys.required_size("num_attention_heads")?;
    let num_layers = keys.required_size("num_hidden_layers")?;
    if num_layers > MAX_LAYERS {
        return Err(keys.malformed(format!("num_hidden_layers is {num_layers}, above {MAX_LAYERS}")));
    }
    let unwritten_kv_heads = defaults.kv_heads.filter(|_| !keys.is_written("num_key_value_heads"));
    let unwritten_head_dim = defaults.head_dim.filter(|_| !keys.is_written("head_dim"));
    let head_dim = keys.size("head_dim")?.or(unwritten_head_dim).unwrap_or(hidden_size / num_heads);
    let block = Block {
        norms: BlockNorms::PRE,
        head_norms: false,
        rope: 0,
        window: None,
        activation: activation(keys, "hidden_act")?,
        biases: Biases::default(),
        sinks: false,
        experts: None,
    };
    Ok(ModelConfig {
        arch: defaults.arch,
        hidden_size,
        intermediate_size: keys.required_size("intermediate_size")?,
        num_heads,
        num_kv_heads: keys.size("num_key_value_heads")?.or(unwritten_kv_heads).unwrap_or(num_heads),
        head_dim,
        latent: None,
        vocab_size: keys.required_size("vocab_size")?,
        vocab_part: VocabularyPart::default(),
        max_position_embeddings: keys.required_size("max_position_embeddings")?,
        rms_norm_eps: keys.number("rms_norm_eps")?.unwrap_or(1e-6) as f32,
        norm_offset: 0.0,
        embedding_scale: 1.0,
        attention_scale: 1.0 / (head_dim as f32).sqrt(),
        ropes: vec![rope::config(keys)?],
        blocks: vec![block; num_layers],
        tie_word_embeddings: keys.flag("tie_word_embeddings")?.unwrap_or(false),
        eos_token_ids: Vec::new(),
    })
}

/// The activation that a key names; SiLU if it is absent.
fn activation(keys: &Keys<'_>, key: &str) -> Result<Activation, LoadError> {
    match keys.text(key)?.unwrap_or("silu") {
        "silu" => Ok(Activation::Silu),
        "gelu_pytorch_tanh" => Ok(Activation::GeluTanh),
        other => Err(LoadError::Unsupported(format!("{key} {other:?} (supported: silu, gelu_pytorch_tanh)"))),
    }
}

/// The same model with each block changed by `change`, given the block's index.
fn with_blocks(mut config: ModelConfig, mut change: impl FnMut(usize, &mut Block)) -> ModelConfig {
    config.blocks.iter_mut().enumerate().for_each(|(layer, block)| change(layer, block));
    config
}

/// The window of each layer in the Qwen families: `layer_types`, or all layers from `max_window_layers` on, and only if
/// `use_sliding_window` is true.
fn qwen_windows(keys: &Keys<'_>, layers: usize) -> Result<Vec<Option<usize>>, LoadError> {
    let window = if keys.flag("use_sliding_window")?.unwrap_or(false) { window(keys)? } else { None };
    match sliding_layers(keys, layers)? {
        Some(sliding) => Ok(sliding.into_iter().map(|sliding| window.filter(|_| sliding)).collect()),
        None => {
            let first = keys.size("max_window_layers")?.unwrap_or(28);
            Ok((0..layers).map(|layer| window.filter(|_| layer >= first)).collect())
        }
    }
}

/// `layer_types`: whether each layer has a sliding window.
fn sliding_layers(keys: &Keys<'_>, layers: usize) -> Result<Option<Vec<bool>>, LoadError> {
    let Some(types) = keys.list("layer_types")? else { return Ok(None) };
    if types.len() != layers {
        return Err(keys.malformed(format!("layer_types has {} entries for {layers} layers", types.len())));
    }
    let sliding = types.iter().map(|kind| match kind.as_str() {
        Some("full_attention") => Ok(false),
        Some("sliding_attention") => Ok(true),
        _ => Err(LoadError::Unsupported(format!("layer type {kind}"))),
    });
    sliding.collect::<Result<_, _>>().map(Some)
}

/// Reads `sliding_window`, whose default is 4096 in these families; `null` turns the window off.
fn window(keys: &Keys<'_>) -> Result<Option<usize>, LoadError> {
    if !keys.is_written("sliding_window") {
        return Ok(Some(4096));
    }
    match keys.size("sliding_window")? {
        Some(0) => Err(keys.malformed("sliding_window is zero")),
        window => Ok(window),
    }
}

/// Number of experts, under any of its names, and of those that a token goes to.
fn expert_counts(keys: &Keys<'_>) -> Result<(usize, usize), LoadError> {
    let older = ["num_local_experts", "n_routed_experts"].into_iter().find(|key| keys.is_written(key));
    let key = older.unwrap_or("num_experts");
    let (count, chosen) = (keys.required_size(key)?, keys.required_size("num_experts_per_tok")?);
    if chosen > count || count > MAX_EXPERTS {
        return Err(keys.malformed(format!(
            "{key} is {count} and num_experts_per_tok {chosen}; at most {MAX_EXPERTS} experts, of which a token has some"
        )));
    }
    Ok((count, chosen))
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
