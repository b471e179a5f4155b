//! SmolLM3: Llama with blocks whose attention has no positions between those that rotate.

use super::common::{Defaults, base, sliding_layers, window, with_blocks};
use super::rope;
use crate::config::{Attention, Biases, LoadError, ModelConfig};
use crate::load::keys::Keys;

const THETA: f64 = 2_000_000.0;
/// Every fourth block has no positions, unless the configuration lists them.
const INTERVAL: usize = 4;

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let base = base(&keys, &Defaults { arch: "smollm3", kv_heads: Some(4), head_dim: None })?;
    let layers = base.num_layers();
    let attention = keys.flag("attention_bias")?.unwrap_or(false);
    let biases = Biases { qkv: attention, o: attention, mlp: keys.flag("mlp_bias")?.unwrap_or(false), router: false };
    let rotated = rotated_layers(&keys, layers)?;
    let uses_window = keys.flag("use_sliding_window")?.unwrap_or(false) && keys.is_written("sliding_window");
    let window = if uses_window { window(&keys)? } else { None };
    let sliding = sliding_layers(&keys, layers)?.unwrap_or(rotated.iter().map(|rotated| !rotated).collect());
    let config = ModelConfig {
        ropes: vec![rope::with_theta(&keys, THETA)?],
        tie_word_embeddings: keys.flag("tie_word_embeddings")?.unwrap_or(true),
        ..base
    };
    Ok(with_blocks(config, |layer, block| {
        let (rope, window) = (rotated[layer].then_some(0), window.filter(|_| sliding[layer]));
        block.mixer = Some(Attention { rope, window, ..Attention::default() }.into());
        block.biases = biases;
    }))
}

/// Whether each layer rotates: `no_rope_layers` is 1 for those that do.
fn rotated_layers(keys: &Keys<'_>, layers: usize) -> Result<Vec<bool>, LoadError> {
    let Some(list) = keys.list("no_rope_layers")? else {
        let interval = keys.size("no_rope_layer_interval")?.unwrap_or(INTERVAL);
        if interval == 0 {
            return Err(keys.malformed("no_rope_layer_interval is zero"));
        }
        return Ok((1..=layers).map(|layer| !layer.is_multiple_of(interval)).collect());
    };
    if list.len() != layers {
        return Err(keys.malformed(format!("no_rope_layers has {} entries for {layers} layers", list.len())));
    }
    let rotated = list.iter().map(|entry| match entry.as_u64() {
        Some(0) => Ok(false),
        Some(1) => Ok(true),
        _ => Err(keys.malformed(format!("no_rope_layers has {entry}, expected 0 or 1"))),
    });
    rotated.collect()
}
