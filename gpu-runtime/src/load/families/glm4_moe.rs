//! GLM-4.5 and 4.6 (GLM-4.5 Team 2025, arXiv:2508.06471): grouped-query attention with heads that are rotated in part, and from
//! some block on the experts of DeepSeek-V3.

use super::common::{Defaults, base, rms_norm_eps, with_blocks};
use super::deepseek_v3::{Routing, experts};
use super::rope;
use crate::config::{Attention, Biases, HeadNorms, LoadError, ModelConfig, Spelling};
use crate::load::keys::Keys;

const ROUTING: Routing = Routing { groups: 1, chosen_groups: 1, scaling: 1.0, dense_blocks: 1 };

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let base = base(&keys, &Defaults { arch: "glm4_moe", kv_heads: Some(8), head_dim: None })?;
    let biases = Biases { qkv: keys.flag("attention_bias")?.unwrap_or(false), ..Biases::default() };
    let has_norms = keys.flag("use_qk_norm")?.unwrap_or(false);
    let head_norms = if has_norms { HeadNorms::Heads } else { HeadNorms::None };
    let (dense, experts) = experts(&keys, &ROUTING)?;
    let config = ModelConfig {
        rms_norm_eps: rms_norm_eps(&keys, 1e-5)?,
        rotary_dim: rope::rotary_dim(&keys, base.head_dim, 0.5)?,
        spelling: Spelling { block_limit: Some(base.num_layers()), ..Spelling::default() },
        ..base
    };
    Ok(with_blocks(config, |layer, block| {
        block.mixer = Some(Attention { head_norms, ..Attention::default() }.into());
        block.biases = biases;
        block.experts = (layer >= dense).then(|| experts.clone());
    }))
}
