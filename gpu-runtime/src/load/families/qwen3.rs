//! Qwen3: RMSNorm on q and k heads, and a head width of its own.

use super::{Defaults, base, qwen_windows};
use crate::config::{Arch, LoadError, ModelConfig};
use crate::load::keys::Keys;

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let base = base(&keys, &Defaults { arch: Arch::Qwen3, kv_heads: Some(32), head_dim: Some(128) })?;
    let attention_bias = keys.flag("attention_bias")?.unwrap_or(false);
    Ok(ModelConfig {
        sliding_window: qwen_windows(&keys, base.num_layers)?,
        qkv_bias: attention_bias,
        o_bias: attention_bias,
        qk_norm: true,
        ..base
    })
}
