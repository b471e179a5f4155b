//! Nemotron-H and Nemotron-3 (NVIDIA 2025, arXiv:2504.03624): blocks with one part each, which is Mamba-2, attention without
//! positions, an MLP without a gate or experts like it, with the router of DeepSeek-V3. Experts may work on a latent.

use super::common::{Defaults, base_of, rms_norm_eps_of, with_blocks};
use super::deepseek_v3::{Routing, experts};
use crate::config::{
    Activation, Attention, Biases, Block, BlockNorms, Experts, FusedRows, LoadError, Mixer, ModelConfig, RecurrentRule,
    RecurrentShape, Rename, Spelling,
};
use crate::load::keys::Keys;

const ROUTING: Routing = Routing { groups: 1, chosen_groups: 1, scaling: 1.0, dense_blocks: 0 };

/// The one norm of a block.
const NORM: &str = "input_layernorm";
const RECURRENT: &[Rename] = &[Rename::new("input_layernorm.", "norm.")];
const ATTENTION: &[Rename] = &[Rename::new("self_attn.", "mixer."), Rename::new("input_layernorm.", "norm.")];
const MLP: &[Rename] = &[Rename::new("mlp.", "mixer."), Rename::new("input_layernorm.", "norm.")];
/// Names in released files, then those that newer versions of transformers write.
const PREFIXES: &[Rename] = &[
    Rename::new("model.embed_tokens.", "backbone.embeddings."),
    Rename::new("model.norm.", "backbone.norm_f."),
    Rename::new("model.", "backbone."),
    Rename::new("model.embed_tokens.", "model.embeddings."),
    Rename::new("model.norm.", "model.norm_f."),
];
const FUSED: &[FusedRows] = &[
    FusedRows {
        module: "mixer.in_proj",
        parts: &["mixer.gate_proj", "mixer.x_proj", "mixer.b_proj", "mixer.c_proj", "mixer.dt_proj"],
    },
    FusedRows { module: "mixer.conv1d", parts: &["mixer.conv_x", "mixer.conv_b", "mixer.conv_c"] },
];
/// Layers that predict further tokens.
const UNUSED: &[&str] = &["mtp."];

/// The one part of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Recurrent,
    Attention,
    Mlp,
    Experts,
}

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    refuse_what_is_not_there(&keys)?;
    let parts = parts(&keys)?;
    let has = |part: Part| parts.contains(&part);
    // Older files have another name for the width of a head.
    let head_dim = keys.size("attention_head_dim")?.filter(|_| !keys.is_written("head_dim")).unwrap_or(128);
    let defaults = Defaults { arch: "nemotron_h", kv_heads: Some(8), head_dim: Some(head_dim) };
    let width = if has(Part::Mlp) { keys.required_size("intermediate_size")? } else { 1 };
    let base = base_of(&keys, &defaults, parts.len(), width)?;
    let recurrent = if has(Part::Recurrent) { Some(mamba(&keys)?) } else { None };
    let mixture = if has(Part::Experts) { Some(mixture(&keys)?) } else { None };
    let attention = Attention { rope: None, ..Attention::default() };
    let attention_bias = keys.flag("attention_bias")?.unwrap_or(false);
    let biases = Biases {
        qkv: attention_bias,
        o: attention_bias,
        mlp: keys.flag("mlp_bias")?.unwrap_or(false),
        ..Biases::default()
    };
    let names = |part: &Part| match part {
        Part::Recurrent => RECURRENT,
        Part::Attention => ATTENTION,
        Part::Mlp | Part::Experts => MLP,
    };
    let config = ModelConfig {
        rms_norm_eps: rms_norm_eps_of(&keys, "layer_norm_epsilon", 1e-5)?,
        ropes: Vec::new(),
        spelling: Spelling {
            prefixes: PREFIXES,
            blocks: parts.iter().map(names).collect(),
            fused: FUSED,
            unused: UNUSED,
            ..Spelling::default()
        },
        ..base
    };
    Ok(with_blocks(config, |layer, block| {
        let part = parts[layer];
        let is_mixer = matches!(part, Part::Recurrent | Part::Attention);
        *block = Block {
            norms: BlockNorms {
                pre_attention: is_mixer.then_some(NORM),
                pre_mlp: (!is_mixer).then_some(NORM),
                post_attention: None,
                post_mlp: None,
            },
            mixer: match part {
                Part::Recurrent => recurrent.map(Mixer::from),
                Part::Attention => Some(attention.into()),
                Part::Mlp | Part::Experts => None,
            },
            has_mlp: !is_mixer,
            activation: Activation::SquaredRelu,
            biases,
            experts: mixture.clone().filter(|_| part == Part::Experts),
            joins_inputs: false,
        };
    }))
}

/// The part of each block: names of parts, or a letter for each.
fn parts(keys: &Keys<'_>) -> Result<Vec<Part>, LoadError> {
    if let Some(list) = keys.list("layers_block_type")? {
        let part = |kind: &serde_json::Value| match kind.as_str() {
            Some("linear_attention" | "mamba") => Ok(Part::Recurrent),
            Some("full_attention" | "attention") => Ok(Part::Attention),
            Some("mlp") => Ok(Part::Mlp),
            Some("moe") => Ok(Part::Experts),
            _ => Err(LoadError::Unsupported(format!(
                "layer type {kind} (supported: linear_attention, full_attention, mlp, moe)"
            ))),
        };
        return list.iter().map(part).collect();
    }
    let Some(pattern) = keys.text("hybrid_override_pattern")? else {
        return Err(keys.malformed("layers_block_type and hybrid_override_pattern are missing"));
    };
    let part = |letter: char| match letter {
        'M' => Ok(Part::Recurrent),
        '*' => Ok(Part::Attention),
        '-' => Ok(Part::Mlp),
        'E' => Ok(Part::Experts),
        _ => Err(LoadError::Unsupported(format!("{letter:?} in hybrid_override_pattern (supported: M, *, -, E)"))),
    };
    pattern.chars().map(part).collect()
}

fn mamba(keys: &Keys<'_>) -> Result<RecurrentShape, LoadError> {
    let shape = RecurrentShape {
        rule: RecurrentRule::Mamba2 { limits: step_limits(keys)? },
        key_heads: keys.required_size("n_groups")?,
        value_heads: keys.required_size("mamba_num_heads")?,
        key_dim: keys.required_size("ssm_state_size")?,
        value_dim: keys.required_size("mamba_head_dim")?,
        kernel: keys.size("conv_kernel")?.filter(|kernel| *kernel > 0).unwrap_or(4),
    };
    if !shape.value_heads.is_multiple_of(shape.key_heads) {
        return Err(keys.malformed(format!("n_groups {} does not divide {} heads", shape.key_heads, shape.value_heads)));
    }
    Ok(shape)
}

/// Bounds of a step: `time_step_limit`. `time_step_min` and `time_step_max` only initialise weights.
pub(super) fn step_limits(keys: &Keys<'_>) -> Result<(f32, f32), LoadError> {
    let Some(list) = keys.list("time_step_limit")? else { return Ok((0.0, f32::INFINITY)) };
    let number = |value: &serde_json::Value| match value.get("__float__").and_then(|text| text.as_str()) {
        Some("Infinity") => Some(f32::INFINITY),
        _ => value.as_f64().map(|number| number as f32),
    };
    match list.iter().map(number).collect::<Vec<_>>()[..] {
        [Some(low), Some(high)] if 0.0 <= low && low <= high => Ok((low, high)),
        _ => Err(keys.malformed("time_step_limit is not a lower and an upper bound")),
    }
}

fn mixture(keys: &Keys<'_>) -> Result<Experts, LoadError> {
    let (_, experts) = experts(keys, &ROUTING)?;
    let shared = match experts.shared {
        None => None,
        Some(_) => Some(keys.required_size("moe_shared_expert_intermediate_size")?),
    };
    let latent = keys.size("moe_latent_size")?;
    if latent == Some(0) {
        return Err(keys.malformed("moe_latent_size is zero"));
    }
    Ok(Experts { shared, latent, ..experts })
}

/// Settings of the models' own code that no checkpoint of the family changes.
fn refuse_what_is_not_there(keys: &Keys<'_>) -> Result<(), LoadError> {
    for (key, supported) in [("mlp_hidden_act", "relu2"), ("mamba_hidden_act", "silu")] {
        if let Some(found) = keys.text(key)?.filter(|found| *found != supported) {
            return Err(LoadError::Unsupported(format!("{key} {found:?} (supported: {supported})")));
        }
    }
    for (key, supported) in [("use_conv_bias", true), ("use_bias", false), ("mamba_proj_bias", false)] {
        if let Some(found) = keys.flag(key)?.filter(|found| *found != supported) {
            return Err(LoadError::Unsupported(format!("{key} {found} (supported: {supported})")));
        }
    }
    match keys.size("sliding_window")? {
        None => Ok(()),
        Some(window) => Err(LoadError::Unsupported(format!("sliding_window {window} (supported: null)"))),
    }
}
