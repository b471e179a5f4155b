//! DeepSeek-V3 and R1 (DeepSeek-AI 2024, arXiv:2412.19437): multi-head latent attention, and from some block on,
//! experts that a sigmoid router chooses within groups, with a shared MLP.
//!
//! Layers for multi-token prediction, which released checkpoints have after the last block, are not used.

use super::common::{Defaults, base, expert_counts, with_blocks};
use super::rope;
use crate::config::{
    Biases, ExpertStorage, Experts, LatentAttention, LoadError, ModelConfig, RouterRule, RouterScores, Spelling,
};
use crate::load::keys::Keys;

/// Epsilon of the latents' RMSNorms: the models' code fixes it, whatever `rms_norm_eps` is.
const LATENT_NORM_EPS: f32 = 1e-6;
/// Defaults of keys that a configuration omits.
const QUERY_RANK: usize = 1536;
pub(super) const ROUTING: Routing = Routing { groups: 8, chosen_groups: 4, scaling: 2.5, dense_blocks: 3 };

/// A family's defaults of keys about routing.
pub(super) struct Routing {
    pub(super) groups: usize,
    pub(super) chosen_groups: usize,
    pub(super) scaling: f64,
    /// Blocks without experts, which come first.
    pub(super) dense_blocks: usize,
}

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    with_routing(&keys, &ROUTING)
}

/// A model with these blocks, whose configuration may omit keys about routing.
pub(super) fn with_routing(keys: &Keys<'_>, routing: &Routing) -> Result<ModelConfig, LoadError> {
    refuse_what_is_not_there(keys)?;
    let base = base(keys, &Defaults { arch: "deepseek_v3", kv_heads: None, head_dim: None })?;
    if base.num_kv_heads != base.num_heads {
        let (found, heads) = (base.num_kv_heads, base.num_heads);
        return Err(LoadError::Unsupported(format!(
            "num_key_value_heads {found} (supported: {heads}, one for each head)"
        )));
    }
    let attention = keys.flag("attention_bias")?.unwrap_or(false);
    let latent = latent(keys)?;
    let mscale = rope::scale_of_all_dimensions(keys)?;
    let scale = (mscale * mscale / (latent.query_dim() as f64).sqrt()) as f32;
    if !scale.is_normal() {
        return Err(keys.malformed(format!("attention's scale is {scale}, with mscale_all_dim")));
    }
    let (dense, experts) = experts(keys, routing)?;
    let spelling = Spelling { block_limit: Some(base.num_layers()), ..Spelling::default() };
    let (head_dim, latent) = (latent.head_dim(), Some(latent));
    let config = ModelConfig { head_dim, latent, attention_scale: scale, spelling, ..base };
    Ok(with_blocks(config, |layer, block| {
        block.biases = Biases { qkv: attention, o: attention, ..Biases::default() };
        block.experts = (layer >= dense).then(|| experts.clone());
    }))
}

fn latent(keys: &Keys<'_>) -> Result<LatentAttention, LoadError> {
    let query_rank = match keys.is_written("q_lora_rank") {
        true => keys.size("q_lora_rank")?,
        false => Some(QUERY_RANK),
    };
    let rope_dim = keys.required_size("qk_rope_head_dim")?;
    if query_rank == Some(0) {
        return Err(keys.malformed("q_lora_rank is zero"));
    }
    if !rope_dim.is_multiple_of(2) {
        return Err(keys.malformed(format!("qk_rope_head_dim is {rope_dim}, expected an even number")));
    }
    Ok(LatentAttention {
        query_rank,
        kv_rank: keys.required_size("kv_lora_rank")?,
        nope_dim: keys.required_size("qk_nope_head_dim")?,
        rope_dim,
        value_dim: keys.required_size("v_head_dim")?,
        interleaved: keys.flag("rope_interleave")?.unwrap_or(true),
        norm_eps: LATENT_NORM_EPS,
    })
}

/// Number of blocks without experts, which come first, and the experts of the others.
pub(super) fn experts(keys: &Keys<'_>, defaults: &Routing) -> Result<(usize, Experts), LoadError> {
    let (count, per_token) = expert_counts(keys)?;
    let width = keys.required_size("moe_intermediate_size")?;
    let groups = keys.size("n_group")?.unwrap_or(defaults.groups);
    let chosen_groups = keys.size("topk_group")?.unwrap_or(defaults.chosen_groups);
    let fits = groups > 0 && count.is_multiple_of(groups) && (1..=groups).contains(&chosen_groups);
    if !fits || per_token > chosen_groups * (count / groups) {
        return Err(keys.malformed(format!(
            "n_group is {groups}, topk_group {chosen_groups} and num_experts_per_tok {per_token}; expected groups that divide \
             {count} experts, and chosen groups with enough experts"
        )));
    }
    let scaling = keys.number("routed_scaling_factor")?.unwrap_or(defaults.scaling) as f32;
    if !scaling.is_finite() {
        return Err(keys.malformed(format!("routed_scaling_factor is {scaling}")));
    }
    let shared = if keys.is_written("n_shared_experts") { keys.size("n_shared_experts")?.unwrap_or(0) } else { 1 };
    let normalised = keys.flag("norm_topk_prob")?.unwrap_or(true);
    let experts = Experts {
        count,
        held: 0..count,
        width,
        shared: (shared > 0).then_some(shared * width),
        shared_is_gated: false,
        latent: None,
        rule: RouterRule { per_token, normalised, scores: RouterScores::Sigmoid { groups, chosen_groups, scaling } },
        correction: Vec::new(),
        router: "mlp.gate",
        storage: ExpertStorage::Apart,
    };
    Ok((keys.size("first_k_dense_replace")?.unwrap_or(defaults.dense_blocks), experts))
}

/// Settings of the models' own code that no checkpoint of the family changes.
fn refuse_what_is_not_there(keys: &Keys<'_>) -> Result<(), LoadError> {
    for (key, supported) in [("scoring_func", "sigmoid"), ("topk_method", "noaux_tc")] {
        if let Some(found) = keys.text(key)?.filter(|found| *found != supported) {
            return Err(LoadError::Unsupported(format!("{key} {found:?} (supported: {supported})")));
        }
    }
    match keys.size("moe_layer_freq")? {
        None | Some(1) => Ok(()),
        Some(step) => Err(LoadError::Unsupported(format!("moe_layer_freq {step} (supported: 1)"))),
    }
}
