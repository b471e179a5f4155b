//! What the vision towers of all families have in common.

use super::common::MAX_LAYERS;
use crate::config::{LoadError, VisionConfig};
use crate::load::keys::Keys;

/// Widths above this are taken for a damaged file rather than a tower.
const MAX_WIDTH: usize = 1 << 16;
/// Likewise for a side of the grid of positions, and for a side of a token in patches.
const MAX_SIDE: usize = 1 << 12;
const MAX_MERGE: usize = 8;
/// Likewise for a side of a patch in pixels, and for the frames that make a patch.
const MAX_PATCH: usize = 64;
const MAX_FRAMES: usize = 4;
/// Red, green and blue.
const CHANNELS: usize = 3;

/// The tower, whose extents are in bounds and fit each other. `keys` are those of `vision_config`.
pub(super) fn checked(keys: &Keys<'_>, tower: VisionConfig) -> Result<VisionConfig, LoadError> {
    let VisionConfig { hidden, heads, width, depth, merge, positions, .. } = tower;
    if !hidden.is_multiple_of(heads) || !(hidden / heads).is_multiple_of(4) {
        return Err(keys.malformed(format!(
            "vision_config: hidden_size {hidden} must be a multiple of the number of heads, {heads}, and a head's width of 4"
        )));
    }
    let bounded = [
        ("the tower's width", hidden, MAX_WIDTH),
        ("the width of its MLP", width, MAX_WIDTH),
        ("the number of its blocks", depth, MAX_LAYERS),
        ("the number of rows of its positions", positions.rows, MAX_SIDE),
        ("the number of columns of its positions", positions.columns, MAX_SIDE),
        ("the side of a token in patches", merge, MAX_MERGE),
    ];
    for (what, found, most) in bounded {
        if !(1..=most).contains(&found) {
            return Err(keys.malformed(format!("vision_config: {what} is {found}, expected 1 to {most}")));
        }
    }
    if tower.theta <= 0.0 || !(0.0..1.0).contains(&tower.merger_eps) {
        return Err(keys.malformed(format!(
            "vision_config: rope_theta is {} and the epsilon of mergers {}, expected a positive number and one from 0 to 1",
            tower.theta, tower.merger_eps
        )));
    }
    Ok(tower)
}

/// The number of values of a patch whose side has so many pixels. `keys` are those of `vision_config`.
pub(super) fn patch_dim(keys: &Keys<'_>, patch: usize, frames: usize) -> Result<usize, LoadError> {
    if !(1..=MAX_PATCH).contains(&patch) || !(1..=MAX_FRAMES).contains(&frames) {
        return Err(keys.malformed(format!(
            "vision_config: patches of {frames} frames and {patch} pixels a side, expected 1 to {MAX_FRAMES} and 1 to {MAX_PATCH}"
        )));
    }
    Ok(CHANNELS * frames * patch * patch)
}

/// A token that stands for images or videos, under its key; `None` if the key is missing.
pub(super) fn token(keys: &Keys<'_>, key: &str, vocab: usize) -> Result<Option<u32>, LoadError> {
    match keys.size(key)? {
        Some(token) if token >= vocab => {
            Err(keys.malformed(format!("{key} is {token}, outside the vocabulary of {vocab}")))
        }
        token => Ok(token.map(|token| token as u32)),
    }
}

/// The placeholders of a model, ascending.
pub(super) fn placeholders(image: u32, video: Option<u32>) -> Vec<u32> {
    let mut all: Vec<u32> = std::iter::once(image).chain(video).collect();
    all.sort_unstable();
    all.dedup();
    all
}
