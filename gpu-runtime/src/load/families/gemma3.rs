//! Gemma 3 (text): four norms per block with weights that are stored as differences from 1, GELU, scaled embeddings, a
//! query scale of its own, and blocks with a sliding window and a rotary base of theirs between blocks without (Gemma
//! Team 2025, arXiv:2503.19786).

use super::common::{Defaults, activation, base, sliding_layers, window, with_blocks};
use super::rope;
use crate::config::{Activation, Attention, BlockNorms, HeadNorms, LoadError, ModelConfig, RopeConfig};
use crate::load::keys::Keys;

const NORMS: BlockNorms = BlockNorms {
    pre_attention: Some("input_layernorm"),
    post_attention: Some("post_attention_layernorm"),
    pre_mlp: Some("pre_feedforward_layernorm"),
    post_mlp: Some("post_feedforward_layernorm"),
};

/// Every sixth block has no window, unless the configuration sets another number.
const PATTERN: usize = 6;
/// Indices of rotary tables in [`ModelConfig::ropes`].
const GLOBAL: usize = 0;
const LOCAL: usize = 1;

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    refuse_what_is_not_there(&keys)?;
    let base = base(&keys, &Defaults { arch: "gemma3_text", kv_heads: Some(4), head_dim: Some(256) })?;
    let activation = match keys.is_written("hidden_activation") {
        true => activation(&keys, "hidden_activation")?,
        false => Activation::GeluTanh,
    };
    let query_scalar = keys.number("query_pre_attn_scalar")?.unwrap_or(256.0);
    if !(query_scalar.is_finite() && query_scalar > 0.0) {
        return Err(keys.malformed(format!("query_pre_attn_scalar is {query_scalar}")));
    }
    let (local, window) = (sliding(&keys, base.num_layers())?, window(&keys)?);
    let config = ModelConfig {
        norm_offset: 1.0,
        embedding_scale: (base.hidden_size as f32).sqrt(),
        attention_scale: 1.0 / (query_scalar as f32).sqrt(),
        ropes: vec![rope_of(&keys, "full_attention")?, rope_of(&keys, "sliding_attention")?],
        tie_word_embeddings: keys.flag("tie_word_embeddings")?.unwrap_or(true),
        ..base
    };
    Ok(with_blocks(config, |layer, block| {
        block.norms = NORMS;
        block.mixer = Some(
            Attention {
                head_norms: HeadNorms::Heads,
                rope: Some(if local[layer] { LOCAL } else { GLOBAL }),
                window: window.filter(|_| local[layer]),
                ..Attention::default()
            }
            .into(),
        );
        block.activation = activation;
    }))
}

/// Settings that no Gemma 3 checkpoint uses, and that would change its numbers.
fn refuse_what_is_not_there(keys: &Keys<'_>) -> Result<(), LoadError> {
    for key in ["attn_logit_softcapping", "final_logit_softcapping"] {
        if let Some(cap) = keys.number(key)? {
            return Err(LoadError::Unsupported(format!("{key} {cap} (supported: null)")));
        }
    }
    for key in ["attention_bias", "use_bidirectional_attention"] {
        if keys.flag(key)?.unwrap_or(false) {
            return Err(LoadError::Unsupported(format!("{key} true (supported: false)")));
        }
    }
    Ok(())
}

/// Whether each layer has a sliding window: `layer_types`, or all but every n-th of `sliding_window_pattern`.
fn sliding(keys: &Keys<'_>, layers: usize) -> Result<Vec<bool>, LoadError> {
    if let Some(sliding) = sliding_layers(keys, layers)? {
        return Ok(sliding);
    }
    let pattern = match keys.size("sliding_window_pattern")? {
        Some(pattern) => pattern,
        None => keys.size("_sliding_window_pattern")?.unwrap_or(PATTERN),
    };
    if pattern == 0 {
        return Err(keys.malformed("sliding_window_pattern is zero"));
    }
    Ok((1..=layers).map(|layer| !layer.is_multiple_of(pattern)).collect())
}

/// The rotary embedding of a layer type: `rope_parameters` has one for each; before that, `rope_theta` and `rope_scaling` were
/// those of full attention, and `rope_local_base_freq` that of the others.
fn rope_of(keys: &Keys<'_>, layer_type: &str) -> Result<RopeConfig, LoadError> {
    let (theta_key, default) = match layer_type {
        "full_attention" => ("rope_theta", 1_000_000.0),
        _ => ("rope_local_base_freq", 10_000.0),
    };
    let parameters = match keys.object("rope_parameters")? {
        Some(types) => types.object(layer_type)?,
        None if layer_type == "full_attention" => keys.object("rope_scaling")?,
        None => None,
    };
    rope::parse(keys, parameters, theta_key, default)
}
