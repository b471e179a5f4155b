//! Families with experts, but without recurrences.

use serde_json::{Map, Value, json};

use super::architecture::{ATTENTION_BIAS, Architecture, LLAMA, Rotation};
use super::metadata::GgufFile;
use super::own::{MOST_BLOCKS, Own, extend};
use crate::config::LoadError;

/// llama.cpp's numbers of how a router's logits become scores.
pub(super) const SOFTMAX: u64 = 1;
pub(super) const SIGMOID: u64 = 2;
/// The softmax over only the chosen experts, which equals the normalised softmax over all.
const SOFTMAX_OF_CHOSEN: u64 = 3;

/// Experts and blocks of DeepSeek-V3 and R1, whose first files do not say that experts are chosen within groups.
const V3_EXPERTS: u64 = 256;
const V3_BLOCKS: u64 = 61;
/// Groups, and how many of them are chosen.
const V3_GROUPS: [u64; 2] = [8, 4];
/// Experts of Kimi-K2, which is not divided into groups; its first files do not say so.
const K2_EXPERTS: u64 = 384;

pub(super) const QWEN3_MOE: Architecture = Architecture {
    name: "qwen3moe",
    model_type: "qwen3_moe",
    class: "Qwen3MoeForCausalLM",
    modules: &[
        ("ffn_gate_inp", "mlp.gate"),
        ("ffn_gate_exps", "mlp.experts.gate_proj"),
        ("ffn_up_exps", "mlp.experts.up_proj"),
        ("ffn_down_exps", "mlp.experts.down_proj"),
    ],
    interleaves_heads: false,
    tensor_settings: &[ATTENTION_BIAS],
    has_experts: true,
    settings: qwen3_moe,
    ..LLAMA
};

pub(super) const GPT_OSS: Architecture = Architecture {
    name: "gpt-oss",
    model_type: "gpt_oss",
    class: "GptOssForCausalLM",
    modules: &[
        ("post_attention_norm", "post_attention_layernorm"),
        ("ffn_gate_inp", "mlp.router"),
        ("ffn_gate_exps", "mlp.experts.gate_proj"),
        ("ffn_up_exps", "mlp.experts.up_proj"),
        ("ffn_down_exps", "mlp.experts.down_proj"),
    ],
    interleaves_heads: false,
    tensor_settings: &[ATTENTION_BIAS],
    has_experts: true,
    settings: gpt_oss,
    ..LLAMA
};

pub(super) const DEEPSEEK2: Architecture = Architecture {
    name: "deepseek2",
    model_type: "deepseek_v3",
    class: "DeepseekV3ForCausalLM",
    modules: &[
        ("attn_q_a", "self_attn.q_a_proj"),
        ("attn_q_a_norm", "self_attn.q_a_layernorm"),
        ("attn_q_b", "self_attn.q_b_proj"),
        ("attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"),
        ("attn_kv_a_norm", "self_attn.kv_a_layernorm"),
        ("attn_kv_b", "self_attn.kv_b_proj"),
        ("attn_k_b", "self_attn.k_b_proj"),
        ("attn_v_b", "self_attn.v_b_proj"),
        ("ffn_gate_inp", "mlp.gate"),
        ("ffn_gate_exps", "mlp.experts.gate_proj"),
        ("ffn_up_exps", "mlp.experts.up_proj"),
        ("ffn_down_exps", "mlp.experts.down_proj"),
        ("ffn_gate_shexp", "mlp.shared_experts.gate_proj"),
        ("ffn_up_shexp", "mlp.shared_experts.up_proj"),
        ("ffn_down_shexp", "mlp.shared_experts.down_proj"),
    ],
    interleaves_heads: false,
    tensor_settings: &[("attention_bias", "self_attn.kv_a_proj_with_mqa.bias")],
    has_experts: true,
    has_latent_attention: true,
    settings: deepseek_v3,
    ..LLAMA
};

pub(super) const GLM4_MOE: Architecture = Architecture {
    name: "glm4moe",
    model_type: "glm4_moe",
    class: "Glm4MoeForCausalLM",
    modules: &[
        ("post_attention_norm", "post_attention_layernorm"),
        ("ffn_gate_inp", "mlp.gate"),
        ("ffn_gate_exps", "mlp.experts.gate_proj"),
        ("ffn_up_exps", "mlp.experts.up_proj"),
        ("ffn_down_exps", "mlp.experts.down_proj"),
        ("ffn_gate_shexp", "mlp.shared_experts.gate_proj"),
        ("ffn_up_shexp", "mlp.shared_experts.up_proj"),
        ("ffn_down_shexp", "mlp.shared_experts.down_proj"),
    ],
    interleaves_heads: false,
    rotation: Rotation::Part,
    predicts_further: true,
    tensor_settings: &[ATTENTION_BIAS, ("use_qk_norm", "self_attn.q_norm.weight")],
    has_experts: true,
    settings: glm4_moe,
    ..LLAMA
};

fn qwen3_moe(file: &GgufFile, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    let own = Own { file, arch: "qwen3moe" };
    own.experts(json, "num_local_experts")?;
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

fn gpt_oss(file: &GgufFile, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    let own = Own { file, arch: "gpt-oss" };
    own.experts(json, "num_local_experts")?;
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
    let kinds: Vec<_> = (0..layers.min(MOST_BLOCKS)).map(kind).collect();
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
fn deepseek_v3(file: &GgufFile, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    let own = Own { file, arch: "deepseek2" };
    own.experts(json, "num_local_experts")?;
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
        [None, None] if count == K2_EXPERTS => [1, 1],
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

fn glm4_moe(file: &GgufFile, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    let own = Own { file, arch: "glm4moe" };
    own.experts(json, "n_routed_experts")?;
    own.one_of("expert_gating_func", &[SIGMOID as f64])?;
    let width = own.required("expert_feed_forward_length")?;
    let shared = own.integer("expert_shared_count")?.unwrap_or(0);
    own.one_of("expert_shared_feed_forward_length", &[shared.saturating_mul(width) as f64])?;
    let settings = json!({
        "moe_intermediate_size": width,
        "n_shared_experts": shared,
        "n_group": own.integer("expert_group_count")?.unwrap_or(1),
        "topk_group": own.integer("expert_group_used_count")?.unwrap_or(1),
        "norm_topk_prob": own.flag("expert_weights_norm")?.unwrap_or(false),
        "routed_scaling_factor": own.number("expert_weights_scale")?.unwrap_or(1.0),
        "first_k_dense_replace": own.integer("leading_dense_block_count")?.unwrap_or(0),
    });
    extend(json, settings);
    Ok(())
}
