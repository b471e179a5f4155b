//! Granite 4 (`granitemoehybrid`): Mamba-2 and attention, mostly without positions, and factors on embeddings, on what blocks add,
//! on attention's scores and on logits. Projections of one input are one module. MLPs are dense, or beside routed experts.

use super::common::{Defaults, base_of, checked_counts, with_blocks};
use super::nemotron_h::step_limits;
use crate::config::{
    Attention, Biases, ExpertStorage, Experts, FusedRows, LoadError, Mixer, ModelConfig, RecurrentRule, RecurrentShape,
    Rename, RouterRule, Spelling,
};
use crate::load::keys::Keys;

const NAMES: &[Rename] = &[
    Rename::new("mixer.", "mamba."),
    Rename::new("mlp.gate_up_proj.", "shared_mlp.input_linear."),
    Rename::new("mlp.down_proj.", "shared_mlp.output_linear."),
];
/// Names in blocks with experts: those of released files, then those of the modules of transformers, which adapters have.
const NAMES_WITH_EXPERTS: &[Rename] = &[
    Rename::new("mixer.", "mamba."),
    Rename::new("mlp.gate.", "block_sparse_moe.router.layer."),
    Rename::new("mlp.gate.", "block_sparse_moe.router."),
    Rename::new("mlp.experts.gate_up_proj", "block_sparse_moe.input_linear.weight"),
    Rename::new("mlp.experts.down_proj", "block_sparse_moe.output_linear.weight"),
    Rename::new("mlp.experts.", "block_sparse_moe.experts."),
    Rename::new("mlp.shared_experts.gate_up_proj.", "shared_mlp.input_linear."),
    Rename::new("mlp.shared_experts.down_proj.", "shared_mlp.output_linear."),
    Rename::new("mlp.shared_experts.", "shared_mlp."),
];
const FUSED: &[FusedRows] = &[
    FusedRows { module: "mixer.conv1d", parts: &["mixer.conv_x", "mixer.conv_b", "mixer.conv_c"] },
    FusedRows {
        module: "mlp.shared_experts.gate_up_proj",
        parts: &["mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj"],
    },
];

/// Widths above this are taken for a damaged file.
const MOST_WIDE: usize = 1 << 28;

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    refuse_what_is_not_there(&keys)?;
    let layers = keys.required_size("num_hidden_layers")?;
    let shared = size(&keys, "shared_intermediate_size", 1024)?;
    let experts = experts(&keys, shared)?;
    let width = experts.as_ref().map_or(shared, |experts| experts.width);
    let defaults = Defaults { arch: "granitemoehybrid", kv_heads: None, head_dim: None };
    let base = base_of(&keys, &defaults, layers, width)?;
    let attends = attention_layers(&keys, layers)?;
    let recurrent = if attends.contains(&false) { Some(mamba(&keys, base.hidden_size)?) } else { None };
    let rotates = rotates(&keys)?;
    let biased = keys.flag("attention_bias")?.unwrap_or(false);
    let names = if experts.is_some() { NAMES_WITH_EXPERTS } else { NAMES };
    let config = ModelConfig {
        embedding_scale: factor(&keys, "embedding_multiplier")?,
        residual_scale: factor(&keys, "residual_multiplier")?,
        attention_scale: factor(&keys, "attention_multiplier")?,
        logit_scale: 1.0 / factor(&keys, "logits_scaling")?,
        ropes: if rotates { base.ropes } else { Vec::new() },
        spelling: Spelling { blocks: vec![names; layers], fused: FUSED, ..Spelling::default() },
        ..base
    };
    Ok(with_blocks(config, |layer, block| {
        let attention = Attention { rope: rotates.then_some(0), ..Attention::default() };
        block.mixer = if attends[layer] { Some(attention.into()) } else { recurrent.map(Mixer::from) };
        block.biases = Biases { qkv: biased, o: biased, ..Biases::default() };
        block.joins_inputs = true;
        block.experts.clone_from(&experts);
    }))
}

/// The experts of every block, where there are some, beside an MLP of width `shared`.
fn experts(keys: &Keys<'_>, shared: usize) -> Result<Option<Experts>, LoadError> {
    const COUNT: &str = "num_local_experts";
    // The family's default is not 0.
    let count = keys.size(COUNT)?.unwrap_or(8);
    if count == 0 {
        return Ok(None);
    }
    let (count, per_token) = checked_counts(keys, COUNT, count, size(keys, "num_experts_per_tok", 2)?)?;
    Ok(Some(Experts {
        count,
        held: 0..count,
        width: keys.required_size("intermediate_size")?,
        shared: Some(shared),
        shared_is_gated: false,
        latent: None,
        rule: RouterRule::softmax(per_token, true),
        correction: Vec::new(),
        router: "mlp.gate",
        storage: ExpertStorage::Rows,
    }))
}

fn size(keys: &Keys<'_>, key: &str, default: usize) -> Result<usize, LoadError> {
    match keys.size(key)? {
        Some(0) => Err(keys.malformed(format!("{key} is zero"))),
        size => Ok(size.unwrap_or(default)),
    }
}

/// A factor, 1 unless it is written.
fn factor(keys: &Keys<'_>, key: &str) -> Result<f32, LoadError> {
    let factor = keys.number(key)?.unwrap_or(1.0) as f32;
    if !factor.is_normal() {
        return Err(keys.malformed(format!("{key} is {factor}, expected a number other than 0")));
    }
    Ok(factor)
}

/// Whether attention rotates queries and keys.
fn rotates(keys: &Keys<'_>) -> Result<bool, LoadError> {
    match keys.text("position_embedding_type")? {
        None | Some("nope") => Ok(false),
        Some("rope") => Ok(true),
        Some(other) => {
            Err(LoadError::Unsupported(format!("position_embedding_type {other:?} (supported: nope, rope)")))
        }
    }
}

/// Whether each layer has attention: by either name of the list; none has unless it is written.
fn attention_layers(keys: &Keys<'_>, layers: usize) -> Result<Vec<bool>, LoadError> {
    let key = if keys.value("layer_types").is_some() { "layer_types" } else { "layers_block_type" };
    let Some(types) = keys.list(key)? else { return Ok(vec![false; layers]) };
    if types.len() != layers {
        return Err(keys.malformed(format!("{key} has {} entries for {layers} layers", types.len())));
    }
    let attends = types.iter().map(|kind| match kind.as_str() {
        Some("full_attention" | "attention") => Ok(true),
        Some("linear_attention" | "mamba") => Ok(false),
        _ => Err(LoadError::Unsupported(format!(
            "layer type {kind} (supported: linear_attention, mamba, full_attention, attention)"
        ))),
    });
    attends.collect()
}

fn mamba(keys: &Keys<'_>, hidden_size: usize) -> Result<RecurrentShape, LoadError> {
    let heads = size(keys, "mamba_n_heads", 128)?;
    let expanded = (keys.number("mamba_expand")?.unwrap_or(2.0) * hidden_size as f64) as usize;
    // The width of a head may be "auto".
    let is_auto = keys.value("mamba_d_head").is_none_or(|value| value.as_str() == Some("auto"));
    let value_dim = if is_auto { expanded / heads } else { size(keys, "mamba_d_head", 0)? };
    if value_dim == 0 || expanded > MOST_WIDE || heads.checked_mul(value_dim) != Some(expanded) {
        return Err(keys.malformed(format!(
            "mamba_n_heads {heads} of width {value_dim} are not the {expanded} channels of mamba_expand"
        )));
    }
    let shape = RecurrentShape {
        rule: RecurrentRule::Mamba2 { limits: step_limits(keys)? },
        key_heads: size(keys, "mamba_n_groups", 1)?,
        value_heads: heads,
        key_dim: size(keys, "mamba_d_state", 256)?,
        value_dim,
        kernel: size(keys, "mamba_d_conv", 4)?,
    };
    if !heads.is_multiple_of(shape.key_heads) {
        return Err(keys.malformed(format!("mamba_n_groups {} does not divide {heads} heads", shape.key_heads)));
    }
    Ok(shape)
}

fn refuse_what_is_not_there(keys: &Keys<'_>) -> Result<(), LoadError> {
    for (key, supported) in [("mamba_conv_bias", true), ("mamba_proj_bias", false)] {
        if let Some(found) = keys.flag(key)?.filter(|found| *found != supported) {
            return Err(LoadError::Unsupported(format!("{key} {found} (supported: {supported})")));
        }
    }
    // It is also the activation behind the convolution.
    match keys.text("hidden_act")?.filter(|found| *found != "silu") {
        None => Ok(()),
        Some(found) => Err(LoadError::Unsupported(format!("hidden_act {found:?} (supported: silu)"))),
    }
}
