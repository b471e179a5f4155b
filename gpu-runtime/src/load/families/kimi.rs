//! Kimi-K2, K2-Thinking, K2.5 and K2.6 (Kimi Team 2025, arXiv:2507.20534): DeepSeek-V3's blocks, without groups of
//! experts. K2.5 and K2.6 also have a vision tower. Positions are indices, those of images too.

use super::common::{TEXT_OF_IMAGES, text_config};
use super::{deepseek_v3, vision_moonvit};
use crate::config::{LoadError, ModelConfig, Spelling};
use crate::load::keys::Keys;

/// The tower of images and its projection.
const KEPT: &[&str] =
    &["vision_tower.", "mm_projector.", "model.vision_tower.", "model.mm_projector.", "model.multi_modal_projector."];

pub(super) fn k2(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    Ok(ModelConfig { arch: "kimi_k2", ..deepseek_v3::config(keys)? })
}

pub(super) fn k25(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let text = text_config(&keys)?;
    if let Some(found) = text.text("model_type")?.filter(|found| !["kimi_k2", "deepseek_v3"].contains(found)) {
        let supported = "kimi_k2, deepseek_v3";
        return Err(LoadError::Unsupported(format!("model_type {found:?} in text_config (supported: {supported})")));
    }
    let base = deepseek_v3::config(text)?;
    let spelling = Spelling { prefixes: TEXT_OF_IMAGES, kept: KEPT, ..base.spelling.clone() };
    let vision = vision_moonvit::tower(&keys, &base)?;
    Ok(ModelConfig { arch: "kimi_k25", spelling, vision, ..base })
}
