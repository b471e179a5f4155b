//! Qwen3.5, 3.6 and 3.8 (text): three gated delta nets to one attention layer, whose output is gated and whose heads
//! are rotated in part. Norms are stored as differences from 1, except those of delta nets.

use super::common::{Defaults, base, text_config, with_blocks};
use super::{rope, vision_qwen};
use crate::config::{
    Attention, Biases, FusedRows, HeadNorms, LoadError, Mixer, ModelConfig, RecurrentRule, RecurrentShape, Spelling,
};
use crate::load::keys::Keys;

/// Part of a head that is rotated, unless a configuration sets another.
const ROTATED: f64 = 0.25;
/// Every so many layers one has attention, unless `layer_types` says otherwise.
const INTERVAL: usize = 4;

/// Frequencies of time, row and column in images, unless a configuration sets others.
const SECTIONS: [usize; 3] = [11, 11, 10];
const FUSED: &[FusedRows] = &[
    FusedRows {
        module: "linear_attn.in_proj_qkv",
        parts: &["linear_attn.in_proj_q", "linear_attn.in_proj_k", "linear_attn.in_proj_v"],
    },
    FusedRows {
        module: "linear_attn.conv1d",
        parts: &["linear_attn.conv_q", "linear_attn.conv_k", "linear_attn.conv_v"],
    },
];
/// Layers that predict further tokens, and the vision tower of files whose configuration has none.
const UNUSED: &[&str] = &["mtp.", "model.visual.", "visual."];
const UNUSED_WITH_TOWER: &[&str] = &["mtp."];

/// A model whose settings are in `text_config`.
pub(super) fn with_vision(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let text = text_config(&keys)?;
    with_tower(&keys, &text, of(text)?)
}

/// The same text model in files that also have a vision tower.
pub(super) fn with_tower(keys: &Keys<'_>, text: &Keys<'_>, mut config: ModelConfig) -> Result<ModelConfig, LoadError> {
    let tied = keys.flag("tie_word_embeddings")?;
    config.tie_word_embeddings = tied.unwrap_or(config.tie_word_embeddings);
    config.spelling.prefixes = vision_qwen::PREFIXES;
    let mut config = vision_qwen::with_tower(keys, text, config, SECTIONS, false)?;
    if config.vision.is_some() {
        config.spelling.unused = UNUSED_WITH_TOWER;
    }
    Ok(config)
}

/// A text model by itself.
pub(super) fn of(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let defaults = Defaults { arch: "qwen3_5", kv_heads: Some(4), head_dim: Some(256) };
    mixed(&keys, base(&keys, &defaults)?)
}

/// A model whose layers have the mixers of the family.
pub(super) fn mixed(keys: &Keys<'_>, base: ModelConfig) -> Result<ModelConfig, LoadError> {
    let attends = attention_layers(keys, base.num_layers())?;
    let biased = keys.flag("attention_bias")?.unwrap_or(false);
    let delta_net = delta_net(keys)?;
    let config = ModelConfig {
        norm_offset: 1.0,
        rotary_dim: rope::rotary_dim(keys, base.head_dim, ROTATED)?,
        spelling: Spelling { fused: FUSED, unused: UNUSED, ..Spelling::default() },
        ..base
    };
    Ok(with_blocks(config, |layer, block| {
        let attention = Attention { head_norms: HeadNorms::Heads, gated: true, ..Attention::default() };
        block.mixer = Some(if attends[layer] { Mixer::from(attention) } else { delta_net.into() });
        block.biases = Biases { qkv: biased, o: biased, ..Biases::default() };
    }))
}

/// Whether each layer has attention.
fn attention_layers(keys: &Keys<'_>, layers: usize) -> Result<Vec<bool>, LoadError> {
    let Some(types) = keys.list("layer_types")? else {
        let interval = keys.size("full_attention_interval")?.unwrap_or(INTERVAL).max(1);
        return Ok((1..=layers).map(|layer| layer.is_multiple_of(interval)).collect());
    };
    if types.len() != layers {
        return Err(keys.malformed(format!("layer_types has {} entries for {layers} layers", types.len())));
    }
    let attends = types.iter().map(|kind| match kind.as_str() {
        Some("full_attention") => Ok(true),
        Some("linear_attention") => Ok(false),
        _ => Err(LoadError::Unsupported(format!("layer type {kind} (supported: full_attention, linear_attention)"))),
    });
    attends.collect()
}

fn delta_net(keys: &Keys<'_>) -> Result<RecurrentShape, LoadError> {
    let size = |key: &str, default: usize| match keys.size(key)? {
        Some(0) => Err(keys.malformed(format!("{key} is zero"))),
        size => Ok(size.unwrap_or(default)),
    };
    let shape = RecurrentShape {
        rule: RecurrentRule::DeltaNet,
        key_heads: size("linear_num_key_heads", 16)?,
        value_heads: size("linear_num_value_heads", 32)?,
        key_dim: size("linear_key_head_dim", 128)?,
        value_dim: size("linear_value_head_dim", 128)?,
        kernel: size("linear_conv_kernel_dim", 4)?,
    };
    if !shape.value_heads.is_multiple_of(shape.key_heads) {
        return Err(keys.malformed(format!(
            "linear_num_key_heads {} does not divide {} value heads",
            shape.key_heads, shape.value_heads
        )));
    }
    Ok(shape)
}
