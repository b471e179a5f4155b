//! Ministral 3: Mistral with heads of their own width, and queries that are scaled by position beyond the context of
//! pre-training. Released models take images; only their text model is read.

use super::common::{Defaults, TEXT_OF_IMAGES, base, rms_norm_eps, text_config, window, with_blocks};
use super::rope;
use crate::config::{Attention, LoadError, ModelConfig, Spelling};
use crate::load::keys::Keys;

/// The tower of images and its projection.
const KEPT: &[&str] =
    &["vision_tower.", "multi_modal_projector.", "model.vision_tower.", "model.multi_modal_projector."];

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let base = base(&keys, &Defaults { arch: "ministral3", kv_heads: Some(8), head_dim: Some(128) })?;
    let window = if keys.is_written("sliding_window") { window(&keys)? } else { None };
    let config =
        ModelConfig { rms_norm_eps: rms_norm_eps(&keys, 1e-5)?, query_scaling: rope::query_scaling(&keys)?, ..base };
    Ok(with_blocks(config, |_, block| block.mixer = Some(Attention { window, ..Attention::default() }.into())))
}

pub(super) fn with_images(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let text = text_config(&keys)?;
    let base = match text.text("model_type")? {
        Some("mistral") => super::mistral::config(text)?,
        Some("ministral3") => config(text)?,
        found => {
            let reason = format!("model_type {found:?} in text_config (supported: mistral, ministral3)");
            return Err(LoadError::Unsupported(reason));
        }
    };
    let tied = keys.flag("tie_word_embeddings")?.unwrap_or(base.tie_word_embeddings);
    let spelling = Spelling { prefixes: TEXT_OF_IMAGES, kept: KEPT, ..Spelling::default() };
    Ok(ModelConfig { arch: "mistral3", tie_word_embeddings: tied, spelling, ..base })
}
