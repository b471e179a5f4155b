//! OLMo 3 (OLMo Team 2025, arXiv:2512.13961): norms of the outputs of attention and MLP instead of their inputs, norms
//! of q and k over all heads, and blocks with a sliding window between blocks without; only the latter scale rotary
//! frequencies.

use super::common::{Defaults, base, rms_norm_eps, sliding_layers, window, with_blocks};
use super::rope;
use crate::config::{Attention, Biases, BlockNorms, HeadNorms, LoadError, ModelConfig, RopeConfig};
use crate::load::keys::Keys;

const NORMS: BlockNorms = BlockNorms {
    pre_attention: None,
    post_attention: Some("post_attention_layernorm"),
    pre_mlp: None,
    post_mlp: Some("post_feedforward_layernorm"),
};

const THETA: f64 = 500_000.0;
/// Every fourth block has no window, unless the configuration lists them.
const PATTERN: usize = 4;
/// Indices of rotary tables in [`ModelConfig::ropes`].
const GLOBAL: usize = 0;
const LOCAL: usize = 1;

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let base = base(&keys, &Defaults { arch: "olmo3", kv_heads: None, head_dim: None })?;
    let (layers, attention) = (base.num_layers(), keys.flag("attention_bias")?.unwrap_or(false));
    let usual = (1..=layers).map(|layer| !layer.is_multiple_of(PATTERN)).collect();
    let (sliding, window) = (sliding_layers(&keys, layers)?.unwrap_or(usual), window(&keys)?);
    let config = ModelConfig {
        rms_norm_eps: rms_norm_eps(&keys, 1e-5)?,
        ropes: vec![rope_of(&keys, "full_attention")?, rope_of(&keys, "sliding_attention")?],
        ..base
    };
    Ok(with_blocks(config, |layer, block| {
        block.norms = NORMS;
        block.mixer = Some(
            Attention {
                head_norms: HeadNorms::Projections,
                rope: Some(if sliding[layer] { LOCAL } else { GLOBAL }),
                window: window.filter(|_| sliding[layer]),
                ..Attention::default()
            }
            .into(),
        );
        block.biases = Biases { qkv: attention, o: attention, ..Biases::default() };
    }))
}

/// The rotary embedding of a layer type: `rope_parameters` has one for each; `rope_scaling`, which is older, is that of full
/// attention.
fn rope_of(keys: &Keys<'_>, layer_type: &str) -> Result<RopeConfig, LoadError> {
    let parameters = match keys.object("rope_parameters")? {
        Some(types) => types.object(layer_type)?,
        None if layer_type == "full_attention" => keys.object("rope_scaling")?,
        None => None,
    };
    rope::parse(keys, parameters, "rope_theta", THETA)
}
