//! Vision towers of Qwen3-VL and of Qwen3.5, 3.6 and 3.8, and the positions of images in their text models.

use super::vision;
use crate::config::{
    BlockNames, LoadError, MergerNames, ModelConfig, PatchRotation, PositionGrid, Rename, Resampling, RopeSections,
    Spelling, TowerNames, VisionConfig,
};
use crate::load::keys::Keys;

/// Names in files with a text model beside a vision tower, then in those of the text model only.
pub(super) const PREFIXES: &[Rename] = &[
    Rename::new("model.visual.", "model.visual."),
    Rename::new("model.", "model.language_model."),
    Rename::new("lm_head.", "lm_head."),
];
const TOWER: &str = "model.visual.";
const NAMES: TowerNames = TowerNames {
    patch_embed: "model.visual.patch_embed.proj",
    positions: "model.visual.pos_embed.weight",
    blocks: "model.visual.blocks.",
    block: BlockNames {
        qkv: "attn.qkv",
        proj: "attn.proj",
        mlp: ["mlp.linear_fc1", "mlp.linear_fc2"],
        norms: ["norm1", "norm2"],
    },
    final_norm: None,
    merger: "model.visual.merger.",
    features: "model.visual.deepstack_merger_list.",
    merger_modules: MergerNames { norm: "norm", mlp: ["linear_fc1", "linear_fc2"] },
};
/// Patches of the largest image by the preprocessors of released models.
const RELEASED_PATCHES: usize = 1 << 16;
const THETA: f64 = 10_000.0;
const EPS: f32 = 1e-6;

/// The same model with the tower of `vision_config`, if there is one, and the positions of images. `deepstack` tells whether the
/// family adds features of the tower to its first blocks.
pub(super) fn with_tower(
    keys: &Keys<'_>,
    text: &Keys<'_>,
    config: ModelConfig,
    default_sections: [usize; 3],
    deepstack: bool,
) -> Result<ModelConfig, LoadError> {
    let Some(settings) = keys.object("vision_config")? else { return Ok(config) };
    let rope_sections = Some(sections(text, &config, default_sections)?);
    let vision = Some(tower(keys, &settings, &config, deepstack)?);
    let spelling = Spelling { kept: &[TOWER], ..config.spelling.clone() };
    Ok(ModelConfig { rope_sections, vision, spelling, ..config })
}

fn tower(
    keys: &Keys<'_>,
    settings: &Keys<'_>,
    config: &ModelConfig,
    deepstack: bool,
) -> Result<VisionConfig, LoadError> {
    let depth = settings.required_size("depth")?;
    if let Some(other) = settings.text("hidden_act")?.filter(|act| *act != "gelu_pytorch_tanh") {
        return Err(LoadError::Unsupported(format!(
            "vision_config.hidden_act {other:?} (supported: gelu_pytorch_tanh)"
        )));
    }
    let positions = settings.required_size("num_position_embeddings")?;
    let side = positions.isqrt();
    if side * side != positions {
        return Err(settings.malformed(format!("num_position_embeddings is {positions}, expected a square")));
    }
    let out = settings.size("out_hidden_size")?.unwrap_or(config.hidden_size);
    if out != config.hidden_size {
        return Err(settings.malformed(format!("out_hidden_size is {out}, expected {}", config.hidden_size)));
    }
    let channels = settings.size("in_channels")?.unwrap_or(3);
    if channels != 3 {
        return Err(LoadError::Unsupported(format!("vision_config.in_channels {channels} (supported: 3)")));
    }
    let patch = settings.size("patch_size")?.unwrap_or(16);
    let frames = settings.size("temporal_patch_size")?.unwrap_or(2);
    let theta = match settings.object("rope_parameters")? {
        Some(rope) => rope.number("rope_theta")?,
        None => None,
    };
    let image_token = vision::token(keys, "image_token_id", config.vocab_size)?;
    let image_token = image_token.ok_or_else(|| keys.malformed("image_token_id is missing"))?;
    let video_token = vision::token(keys, "video_token_id", config.vocab_size)?;
    let tower = VisionConfig {
        names: NAMES,
        patch_dim: vision::patch_dim(settings, patch, frames)?,
        hidden: settings.required_size("hidden_size")?,
        heads: settings.required_size("num_heads")?,
        width: settings.required_size("intermediate_size")?,
        depth,
        positions: PositionGrid { rows: side, columns: side, is_list: true, resampling: Resampling::Bilinear },
        rotation: PatchRotation::Halves,
        merge: settings.size("spatial_merge_size")?.unwrap_or(2),
        out,
        eps: EPS,
        merger_eps: EPS,
        theta: theta.unwrap_or(THETA),
        deepstack: if deepstack { features(settings, depth, config.num_layers())? } else { Vec::new() },
        image_token,
        placeholders: vision::placeholders(image_token, video_token),
        released_patches: RELEASED_PATCHES,
        preprocessor: String::new(),
    };
    vision::checked(settings, tower)
}

/// Blocks of the tower that have features for the text model.
fn features(vision: &Keys<'_>, depth: usize, layers: usize) -> Result<Vec<usize>, LoadError> {
    let listed = vision.list("deepstack_visual_indexes")?.map(Vec::as_slice).unwrap_or_default();
    let block = |value: &serde_json::Value| value.as_u64().map(|block| block as usize).filter(|block| *block < depth);
    let blocks: Option<Vec<usize>> = listed.iter().map(block).collect();
    let is_rising = |blocks: &Vec<usize>| blocks.is_sorted_by(|a, b| a < b) && blocks.len() <= layers;
    blocks.filter(is_rising).ok_or_else(|| {
        vision.malformed(format!(
            "deepstack_visual_indexes: expected at most {layers} rising blocks below {depth}, the depth of the tower"
        ))
    })
}

/// `mrope_section`: frequencies of each coordinate.
fn sections(text: &Keys<'_>, config: &ModelConfig, default: [usize; 3]) -> Result<RopeSections, LoadError> {
    let rope = match text.object("rope_parameters")? {
        Some(rope) => Some(rope),
        None => text.object("rope_scaling")?,
    };
    let Some(rope) = rope else { return Ok(RopeSections(default)) };
    if rope.flag("mrope_interleaved")? == Some(false) {
        return Err(LoadError::Unsupported("mrope_interleaved false (supported: true)".to_owned()));
    }
    let Some(listed) = rope.list("mrope_section")? else { return Ok(RopeSections(default)) };
    let frequencies = config.rope_dim() / 2;
    let section = |value: &serde_json::Value| value.as_u64().map(|n| n as usize).filter(|n| *n <= frequencies);
    let found: Option<Vec<usize>> = listed.iter().map(section).collect();
    let found = found.and_then(|found| <[usize; 3]>::try_from(found).ok());
    found.map(RopeSections).ok_or_else(|| {
        rope.malformed(format!("mrope_section: expected three counts of at most {frequencies} frequencies"))
    })
}
