//! Mistral: a sliding window in every layer, never a bias.

use super::{Defaults, base, window};
use crate::config::{Arch, LoadError, ModelConfig};
use crate::load::keys::Keys;

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let base = base(&keys, &Defaults { arch: Arch::Mistral, kv_heads: Some(8), head_dim: None })?;
    Ok(ModelConfig { sliding_window: vec![window(&keys)?; base.num_layers], ..base })
}
