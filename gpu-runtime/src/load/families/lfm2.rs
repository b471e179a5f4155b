//! LFM2 (Liquid AI 2025, arXiv:2511.23404): gated short convolutions, and attention with norms of q and k between them.

use super::common::{Defaults, base_of, rms_norm_eps_of, with_blocks};
use super::rope;
use crate::config::{
    Attention, BlockNorms, ConvolutionShape, HeadNorms, LoadError, Mixer, ModelConfig, Rename, Spelling,
};
use crate::load::keys::Keys;

const THETA: f64 = 1_000_000.0;
const NORMS: BlockNorms = BlockNorms {
    pre_attention: Some("operator_norm"),
    post_attention: None,
    pre_mlp: Some("ffn_norm"),
    post_mlp: None,
};
const PREFIXES: &[Rename] = &[Rename::new("model.norm.", "model.embedding_norm.")];
const NAMES: &[Rename] = &[
    Rename::new("self_attn.o_proj.", "self_attn.out_proj."),
    Rename::new("self_attn.q_norm.", "self_attn.q_layernorm."),
    Rename::new("self_attn.k_norm.", "self_attn.k_layernorm."),
    Rename::new("mlp.gate_proj.", "feed_forward.w1."),
    Rename::new("mlp.up_proj.", "feed_forward.w3."),
    Rename::new("mlp.down_proj.", "feed_forward.w2."),
];

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    if keys.flag("conv_bias")?.unwrap_or(false) {
        return Err(LoadError::Unsupported("conv_bias true (supported: false)".to_owned()));
    }
    let layers = keys.required_size("num_hidden_layers")?;
    let defaults = Defaults { arch: "lfm2", kv_heads: Some(8), head_dim: None };
    let base = base_of(&keys, &defaults, layers, mlp_width(&keys)?)?;
    let attends = attention_layers(&keys, layers)?;
    let kernel = keys.size("conv_L_cache")?.unwrap_or(3);
    if kernel == 0 {
        return Err(keys.malformed("conv_L_cache is zero"));
    }
    let convolution = ConvolutionShape { channels: base.hidden_size, kernel };
    let tied = keys.flag("tie_embedding")?;
    let config = ModelConfig {
        rms_norm_eps: rms_norm_eps_of(&keys, "norm_eps", 1e-5)?,
        ropes: vec![rope::with_theta(&keys, THETA)?],
        tie_word_embeddings: tied.or(keys.flag("tie_word_embeddings")?).unwrap_or(true),
        spelling: Spelling { prefixes: PREFIXES, blocks: vec![NAMES; layers], ..Spelling::default() },
        ..base
    };
    Ok(with_blocks(config, |layer, block| {
        let attention = Attention { head_norms: HeadNorms::Heads, ..Attention::default() };
        block.norms = NORMS;
        block.mixer = Some(if attends[layer] { Mixer::from(attention) } else { convolution.into() });
    }))
}

/// Width of MLPs. Unless `block_auto_adjust_ff_dim` is false, two thirds of what is written, times a factor, up to a multiple.
fn mlp_width(keys: &Keys<'_>) -> Result<usize, LoadError> {
    let key = if keys.value("block_ff_dim").is_some() { "block_ff_dim" } else { "intermediate_size" };
    let written = keys.required_size(key)?;
    if !keys.flag("block_auto_adjust_ff_dim")?.unwrap_or(true) {
        return Ok(written);
    }
    let (adjusted, multiple) = (2 * written / 3, keys.size("block_multiple_of")?.unwrap_or(256));
    if keys.is_written("block_ffn_dim_multiplier") && keys.value("block_ffn_dim_multiplier").is_none() {
        return positive(keys, adjusted);
    }
    let factor = keys.number("block_ffn_dim_multiplier")?.unwrap_or(1.0);
    let scaled = (factor * adjusted as f64) as usize;
    if multiple == 0 {
        return Err(keys.malformed("block_multiple_of is zero"));
    }
    if !(factor > 0.0 && scaled <= MOST_WIDE) {
        return Err(keys.malformed(format!("block_ffn_dim_multiplier is {factor}, which makes MLPs of {scaled}")));
    }
    positive(keys, scaled.next_multiple_of(multiple))
}

/// Widths above this are taken for a damaged file.
const MOST_WIDE: usize = 1 << 28;

fn positive(keys: &Keys<'_>, width: usize) -> Result<usize, LoadError> {
    match width {
        0 => Err(keys.malformed("intermediate_size and block_auto_adjust_ff_dim give MLPs of width zero")),
        width => Ok(width),
    }
}

/// Whether each layer has attention: by `layer_types`, else by the indices in `full_attn_idxs`, else all of them.
fn attention_layers(keys: &Keys<'_>, layers: usize) -> Result<Vec<bool>, LoadError> {
    if let Some(types) = keys.list("layer_types")? {
        if types.len() != layers {
            return Err(keys.malformed(format!("layer_types has {} entries for {layers} layers", types.len())));
        }
        let attends = types.iter().map(|kind| match kind.as_str() {
            Some("full_attention") => Ok(true),
            Some("conv") => Ok(false),
            _ => Err(LoadError::Unsupported(format!("layer type {kind} (supported: full_attention, conv)"))),
        });
        return attends.collect();
    }
    let Some(indices) = keys.list("full_attn_idxs")? else { return Ok(vec![true; layers]) };
    let index = |value: &serde_json::Value| match value.as_u64() {
        Some(index) => Ok(index),
        None => Err(keys.malformed(format!("full_attn_idxs has {value}, expected the index of a layer"))),
    };
    let indices = indices.iter().map(index).collect::<Result<Vec<_>, _>>()?;
    Ok((0..layers as u64).map(|layer| indices.contains(&layer)).collect())
}
