//! Vision towers of Qwen3-VL and of Qwen3.5, 3.6 and 3.8, and the positions of images in their text models.

use super::common::MAX_LAYERS;
use crate::config::{LoadError, ModelConfig, Rename, RopeSections, Spelling, VisionConfig};
use crate::load::keys::Keys;

/// Names in files with a text model beside a vision tower, then in those of the text model only.
pub(super) const PREFIXES: &[Rename] = &[
    Rename::new("model.visual.", "model.visual."),
    Rename::new("model.", "model.language_model."),
    Rename::new("lm_head.", "lm_head."),
];
const TOWER: &str = "model.visual.";
/// Keys of tokens that clients may not send.
const PLACEHOLDERS: [&str; 2] = ["image_token_id", "video_token_id"];
const THETA: f64 = 10_000.0;

/// The same model with the tower of `vision_config`, if there is one, and the positions of images. `deepstack` tells whether the
/// family adds features of the tower to its first blocks.
pub(super) fn with_tower(
    keys: &Keys<'_>,
    text: &Keys<'_>,
    config: ModelConfig,
    default_sections: [usize; 3],
    deepstack: bool,
) -> Result<ModelConfig, LoadError> {
    let Some(vision) = keys.object("vision_config")? else { return Ok(config) };
    let rope_sections = Some(sections(text, &config, default_sections)?);
    let vision = Some(tower(keys, &vision, &config, deepstack)?);
    let spelling = Spelling { kept: &[TOWER], ..config.spelling.clone() };
    Ok(ModelConfig { rope_sections, vision, spelling, ..config })
}

fn tower(keys: &Keys<'_>, vision: &Keys<'_>, config: &ModelConfig, deepstack: bool) -> Result<VisionConfig, LoadError> {
    let (hidden, heads) = (vision.required_size("hidden_size")?, vision.required_size("num_heads")?);
    if !hidden.is_multiple_of(heads) || !(hidden / heads).is_multiple_of(4) {
        return Err(vision.malformed(format!(
            "vision_config: hidden_size {hidden} must be a multiple of num_heads {heads}, and a head's width of 4"
        )));
    }
    let depth = vision.required_size("depth")?;
    if depth > MAX_LAYERS {
        return Err(vision.malformed(format!("vision_config: depth is {depth}, above {MAX_LAYERS}")));
    }
    if let Some(other) = vision.text("hidden_act")?.filter(|act| *act != "gelu_pytorch_tanh") {
        return Err(LoadError::Unsupported(format!(
            "vision_config.hidden_act {other:?} (supported: gelu_pytorch_tanh)"
        )));
    }
    let positions = vision.required_size("num_position_embeddings")?;
    let side = positions.isqrt();
    if side * side != positions {
        return Err(vision.malformed(format!("num_position_embeddings is {positions}, expected a square")));
    }
    let out = vision.size("out_hidden_size")?.unwrap_or(config.hidden_size);
    if out != config.hidden_size {
        return Err(vision.malformed(format!("out_hidden_size is {out}, expected {}", config.hidden_size)));
    }
    let channels = vision.size("in_channels")?.unwrap_or(3);
    if channels != 3 {
        return Err(LoadError::Unsupported(format!("vision_config.in_channels {channels} (supported: 3)")));
    }
    let patch = vision.size("patch_size")?.unwrap_or(16);
    let frames = vision.size("temporal_patch_size")?.unwrap_or(2);
    let theta = match vision.object("rope_parameters")? {
        Some(rope) => rope.number("rope_theta")?,
        None => None,
    };
    let (image_token, placeholders) = tokens(keys, config.vocab_size)?;
    Ok(VisionConfig {
        prefix: TOWER,
        patch_dim: channels * frames * patch * patch,
        hidden,
        heads,
        width: vision.required_size("intermediate_size")?,
        depth,
        position_side: side,
        merge: vision.size("spatial_merge_size")?.unwrap_or(2).max(1),
        out,
        eps: 1e-6,
        theta: theta.unwrap_or(THETA),
        deepstack: if deepstack { features(vision, depth, config.num_layers())? } else { Vec::new() },
        image_token,
        placeholders,
        preprocessor: String::new(),
    })
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

/// The token of images, and all placeholders.
fn tokens(keys: &Keys<'_>, vocab: usize) -> Result<(u32, Vec<u32>), LoadError> {
    let token = |key: &str| match keys.size(key)? {
        Some(token) if token >= vocab => {
            Err(keys.malformed(format!("{key} is {token}, outside the vocabulary of {vocab}")))
        }
        token => Ok(token.map(|token| token as u32)),
    };
    let [image, video] = PLACEHOLDERS.map(token);
    let image = image?.ok_or_else(|| keys.malformed("image_token_id is missing"))?;
    let mut all: Vec<u32> = std::iter::once(image).chain(video?).collect();
    all.sort_unstable();
    all.dedup();
    Ok((image, all))
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
