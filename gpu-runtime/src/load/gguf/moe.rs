//! Families with experts: settings of their files in addition to the common ones.

use serde_json::{Map, Value, json};

use super::metadata::GgufFile;
use crate::config::LoadError;

/// llama.cpp's numbers of how a router's logits become scores.
const SOFTMAX: u64 = 1;
const SIGMOID: u64 = 2;
/// The softmax over only the chosen experts, which equals the normalised softmax over all.
const SOFTMAX_OF_CHOSEN: u64 = 3;

/// Experts and blocks of DeepSeek-V3 and R1, whose first files do not say that experts are chosen within groups.
const V3_EXPERTS: u64 = 256;
const V3_BLOCKS: u64 = 61;
/// Groups, and how many of them are chosen.
const V3_GROUPS: [u64; 2] = [8, 4];

/// Typed access to the keys of an architecture.
struct Own<'f> {
    file: &'f GgufFile,
    arch: &'static str,
}

impl Own<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.arch)
    }

    fn integer(&self, name: &str) -> Result<Option<u64>, LoadError> {
        self.file.integer(&self.key(name))
    }

    fn required(&self, name: &str) -> Result<u64, LoadError> {
        let missing = || self.file.malformed(format!("metadata key {} is missing", self.key(name)));
        self.integer(name)?.ok_or_else(missing)
    }

    /// Refuses a number that is present but not among these; the error names the last one as supported.
    fn one_of(&self, name: &str, supported: &[f64]) -> Result<(), LoadError> {
        match (self.file.number(&self.key(name))?, supported) {
            (Some(found), [.., named]) if !supported.contains(&found) => {
                Err(LoadError::Unsupported(format!("{} {found} (supported: {named})", self.key(name))))
            }
            _ => Ok(()),
        }
    }

    /// Number of experts, and of those that a token goes to.
    fn experts(&self, json: &mut Map<String, Value>) -> Result<(), LoadError> {
        json.insert("num_local_experts".into(), self.required("expert_count")?.into());
        json.insert("num_experts_per_tok".into(), self.required("expert_used_count")?.into());
        Ok(())
    }
}

fn extend(json: &mut Map<String, Value>, settings: Value) {
    if let Value::Object(settings) = settings {
        json.extend(settings);
    }
}

pub(super) fn qwen3_moe(file: &GgufFile, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    let own = Own { file, arch: "qwen3moe" };
    own.experts(json)?;
    own.one_of("expert_gating_func", &[SOFTMAX as f64])?;
    own.one_of("expert_weights_scale", &[0.0, 1.0])?;
    own.one_of("expert_shared_count", &[0.0])?;
    own.one_of("expert_group_count", &[0.0, 1.0])?;
    let width = match own.integer("expert_feed_forward_length")? {
        Some(width) => width,
        // As files had it first.
        None => own.required("feed_forward_length")? / own.required("expert_used_count")?.max(1),
    };
    let normalised = file.flag(&own.key("expert_weights_norm"))?.unwrap_or(true);
    extend(json, json!({"moe_intermediate_size": width, "norm_topk_prob": normalised}));
    Ok(())
}

pub(super) fn gpt_oss(file: &GgufFile, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    let own = Own { file, arch: "gpt-oss" };
    own.experts(json)?;
    own.one_of("expert_gating_func", &[SOFTMAX_OF_CHOSEN as f64])?;
    own.one_of("expert_weights_scale", &[0.0, 1.0])?;
    own.one_of("expert_shared_count", &[0.0])?;
    if let Some(theta) = json.get("rope_theta").and_then(Value::as_f64) {
        own.one_of("rope.freq_base_swa", &[theta])?;
    }
    // The models' own configurations say so, files do not.
    if let Some(Value::Object(scaling)) = json.get_mut("rope_scaling") {
        scaling.insert("truncate".into(), false.into());
    }
    let layers = json.get("num_hidden_layers").and_then(Value::as_u64).unwrap_or(0);
    let period = own.integer("attention.sliding_window_pattern");
    let period = period.map_err(|_| {
        let key = own.key("attention.sliding_window_pattern");
        LoadError::Unsupported(format!("{key} that is not a number of blocks (supported: a number)"))
    })?;
    let period = period.unwrap_or(2);
    // The last block of a period has no window; with a period of 0 all have one.
    let kind = |layer: u64| match layer.checked_rem(period) {
        Some(at) if at + 1 == period => "full_attention",
        _ => "sliding_attention",
    };
    const MOST_LAYERS: u64 = 1 << 16;
    let kinds: Vec<_> = (0..layers.min(MOST_LAYERS)).map(kind).collect();
    let settings = json!({
        "intermediate_size": own.required("expert_feed_forward_length")?,
        "sliding_window": own.required("attention.sliding_window")?,
        "layer_types": kinds,
    });
    extend(json, settings);
    Ok(())
}

/// Files have latent attention in one of two forms: with `attn_kv_b` and as many key heads as query heads, or with its halves
/// apart, one key head of the latents' width, and the extents of heads under names of their own.
pub(super) fn deepseek_v3(file: &GgufFile, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    let own = Own { file, arch: "deepseek2" };
    own.experts(json)?;
    own.one_of("attention.temperature_scale", &[0.0])?;
    own.one_of("nextn_predict_layers", &[0.0])?;
    // Files without the key are of DeepSeek-V2, whose router is a softmax.
    let gating = own.integer("expert_gating_func")?.unwrap_or(SOFTMAX);
    if gating != SIGMOID {
        let key = own.key("expert_gating_func");
        return Err(LoadError::Unsupported(format!("{key} {gating} (supported: {SIGMOID}, a sigmoid)")));
    }
    let extent = |name: &str| match own.integer(&format!("{name}_mla"))? {
        Some(extent) => Ok(extent),
        None => own.required(name),
    };
    let (key, value) = (extent("attention.key_length")?, extent("attention.value_length")?);
    let rotated = own.required("rope.dimension_count")?;
    let plain = key.checked_sub(rotated).ok_or_else(|| {
        file.malformed(format!("{} {rotated} in heads of width {key}", own.key("rope.dimension_count")))
    })?;
    let count = own.required("expert_count")?;
    let width = own.required("expert_feed_forward_length")?;
    let shared = own.integer("expert_shared_count")?.unwrap_or(0);
    own.one_of("expert_shared_feed_forward_length", &[shared.saturating_mul(width) as f64])?;
    let is_v3 = count == V3_EXPERTS && own.integer("block_count")? == Some(V3_BLOCKS);
    let groups = [own.integer("expert_group_count")?, own.integer("expert_group_used_count")?];
    let [groups, chosen] = match groups {
        [Some(groups), Some(chosen)] => [groups, chosen],
        [None, None] if is_v3 => V3_GROUPS,
        [None, _] => return own.required("expert_group_count").map(drop),
        [_, None] => return own.required("expert_group_used_count").map(drop),
    };
    let settings = json!({
        "num_key_value_heads": json.get("num_attention_heads"),
        "head_dim": rotated,
        "q_lora_rank": own.integer("attention.q_lora_rank")?.filter(|&rank| rank > 0),
        "kv_lora_rank": own.required("attention.kv_lora_rank")?,
        "qk_nope_head_dim": plain,
        "qk_rope_head_dim": rotated,
        "v_head_dim": value,
        "rope_interleave": true,
        "moe_intermediate_size": width,
        "n_shared_experts": shared,
        "n_group": groups,
        "topk_group": chosen,
        "norm_topk_prob": file.flag(&own.key("expert_weights_norm"))?.unwrap_or(false),
        "routed_scaling_factor": file.number(&own.key("expert_weights_scale"))?.unwrap_or(1.0),
        "first_k_dense_replace": own.integer("leading_dense_block_count")?.unwrap_or(0),
    });
    extend(json, settings);
    Ok(())
}
