//! Mistral: a sliding window in every layer, never a bias.

use super::common::{Defaults, base, window, with_blocks};
use crate::config::{Attention, LoadError, ModelConfig};
use crate::load::keys::Keys;

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let base = base(&keys, &Defaults { arch: "mistral", kv_heads: Some(8), head_dim: None })?;
    let window = window(&keys)?;
    Ok(with_blocks(base, |_, block| block.mixer = Some(Attention { window, ..Attention::default() }.into())))
}
