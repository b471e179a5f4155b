//! gpt-oss (OpenAI 2025, arXiv:2508.10925): experts with biases and a clamped activation, a router with a bias, sinks in
//! attention, every other block with a window, YaRN.

use super::common::{Defaults, base, expert_counts, sliding_layers, window, with_blocks};
use crate::config::{Activation, Attention, Biases, ExpertStorage, Experts, LoadError, ModelConfig, RouterRule};
use crate::load::keys::Keys;

/// Bound of gate and up, the only one that checkpoints have.
const LIMIT: f64 = 7.0;

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    if let Some(limit) = keys.number("swiglu_limit")?.filter(|limit| *limit != LIMIT) {
        return Err(LoadError::Unsupported(format!("swiglu_limit {limit} (supported: {LIMIT})")));
    }
    let base = base(&keys, &Defaults { arch: "gpt_oss", kv_heads: Some(8), head_dim: Some(64) })?;
    let attention = keys.flag("attention_bias")?.unwrap_or(true);
    let layers = base.num_layers();
    let sliding = sliding_layers(&keys, layers)?.unwrap_or((0..layers).map(|layer| layer % 2 == 0).collect());
    let window = if keys.is_written("sliding_window") { window(&keys)? } else { Some(128) };
    let (count, per_token) = expert_counts(&keys)?;
    let experts = Experts {
        count,
        held: 0..count,
        width: base.intermediate_size,
        shared: None,
        shared_is_gated: false,
        latent: None,
        rule: RouterRule::softmax(per_token, true),
        correction: Vec::new(),
        router: "mlp.router",
        storage: ExpertStorage::Interleaved,
    };
    Ok(with_blocks(base, |layer, block| {
        let window = window.filter(|_| sliding[layer]);
        block.mixer = Some(Attention { window, sinks: true, ..Attention::default() }.into());
        block.biases = Biases { qkv: attention, o: attention, mlp: true, router: true };
        block.activation = Activation::ClampedSwish;
        block.experts = Some(experts.clone());
    }))
}
