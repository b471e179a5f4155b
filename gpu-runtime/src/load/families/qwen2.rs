//! Qwen2 and Qwen2.5: biases on q, k and v.

use super::{Defaults, base, qwen_windows};
use crate::config::{Arch, LoadError, ModelConfig};
use crate::load::keys::Keys;

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let base = base(&keys, &Defaults { arch: Arch::Qwen2, kv_heads: Some(32), head_dim: None })?;
    Ok(ModelConfig { sliding_window: qwen_windows(&keys, base.num_layers)?, qkv_bias: true, ..base })
}
