//! Families with recurrences in place of attention in most blocks.

use serde_json::{Map, Value, json};

use super::architecture::{ATTENTION_BIAS, Architecture, LLAMA, MLP_BIAS, Rotation};
use super::conversion::{Order, Tiles};
use super::extents::one_of_blocks;
use super::metadata::GgufFile;
use super::moe::{SIGMOID, SOFTMAX};
use super::own::{MOST_BLOCKS, Own, extend};
use crate::config::LoadError;

/// Vectors of Mamba-2 that are not the weight or bias of a module.
pub(super) const MAMBA_VECTORS: &[(&str, &str)] =
    &[("ssm_a", "mixer.A_log"), ("ssm_d", "mixer.D"), ("ssm_dt.bias", "mixer.dt_bias")];

pub(super) const QWEN35: Architecture = Architecture {
    name: "qwen35",
    model_type: "qwen3_5_text",
    class: "Qwen3_5ForCausalLM",
    whole: &[("ssm_a", "linear_attn.A_log"), ("ssm_dt.bias", "linear_attn.dt_bias")],
    modules: &[
        ("post_attention_norm", "post_attention_layernorm"),
        ("attn_qkv", "linear_attn.in_proj_qkv"),
        ("attn_gate", "linear_attn.in_proj_z"),
        ("ssm_alpha", "linear_attn.in_proj_a"),
        ("ssm_beta", "linear_attn.in_proj_b"),
        ("ssm_conv1d", "linear_attn.conv1d"),
        ("ssm_norm", "linear_attn.norm"),
        ("ssm_out", "linear_attn.out_proj"),
    ],
    interleaves_heads: false,
    adds_one_to_norms: true,
    tiles_value_heads: true,
    rotation: Rotation::Part,
    predicts_further: true,
    tensor_settings: &[ATTENTION_BIAS],
    settings: |file, json| delta_nets(&Own { file, arch: "qwen35" }, json),
    ..LLAMA
};

pub(super) const QWEN35_MOE: Architecture = Architecture {
    name: "qwen35moe",
    model_type: "qwen3_5_moe_text",
    class: "Qwen3_5MoeForCausalLM",
    modules: &[
        ("post_attention_norm", "post_attention_layernorm"),
        ("attn_qkv", "linear_attn.in_proj_qkv"),
        ("attn_gate", "linear_attn.in_proj_z"),
        ("ssm_alpha", "linear_attn.in_proj_a"),
        ("ssm_beta", "linear_attn.in_proj_b"),
        ("ssm_conv1d", "linear_attn.conv1d"),
        ("ssm_norm", "linear_attn.norm"),
        ("ssm_out", "linear_attn.out_proj"),
        ("ffn_gate_inp", "mlp.gate"),
        ("ffn_gate_exps", "mlp.experts.gate_proj"),
        ("ffn_up_exps", "mlp.experts.up_proj"),
        ("ffn_down_exps", "mlp.experts.down_proj"),
        ("ffn_gate_inp_shexp", "mlp.shared_expert_gate"),
        ("ffn_gate_shexp", "mlp.shared_experts.gate_proj"),
        ("ffn_up_shexp", "mlp.shared_experts.up_proj"),
        ("ffn_down_shexp", "mlp.shared_experts.down_proj"),
    ],
    has_mlp: false,
    has_experts: true,
    settings: qwen35_moe,
    ..QWEN35
};

/// Nemotron-H without experts.
///
/// llama.cpp's converter interleaves the rows of q and k although attention has no positions.
pub(super) const NEMOTRON_H: Architecture = Architecture {
    name: "nemotron_h",
    model_type: "nemotron_h",
    class: "NemotronHForCausalLM",
    whole: MAMBA_VECTORS,
    modules: &[
        ("ssm_in", "mixer.in_proj"),
        ("ssm_conv1d", "mixer.conv1d"),
        ("ssm_norm", "mixer.norm"),
        ("ssm_out", "mixer.out_proj"),
        ("ffn_gate_inp", "mlp.gate"),
        ("ffn_up_exps", "mlp.experts.up_proj"),
        ("ffn_down_exps", "mlp.experts.down_proj"),
        ("ffn_up_shexp", "mlp.shared_experts.up_proj"),
        ("ffn_down_shexp", "mlp.shared_experts.down_proj"),
        ("ffn_latent_down", "mlp.fc1_latent_proj"),
        ("ffn_latent_up", "mlp.fc2_latent_proj"),
    ],
    rotation: Rotation::None,
    has_heads_by_block: true,
    has_mlp: false,
    tensor_settings: &[ATTENTION_BIAS, MLP_BIAS],
    settings: |file, json| nemotron(&Own { file, arch: "nemotron_h" }, "mlp", json),
    ..LLAMA
};

/// Nemotron-H and Nemotron-3 with experts in place of MLPs.
pub(super) const NEMOTRON_H_MOE: Architecture = Architecture {
    name: "nemotron_h_moe",
    predicts_further: true,
    has_experts: true,
    settings: nemotron_moe,
    ..NEMOTRON_H
};

/// Gated delta nets, and which blocks have attention in their place.
fn delta_nets(own: &Own<'_>, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    let heads = own.positive("ssm.time_step_rank")?;
    let layers = json.get("num_hidden_layers").and_then(Value::as_u64).unwrap_or(0);
    let recurs = match own.flags("attention.recurrent_layers", layers)? {
        Some(recurs) => recurs,
        None => {
            let interval = match own.integer("full_attention_interval")? {
                None => 4,
                Some(_) => own.positive("full_attention_interval")?,
            };
            (1..=layers.min(MOST_BLOCKS)).map(|layer| !layer.is_multiple_of(interval)).collect()
        }
    };
    let kind = |recurs: bool| if recurs { "linear_attention" } else { "full_attention" };
    let kinds = recurs.into_iter().take(usize::try_from(layers).unwrap_or(usize::MAX)).map(kind);
    let settings = json!({
        "layer_types": kinds.collect::<Vec<_>>(),
        "linear_conv_kernel_dim": own.required("ssm.conv_kernel")?,
        "linear_key_head_dim": own.required("ssm.state_size")?,
        "linear_num_key_heads": own.required("ssm.group_count")?,
        "linear_num_value_heads": heads,
        "linear_value_head_dim": width_of_heads(own, heads)?,
    });
    extend(json, settings);
    Ok(())
}

fn qwen35_moe(file: &GgufFile, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    let own = Own { file, arch: "qwen35moe" };
    delta_nets(&own, json)?;
    own.experts(json, "num_experts")?;
    own.one_of("expert_gating_func", &[SOFTMAX as f64])?;
    own.one_of("expert_weights_scale", &[0.0, 1.0])?;
    own.one_of("expert_group_count", &[0.0, 1.0])?;
    if own.flag("expert_weights_norm")? == Some(false) {
        let key = own.key("expert_weights_norm");
        return Err(LoadError::Unsupported(format!("{key} false (supported: true)")));
    }
    let settings = json!({
        "moe_intermediate_size": own.required("expert_feed_forward_length")?,
        "shared_expert_intermediate_size": own.required("expert_shared_feed_forward_length")?,
    });
    extend(json, settings);
    Ok(())
}

/// Elements of a value head.
pub(super) fn width_of_heads(own: &Own<'_>, heads: u64) -> Result<u64, LoadError> {
    let inner = own.required("ssm.inner_size")?;
    match inner.checked_div(heads).filter(|width| *width > 0 && inner.is_multiple_of(heads)) {
        Some(width) => Ok(width),
        None => {
            let key = own.key("ssm.inner_size");
            Err(own.file.malformed(format!("metadata key {key} is {inner} with {heads} heads (ssm.time_step_rank)")))
        }
    }
}

/// Modules and parameters of delta nets whose rows or columns belong to value heads, with their order in files.
pub(super) fn value_head_orders(file: &GgufFile, arch: &'static str) -> Result<[(&'static str, Order); 8], LoadError> {
    let own = Own { file, arch };
    let (keys, values) = (own.positive("ssm.group_count")?, own.positive("ssm.time_step_rank")?);
    if !values.is_multiple_of(keys) {
        let key = own.key("ssm.group_count");
        return Err(file.malformed(format!("metadata key {key} is {keys}, which does not divide {values} value heads")));
    }
    let extents = [keys, values, width_of_heads(&own, values)?, own.required("ssm.state_size")?];
    let Some([keys, values, width, state]) = bounded(extents) else {
        return Err(file.malformed(format!("metadata keys {} are out of range", own.key("ssm.*"))));
    };
    let tiles = |first, width| Tiles { first, key_heads: keys, heads_per_key: values / keys, width };
    // Queries and keys come first.
    let mixed = Order::TiledRows(tiles(2 * keys * state, width));
    let (rows, of_heads) = (Order::TiledRows(tiles(0, width)), Order::TiledRows(tiles(0, 1)));
    Ok([
        ("linear_attn.in_proj_qkv", mixed),
        ("linear_attn.conv1d", mixed),
        ("linear_attn.in_proj_z", rows),
        ("linear_attn.in_proj_a", of_heads),
        ("linear_attn.in_proj_b", of_heads),
        ("linear_attn.A_log", of_heads),
        ("linear_attn.dt_bias", of_heads),
        ("linear_attn.out_proj", Order::TiledColumns(tiles(0, width))),
    ])
}

/// Extents whose products stay far inside 64 bits.
fn bounded<const N: usize>(extents: [u64; N]) -> Option<[usize; N]> {
    const LIMIT: u64 = 1 << 20;
    let fits = extents.iter().all(|&extent| extent <= LIMIT);
    fits.then(|| extents.map(|extent| extent as usize))
}

/// Mamba-2, and the part of each block. Blocks with neither key heads nor an MLP are recurrent; those with an MLP have
/// `mlp_part`.
fn nemotron(own: &Own<'_>, mlp_part: &str, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    let layers = json.get("num_hidden_layers").and_then(Value::as_u64).unwrap_or(0);
    let keys = own.by_block("attention.head_count_kv", layers)?;
    let widths = own.by_block("feed_forward_length", layers)?;
    let part = |(&keys, &width): (&u64, &u64)| match (keys, width) {
        (0, 0) => "linear_attention",
        (_, 0) => "full_attention",
        _ => mlp_part,
    };
    let parts = keys.iter().zip(&widths).take(usize::try_from(layers).unwrap_or(usize::MAX)).map(part);
    let heads = own.positive("ssm.time_step_rank")?;
    let Some(epsilon) = own.number("attention.layer_norm_rms_epsilon")? else {
        return Err(own.missing("attention.layer_norm_rms_epsilon"));
    };
    let settings = json!({
        "layers_block_type": parts.collect::<Vec<_>>(),
        "layer_norm_epsilon": epsilon,
        "mlp_hidden_act": "relu2",
        "mamba_hidden_act": "silu",
        "use_conv_bias": true,
        "conv_kernel": own.positive("ssm.conv_kernel")?,
        "ssm_state_size": own.required("ssm.state_size")?,
        "n_groups": own.required("ssm.group_count")?,
        "mamba_num_heads": heads,
        "mamba_head_dim": width_of_heads(own, heads)?,
    });
    extend(json, settings);
    json.remove("hidden_act");
    json.remove("rms_norm_eps");
    if mlp_part == "mlp" {
        let width = one_of_blocks(own, "feed_forward_length", layers)?;
        json.insert("intermediate_size".into(), width.unwrap_or(0).into());
    }
    Ok(())
}

/// The router is that of DeepSeek-V3. Files do not say that its scores are sigmoids.
fn nemotron_moe(file: &GgufFile, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    let own = Own { file, arch: "nemotron_h_moe" };
    nemotron(&own, "moe", json)?;
    own.experts(json, "n_routed_experts")?;
    own.one_of("expert_gating_func", &[SIGMOID as f64])?;
    let settings = json!({
        "moe_intermediate_size": own.required("expert_feed_forward_length")?,
        "moe_shared_expert_intermediate_size": own.required("expert_shared_feed_forward_length")?,
        "moe_latent_size": own.integer("moe_latent_size")?.filter(|&width| width > 0),
        "n_shared_experts": own.integer("expert_shared_count")?.unwrap_or(1),
        "n_group": own.integer("expert_group_count")?.unwrap_or(1),
        "topk_group": own.integer("expert_group_used_count")?.unwrap_or(1),
        "norm_topk_prob": own.flag("expert_weights_norm")?.unwrap_or(false),
        "routed_scaling_factor": own.number("expert_weights_scale")?.unwrap_or(1.0),
    });
    extend(json, settings);
    Ok(())
}
