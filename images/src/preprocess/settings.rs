//! Reads `preprocessor_config.json`.
//!
//! A setting that changes numbers must be implemented or have the value that it has in the reference; every other one is
//! refused by its name, so that no model runs with other images than it was trained on.

use serde_json::Value;

use crate::preprocess::error::SettingsError;
use crate::preprocess::fields::Fields;
use crate::preprocess::kimi::Kimi;
use crate::preprocess::qwen::Qwen;
use crate::preprocess::{Preprocessor, Rule};

/// Settings of `media_proc_cfg` that change no number of an image: those of videos.
const NEUTRAL_MEDIA: &[&str] = &[
    "config_type",
    "in_patch_limit_each_frame",
    "in_patch_limit_video",
    "max_num_frames_each_video",
    "sample_fps",
    "temporal_merge_kernel_size",
    "timestamp_mode",
];

/// Largest values of settings. Released files are far below.
const MAX_PATCH: u64 = 64;
const MAX_MERGE: u64 = 8;
const MAX_FRAMES: u64 = 4;
const MAX_PIXELS: u64 = 1 << 26;
const MAX_PATCHES: u64 = 1 << 18;
const MAX_SIDE: u64 = 4096;

/// Mean and deviation of CLIP, the default of Qwen2-VL's processor.
const CLIP_MEAN: [f64; 3] = [0.481_454_66, 0.457_827_5, 0.408_210_73];
const CLIP_DEVIATION: [f64; 3] = [0.268_629_54, 0.261_302_58, 0.275_777_11];

pub(super) fn read(text: &str) -> Result<Preprocessor, SettingsError> {
    let value: Value = serde_json::from_str(text).map_err(|error| SettingsError::Json(error.to_string()))?;
    let Value::Object(settings) = value else {
        return Err(SettingsError::Json("expected a JSON object".to_owned()));
    };
    let kind = settings.get("image_processor_type").cloned().unwrap_or_default();
    let mut fields = Fields::new(settings, "");
    if let Some(media) = fields.object("media_proc_cfg")? {
        fields.finish(&[])?;
        return released_kimi(Fields::new(media, "media_proc_cfg."));
    }
    match kind.as_str() {
        Some("Qwen2VLImageProcessor" | "Qwen2VLImageProcessorFast" | "Qwen2VLImageProcessorPil") => qwen(fields),
        Some("Kimi_K25ImageProcessor" | "Kimi_K25ImageProcessorFast") => kimi(fields),
        _ => {
            let wanted = "Qwen2VLImageProcessor or Kimi_K25ImageProcessor";
            Err(fields.expected("image_processor_type", wanted, &kind))
        }
    }
}

/// Reads the file of Qwen's models.
fn qwen(mut fields: Fields<'_>) -> Result<Preprocessor, SettingsError> {
    let patch = fields.number("patch_size", 14, MAX_PATCH)? as u32;
    let merge = fields.number("merge_size", 2, MAX_MERGE)? as u32;
    let frames = fields.number("temporal_patch_size", 2, MAX_FRAMES)? as u32;
    let mut range = [56 * 56, 28 * 28 * 1280];
    if let Some(size) = fields.object("size")? {
        let mut size = Fields::new(size, "size.");
        range = [size.required("shortest_edge", MAX_PIXELS)?, size.required("longest_edge", MAX_PIXELS)?];
        size.finish(&[])?;
    }
    // Older files have these, and they win.
    let min_pixels = fields.number("min_pixels", range[0], MAX_PIXELS)?;
    let max_pixels = fields.number("max_pixels", range[1], MAX_PIXELS)?;
    if min_pixels > max_pixels {
        let reason = format!("expected a minimum of at most {max_pixels} pixels, the maximum, found {min_pixels}");
        return Err(fields.refused("size", reason));
    }
    let normalization = fields.normalization(CLIP_MEAN, CLIP_DEVIATION)?;
    fields.finish(&[])?;
    Ok(Preprocessor { rule: Rule::Qwen(Qwen { patch, merge, frames, min_pixels, max_pixels }), normalization })
}

/// Reads the file of Kimi's models as transformers writes it.
fn kimi(mut fields: Fields<'_>) -> Result<Preprocessor, SettingsError> {
    let patch = fields.number("patch_size", 14, MAX_PATCH)? as u32;
    let merge = fields.number("merge_size", 2, MAX_MERGE)? as u32;
    let max_patches = fields.number("max_patches", 16_384, MAX_PATCHES)? as u32;
    let mut max_side = 512;
    if let Some(size) = fields.object("size")? {
        let mut size = Fields::new(size, "size.");
        max_side = size.required("max_height", MAX_SIDE)?;
        let width = size.required("max_width", MAX_SIDE)?;
        if width != max_side {
            return Err(size.refused("max_width", format!("expected {max_side} as in `max_height`, found {width}")));
        }
        size.finish(&[])?;
    }
    let normalization = fields.normalization([0.5; 3], [0.5; 3])?;
    fields.finish(&[])?;
    Ok(Preprocessor { rule: Rule::Kimi(Kimi { patch, merge, max_patches, max_side: max_side as u32 }), normalization })
}

/// Reads `media_proc_cfg` of Kimi's released files.
fn released_kimi(mut fields: Fields<'_>) -> Result<Preprocessor, SettingsError> {
    let patch = fields.number("patch_size", 14, MAX_PATCH)? as u32;
    let merge = fields.number("merge_kernel_size", 2, MAX_MERGE)? as u32;
    let max_patches = fields.number("in_patch_limit", 16_384, MAX_PATCHES)? as u32;
    let max_side = fields.number("patch_limit_on_one_side", 512, MAX_SIDE)? as u32;
    let normalization = fields.normalization([0.5; 3], [0.5; 3])?;
    fields.finish(NEUTRAL_MEDIA)?;
    Ok(Preprocessor { rule: Rule::Kimi(Kimi { patch, merge, max_patches, max_side }), normalization })
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
