//! Code that the families share.

use super::rope;
use crate::config::{
    Activation, Attention, Biases, Block, BlockNorms, LoadError, Mixer, ModelConfig, Rename, Spelling, VocabularyPart,
};
use crate::load::keys::Keys;

/// Names in files of models with images around a text model: those of released files, then those that transformers writes.
pub(super) const TEXT_OF_IMAGES: &[Rename] = &[
    Rename::new("model.", "language_model.model."),
    Rename::new("lm_head.", "language_model.lm_head."),
    Rename::new("model.", "model.language_model."),
    Rename::new("lm_head.", "lm_head."),
];

/// Layers above this are taken for a damaged file rather than a model.
pub(super) const MAX_LAYERS: usize = 4096;
/// Likewise for the experts of a layer.
const MAX_EXPERTS: usize = 4096;

/// The settings of the text model of a model with images.
pub(super) fn text_config<'k>(keys: &Keys<'k>) -> Result<Keys<'k>, LoadError> {
    keys.object("text_config")?.ok_or_else(|| keys.malformed("text_config is missing"))
}

/// Defaults of a family for keys that `config.json` omits.
pub(super) struct Defaults {
    pub(super) arch: &'static str,
    /// Default of key and value heads; `null` always means as many as query heads.
    pub(super) kv_heads: Option<usize>,
    /// Width of a head; else the width of the model divided by its heads.
    pub(super) head_dim: Option<usize>,
}

/// The part that all families spell alike: full attention, no biases.
pub(super) fn base(keys: &Keys<'_>, defaults: &Defaults) -> Result<ModelConfig, LoadError> {
    let (layers, width) = (keys.required_size("num_hidden_layers")?, keys.required_size("intermediate_size")?);
    base_of(keys, defaults, layers, width)
}

/// [`base`] of a model with as many layers, whose MLPs have this width.
pub(super) fn base_of(
    keys: &Keys<'_>,
    defaults: &Defaults,
    num_layers: usize,
    intermediate_size: usize,
) -> Result<ModelConfig, LoadError> {
    let hidden_size = keys.required_size("hidden_size")?;
    let num_heads = keys.required_size("num_attention_heads")?;
    if num_layers > MAX_LAYERS {
        return Err(keys.malformed(format!("the model has {num_layers} layers, above {MAX_LAYERS}")));
    }
    let unwritten_kv_heads = defaults.kv_heads.filter(|_| !keys.is_written("num_key_value_heads"));
    let unwritten_head_dim = defaults.head_dim.filter(|_| !keys.is_written("head_dim"));
    let head_dim = keys.size("head_dim")?.or(unwritten_head_dim).unwrap_or(hidden_size / num_heads);
    let block = Block {
        norms: BlockNorms::PRE,
        mixer: Some(Mixer::Attention(Attention::default())),
        has_mlp: true,
        activation: activation(keys, "hidden_act")?,
        biases: Biases::default(),
        experts: None,
        joins_inputs: false,
    };
    Ok(ModelConfig {
        arch: defaults.arch,
        hidden_size,
        intermediate_size,
        num_heads,
        num_kv_heads: keys.size("num_key_value_heads")?.or(unwritten_kv_heads).unwrap_or(num_heads),
        head_dim,
        latent: None,
        indexer: None,
        vocab_size: keys.required_size("vocab_size")?,
        vocab_part: VocabularyPart::default(),
        max_position_embeddings: keys.required_size("max_position_embeddings")?,
        rms_norm_eps: rms_norm_eps(keys, 1e-6)?,
        norm_offset: 0.0,
        embedding_scale: 1.0,
        residual_scale: 1.0,
        logit_scale: 1.0,
        attention_scale: 1.0 / (head_dim as f32).sqrt(),
        rotary_dim: None,
        query_scaling: None,
        ropes: vec![rope::config(keys)?],
        blocks: vec![block; num_layers],
        tie_word_embeddings: keys.flag("tie_word_embeddings")?.unwrap_or(false),
        eos_token_ids: Vec::new(),
        spelling: Spelling::default(),
        rope_sections: None,
        vision: None,
    })
}

/// `rms_norm_eps`, with the family's default.
pub(super) fn rms_norm_eps(keys: &Keys<'_>, default: f64) -> Result<f32, LoadError> {
    rms_norm_eps_of(keys, "rms_norm_eps", default)
}

/// The same under another name.
pub(super) fn rms_norm_eps_of(keys: &Keys<'_>, key: &str, default: f64) -> Result<f32, LoadError> {
    Ok(keys.number(key)?.unwrap_or(default) as f32)
}

/// The activation that a key names; SiLU if it is absent.
pub(super) fn activation(keys: &Keys<'_>, key: &str) -> Result<Activation, LoadError> {
    match keys.text(key)?.unwrap_or("silu") {
        "silu" => Ok(Activation::Silu),
        "gelu_pytorch_tanh" => Ok(Activation::GeluTanh),
        other => Err(LoadError::Unsupported(format!("{key} {other:?} (supported: silu, gelu_pytorch_tanh)"))),
    }
}

/// The same model with each block changed by `change`, given the block's index.
pub(super) fn with_blocks(mut config: ModelConfig, mut change: impl FnMut(usize, &mut Block)) -> ModelConfig {
    config.blocks.iter_mut().enumerate().for_each(|(layer, block)| change(layer, block));
    config
}

/// The window of each layer in the Qwen families: `layer_types`, or all layers from `max_window_layers` on, and only if
/// `use_sliding_window` is true.
pub(super) fn qwen_windows(keys: &Keys<'_>, layers: usize) -> Result<Vec<Option<usize>>, LoadError> {
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
pub(super) fn sliding_layers(keys: &Keys<'_>, layers: usize) -> Result<Option<Vec<bool>>, LoadError> {
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
pub(super) fn window(keys: &Keys<'_>) -> Result<Option<usize>, LoadError> {
    if !keys.is_written("sliding_window") {
        return Ok(Some(4096));
    }
    match keys.size("sliding_window")? {
        Some(0) => Err(keys.malformed("sliding_window is zero")),
        window => Ok(window),
    }
}

/// Number of experts, under any of its names, and of those that a token goes to.
pub(super) fn expert_counts(keys: &Keys<'_>) -> Result<(usize, usize), LoadError> {
    let older = ["num_local_experts", "n_routed_experts"].into_iter().find(|key| keys.is_written(key));
    let key = older.unwrap_or("num_experts");
    checked_counts(keys, key, keys.required_size(key)?, keys.required_size("num_experts_per_tok")?)
}

/// Numbers of experts that a configuration has under `key`, and of those that a token goes to.
pub(super) fn checked_counts(
    keys: &Keys<'_>,
    key: &str,
    count: usize,
    chosen: usize,
) -> Result<(usize, usize), LoadError> {
    if chosen > count || count > MAX_EXPERTS {
        return Err(keys.malformed(format!(
            "{key} is {count} and num_experts_per_tok {chosen}; expected at most {MAX_EXPERTS} experts, and at least one per token"
        )));
    }
    Ok((count, chosen))
}
