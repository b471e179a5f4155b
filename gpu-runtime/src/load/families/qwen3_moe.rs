//! Qwen3-MoE (Qwen Team 2025, arXiv:2505.09388): Qwen3 with experts in place of the MLP, in all blocks or some.

use super::common::{Defaults, base, expert_counts, window, with_blocks};
use crate::config::{Attention, Biases, ExpertStorage, Experts, HeadNorms, LoadError, ModelConfig, RouterRule};
use crate::load::keys::Keys;

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let base = base(&keys, &Defaults { arch: "qwen3_moe", kv_heads: Some(4), head_dim: None })?;
    let attention = keys.flag("attention_bias")?.unwrap_or(false);
    let window = if keys.flag("use_sliding_window")?.unwrap_or(false) { window(&keys)? } else { None };
    let (count, per_token) = expert_counts(&keys)?;
    let normalised = keys.flag("norm_topk_prob")?.unwrap_or(false);
    let experts = Experts {
        count,
        held: 0..count,
        width: keys.required_size("moe_intermediate_size")?,
        shared: None,
        shared_is_gated: false,
        latent: None,
        rule: RouterRule::softmax(per_token, normalised),
        correction: Vec::new(),
        router: "mlp.gate",
        storage: ExpertStorage::Apart,
    };
    let step = keys.size("decoder_sparse_step")?.unwrap_or(1).max(1);
    let dense = keys.list("mlp_only_layers")?.map(Vec::as_slice).unwrap_or_default();
    let is_dense = |layer: usize| dense.iter().any(|own| own.as_u64() == Some(layer as u64));
    Ok(with_blocks(base, |layer, block| {
        block.mixer = Some(Attention { head_norms: HeadNorms::Heads, window, ..Attention::default() }.into());
        block.biases = Biases { qkv: attention, o: attention, ..Biases::default() };
        block.experts = (!is_dense(layer) && (layer + 1).is_multiple_of(step)).then(|| experts.clone());
    }))
}
