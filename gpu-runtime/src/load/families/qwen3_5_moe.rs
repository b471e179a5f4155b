//! Qwen3.5, 3.6 and 3.8 with experts in every block (text): the mixers of the dense models, routed experts, and a
//! shared expert whose output is gated.

use super::common::{Defaults, base_of, expert_counts, text_config, with_blocks};
use super::qwen3_5;
use crate::config::{ExpertStorage, Experts, LoadError, ModelConfig, Rename, RouterRule, Spelling};
use crate::load::keys::Keys;

const SHARED: &[Rename] = &[Rename::new("mlp.shared_experts.", "mlp.shared_expert.")];

/// A model whose settings are in `text_config`.
pub(super) fn with_vision(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let text = text_config(&keys)?;
    qwen3_5::with_tower(&keys, &text, of(text)?)
}

/// A text model by itself.
pub(super) fn of(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let defaults = Defaults { arch: "qwen3_5_moe", kv_heads: Some(2), head_dim: Some(256) };
    let (count, per_token) = expert_counts(&keys)?;
    let width = keys.required_size("moe_intermediate_size")?;
    let base = base_of(&keys, &defaults, keys.required_size("num_hidden_layers")?, width)?;
    let config = qwen3_5::mixed(&keys, base)?;
    let experts = Experts {
        count,
        held: 0..count,
        width,
        shared: Some(keys.required_size("shared_expert_intermediate_size")?),
        shared_is_gated: true,
        latent: None,
        rule: RouterRule::softmax(per_token, true),
        correction: Vec::new(),
        router: "mlp.gate",
        storage: ExpertStorage::Rows,
    };
    let spelling = Spelling { blocks: vec![SHARED; config.num_layers()], ..config.spelling.clone() };
    Ok(with_blocks(ModelConfig { spelling, ..config }, |_, block| block.experts = Some(experts.clone())))
}
