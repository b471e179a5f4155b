//! MoonViT, the vision tower of Kimi-K2.5 and K2.6 (Kimi Team 2025, arXiv:2504.07491), as it sees images. Videos, whose frames have a
//! position in time, are not supported.

use super::vision;
use crate::config::{
    BlockNames, LoadError, MergerNames, ModelConfig, PatchRotation, PositionGrid, Resampling, TowerNames, VisionConfig,
};
use crate::load::keys::Keys;

const NAMES: TowerNames = TowerNames {
    patch_embed: "vision_tower.patch_embed.proj",
    positions: "vision_tower.patch_embed.pos_emb.weight",
    blocks: "vision_tower.encoder.blocks.",
    block: BlockNames { qkv: "wqkv", proj: "wo", mlp: ["mlp.fc0", "mlp.fc1"], norms: ["norm0", "norm1"] },
    final_norm: Some("vision_tower.encoder.final_layernorm"),
    merger: "mm_projector.",
    features: "",
    merger_modules: MergerNames { norm: "pre_norm", mlp: ["proj.0", "proj.2"] },
};
/// Patches of the largest image by the preprocessors of released models (`Preprocessor::most_patches`).
const RELEASED_PATCHES: usize = 36 * 498;
const EPS: f32 = 1e-5;
const THETA: f64 = 10_000.0;
/// Settings that are the same in all released models. Another value would be another tower.
const FIXED: [(&str, &str); 5] = [
    ("hidden_act", "gelu_pytorch_tanh"),
    ("mm_projector_type", "patchmerger"),
    ("merge_type", "sd2_tpool"),
    ("pos_emb_type", "divided_fixed"),
    ("projector_hidden_act", "gelu"),
];

/// The tower of `vision_config`, if there is one. Keys are those of released files, or those that transformers writes.
pub(super) fn tower(keys: &Keys<'_>, config: &ModelConfig) -> Result<Option<VisionConfig>, LoadError> {
    let Some(settings) = keys.object("vision_config")? else { return Ok(None) };
    for (key, supported) in FIXED {
        if let Some(other) = settings.text(key)?.filter(|found| *found != supported) {
            return Err(LoadError::Unsupported(format!("vision_config.{key} {other:?} (supported: {supported})")));
        }
    }
    let of = |names| size(&settings, names);
    let hidden = of(["vt_hidden_size", "hidden_size"])?;
    expect_width(&settings, "mm_hidden_size", hidden)?;
    expect_width(&settings, "text_hidden_size", config.hidden_size)?;
    expect_width(keys, "projection_hidden_size", hidden)?;
    let patch = settings.size("patch_size")?.unwrap_or(14);
    let eps = settings.number("projector_ln_eps")?.or(keys.number("projection_layer_norm_eps")?);
    let image_token = image_token(keys, config.vocab_size)?;
    // Released models write the placeholder of videos as a text, for which transformers has an id behind the vocabulary.
    let video_token = keys.size("video_token_id")?.filter(|token| *token < config.vocab_size);
    let tower = VisionConfig {
        names: NAMES,
        patch_dim: vision::patch_dim(&settings, patch, 1)?,
        hidden,
        heads: of(["vt_num_attention_heads", "num_attention_heads"])?,
        width: of(["vt_intermediate_size", "intermediate_size"])?,
        depth: of(["vt_num_hidden_layers", "num_hidden_layers"])?,
        positions: PositionGrid {
            rows: of(["init_pos_emb_height", "pos_emb_height"])?,
            columns: of(["init_pos_emb_width", "pos_emb_width"])?,
            is_list: false,
            resampling: Resampling::Bicubic,
        },
        rotation: PatchRotation::Neighbours,
        merge: merge(&settings)?,
        out: config.hidden_size,
        eps: EPS,
        merger_eps: eps.map_or(EPS, |eps| eps as f32),
        theta: theta(&settings)?,
        deepstack: Vec::new(),
        image_token,
        placeholders: vision::placeholders(image_token, video_token.map(|token| token as u32)),
        released_patches: RELEASED_PATCHES,
        preprocessor: String::new(),
    };
    vision::checked(&settings, tower).map(Some)
}

/// An extent under its name in released files, or under that of transformers.
fn size(settings: &Keys<'_>, [released, newer]: [&str; 2]) -> Result<usize, LoadError> {
    match [released, newer].into_iter().find(|key| settings.is_written(key)) {
        Some(key) => settings.required_size(key),
        None => Err(settings.malformed(format!("vision_config: {released} (or {newer}) is missing"))),
    }
}

/// Refuses another width than that of the tower or the text model, where files repeat it.
fn expect_width(keys: &Keys<'_>, key: &str, expected: usize) -> Result<(), LoadError> {
    match keys.size(key)? {
        Some(found) if found != expected => Err(keys.malformed(format!("{key} is {found}, expected {expected}"))),
        _ => Ok(()),
    }
}

/// The side of a token in patches: `merge_kernel_size` is a number or a list of two equal ones.
fn merge(settings: &Keys<'_>) -> Result<usize, LoadError> {
    let Some(value) = settings.value("merge_kernel_size") else { return Ok(2) };
    let sides = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let side = sides.first().and_then(serde_json::Value::as_u64);
    let side = side.filter(|side| sides.len() <= 2 && sides.iter().all(|other| other.as_u64() == Some(*side)));
    let side = side.and_then(|side| usize::try_from(side).ok());
    side.ok_or_else(|| settings.malformed(format!("merge_kernel_size is {value}, expected two equal sides")))
}

/// Base of the rotary frequencies.
fn theta(settings: &Keys<'_>) -> Result<f64, LoadError> {
    let Some(rope) = settings.object("rope_parameters")? else { return Ok(THETA) };
    if let Some(other) = rope.text("rope_type")?.filter(|kind| *kind != "axial") {
        return Err(LoadError::Unsupported(format!(
            "vision_config.rope_parameters.rope_type {other:?} (supported: axial)"
        )));
    }
    Ok(rope.number("rope_theta")?.unwrap_or(THETA))
}

/// The token of images: `media_placeholder_token_id` in released files.
fn image_token(keys: &Keys<'_>, vocab: usize) -> Result<u32, LoadError> {
    for key in ["media_placeholder_token_id", "image_token_id"] {
        if let Some(token) = vision::token(keys, key, vocab)? {
            return Ok(token);
        }
    }
    Err(keys.malformed("media_placeholder_token_id (or image_token_id) is missing"))
}
