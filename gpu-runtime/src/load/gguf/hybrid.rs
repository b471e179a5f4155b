//! Granite 4 and LFM2: attention between other mixers, and the same families with attention in all blocks. Files have the number
//! of key heads of each block.

use serde_json::{Map, Value, json};

use super::architecture::{ATTENTION_BIAS, Architecture, JoinedRows, LLAMA};
use super::config::share;
use super::own::{Own, extend};
use super::recurrent::{MAMBA_VECTORS, width_of_heads};
use crate::config::LoadError;

const GATE_UP: JoinedRows = JoinedRows { whole: "mlp.gate_up_proj", parts: ["mlp.gate_proj", "mlp.up_proj"] };

/// Granite 4 with Mamba-2, with and without experts.
pub(super) const GRANITE_HYBRID: Architecture = Architecture {
    name: "granitehybrid",
    model_type: "granitemoehybrid",
    class: "GraniteMoeHybridForCausalLM",
    whole: MAMBA_VECTORS,
    modules: &[
        ("ssm_in", "mixer.in_proj"),
        ("ssm_conv1d", "mixer.conv1d"),
        ("ssm_norm", "mixer.norm"),
        ("ssm_out", "mixer.out_proj"),
        ("ffn_gate_inp", "mlp.gate"),
        ("ffn_gate_exps", "mlp.experts.gate_proj"),
        ("ffn_up_exps", "mlp.experts.up_proj"),
        ("ffn_down_exps", "mlp.experts.down_proj"),
        ("ffn_gate_shexp", "mlp.shared_experts.gate_proj"),
        ("ffn_up_shexp", "mlp.shared_experts.up_proj"),
        ("ffn_down_shexp", "mlp.shared_experts.down_proj"),
    ],
    joined: &[GATE_UP],
    has_heads_by_block: true,
    has_experts: true,
    tensor_settings: &[ATTENTION_BIAS],
    settings: |file, json| granite(&Own { file, arch: "granitehybrid" }, json),
    ..LLAMA
};

/// Granite without experts, with attention in all blocks.
pub(super) const GRANITE: Architecture = Architecture {
    name: "granite",
    has_experts: false,
    settings: |file, json| granite(&Own { file, arch: "granite" }, json),
    ..GRANITE_HYBRID
};

/// Granite with experts, with attention in all blocks.
pub(super) const GRANITE_MOE: Architecture = Architecture {
    name: "granitemoe",
    settings: |file, json| granite(&Own { file, arch: "granitemoe" }, json),
    ..GRANITE_HYBRID
};

/// LFM2 without experts. Its final norm has the name of an embedding's norm.
pub(super) const LFM2: Architecture = Architecture {
    name: "lfm2",
    model_type: "lfm2",
    class: "Lfm2ForCausalLM",
    modules: &[
        ("attn_norm", "operator_norm"),
        ("ffn_norm", "ffn_norm"),
        ("shortconv.in_proj", "conv.in_proj"),
        ("shortconv.conv", "conv.conv"),
        ("shortconv.out_proj", "conv.out_proj"),
    ],
    final_norm: "token_embd_norm.weight",
    interleaves_heads: false,
    has_heads_by_block: true,
    tensor_settings: &[],
    settings: |file, json| lfm2(&Own { file, arch: "lfm2" }, json),
    ..LLAMA
};

/// Kinds of all blocks: `full_attention` where there are key heads, else `other`.
fn kinds(own: &Own<'_>, json: &Map<String, Value>, other: &str) -> Result<Vec<String>, LoadError> {
    let layers = json.get("num_hidden_layers").and_then(Value::as_u64).unwrap_or(0);
    let keys = own.by_block("attention.head_count_kv", layers)?;
    let kind = |&keys: &u64| if keys == 0 { other } else { "full_attention" }.to_owned();
    Ok(keys.iter().take(usize::try_from(layers).unwrap_or(usize::MAX)).map(kind).collect())
}

/// Factors, Mamba-2, and which blocks have attention in its place. Attention rotates unless the file denies it.
fn granite(own: &Own<'_>, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    const RECURRENT: &str = "linear_attention";
    let kinds = kinds(own, json, RECURRENT)?;
    if kinds.iter().any(|kind| kind == RECURRENT) {
        mamba(own, json)?;
    }
    let count = own.integer("expert_count")?.unwrap_or(0);
    let width = own.required("feed_forward_length")?;
    // Beside experts it is never absent; without them it may be.
    let shared = match own.integer("expert_shared_feed_forward_length")? {
        Some(shared) => shared,
        None if count == 0 => width,
        None => return Err(own.missing("expert_shared_feed_forward_length")),
    };
    let per_token = if count == 0 { 0 } else { own.required("expert_used_count")? };
    let factor =
        |name: &str| -> Result<Option<f64>, LoadError> { Ok(own.number(name)?.filter(|factor| *factor != 0.0)) };
    let head = json.get("head_dim").and_then(Value::as_u64).unwrap_or(1);
    let rotates = own.flag("rope.scaling.finetuned")?.unwrap_or(true);
    let settings = json!({
        "layer_types": kinds,
        "num_local_experts": count,
        "num_experts_per_tok": per_token,
        "shared_intermediate_size": shared,
        "position_embedding_type": if rotates { "rope" } else { "nope" },
        "embedding_multiplier": factor("embedding_scale")?.unwrap_or(1.0),
        "residual_multiplier": factor("residual_scale")?.unwrap_or(1.0),
        "attention_multiplier": factor("attention.scale")?.unwrap_or_else(|| 1.0 / (head as f64).sqrt()),
        "logits_scaling": own.number("logit_scale")?.ok_or_else(|| own.missing("logit_scale"))?,
    });
    extend(json, settings);
    Ok(())
}

fn mamba(own: &Own<'_>, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    let heads = own.positive("ssm.time_step_rank")?;
    let settings = json!({
        "mamba_n_heads": heads,
        "mamba_d_head": width_of_heads(own, heads)?,
        "mamba_expand": share(own.required("ssm.inner_size")?, own.positive("embedding_length")?),
        "mamba_n_groups": own.positive("ssm.group_count")?,
        "mamba_d_state": own.positive("ssm.state_size")?,
        "mamba_d_conv": own.positive("ssm.conv_kernel")?,
    });
    extend(json, settings);
    Ok(())
}

/// Short convolutions, and which blocks have attention in their place.
fn lfm2(own: &Own<'_>, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    own.one_of("attention.sliding_window", &[0.0])?;
    if own.flag("attention.causal")? == Some(false) {
        let key = own.key("attention.causal");
        return Err(LoadError::Unsupported(format!("{key} false (supported: true)")));
    }
    let settings = json!({
        "layer_types": kinds(own, json, "conv")?,
        "conv_L_cache": own.positive("shortconv.l_cache")?,
        "norm_eps": json.get("rms_norm_eps"),
        // Files have the width after the adjustment.
        "block_auto_adjust_ff_dim": false,
    });
    extend(json, settings);
    json.remove("rms_norm_eps");
    Ok(())
}
